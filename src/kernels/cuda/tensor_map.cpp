#include "kernels/cuda/kernels.h"

namespace ats {

using encode_tiled = decltype(&cuTensorMapEncodeTiled);

// libcuda is never linked: the runtime knows where the driver's function is.
static encode_tiled find_encoder()
{
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    const cudaError_t rc = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000,
                                                            cudaEnableDefault, &found);
#else
    const cudaError_t rc =
        cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &entry, cudaEnableDefault, &found);
#endif
    if (rc == cudaSuccess && found == cudaDriverEntryPointSuccess)
        return reinterpret_cast<encode_tiled>(entry);
    cudaGetLastError();
    return nullptr;
}

bool make_tensor_map(CUtensorMap *out, ats_device_type type, const void *at, int64_t rows, int pitch)
{
    static const encode_tiled encode = find_encoder();
    if (encode == nullptr || rows < 1 || rows > INT32_MAX) return false;
    const cuuint64_t size[] = {static_cast<cuuint64_t>(pitch), static_cast<cuuint64_t>(rows)};
    const cuuint64_t stride[] = {static_cast<cuuint64_t>(pitch) * 2}; // bytes
    const cuuint32_t box[] = {64, 64}, step[] = {1, 1};
    return encode(out,
                  type == ATS_DEVICE_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                          : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                  2, const_cast<void *>(at), size, stride, box, step,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

} // namespace ats

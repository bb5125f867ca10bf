// The calls of cuBLAS that the module makes, by loops; in the place of cublas_library.cpp.
// CUEMU_CUBLAS=0: the library is missing.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdio>
#include <cstdlib>

#include "cuemu_private.h"
#include "kernels/cuda/cublas_library.h"

struct cublasContext {
    cudaStream_t stream;
};

namespace {

struct Matrix {
    const void *at;
    cudaDataType type;
    int ld;
    bool transposed;

    float operator()(int row, int column) const // column-major, as cuBLAS has it
    {
        const long i = transposed ? long(row) * ld + column : long(column) * ld + row;
        if (type == CUDA_R_32F) return static_cast<const float *>(at)[i];
        if (type == CUDA_R_16BF) return float(static_cast<const __nv_bfloat16 *>(at)[i]);
        return float(static_cast<const __half *>(at)[i]);
    }
};

void multiply(int m, int n, int k, float alpha, const Matrix &a, const Matrix &b, float beta,
              float *c, int ldc)
{
    for (int column = 0; column < n; column++)
        for (int row = 0; row < m; row++) {
            float sum = 0;
            for (int i = 0; i < k; i++) sum += a(row, i) * b(i, column);
            float *out = c + long(column) * ldc + row;
            *out = alpha * sum + (beta != 0 ? beta * *out : 0);
        }
}

bool known(cudaDataType a, cudaDataType b, cudaDataType c, cublasComputeType_t compute)
{
    if (a != b || c != CUDA_R_32F) return false;
    return a == CUDA_R_32F ? compute == CUBLAS_COMPUTE_32F_PEDANTIC : compute == CUBLAS_COMPUTE_32F;
}

cublasStatus_t create(cublasHandle_t *out)
{
    *out = new cublasContext{nullptr};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t destroy(cublasHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t set_stream(cublasHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t set_math_mode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                    int n, int k, const void *alpha, const void *a, cudaDataType type_a, int lda,
                    const void *b, cudaDataType type_b, int ldb, const void *beta, void *c,
                    cudaDataType type_c, int ldc, cublasComputeType_t compute, cublasGemmAlgo_t)
{
    if (!known(type_a, type_b, type_c, compute)) return CUBLAS_STATUS_NOT_SUPPORTED;
    const float x = *static_cast<const float *>(alpha), y = *static_cast<const float *>(beta);
    cuemu::add_work(handle->stream, [=] {
        multiply(m, n, k, x, {a, type_a, lda, op_a == CUBLAS_OP_T},
                 {b, type_b, ldb, op_b == CUBLAS_OP_T}, y, static_cast<float *>(c), ldc);
    });
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t gemm_batched(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                            int m, int n, int k, const void *alpha, const void *const a[],
                            cudaDataType type_a, int lda, const void *const b[],
                            cudaDataType type_b, int ldb, const void *beta, void *const c[],
                            cudaDataType type_c, int ldc, int count, cublasComputeType_t compute,
                            cublasGemmAlgo_t)
{
    if (!known(type_a, type_b, type_c, compute)) return CUBLAS_STATUS_NOT_SUPPORTED;
    const float x = *static_cast<const float *>(alpha), y = *static_cast<const float *>(beta);
    cuemu::add_work(handle->stream, [=] {
        for (int i = 0; i < count; i++)
            multiply(m, n, k, x, {a[i], type_a, lda, op_a == CUBLAS_OP_T},
                     {b[i], type_b, ldb, op_b == CUBLAS_OP_T}, y, static_cast<float *>(c[i]), ldc);
    });
    return CUBLAS_STATUS_SUCCESS;
}

} // namespace

const ats::cublas_library *ats::cublas_find(char *why, int64_t size)
{
    static const cublas_library library = {create,        destroy, set_stream,
                                           set_math_mode, gemm,    gemm_batched};
    const char *wanted = getenv("CUEMU_CUBLAS");
    if (wanted == nullptr || *wanted != '0') return &library;
    if (why != nullptr) snprintf(why, static_cast<size_t>(size), "the cuBLAS library is missing");
    return nullptr;
}

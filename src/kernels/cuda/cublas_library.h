// The calls of cuBLAS that the module makes, from a library opened by name.
#pragma once
#include <cublas_v2.h>

#include <cstdint>

namespace ats {

struct cublas_library {
    decltype(&cublasCreate_v2) create;
    decltype(&cublasDestroy_v2) destroy;
    decltype(&cublasSetStream_v2) set_stream;
    decltype(&cublasSetMathMode) set_math_mode;
    cublasStatus_t (*gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                           const void *, const void *, cudaDataType, int, const void *,
                           cudaDataType, int, const void *, void *, cudaDataType, int,
                           cublasComputeType_t, cublasGemmAlgo_t);
    cublasStatus_t (*gemm_batched)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                   int, const void *, const void *const[], cudaDataType, int,
                                   const void *const[], cudaDataType, int, const void *,
                                   void *const[], cudaDataType, int, int, cublasComputeType_t,
                                   cublasGemmAlgo_t);
};

// Opened once. NULL: why says what is missing (why may be NULL once a call has succeeded).
const cublas_library *cublas_find(char *why, int64_t size);

} // namespace ats

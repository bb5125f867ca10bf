#include "kernels/cuda/cublas_library.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace ats {

#define ATS_TEXT_(x) #x
#define ATS_TEXT(x) ATS_TEXT_(x)
static const char *const NAME = "libcublas.so." ATS_TEXT(CUBLAS_VER_MAJOR);

template <class F> static bool find(void *library, const char *symbol, F *out)
{
    *out = reinterpret_cast<F>(dlsym(library, symbol));
    return *out != nullptr;
}

static bool find_all(void *library, cublas_library *out)
{
    return find(library, "cublasCreate_v2", &out->create) &&
           find(library, "cublasDestroy_v2", &out->destroy) &&
           find(library, "cublasSetStream_v2", &out->set_stream) &&
           find(library, "cublasSetMathMode", &out->set_math_mode) &&
           find(library, "cublasGemmEx", &out->gemm) &&
           find(library, "cublasGemmBatchedEx", &out->gemm_batched);
}

const cublas_library *cublas_find(char *why, int64_t size)
{
    static std::mutex lock;
    static cublas_library library;
    static bool found;
    const std::lock_guard<std::mutex> hold(lock);
    if (found) return &library;
    const char *wanted = getenv("ATTNSTRESS_CUBLAS");
    if (wanted == nullptr || *wanted == '\0') wanted = NAME;
    void *handle = dlopen(wanted, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        if (why != nullptr)
            snprintf(why, static_cast<size_t>(size),
                     "the cuBLAS library cannot be opened (%s); install it, or name its file in "
                     "ATTNSTRESS_CUBLAS; --backend cuda does without",
                     dlerror());
        return nullptr;
    }
    found = find_all(handle, &library);
    if (found) return &library;
    if (why != nullptr)
        snprintf(why, static_cast<size_t>(size), "%s lacks a call that is needed: it is no cuBLAS %d",
                 wanted, CUBLAS_VER_MAJOR);
    dlclose(handle);
    return nullptr;
}

} // namespace ats

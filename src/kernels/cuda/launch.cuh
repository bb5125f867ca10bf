// How kernels are launched and get their shared memory; the one place that hides <<<>>>, so that the
// same text compiles for a host compiler against the emulator of tests/emulation.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <map>
#include <mutex>

namespace ats {

// Lets a kernel have so many bytes of dynamic shared memory. The limit is the kernel's, not the
// launch's, and workers launch side by side: it is raised and never lowered, or one worker would take
// from another what that one is about to launch with.
inline cudaError_t allow_shared(const void *kernel, int64_t bytes)
{
    static std::mutex lock;
    static std::map<const void *, int64_t> allowed;
    const std::lock_guard<std::mutex> hold(lock);
    int64_t &most = allowed[kernel];
    if (bytes <= most) return cudaSuccess;
    const cudaError_t rc = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    if (rc == cudaSuccess) most = bytes;
    return rc;
}

} // namespace ats

#ifdef __CUDACC__
#define ATS_LAUNCH(kernel, grid, block, shared, stream, ...) \
    kernel<<<(grid), (block), (shared), (stream)>>>(__VA_ARGS__)
#define ATS_SHARED(name)                                   \
    extern __shared__ __align__(128) unsigned char name##_[]; \
    unsigned char *name = name##_
#else
#define ATS_LAUNCH(kernel, grid, block, shared, stream, ...) \
    cuemu::launch(kernel, (grid), (block), (shared), (stream), __VA_ARGS__)
#define ATS_SHARED(name) unsigned char *name = cuemu::shared_memory()
#endif

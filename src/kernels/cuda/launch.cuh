// How kernels are launched and get their shared memory; the one place that hides <<<>>>, so that the
// same text compiles for a host compiler against the emulator of tests/emulation.
#pragma once
#include <cuda_runtime.h>

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

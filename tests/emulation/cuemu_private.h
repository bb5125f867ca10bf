// Between the emulator's scheduler and its runtime library.
#pragma once
#include <cuda_runtime.h>

#include <functional>

namespace cuemu {

struct Launch {
    dim3 grid, size;
    size_t shared;
    std::function<void()> thread;
};

void run(const Launch &launch);
// Done when the stream is synchronised.
void add_work(cudaStream_t stream, std::function<void()> work);

} // namespace cuemu

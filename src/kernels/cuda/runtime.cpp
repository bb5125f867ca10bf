#include "kernels/cuda/runtime.h"

#include <cstdarg>
#include <cstdio>
#include <mutex>

namespace ats {

ats_device_status refuse(ats_device_error *error, ats_device_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return status;
}

ats_device_status check(cudaError_t rc, const char *call, ats_device_error *error)
{
    if (rc == cudaSuccess) return ATS_DEVICE_OK;
    cudaGetLastError(); // a failure that is not sticky does not show up in the next call
    if (rc == cudaErrorMemoryAllocation)
        return refuse(error, ATS_DEVICE_MEMORY,
                      "%s: %s; the device is out of memory: close what else uses it, or take "
                      "--backend cpu",
                      call, cudaGetErrorName(rc));
    return refuse(error, ATS_DEVICE_LOST,
                  "%s: %s (%s); the device's work is lost: look at `nvidia-smi` and the kernel log, "
                  "run again, or take --backend cpu",
                  call, cudaGetErrorName(rc), cudaGetErrorString(rc));
}

ats_device_status workspace_grow(workspace *space, size_t device, size_t pinned,
                                 ats_device_error *error)
{
    if (device > space->device_size) {
        cudaFree(space->device);
        space->device = nullptr;
        space->device_size = 0;
        ATS_CUDA(cudaMalloc(&space->device, device));
        space->device_size = device;
    }
    if (pinned > space->pinned_size) {
        cudaFreeHost(space->pinned);
        space->pinned = nullptr;
        space->pinned_size = 0;
        ATS_CUDA(cudaMallocHost(&space->pinned, pinned));
        space->pinned_size = pinned;
    }
    return ATS_DEVICE_OK;
}

static std::mutex idle_lock;
static workspace *idle; // of the last problem, for the next one

workspace *workspace_take()
{
    const std::lock_guard<std::mutex> hold(idle_lock);
    workspace *space = idle != nullptr ? idle : new workspace;
    idle = nullptr;
    return space;
}

void workspace_give_back(workspace *space)
{
    const std::lock_guard<std::mutex> hold(idle_lock);
    if (idle == nullptr) {
        idle = space;
        return;
    }
    cudaFree(space->device);
    cudaFreeHost(space->pinned);
    delete space;
}

} // namespace ats

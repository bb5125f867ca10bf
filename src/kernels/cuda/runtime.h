// CUDA calls and their failures as sentences; memory of one device in one block.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/device.h"

namespace ats {

// Writes the sentence and returns the status; cudaSuccess is ATS_DEVICE_OK.
ats_device_status check(cudaError_t rc, const char *call, ats_device_error *error);
ats_device_status refuse(ats_device_error *error, ats_device_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define ATS_CUDA(call)                                                        \
    do {                                                                      \
        const ats_device_status status_ = ats::check((call), #call, error);   \
        if (status_ != ATS_DEVICE_OK) return status_;                         \
    } while (0)
#define ATS_STEP(expression)                                                  \
    do {                                                                      \
        const ats_device_status status_ = (expression);                       \
        if (status_ != ATS_DEVICE_OK) return status_;                         \
    } while (0)

// Hands out parts of a block, or only counts when there is none: one layout function measures and
// places.
class layout {
public:
    explicit layout(void *block) : block_(static_cast<unsigned char *>(block)) {}
    template <class T> void take(T **out, int64_t count)
    {
        *out = block_ != nullptr ? reinterpret_cast<T *>(block_ + used_) : nullptr;
        used_ += (static_cast<size_t>(count) * sizeof(T) + 255) / 256 * 256;
    }
    size_t used() const { return used_; }

private:
    unsigned char *block_;
    size_t used_ = 0;
};

// One block on the device and one pinned on the host; they only grow, and outlive a problem.
struct workspace {
    void *device = nullptr, *pinned = nullptr;
    size_t device_size = 0, pinned_size = 0;
};

ats_device_status workspace_grow(workspace *space, size_t device, size_t pinned,
                                 ats_device_error *error);
workspace *workspace_take();
void workspace_give_back(workspace *space);

} // namespace ats

// What the emulator has of the CUDA runtime: a call that is missing here fails to link.
//
// Work on a stream is done when the stream is synchronised, as late as a device may do it.
// CUEMU_DEVICES, CUEMU_CAPABILITY (80), CUEMU_SHARED (bytes of a block) and CUEMU_MEMORY (bytes)
// describe the device, CUEMU_TMA=0 a driver without tensor maps; CUEMU_AVAILABLE is what it says is free, CUEMU_REFUSE how many allocations
// fail from now on, CUEMU_LOSE_AFTER after how many launches it fails for good.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

#include "cuemu_private.h"

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text != nullptr && *text != '\0' ? strtol(text, nullptr, 10) : otherwise;
}

struct CUstream_st {
    std::vector<std::function<void()>> work;
};

namespace {

thread_local cudaError_t last_error;
std::mutex lock;
std::map<void *, size_t> blocks;
size_t allocated;
std::map<const void *, int> shared_limits;
long launches, refused, wanted;
bool lost;

cudaError_t done(cudaError_t rc)
{
    if (rc != cudaSuccess) last_error = rc;
    return rc;
}

cudaError_t alive()
{
    const std::lock_guard<std::mutex> hold(lock);
    return lost ? cudaErrorLaunchFailure : cudaSuccess;
}

} // namespace

void cuemu::add_work(cudaStream_t stream, std::function<void()> work)
{
    if (stream == nullptr) fail("work on the default stream");
    stream->work.push_back(std::move(work));
}

void cuemu::enqueue_launch(const void *kernel, dim3 grid, dim3 size, size_t shared,
                           cudaStream_t stream, std::function<void()> thread)
{
    const std::lock_guard<std::mutex> hold(lock);
    const long lose_after = setting("CUEMU_LOSE_AFTER", -1);
    if (lose_after >= 0 && launches++ >= lose_after) lost = true; // counted from the setting on
    if (lost) {
        done(cudaErrorLaunchFailure);
        return;
    }
    const auto found = shared_limits.find(kernel);
    const size_t limit = found != shared_limits.end() ? size_t(found->second) : 48 * 1024;
    if (size.x == 0 || size.x > 1024 || size.y != 1 || size.z != 1 || grid.x == 0 || grid.y == 0 ||
        grid.y > 65535 || grid.z != 1)
        done(cudaErrorInvalidConfiguration);
    else if (shared > limit)
        done(cudaErrorInvalidValue);
    else
        add_work(stream, [=] { run(Launch{grid, size, shared, thread}); });
}

// What a driver checks for matrices in tiles with the 128-byte swizzle (cuTensorMapEncodeTiled).
static CUresult encode_map(CUtensorMap *out, CUtensorMapDataType, cuuint32_t rank, void *base,
                           const cuuint64_t *size, const cuuint64_t *stride, const cuuint32_t *box,
                           const cuuint32_t *step, CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
                           CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill)
{
    if (rank != 2 || reinterpret_cast<uintptr_t>(base) % 16 != 0 || stride[0] % 16 != 0 ||
        stride[0] >= 1UL << 40 || size[0] < 1 || size[0] > 1UL << 32 || size[1] < 1 ||
        size[1] > 1UL << 32 || box[0] * 2 != 128 || box[1] < 1 || box[1] > 256 || step[0] != 1 ||
        step[1] != 1 || swizzle != CU_TENSOR_MAP_SWIZZLE_128B ||
        fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
        return CUDA_ERROR_INVALID_VALUE;
    const cuemu::Map map = {cuemu::MAP_MAGIC, static_cast<const unsigned char *>(base),
                            {size[0], size[1]}, stride[0], {box[0], box[1]}};
    *out = CUtensorMap{};
    memcpy(static_cast<void *>(out), &map, sizeof map);
    return CUDA_SUCCESS;
}

extern "C" {

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **entry, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult *found)
{
    const bool known = strcmp(symbol, "cuTensorMapEncodeTiled") == 0 && setting("CUEMU_TMA", 1) != 0;
    *found = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    *entry = known ? reinterpret_cast<void *>(encode_map) : nullptr;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t size)
{
    const std::lock_guard<std::mutex> hold(lock);
    const size_t limit = size_t(setting("CUEMU_MEMORY", 1L << 34));
    const long refuse = setting("CUEMU_REFUSE", 0);
    if (refuse != wanted) refused = 0;
    wanted = refuse;
    if (refused++ < refuse) return done(cudaErrorMemoryAllocation);
    if (allocated + size > limit || posix_memalign(out, 256, size + (size == 0)) != 0)
        return done(cudaErrorMemoryAllocation);
    memset(*out, 0xff, size);
    blocks[*out] = size;
    allocated += size;
    return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
    const std::lock_guard<std::mutex> hold(lock);
    const auto found = blocks.find(p);
    if (p == nullptr) return cudaSuccess;
    if (found == blocks.end()) return done(cudaErrorInvalidValue);
    allocated -= found->second;
    blocks.erase(found);
    free(p);
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **out, size_t size)
{
    if (posix_memalign(out, 256, size + (size == 0)) != 0) return done(cudaErrorMemoryAllocation);
    memset(*out, 0xff, size);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *p)
{
    free(p);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind, cudaStream_t s)
{
    cuemu::add_work(s, [=] { memcpy(to, from, size); });
    return done(alive());
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t s)
{
    cuemu::add_work(s, [=] { memset(to, value, size); });
    return done(alive());
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned)
{
    *out = new CUstream_st;
    return done(alive());
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    delete s;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    const cudaError_t rc = alive();
    for (const std::function<void()> &work : s->work)
        if (rc == cudaSuccess) work();
    s->work.clear();
    return done(rc);
}

// Events have no time of their own here.
cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    *out = nullptr;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t, cudaEvent_t)
{
    *milliseconds = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    const long devices = setting("CUEMU_DEVICES", 1);
    if (devices < 1) return done(cudaErrorNoDevice);
    *count = int(devices);
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int) { return cudaSuccess; }

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int)
{
    const long capability = setting("CUEMU_CAPABILITY", 80);
    switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = int(capability / 10); break;
    case cudaDevAttrComputeCapabilityMinor: *value = int(capability % 10); break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = int(setting("CUEMU_SHARED", 166912));
        break;
    case cudaDevAttrMultiProcessorCount: *value = 4; break;
    default: return done(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int)
{
    *out = cudaDeviceProp{};
    snprintf(out->name, sizeof out->name, "emulated device");
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 0;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    const std::lock_guard<std::mutex> hold(lock);
    *total = size_t(setting("CUEMU_MEMORY", 1L << 34));
    *available = *total > allocated ? *total - allocated : 0;
    *available = size_t(setting("CUEMU_AVAILABLE", long(*available)));
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute, int value)
{
    const std::lock_guard<std::mutex> hold(lock);
    if (value > setting("CUEMU_SHARED", 166912)) return done(cudaErrorInvalidValue);
    if (value < shared_limits[kernel])
        cuemu::fail("a kernel's shared memory is lowered: another thread may be launching it");
    shared_limits[kernel] = value;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t rc = last_error;
    last_error = cudaSuccess;
    return rc;
}

const char *cudaGetErrorName(cudaError_t e)
{
    switch (e) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    default: return "cudaErrorOther";
    }
}

const char *cudaGetErrorString(cudaError_t e) { return cudaGetErrorName(e); }

} // extern "C"

// The module's table: opening a problem on the device, passes over its keys.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "kernels/cuda/queue.h"

namespace {

using ats::half;

constexpr int64_t GROUP_BYTES = int64_t(32) << 20; // results of a group
constexpr int MIN_CAPABILITY = 80;                 // cp.async, bfloat16 products

ats_device_status find_device(int *capability, ats_device_error *error)
{
    int count = 0, major = 0, minor = 0;
    // Without a driver the call fails and leaves the count alone: any failure is no device.
    const cudaError_t rc = cudaGetDeviceCount(&count);
    if (rc != cudaSuccess || count < 1) {
        cudaGetLastError();
        return ats::refuse(error, ATS_DEVICE_ABSENT,
                           "no CUDA device: %s (%s); check the driver with `nvidia-smi`, or use "
                           "--backend cpu",
                           cudaGetErrorString(rc), cudaGetErrorName(rc));
    }
    ATS_CUDA(cudaSetDevice(0));
    ATS_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    ATS_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
    *capability = 10 * major + minor;
    if (*capability < MIN_CAPABILITY)
        return ats::refuse(error, ATS_DEVICE_ABSENT,
                           "the CUDA device is too old: compute capability %d.%d, at least %d.%d is "
                           "needed; use --backend cpu",
                           major, minor, MIN_CAPABILITY / 10, MIN_CAPABILITY % 10);
    return ATS_DEVICE_OK;
}

ats_device_status probe(ats_device_kind kind, char *detail, int64_t size, ats_device_error *error)
{
    int capability = 0, driver = 0, runtime = 0;
    char library[64] = "";
    cudaDeviceProp properties;
    ATS_STEP(find_device(&capability, error));
    if (kind == ATS_DEVICE_CUBLAS) ATS_STEP(ats::unfused_probe(library, sizeof library, error));
    ATS_CUDA(cudaGetDeviceProperties(&properties, 0));
    ATS_CUDA(cudaDriverGetVersion(&driver));
    ATS_CUDA(cudaRuntimeGetVersion(&runtime));
    snprintf(detail, static_cast<size_t>(size), "%s, sm_%d, driver CUDA %d.%d, runtime %d.%d%s%s",
             properties.name, capability, driver / 1000, driver % 1000 / 10, runtime / 1000,
             runtime % 1000 / 10, library[0] != '\0' ? ", " : "", library);
    return ATS_DEVICE_OK;
}

void limits(ats_device_kind kind, int64_t *d_qk, int64_t *d_v)
{
    *d_qk = *d_v = kind == ATS_DEVICE_FUSED ? 256 : 4096;
}

size_t device_bytes(ats_device *d)
{
    size_t device, pinned;
    ats::place_all(d, nullptr, nullptr, &device, &pinned);
    return device;
}

int64_t bytes(ats_device_kind kind, const ats_device_problem *problem, int slots)
{
    ats_device d(kind, *problem, slots);
    d.plan = ats::plan_chunks(d, GROUP_BYTES, true);
    return static_cast<int64_t>(device_bytes(&d));
}

ats_device_status allocate(ats_device *d, ats_device_error *error)
{
    size_t device, pinned;
    ats::place_all(d, nullptr, nullptr, &device, &pinned);
    ATS_STEP(ats::workspace_grow(d->space, device, pinned, error));
    ats::place_all(d, d->space->device, d->space->pinned, &device, &pinned);
    return ATS_DEVICE_OK;
}

// Everything on the device where it fits, else windows; once more with smaller ones when the
// device has less than it said.
ats_device_status place(ats_device *d, ats_device_error *error)
{
    size_t available = 0, total = 0;
    ATS_CUDA(cudaMemGetInfo(&available, &total));
    available += d->space->device_size;
    d->plan = ats::plan_chunks(*d, GROUP_BYTES, true);
    if (device_bytes(d) > available - available / 16) {
        d->plan = ats::plan_chunks(*d, GROUP_BYTES, false);
        snprintf(d->notice, sizeof d->notice,
                 "keys are streamed: the layer does not fit into %.1f MiB of device memory",
                 static_cast<double>(available) / 1048576.0);
    }
    const ats_device_status status = allocate(d, error);
    if (status != ATS_DEVICE_MEMORY) return status;
    d->plan = ats::plan_chunks(*d, GROUP_BYTES / 16, false);
    snprintf(d->notice, sizeof d->notice,
             "keys are streamed in chunks of %lld: the device ran out of memory",
             static_cast<long long>(d->plan.window));
    return allocate(d, error);
}

// All keys once through the pinned windows, for their norms; resident keys stay.
ats_device_status load_all(ats_device *d, float *norm, float *log_norm, uint8_t *bad,
                           ats_device_error *error)
{
    const int64_t n = d->problem.n_keys;
    d->keys.first = 0;
    d->keys.count = n;
    int which = 0;
    for (int64_t first = 0; first < n; first += d->plan.window, which ^= 1) {
        half *h = &d->slots[0].halves[which];
        const int64_t count = std::min(d->plan.window, n - first);
        ATS_CUDA(cudaStreamSynchronize(h->stream));
        h->window.first = first;
        const ats::key_rows &to = d->plan.resident ? d->keys : h->window;
        const int64_t at = first - to.first;
        ATS_STEP(ats::load_keys(d, h, to, first, count, error));
        const size_t floats = static_cast<size_t>(count) * sizeof(float);
        ATS_CUDA(cudaMemcpyAsync(norm + first, to.norm + at, floats, cudaMemcpyDeviceToHost,
                                 h->stream));
        ATS_CUDA(cudaMemcpyAsync(log_norm + first, to.log_norm + at, floats, cudaMemcpyDeviceToHost,
                                 h->stream));
        ATS_CUDA(cudaMemcpyAsync(bad + first, to.bad + at, static_cast<size_t>(count),
                                 cudaMemcpyDeviceToHost, h->stream));
    }
    for (half &h : d->slots[0].halves) ATS_CUDA(cudaStreamSynchronize(h.stream));
    return ATS_DEVICE_OK;
}

ats_device_status start(ats_device *d, int capability, float *norm, float *log_norm, uint8_t *bad,
                        ats_device_error *error)
{
    int shared = 0;
    ATS_CUDA(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    d->shared_limit = shared;
    ATS_CUDA(cudaDeviceGetAttribute(&d->processors, cudaDevAttrMultiProcessorCount, 0));
    for (ats::slot &s : d->slots)
        for (half &h : s.halves) {
            ATS_CUDA(cudaStreamCreateWithFlags(&h.stream, cudaStreamNonBlocking));
            if (d->kind == ATS_DEVICE_CUBLAS) ATS_STEP(ats::unfused_open(&h, error));
        }
    d->space = ats::workspace_take();
    ATS_STEP(ats::choose_rung(d, capability, error));
    ATS_STEP(place(d, error));
    if (d->problem.slope != nullptr) {
        half *h = &d->slots[0].halves[0];
        ATS_CUDA(cudaMemcpyAsync(d->slope, d->problem.slope,
                                 static_cast<size_t>(d->problem.lanes) * sizeof(float),
                                 cudaMemcpyHostToDevice, h->stream));
    }
    return load_all(d, norm, log_norm, bad, error);
}

void close_device(ats_device *d)
{
    if (d == nullptr) return;
    for (ats::slot &s : d->slots)
        for (half &h : s.halves) {
            if (h.stream != nullptr) cudaStreamSynchronize(h.stream);
            ats::unfused_close(&h);
            if (h.stream != nullptr) cudaStreamDestroy(h.stream);
        }
    if (d->space != nullptr) ats::workspace_give_back(d->space);
    delete d;
}

ats_device_status open_device(ats_device_kind kind, const ats_device_problem *problem, int slots,
                              float *norm, float *log_norm, uint8_t *bad, ats_device **out,
                              ats_device_error *error)
{
    int capability;
    ATS_STEP(find_device(&capability, error));
    std::unique_ptr<ats_device, void (*)(ats_device *)> d(
        new ats_device(kind, *problem, std::max(slots, 1)), close_device);
    ATS_STEP(start(d.get(), capability, norm, log_norm, bad, error));
    *out = d.release();
    return ATS_DEVICE_OK;
}

ats::pass_args arguments(const ats_device *d, const half *h)
{
    const ats_device_problem &p = d->problem;
    const bool side = h->pieces->side != 0;
    ats::pass_args args = {};
    args.pieces = h->in.pieces;
    args.views = h->in.views;
    args.slope = p.slope != nullptr ? d->slope : nullptr;
    args.origin = p.origin;
    args.rows = static_cast<int32_t>(p.rows);
    args.lanes = static_cast<int32_t>(p.lanes);
    args.k_pitch = d->k_pitch;
    args.v_pitch = d->v_pitch;
    args.k_type = side ? ATS_DEVICE_F32 : p.k_type;
    args.v_type = side ? ATS_DEVICE_F32 : p.v_type;
    args.softcap = p.softcap;
    return args;
}

// Logits of the pieces that want them, neighbours at once.
ats_device_status download_logits(const ats_device_problem &p, half *h, ats_device_error *error)
{
    int64_t start = 0, stop = 0, key = 0;
    for (int64_t i = 0; i <= h->count; i++) {
        const bool wanted = i < h->count && h->pieces[i].z != nullptr;
        if (wanted) stop = key + h->pieces[i].keys;
        if (!wanted && stop > start)
            ATS_CUDA(cudaMemcpyAsync(h->host_out.z + start * p.lanes, h->out.z + start * p.lanes,
                                     static_cast<size_t>((stop - start) * p.lanes) * sizeof(float),
                                     cudaMemcpyDeviceToHost, h->stream));
        if (i < h->count) key += h->pieces[i].keys;
        if (!wanted) start = stop = key;
    }
    return ATS_DEVICE_OK;
}

ats_device_status submit(ats_device *d, half *h, ats_device_error *error)
{
    const ats_device_problem &p = d->problem;
    const bool side = h->pieces->side != 0;
    const ats::pass_args args = arguments(d, h);
    if (!side && !d->plan.resident)
        ATS_STEP(ats::load_keys(d, h, h->window, h->window.first, h->window.count, error));
    ATS_STEP(ats::upload_group(h, d, side, error));
    ATS_STEP(ats::compute_group(d, h, args, side, error));
    ATS_STEP(ats::scan_group(d, h, args, error));
    const auto download = [h](float *to, const float *from, int64_t count) {
        return cudaMemcpyAsync(to, from, static_cast<size_t>(count) * sizeof(float),
                               cudaMemcpyDeviceToHost, h->stream);
    };
    ATS_CUDA(download(h->host_out.sums, h->out.sums, h->count * ATS_DEVICE_SUMS * p.lanes));
    ATS_STEP(download_logits(p, h, error));
    if (h->want_o) ATS_CUDA(download(h->host_out.o, h->out.o, h->count * p.rows * d->v_pitch));
    return ATS_DEVICE_OK;
}

void scatter_state(const ats_device_problem &p, int64_t tile, const float *sums, const float *o,
                   const ats_device_state &to)
{
    const int64_t first = tile * p.tile, lanes = ats::tile_lanes(p, tile);
    const int64_t rows = std::min(lanes, p.rows - first);
    double *const wide[] = {to.l, to.e, to.s2, to.a, to.n};
    sums += first;
    memcpy(to.m, sums, static_cast<size_t>(lanes) * sizeof(float));
    memcpy(to.mc, sums + p.lanes, static_cast<size_t>(lanes) * sizeof(float));
    for (int i = 0; i < 5; i++)
        for (int64_t row = 0; row < lanes; row++)
            wide[i][row] = static_cast<double>(sums[(2 + i) * p.lanes + row]);
    memcpy(to.o, o + first * p.width, static_cast<size_t>(rows * p.width) * sizeof(float));
}

void scatter_logits(const ats_device_problem &p, int64_t keys, const float *z, float *const *to)
{
    for (int64_t t = 0; t < p.n_tiles; t++) {
        const int64_t lanes = ats::tile_lanes(p, t);
        for (int64_t i = 0; i < keys; i++)
            memcpy(to[t] + i * lanes, z + i * p.lanes + t * p.tile,
                   static_cast<size_t>(lanes) * sizeof *z);
    }
}

// Waits for the half's group and hands out its results.
ats_device_status finish(ats_device *d, half *h, ats_device_error *error)
{
    const ats_device_problem &p = d->problem;
    if (h->count == 0) return ATS_DEVICE_OK;
    const int64_t count = h->count;
    h->count = 0;
    ATS_CUDA(cudaStreamSynchronize(h->stream));
    ats::scan_results(d, h, count);
    int64_t key = 0;
    for (int64_t i = 0; i < count; i++) {
        const ats_device_piece &piece = h->pieces[i];
        if (piece.z != nullptr)
            scatter_logits(p, piece.keys, h->host_out.z + key * p.lanes, piece.z);
        for (int64_t t = 0; piece.state != nullptr && t < p.n_tiles; t++)
            scatter_state(p, t, h->host_out.sums + i * ATS_DEVICE_SUMS * p.lanes,
                          h->host_out.o + i * p.rows * d->v_pitch, piece.state[t]);
        key += piece.keys;
    }
    return ATS_DEVICE_OK;
}

ats_device_status run_pass(ats_device *d, ats::slot *s, const ats_device_pass *pass,
                           ats_device_error *error)
{
    int which = 0;
    for (int64_t i = 0; i < pass->n_pieces; which ^= 1) {
        half *h = &s->halves[which];
        ATS_STEP(finish(d, h, error));
        i += ats::fill_group(d, h, pass, i);
        ATS_STEP(submit(d, h, error));
    }
    ATS_STEP(finish(d, &s->halves[which], error));
    return finish(d, &s->halves[which ^ 1], error);
}

ats_device_status pass(ats_device *d, int index, const ats_device_pass *what,
                       ats_device_error *error)
{
    ats::slot *s = &d->slots[static_cast<size_t>(index) % d->slots.size()];
    const std::lock_guard<std::mutex> hold(s->lock);
    const ats_device_status status = run_pass(d, s, what, error);
    if (status != ATS_DEVICE_OK)
        for (half &h : s->halves) { // nothing may write the caller's memory after the failure
            cudaStreamSynchronize(h.stream);
            h.count = 0;
        }
    return status;
}

// One group of pieces: its kernels between two events, `repeats` times.
ats_device_status time_group(ats_device *d, half *h, int repeats, double *seconds,
                             ats_device_error *error)
{
    const ats::pass_args args = arguments(d, h);
    cudaEvent_t start, stop;
    float best = INFINITY;
    ATS_STEP(ats::upload_group(h, d, false, error));
    ATS_CUDA(cudaEventCreate(&start));
    ATS_CUDA(cudaEventCreate(&stop));
    for (int i = 0; i <= repeats; i++) { // the first warms up
        float milliseconds = 0;
        ATS_CUDA(cudaEventRecord(start, h->stream));
        ATS_STEP(ats::compute_group(d, h, args, false, error));
        ATS_CUDA(cudaEventRecord(stop, h->stream));
        ATS_CUDA(cudaStreamSynchronize(h->stream));
        ATS_CUDA(cudaEventElapsedTime(&milliseconds, start, stop));
        if (i > 0) best = std::min(best, milliseconds);
    }
    ATS_CUDA(cudaEventDestroy(start));
    ATS_CUDA(cudaEventDestroy(stop));
    *seconds += static_cast<double>(best) * 1e-3;
    return ATS_DEVICE_OK;
}

ats_device_status measure(ats_device *d, const ats_device_pass *what, int repeats, int want_values,
                          double *seconds, ats_device_error *error)
{
    half *h = &d->slots[0].halves[0];
    if (!d->plan.resident)
        return ats::refuse(error, ATS_DEVICE_MEMORY,
                           "the problem does not fit into device memory: nothing is measured");
    *seconds = 0;
    h->measured = true;
    h->no_values = want_values == 0;
    ats_device_status status = ATS_DEVICE_OK;
    for (int64_t i = 0; i < what->n_pieces && status == ATS_DEVICE_OK;) {
        i += ats::fill_group(d, h, what, i);
        status = time_group(d, h, repeats, seconds, error);
    }
    h->measured = false;
    h->count = 0;
    return status;
}

const char *notice(const ats_device *d) { return d->notice; }

const ats_device_api API = {
    ATS_DEVICE_ABI, probe, limits, bytes, open_device, pass, measure, notice, close_device,
};

} // namespace

extern "C" __attribute__((visibility("default"))) const ats_device_api *attnstress_device_api(void);

const ats_device_api *attnstress_device_api(void) { return &API; }

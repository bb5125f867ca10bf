// Which kernels a device gets. Those for sm_90a must first give what pass_mma gives, on a small
// problem of the device at hand: both descriptors of matrices and maps of tensors are easily almost
// right, and the driver takes part in the latter.
#include <cuda_bf16.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/cuda/queue.h"

namespace ats {

namespace {

constexpr int ROWS = 128, WIDTH = 64, TRIAL_KEYS = 100, PIECES = 2, CUT = 70;
constexpr double AGREES = 1e-3; // both split weights in two halves

struct trial {
    piece_args *pieces;
    view_args *views;
    __nv_bfloat16 *q, *k, *v; // q: two halves
    float *row_scale, *q_at, *norm, *log_norm;
    int64_t *low, *high, *position;
    float *sums, *o; // [PIECES, ATS_DEVICE_SUMS, ROWS], [PIECES, ROWS, WIDTH]
};

size_t place(trial *t, void *block)
{
    layout l(block);
    l.take(&t->pieces, PIECES);
    l.take(&t->views, 1);
    l.take(&t->q, 2 * ROWS * WIDTH);
    l.take(&t->k, TRIAL_KEYS * WIDTH);
    l.take(&t->v, TRIAL_KEYS * WIDTH);
    l.take(&t->row_scale, ROWS);
    l.take(&t->q_at, ROWS);
    l.take(&t->norm, TRIAL_KEYS);
    l.take(&t->log_norm, TRIAL_KEYS);
    l.take(&t->low, ROWS);
    l.take(&t->high, ROWS);
    l.take(&t->position, TRIAL_KEYS);
    l.take(&t->sums, PIECES * ATS_DEVICE_SUMS * ROWS);
    l.take(&t->o, PIECES * ROWS * WIDTH);
    return l.used();
}

void fill(const trial &host, const trial &device)
{
    uint32_t state = 1;
    const auto next = [&state] {
        state = state * 1664525u + 1013904223u;
        return static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
    };
    for (int i = 0; i < 2 * ROWS * WIDTH; i++)
        host.q[i] = __float2bfloat16_rn(next() * (i < ROWS * WIDTH ? 2.0f : 0.01f));
    for (int i = 0; i < TRIAL_KEYS * WIDTH; i++) {
        host.k[i] = __float2bfloat16_rn(next());
        host.v[i] = __float2bfloat16_rn(next());
    }
    for (int i = 0; i < ROWS; i++) {
        host.row_scale[i] = 0.25f;
        host.q_at[i] = 0;
        host.low[i] = i % 3;
        host.high[i] = TRIAL_KEYS - 1 - i / 4;
    }
    for (int i = 0; i < TRIAL_KEYS; i++) {
        host.norm[i] = 1.0f + static_cast<float>(i);
        host.log_norm[i] = std::log(host.norm[i]);
        host.position[i] = i;
    }
    *host.views = {device.q,   device.q + ROWS * WIDTH, nullptr,     device.row_scale,
                   device.q_at, device.low,              device.high, 1.0f};
    for (int i = 0; i < PIECES; i++) {
        const int first = i * CUT, keys = i == 0 ? CUT : TRIAL_KEYS - CUT;
        piece_args *p = &host.pieces[i];
        *p = {};
        p->k = device.k + first * WIDTH;
        p->v = device.v + first * WIDTH;
        p->norm = device.norm + first;
        p->log_norm = device.log_norm + first;
        p->position = device.position + first;
        p->sums = device.sums + i * ATS_DEVICE_SUMS * ROWS;
        p->o = device.o + i * ROWS * WIDTH;
        p->first = first;
        p->last = first + keys - 1;
        p->keys = keys;
    }
}

cudaError_t launch(rung which, const trial &device, const ats_device *d, cudaStream_t stream)
{
    const mma_shape shape = {WIDTH, WIDTH, 2};
    pass_args args = {};
    args.pieces = device.pieces;
    args.views = device.views;
    args.rows = args.lanes = ROWS;
    args.k_pitch = args.v_pitch = WIDTH;
    args.k_type = args.v_type = ATS_DEVICE_BF16;
    if (which == rung::mma)
        return launch_mma(args, shape, PIECES, mma_warps(shape, ROWS, d->shared_limit), stream);
    if (which == rung::wgmma)
        return launch_wgmma(args, shape, PIECES, wgmma_groups(shape, ROWS, d->shared_limit),
                            stream);
    tma_maps maps;
    if (!make_tensor_map(&maps.q, args.k_type, device.q, 2 * ROWS, WIDTH) ||
        !make_tensor_map(&maps.k, args.k_type, device.k, TRIAL_KEYS, WIDTH) ||
        !make_tensor_map(&maps.v, args.k_type, device.v, TRIAL_KEYS, WIDTH))
        return cudaErrorNotSupported;
    maps.q_base = reinterpret_cast<const unsigned char *>(device.q);
    maps.k_base = reinterpret_cast<const unsigned char *>(device.k);
    maps.v_base = reinterpret_cast<const unsigned char *>(device.v);
    return launch_tma(args, shape, tma_block(shape, ROWS, d->shared_limit), maps, PIECES, 1,
                      stream);
}

bool near(const float *x, const float *y, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const double a = static_cast<double>(x[i]), b = static_cast<double>(y[i]);
        if (a != b && !(std::fabs(a - b) <= AGREES * (1 + std::fabs(a)))) return false;
    }
    return true;
}

// Sums and values of a launch, on the host; before it they are NaN.
ats_device_status run(rung which, const ats_device *d, const trial &device, const trial &to,
                      bool *launched, ats_device_error *error)
{
    cudaStream_t stream = d->slots[0].halves[0].stream;
    const size_t sums = PIECES * ATS_DEVICE_SUMS * ROWS * sizeof(float);
    const size_t values = PIECES * ROWS * WIDTH * sizeof(float);
    ATS_CUDA(cudaMemsetAsync(device.sums, 0xff, sums, stream));
    ATS_CUDA(cudaMemsetAsync(device.o, 0xff, values, stream));
    const cudaError_t rc = launch(which, device, d, stream);
    *launched = rc != cudaErrorNotSupported;
    if (*launched) ATS_CUDA(rc);
    ATS_CUDA(cudaMemcpyAsync(to.sums, device.sums, sums, cudaMemcpyDeviceToHost, stream));
    ATS_CUDA(cudaMemcpyAsync(to.o, device.o, values, cudaMemcpyDeviceToHost, stream));
    ATS_CUDA(cudaStreamSynchronize(stream));
    return ATS_DEVICE_OK;
}

ats_device_status compare(rung which, const ats_device *d, workspace *space, bool *launched,
                          bool *same, ats_device_error *error)
{
    trial device, host, other;
    const size_t size = place(&device, nullptr);
    ATS_STEP(workspace_grow(space, size, 2 * size, error));
    unsigned char *pinned = static_cast<unsigned char *>(space->pinned);
    place(&device, space->device);
    place(&host, pinned);
    place(&other, pinned + size);
    fill(host, device);
    ATS_CUDA(cudaMemcpyAsync(space->device, pinned, size, cudaMemcpyHostToDevice,
                             d->slots[0].halves[0].stream));
    ATS_STEP(run(rung::mma, d, device, host, launched, error));
    ATS_STEP(run(which, d, device, other, launched, error));
    *same = *launched && near(host.sums, other.sums, PIECES * ATS_DEVICE_SUMS * ROWS) &&
            near(host.o, other.o, PIECES * ROWS * WIDTH);
    return ATS_DEVICE_OK;
}

// Of this process's device; unknown until the first problem.
std::mutex chosen_lock;
bool known;
rung chosen;
char remark[160];

} // namespace

ats_device_status choose_rung(ats_device *d, int capability, ats_device_error *error)
{
    const char *name = getenv("ATTNSTRESS_CUDA_RUNG");
    d->rung = rung::mma;
    if (d->kind != ATS_DEVICE_FUSED || capability != 90) return ATS_DEVICE_OK;
    if (name != nullptr && *name != '\0') { // as asked, and for rows of any number
        d->rung = strcmp(name, "tma") == 0     ? rung::tma
                  : strcmp(name, "wgmma") == 0 ? rung::wgmma
                                               : rung::mma;
        d->least_lanes = 1;
        return ATS_DEVICE_OK;
    }
    const std::lock_guard<std::mutex> hold(chosen_lock);
    for (const rung which : {rung::tma, rung::wgmma}) {
        if (known) break;
        bool launched = false, same = false;
        ATS_STEP(compare(which, d, d->space, &launched, &same, error));
        known = same;
        chosen = which;
        if (launched && !same)
            snprintf(remark, sizeof remark,
                     "the kernels for sm_90a (%s) give other results than those for sm_80 on this "
                     "device and are not used",
                     which == rung::tma ? "TMA" : "wgmma");
    }
    if (!known) chosen = rung::mma;
    known = true;
    d->rung = chosen;
    memcpy(d->notice, remark, sizeof remark);
    remark[0] = '\0'; // once
    return ATS_DEVICE_OK;
}

} // namespace ats

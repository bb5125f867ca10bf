// What the kernels of a pass are given: plain structs of device pointers, filled on the host.
// A piece is at most `leaf` keys that follow each other, seen by all rows through one view.
#pragma once
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

#include "kernels/device.h"

namespace ats {

struct view_args {
    const void *q_hi, *q_lo;    // [lanes, k_pitch] 16-bit halves of the rows; q_lo NULL: all 0
    const float *q;             // [lanes, k_pitch] for fp32 arithmetic
    const float *row_scale;     // [lanes] times q.k
    const float *q_at;          // [lanes]
    const int64_t *low, *high;  // [lanes]
    float inverse_temperature;
};

struct piece_args {
    const void *k, *v;             // [keys, k_pitch], [keys, v_pitch]
    const float *norm, *log_norm;  // [keys]
    const int64_t *position;       // [keys]
    const float *plane;            // [keys, lanes] or NULL
    float *z;                      // [keys, lanes] or NULL
    float *sums;                   // [ATS_DEVICE_SUMS, lanes] m, mc, l, e, s2, a, n
    float *o;                      // [rows, v_pitch] or NULL
    int64_t first, last;           // smallest and largest position
    int32_t keys, view;
};

struct pass_args {
    const piece_args *pieces;
    const view_args *views;
    const float *slope; // [lanes] or NULL
    int64_t origin;
    int32_t rows, lanes;
    int32_t k_pitch, v_pitch; // elements, multiples of 16; what lies past the head is 0
    ats_device_type k_type, v_type;
    float softcap;
};

constexpr float LOG2E = 1.44269504f;
constexpr float LOWEST = -3.402823466e+38f;
constexpr float FAR_BELOW = -100.0f; // nats under the maximum, where a weight is 0
constexpr int LEAF_MAX = 256;

// The rows' side of a logit.
struct row_args {
    float scale, slope, q_at;
    int64_t low, high;
    bool padding; // no row of the problem
};

__device__ inline row_args load_row(const pass_args &args, const view_args &view, int row)
{
    row_args r = {0, 0, 0, INT64_MAX, INT64_MIN, row >= args.rows};
    if (row >= args.lanes) return r;
    r.scale = view.row_scale[row];
    r.low = view.low[row];
    r.high = view.high[row];
    if (args.slope != nullptr) {
        r.slope = args.slope[row];
        r.q_at = view.q_at[row];
    }
    return r;
}

__device__ inline bool sees_all(const row_args &r, const piece_args &piece)
{
    return r.padding || (r.low <= piece.first && piece.last <= r.high);
}

__device__ inline bool sees_none(const row_args &r, const piece_args &piece)
{
    return r.padding || r.high < piece.first || piece.last < r.low;
}

// cap tanh(scale dot / cap), slope, plane, temperature, legality: the order of the contract.
// masked: some row of the caller does not see every key of the piece.
__device__ inline float finish_logit(const pass_args &args, const piece_args &piece,
                                     const row_args &r, float inverse_temperature, float dot,
                                     int key, int row, bool masked)
{
    float x = r.scale * dot;
    if (args.softcap > 0) x = args.softcap * tanhf(x / args.softcap);
    if (args.slope != nullptr)
        x -= r.slope * (r.q_at - static_cast<float>(piece.position[key] - args.origin));
    if (piece.plane == nullptr) {
        x *= inverse_temperature;
    } else {
        const float bias = row < args.lanes ? piece.plane[int64_t(key) * args.lanes + row] : 0.0f;
        // Finite biases may add up to less than the lowest float: saturate, but keep NaN.
        const bool low_dot = x < LOWEST;
        x = (x + bias) * inverse_temperature;
        if (x < LOWEST && !low_dot) x = LOWEST;
        if (!(bias > -INFINITY)) x = -INFINITY;
    }
    if (masked) {
        const int64_t at = piece.position[key];
        if (at < r.low || at > r.high) x = -INFINITY;
    }
    return x;
}

// Sums of one row while its keys go by; taken relative to the running maximum m.
struct row_sums {
    float m = -INFINITY, mc = -INFINITY, l = 0, e = 0, s2 = 0, a = 0, n = 0;
};

__device__ inline void store_sums(const pass_args &args, const piece_args &piece, int row,
                                  const row_sums &s)
{
    float *out = piece.sums + row;
    const int64_t step = args.lanes;
    out[0] = s.m;
    out[step] = s.mc;
    out[2 * step] = s.l;
    out[3 * step] = s.e;
    out[4 * step] = s.s2;
    out[5 * step] = s.a;
    out[6 * step] = s.n;
}

} // namespace ats

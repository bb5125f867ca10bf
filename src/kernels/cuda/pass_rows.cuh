// What a thread does with its two rows of a tile of logits: the same for every rung of matrix units,
// whose accumulators hold rows lane / 4 and lane / 4 + 8 of a warp's 16, and of every 8 columns those
// at 2 (lane % 4) + {0, 1}.
#pragma once
#include "kernels/cuda/pass.cuh"
#include "kernels/cuda/ptx.cuh"

namespace ats {

constexpr int ROWS = 16; // of a warp

// How a 16-bit type holds weights. binary16 has few exponents: weights are scaled up, so that those
// down to 2^-22 of the largest keep 18 bits.
template <class T> struct weights;

template <> struct weights<__nv_bfloat16> {
    static constexpr float scale = 1.0f;
    __device__ static uint32_t pack(float x, float y, float &x_left, float &y_left)
    {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
        x_left = x - __low2float(pair);
        y_left = y - __high2float(pair);
        return *reinterpret_cast<const uint32_t *>(&pair);
    }
};

template <> struct weights<__half> {
    static constexpr float scale = 32768.0f;
    __device__ static uint32_t pack(float x, float y, float &x_left, float &y_left)
    {
        const __half2 pair = __floats2half2_rn(x, y);
        x_left = x - __low2float(pair);
        y_left = y - __high2float(pair);
        return *reinterpret_cast<const uint32_t *>(&pair);
    }
};

__device__ inline float quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

__device__ inline float quad_sum(float x)
{
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// The two rows of a thread: lane / 4 and lane / 4 + 8 of its warp's 16.
template <int KEYS> struct row_pair {
    int first;
    row_args row[2];
    row_sums sums[2]; // but for m, of this thread's keys alone
    bool masked;      // some row of the warp does not see every key of the piece
    bool plain;       // logits are scaled products and nothing else
};

template <int KEYS>
__device__ inline void begin_rows(const pass_args &args, const piece_args &piece,
                                  const view_args &view, int first, row_pair<KEYS> &rows)
{
    rows.first = first;
    rows.row[0] = load_row(args, view, first);
    rows.row[1] = load_row(args, view, first + 8);
    rows.sums[0] = rows.sums[1] = row_sums();
    rows.masked = !__all_sync(0xffffffffu,
                              sees_all(rows.row[0], piece) && sees_all(rows.row[1], piece));
    rows.plain =
        !rows.masked && args.softcap == 0 && args.slope == nullptr && piece.plane == nullptr;
}

// Whether no row of the block sees a key of the piece: every warp finds the same answer by itself.
__device__ inline bool block_sees_none(const pass_args &args, const piece_args &piece,
                                       const view_args &view, int block_row, int block_rows)
{
    bool none = true;
    for (int i = threadIdx.x % 32; i < block_rows; i += 32)
        none = none && sees_none(load_row(args, view, block_row + i), piece);
    return __all_sync(0xffffffffu, none);
}

// Dots become logits, logits go out, and the maxima of the tile are taken.
template <int KEYS>
__device__ inline void finish_tile(const pass_args &args, const piece_args &piece,
                                   const view_args &view, row_pair<KEYS> &rows, int first_key,
                                   float (&s)[KEYS / 8][4], float (&top)[2])
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
        for (int c = 0; c < 2; c++) {
            const int key = first_key + j * 8 + lane % 4 * 2 + c;
            const bool inside = key < piece.keys;
            const float log_norm = inside ? piece.log_norm[key] : -INFINITY;
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const int row = rows.first + r * 8;
                float x = -INFINITY;
                if (inside) {
                    x = finish_logit(args, piece, rows.row[r], view.inverse_temperature,
                                     s[j][r * 2 + c], key, row, rows.masked);
                    if (piece.z != nullptr && row < args.lanes)
                        piece.z[int64_t(key) * args.lanes + row] = x;
                }
                s[j][r * 2 + c] = x;
                top[r] = fmaxf(top[r], x);
                rows.sums[r].mc = fmaxf(rows.sums[r].mc, x + log_norm);
            }
        }
}

// The same for a full tile of a plain contract (scale and temperature alone), every key legal.
template <int KEYS>
__device__ inline void finish_plain_tile(const pass_args &args, const piece_args &piece,
                                         const view_args &view, row_pair<KEYS> &rows, int first_key,
                                         float (&s)[KEYS / 8][4], float (&top)[2])
{
    const int lane = threadIdx.x % 32, key = first_key + lane % 4 * 2;
    const float *log_norm = piece.log_norm + key;
    const float factor[2] = {rows.row[0].scale * view.inverse_temperature,
                             rows.row[1].scale * view.inverse_temperature};
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
        for (int c = 0; c < 2; c++)
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const float x = s[j][r * 2 + c] * factor[r];
                s[j][r * 2 + c] = x;
                top[r] = fmaxf(top[r], x);
                rows.sums[r].mc = fmaxf(rows.sums[r].mc, x + log_norm[j * 8 + c]);
            }
    if (piece.z == nullptr) return;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int row = rows.first + r * 8;
        float *z = piece.z + int64_t(key) * args.lanes + row;
        if (row >= args.lanes) continue;
#pragma unroll
        for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
            for (int c = 0; c < 2; c++) z[int64_t(j * 8 + c) * args.lanes] = s[j][r * 2 + c];
    }
}

// Moves the sums of one row to a new maximum; returns the factor.
__device__ inline float raise_maximum(row_sums &s, float top)
{
    const float m = fmaxf(s.m, top), base = m > -INFINITY ? m : 0.0f;
    const float drop = s.m > -INFINITY ? fmaxf(s.m - base, FAR_BELOW) : FAR_BELOW;
    const float f = ptx::exp2(drop * LOG2E);
    s.e = f * (s.e + drop * s.l);
    s.l *= f;
    s.s2 *= f * f;
    s.a *= f;
    s.m = m;
    return f;
}

// Logits become weights relative to the running maximum, and the sums take them: a logit that is NaN
// or +inf makes l NaN.
template <int KEYS>
__device__ inline void weigh_tile(const piece_args &piece, row_pair<KEYS> &rows, int first_key,
                                  float (&s)[KEYS / 8][4])
{
    const int lane = threadIdx.x % 32;
    float base[2];
#pragma unroll
    for (int r = 0; r < 2; r++) base[r] = rows.sums[r].m > -INFINITY ? rows.sums[r].m : 0.0f;
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
        for (int c = 0; c < 2; c++) {
            const int key = first_key + j * 8 + lane % 4 * 2 + c;
            const float norm = key < piece.keys ? piece.norm[key] : 0.0f;
#pragma unroll
            for (int r = 0; r < 2; r++) {
                row_sums &sums = rows.sums[r];
                const float x = s[j][r * 2 + c], below = ptx::max_nan(x - base[r], FAR_BELOW);
                const float p = ptx::exp2(below * LOG2E);
                sums.l += p;
                sums.e += p * below;
                sums.s2 += p * p;
                sums.a += p * norm;
                sums.n += x > -INFINITY ? 1.0f : 0.0f;
                s[j][r * 2 + c] = p;
            }
        }
}

// Products of a tile become weights, and the sums take them; f: what sums of values are raised by.
template <int KEYS>
__device__ inline void weigh_products(const pass_args &args, const piece_args &piece,
                                      const view_args &view, row_pair<KEYS> &rows, int first_key,
                                      float (&s)[KEYS / 8][4], float (&f)[2])
{
    float top[2] = {-INFINITY, -INFINITY};
    if (rows.plain && first_key + KEYS <= piece.keys)
        finish_plain_tile<KEYS>(args, piece, view, rows, first_key, s, top);
    else
        finish_tile<KEYS>(args, piece, view, rows, first_key, s, top);
#pragma unroll
    for (int r = 0; r < 2; r++) f[r] = raise_maximum(rows.sums[r], quad_max(top[r]));
    weigh_tile<KEYS>(piece, rows, first_key, s);
}

template <class T, int KEYS, int DV>
__device__ inline void store_piece(const pass_args &args, const piece_args &piece,
                                   row_pair<KEYS> &rows, const float (&o)[DV / 8][4])
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        row_sums &sums = rows.sums[r];
        const int row = rows.first + r * 8;
        sums.mc = quad_max(sums.mc);
        sums.l = quad_sum(sums.l);
        sums.e = quad_sum(sums.e);
        sums.s2 = quad_sum(sums.s2);
        sums.a = quad_sum(sums.a);
        sums.n = quad_sum(sums.n);
        if (lane % 4 == 0 && row < args.lanes) store_sums(args, piece, row, sums);
        if (piece.o == nullptr || row >= args.rows) continue;
        float *out = piece.o + int64_t(row) * args.v_pitch + lane % 4 * 2;
#pragma unroll
        for (int n = 0; n < DV / 8; n++)
            if (n * 8 < args.v_pitch)
                *reinterpret_cast<float2 *>(out + n * 8) =
                    make_float2(o[n][r * 2] * (1.0f / weights<T>::scale),
                                o[n][r * 2 + 1] * (1.0f / weights<T>::scale));
    }
}

// No row of the block sees a key of the piece: nothing is read. Thread `thread` of `threads` for rows
// [first_row, first_row + count).
__device__ inline void store_nothing(const pass_args &args, const piece_args &piece, int first_row,
                                     int count, int thread, int threads)
{
    for (int i = thread; i < piece.keys * count; i += threads) {
        const int row = first_row + i % count;
        if (piece.z != nullptr && row < args.lanes)
            piece.z[int64_t(i / count) * args.lanes + row] = -INFINITY;
    }
    for (int i = thread; i < count; i += threads)
        if (first_row + i < args.lanes) store_sums(args, piece, first_row + i, row_sums());
    for (int i = thread; i < count * args.v_pitch; i += threads) {
        const int row = first_row + i / args.v_pitch;
        if (piece.o != nullptr && row < args.rows)
            piece.o[int64_t(row) * args.v_pitch + i % args.v_pitch] = 0.0f;
    }
}

// The 16-bit halves of four weights that follow each other in two rows: the first operand of a product.
template <class T>
__device__ inline void split_weights(const float (&s)[4], const float (&next)[4], uint32_t (&hi)[4],
                                     uint32_t (&lo)[4])
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float *p = i < 2 ? s + i % 2 * 2 : next + i % 2 * 2;
        float x, y, unused;
        hi[i] = weights<T>::pack(p[0] * weights<T>::scale, p[1] * weights<T>::scale, x, y);
        lo[i] = weights<T>::pack(x, y, unused, unused);
    }
}

// Raises the sums of values of both rows to a new maximum.
template <int DV>
__device__ inline void raise_values(float (&o)[DV / 8][4], const float (&f)[2])
{
#pragma unroll
    for (int n = 0; n < DV / 8; n++) {
        o[n][0] *= f[0];
        o[n][1] *= f[0];
        o[n][2] *= f[1];
        o[n][3] *= f[1];
    }
}

} // namespace ats

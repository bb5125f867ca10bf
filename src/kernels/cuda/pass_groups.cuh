// Products of a warpgroup (sm_90a) over tiles in shared memory with the 128-byte swizzle: the same for
// both ways in which the tiles get there. A matrix lies as columns of tiles, 64 elements wide, one
// after the other; the 16-byte parts of its row r change places by r % 8.
#pragma once
#include "kernels/cuda/pass_rows.cuh"

namespace ats {

// Some are for sm_90a alone.
[[maybe_unused]] constexpr int KEYS = 64;
[[maybe_unused]] constexpr int GROUP_ROWS = 64;            // of a warpgroup
[[maybe_unused]] constexpr int COLUMNS = 64;               // of a column of tiles: 128 bytes
[[maybe_unused]] constexpr int ROW_BYTES = COLUMNS * 2;
[[maybe_unused]] constexpr int EIGHT_ROWS = 8 * ROW_BYTES; // the unit of the swizzle, its alignment
[[maybe_unused]] constexpr int STEP_BYTES = 16 * 2;        // 16 columns further along a row

// Bytes of `rows` rows; widths that are no multiple of 64 are filled up with zeros.
__host__ __device__ inline int tile_bytes(int rows, int width)
{
    return (width + COLUMNS - 1) / COLUMNS * rows * ROW_BYTES;
}

// What every lane of a warp has alike. The compiler must know it of all that decides whether a product
// is issued: else it waits for every one of them.
__device__ inline int uniform(int x) { return __shfl_sync(0xffffffffu, x, 0); }

// s = 64 rows x 64 keys of q k^T, or s += it, one 16-bit half of q; both along their rows.
template <class T>
__device__ inline void multiply_keys(float (&s)[KEYS / 8][4], const unsigned char *q, int q_rows,
                                     const unsigned char *k, int width, bool add)
{
#pragma unroll 1
    for (int column = 0; column < width; column += COLUMNS) {
        ptx::wgmma_fence(); // in every block of the flow, or the compiler waits for each product
#pragma unroll
        for (int step = 0; step < COLUMNS / 16; step++)
            ptx::wgmma_ss<T>(s,
                             ptx::matrix_descriptor(q + step * STEP_BYTES, EIGHT_ROWS, EIGHT_ROWS),
                             ptx::matrix_descriptor(k + step * STEP_BYTES, EIGHT_ROWS, EIGHT_ROWS),
                             add || column > 0 || step > 0);
        q += q_rows * ROW_BYTES;
        k += KEYS * ROW_BYTES;
    }
}

// Logits of a tile before scale; q_lo NULL: one half is all.
template <class T>
__device__ inline void tile_logits(float (&s)[KEYS / 8][4], const unsigned char *q_hi,
                                   const unsigned char *q_lo, int q_rows, const unsigned char *k,
                                   int width)
{
    multiply_keys<T>(s, q_hi, q_rows, k, width, false);
    if (q_lo != nullptr) multiply_keys<T>(s, q_lo, q_rows, k, width, true);
    ptx::wgmma_commit();
    ptx::wgmma_wait(s);
}

// o = f o + p v: weights from registers in two halves, values across their rows.
template <class T, int DV>
__device__ inline void tile_values(float (&o)[DV / 8][4], const float (&f)[2],
                                   const float (&s)[KEYS / 8][4], const unsigned char *v)
{
    uint32_t hi[KEYS / 16][4], lo[KEYS / 16][4];
#pragma unroll
    for (int step = 0; step < KEYS / 16; step++)
        split_weights<T>(s[2 * step], s[2 * step + 1], hi[step], lo[step]);
    raise_values<DV>(o, f);
    ptx::wgmma_fence();
#pragma unroll
    for (int column = 0; column < DV / COLUMNS; column++) {
        float(&part)[8][4] = *reinterpret_cast<float(*)[8][4]>(&o[column * 8]);
#pragma unroll
        for (int step = 0; step < KEYS / 16; step++) {
            const uint64_t values = ptx::matrix_descriptor(
                v + (column * KEYS + step * 16) * ROW_BYTES, KEYS * ROW_BYTES, EIGHT_ROWS);
            ptx::wgmma_rs<T>(part, hi[step], values);
            ptx::wgmma_rs<T>(part, lo[step], values);
        }
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait(o);
}

} // namespace ats

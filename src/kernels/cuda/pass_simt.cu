#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pass.cuh"
#include "kernels/cuda/ptx.cuh"

namespace ats {

constexpr int THREADS = 128;
constexpr int BLOCK_ROWS = 32, ROW_STEPS = 4; // thread t holds rows 4 (t / 16) + {0..3}
constexpr int COLUMNS = 64, COLUMN_STEPS = 4; // and columns t % 16 + 16 {0..3} of a tile
constexpr int DEPTH = 32;                     // elements of a product taken at a time
constexpr int P_STRIDE = LEAF_MAX + 1, Q_STRIDE = DEPTH + 1, TILE_STRIDE = COLUMNS + 1;

__device__ inline float load_element(ats_device_type type, const void *from, int64_t i)
{
    if (type == ATS_DEVICE_F32) return static_cast<const float *>(from)[i];
    if (type == ATS_DEVICE_BF16) return __bfloat162float(static_cast<const __nv_bfloat16 *>(from)[i]);
    return __half2float(static_cast<const __half *>(from)[i]);
}

// Over the 16 threads that share a row.
__device__ inline float row_max(float x)
{
#pragma unroll
    for (int step = 8; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

__device__ inline float row_sum(float x)
{
#pragma unroll
    for (int step = 8; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

struct simt_shared {
    float p[BLOCK_ROWS * P_STRIDE]; // logits, then weights
    float q[BLOCK_ROWS * Q_STRIDE]; // [rows, depth]
    float tile[DEPTH * TILE_STRIDE]; // [depth, keys] of k, or [keys, columns] of v
};

// acc = rows x keys [first_key, first_key + 64) of q k^T.
__device__ inline void dot_tile(const pass_args &args, const piece_args &piece,
                                const view_args &view, simt_shared &shared, int first_row,
                                int first_key, float (&acc)[ROW_STEPS][COLUMN_STEPS])
{
    const int t = threadIdx.x, ty = t / 16, tx = t % 16;
    for (int d = 0; d < args.k_pitch; d += DEPTH) {
        const int depth = min(DEPTH, args.k_pitch - d);
        for (int i = t; i < BLOCK_ROWS * DEPTH; i += THREADS) {
            const int row = first_row + i / DEPTH, column = i % DEPTH;
            shared.q[i / DEPTH * Q_STRIDE + column] =
                row < args.lanes && column < depth ? view.q[int64_t(row) * args.k_pitch + d + column]
                                                   : 0.0f;
        }
        for (int i = t; i < COLUMNS * DEPTH; i += THREADS) {
            const int key = first_key + i / DEPTH, column = i % DEPTH;
            shared.tile[column * TILE_STRIDE + i / DEPTH] =
                key < piece.keys && column < depth
                    ? load_element(args.k_type, piece.k, int64_t(key) * args.k_pitch + d + column)
                    : 0.0f;
        }
        __syncthreads();
        for (int c = 0; c < depth; c++)
#pragma unroll
            for (int r = 0; r < ROW_STEPS; r++) {
                const float q = shared.q[(ty * ROW_STEPS + r) * Q_STRIDE + c];
#pragma unroll
                for (int j = 0; j < COLUMN_STEPS; j++)
                    acc[r][j] += q * shared.tile[c * TILE_STRIDE + tx + 16 * j];
            }
        __syncthreads();
    }
}

__device__ inline void finish_tile(const pass_args &args, const piece_args &piece,
                                   const view_args &view, simt_shared &shared, int first_row,
                                   int first_key, const float (&acc)[ROW_STEPS][COLUMN_STEPS])
{
    const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
#pragma unroll
    for (int r = 0; r < ROW_STEPS; r++) {
        const int row = first_row + ty * ROW_STEPS + r;
        const row_args at = load_row(args, view, row);
#pragma unroll
        for (int j = 0; j < COLUMN_STEPS; j++) {
            const int key = first_key + tx + 16 * j;
            if (key >= piece.keys) continue;
            const float x = finish_logit(args, piece, at, view.inverse_temperature, acc[r][j], key,
                                         row, true);
            shared.p[(ty * ROW_STEPS + r) * P_STRIDE + key] = x;
            if (piece.z != nullptr && row < args.lanes)
                piece.z[int64_t(key) * args.lanes + row] = x;
        }
    }
}

// Logits of a row, strided over its 16 threads, become weights.
__device__ inline void weigh_row(const pass_args &args, const piece_args &piece, float *p, int row)
{
    const int tx = threadIdx.x % 16;
    row_sums s;
    for (int key = tx; key < piece.keys; key += 16) {
        s.m = fmaxf(s.m, p[key]);
        s.mc = fmaxf(s.mc, p[key] + piece.log_norm[key]);
    }
    s.m = row_max(s.m);
    s.mc = row_max(s.mc);
    const float base = s.m > -INFINITY ? s.m : 0.0f;
    for (int key = tx; key < piece.keys; key += 16) {
        const float below = ptx::max_nan(p[key] - base, FAR_BELOW), w = ptx::exp2(below * LOG2E);
        s.l += w;
        s.e += w * below;
        s.s2 += w * w;
        s.a += w * piece.norm[key];
        s.n += p[key] > -INFINITY ? 1.0f : 0.0f;
        p[key] = w;
    }
    s.l = row_sum(s.l);
    s.e = row_sum(s.e);
    s.s2 = row_sum(s.s2);
    s.a = row_sum(s.a);
    s.n = row_sum(s.n);
    if (tx == 0 && row < args.lanes) store_sums(args, piece, row, s);
}

__device__ inline void value_tile(const pass_args &args, const piece_args &piece,
                                  simt_shared &shared, int first_row, int first_column)
{
    const int t = threadIdx.x, ty = t / 16, tx = t % 16;
    float acc[ROW_STEPS][COLUMN_STEPS] = {};
    for (int k = 0; k < piece.keys; k += DEPTH) {
        const int depth = min(DEPTH, piece.keys - k);
        for (int i = t; i < DEPTH * COLUMNS; i += THREADS) {
            const int key = k + i / COLUMNS, column = first_column + i % COLUMNS;
            shared.tile[i / COLUMNS * TILE_STRIDE + i % COLUMNS] =
                key < piece.keys && column < args.v_pitch
                    ? load_element(args.v_type, piece.v, int64_t(key) * args.v_pitch + column)
                    : 0.0f;
        }
        __syncthreads();
        for (int c = 0; c < depth; c++)
#pragma unroll
            for (int r = 0; r < ROW_STEPS; r++) {
                const float p = shared.p[(ty * ROW_STEPS + r) * P_STRIDE + k + c];
#pragma unroll
                for (int j = 0; j < COLUMN_STEPS; j++)
                    acc[r][j] += p * shared.tile[c * TILE_STRIDE + tx + 16 * j];
            }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < ROW_STEPS; r++) {
        const int row = first_row + ty * ROW_STEPS + r;
#pragma unroll
        for (int j = 0; j < COLUMN_STEPS; j++) {
            const int column = first_column + tx + 16 * j;
            if (row < args.rows && column < args.v_pitch)
                piece.o[int64_t(row) * args.v_pitch + column] = acc[r][j];
        }
    }
}

// Threads: a block is one piece x 32 rows; products by 4 x 4 tiles in registers, all fp32. The
// logits of the whole piece stay in shared memory (33 kB), so the maximum is exact before the first
// weight; elements of any type are widened on their way in. Limits: at most 256 keys in a piece.
__global__ void __launch_bounds__(THREADS, 4) pass_simt(pass_args args)
{
    ATS_SHARED(bytes);
    simt_shared &shared = *reinterpret_cast<simt_shared *>(bytes);
    const piece_args piece = args.pieces[blockIdx.x];
    const view_args view = args.views[piece.view];
    const int first_row = static_cast<int>(blockIdx.y) * BLOCK_ROWS;
    for (int key = 0; key < piece.keys; key += COLUMNS) {
        float acc[ROW_STEPS][COLUMN_STEPS] = {};
        dot_tile(args, piece, view, shared, first_row, key, acc);
        finish_tile(args, piece, view, shared, first_row, key, acc);
    }
    // A thread weighs the very keys that it has finished; others see its weights after the barrier.
    const int ty = threadIdx.x / 16;
    for (int r = 0; r < ROW_STEPS; r++) {
        const int row = ty * ROW_STEPS + r;
        weigh_row(args, piece, shared.p + row * P_STRIDE, first_row + row);
    }
    __syncthreads();
    if (piece.o == nullptr) return;
    for (int column = 0; column < args.v_pitch; column += COLUMNS)
        value_tile(args, piece, shared, first_row, column);
}

cudaError_t launch_simt(const pass_args &args, int pieces, cudaStream_t stream)
{
    const unsigned tiles = static_cast<unsigned>((args.lanes + BLOCK_ROWS - 1) / BLOCK_ROWS);
    const cudaError_t rc =
        allow_shared(reinterpret_cast<const void *>(pass_simt), sizeof(simt_shared));
    if (rc != cudaSuccess) return rc;
    ATS_LAUNCH(pass_simt, dim3(static_cast<unsigned>(pieces), tiles), dim3(THREADS),
               sizeof(simt_shared), stream, args);
    return cudaGetLastError();
}

} // namespace ats

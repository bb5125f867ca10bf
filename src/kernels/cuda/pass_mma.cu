#include <algorithm>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pass_rows.cuh"

namespace ats {

template <int DV> constexpr int tile_keys = DV > 128 ? 32 : 64;
constexpr int STAGES = 2;
constexpr int PAD = 8;   // elements; rows then lie 16 bytes apart modulo 128: no bank conflict

// Rows [first, first + count) of a matrix of `width` elements into shared memory; rows at or past
// `rows` become 0 and are not read.
template <class T>
__device__ inline void load_rows(T *shared, const T *global, int first, int count, int rows,
                                 int width)
{
    const int per_row = width / 8, stride = width + PAD;
    for (int i = threadIdx.x; i < count * per_row; i += blockDim.x) {
        const int row = i / per_row, column = i % per_row * 8;
        const bool inside = first + row < rows;
        const T *from = global + int64_t(inside ? first + row : 0) * width + column;
        ptx::cp_async16(shared + row * stride + column, from, inside ? 16 : 0);
    }
}

// s[j] = 16 rows x keys [8 j, 8 j + 8) of q k^T, one 16-bit half of q.
template <class T, int KEYS>
__device__ inline void multiply_keys(float (&s)[KEYS / 8][4], const T *q, const T *k, int width)
{
    const int lane = threadIdx.x % 32, stride = width + PAD;
    const T *q_row = q + lane % 16 * stride + lane / 16 * 8;
    const T *k_row = k + (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8;
    for (int step = 0; step < width; step += 16) {
        uint32_t a[4], b[4];
        ptx::ldmatrix_x4(a, q_row + step);
#pragma unroll
        for (int j = 0; j < KEYS / 8; j += 2) {
            ptx::ldmatrix_x4(b, k_row + j * 8 * stride + step);
            ptx::mma<T>(s[j], a, b[0], b[1]);
            ptx::mma<T>(s[j + 1], a, b[2], b[3]);
        }
    }
}

// o += p v: p are the 16 x KEYS weights in s, split in two halves of T that add up to it.
template <class T, int KEYS, int DV>
__device__ inline void multiply_values(float (&o)[DV / 8][4], const float (&s)[KEYS / 8][4],
                                       const T *v, int width)
{
    const int lane = threadIdx.x % 32, stride = width + PAD;
    const T *v_row = v + lane % 16 * stride + lane / 16 * 8;
#pragma unroll
    for (int step = 0; step < KEYS / 16; step++) {
        uint32_t hi[4], lo[4];
        split_weights<T>(s[2 * step], s[2 * step + 1], hi, lo);
#pragma unroll
        for (int n = 0; n < DV / 8; n += 2) {
            if (n * 8 >= width) break;
            uint32_t b[4];
            ptx::ldmatrix_x4_trans(b, v_row + step * 16 * stride + n * 8);
            ptx::mma<T>(o[n], hi, b[0], b[1]);
            ptx::mma<T>(o[n + 1], hi, b[2], b[3]);
            ptx::mma<T>(o[n], lo, b[0], b[1]);
            ptx::mma<T>(o[n + 1], lo, b[2], b[3]);
        }
    }
}

// Threads: a block is one piece x 16 rows per warp; a lane holds rows lane/4 and lane/4 + 8 and
// keys 2 (lane % 4) + {0, 1} of every 8, as mma.m16n8k16 lays them out. Shared memory: the rows
// (one or two 16-bit halves) and two stages of a tile of keys and of values, copied by cp.async
// while the tile before is used. Logits and sums are fp32; weights enter the second product as two
// 16-bit halves. Limits: heads up to 256, d_v up to DV, at most 256 keys in a piece.
template <class T, int DV> __global__ void __launch_bounds__(256) pass_mma(pass_args args)
{
    constexpr int KEYS = tile_keys<DV>;
    ATS_SHARED(shared);
    const piece_args piece = args.pieces[blockIdx.x];
    const view_args view = args.views[piece.view];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int block_rows = static_cast<int>(blockDim.x) / 32 * ROWS;
    const int block_row = static_cast<int>(blockIdx.y) * block_rows;
    if (block_sees_none(args, piece, view, block_row, block_rows)) {
        store_nothing(args, piece, block_row, block_rows, threadIdx.x, blockDim.x);
        return;
    }
    row_pair<KEYS> rows;
    begin_rows(args, piece, view, block_row + warp * ROWS + lane / 4, rows);

    const int q_stride = args.k_pitch + PAD, v_stride = args.v_pitch + PAD;
    T *q_hi = reinterpret_cast<T *>(shared), *q_lo = q_hi + block_rows * q_stride;
    T *k_tiles = view.q_lo != nullptr ? q_lo + block_rows * q_stride : q_lo;
    T *v_tiles = k_tiles + STAGES * KEYS * q_stride;
    const T *k = static_cast<const T *>(piece.k), *v = static_cast<const T *>(piece.v);
    const auto load_tile = [&](int tile) {
        const int stage = tile % STAGES;
        load_rows(k_tiles + stage * KEYS * q_stride, k, tile * KEYS, KEYS, piece.keys,
                  args.k_pitch);
        if (piece.o != nullptr)
            load_rows(v_tiles + stage * KEYS * v_stride, v, tile * KEYS, KEYS, piece.keys,
                      args.v_pitch);
        ptx::cp_commit();
    };

    load_rows(q_hi, static_cast<const T *>(view.q_hi), block_row, block_rows, args.lanes,
              args.k_pitch);
    if (view.q_lo != nullptr)
        load_rows(q_lo, static_cast<const T *>(view.q_lo), block_row, block_rows, args.lanes,
                  args.k_pitch);
    load_tile(0);

    float o[DV / 8][4] = {};
    const int tiles = (piece.keys + KEYS - 1) / KEYS;
    for (int tile = 0; tile < tiles; tile++) {
        if (tile + 1 < tiles) {
            load_tile(tile + 1);
            ptx::cp_wait<1>();
        } else {
            ptx::cp_wait<0>();
        }
        __syncthreads();
        const T *k_tile = k_tiles + tile % STAGES * KEYS * q_stride;
        float s[KEYS / 8][4] = {}, f[2];
        multiply_keys<T, KEYS>(s, q_hi + warp * ROWS * q_stride, k_tile, args.k_pitch);
        if (view.q_lo != nullptr)
            multiply_keys<T, KEYS>(s, q_lo + warp * ROWS * q_stride, k_tile, args.k_pitch);
        weigh_products(args, piece, view, rows, tile * KEYS, s, f);
        if (piece.o != nullptr) {
            raise_values<DV>(o, f);
            multiply_values<T, KEYS, DV>(o, s, v_tiles + tile % STAGES * KEYS * v_stride,
                                         args.v_pitch);
        }
        __syncthreads();
    }
    store_piece<T, KEYS, DV>(args, piece, rows, o);
}

static int64_t shared_bytes(const mma_shape &shape, int warps)
{
    const int64_t keys = shape.v_pitch > 128 ? tile_keys<256> : tile_keys<128>;
    const int64_t q = int64_t(shape.q_halves) * warps * ROWS + STAGES * keys;
    return 2 * (q * (shape.k_pitch + PAD) + STAGES * keys * (shape.v_pitch + PAD));
}

// Eight warps share the keys best; fewer where rows are few or shared memory is small.
int mma_warps(const mma_shape &shape, int lanes, int64_t shared_limit)
{
    const int needed = (lanes + ROWS - 1) / ROWS;
    int warps = std::min(8, needed);
    while (warps > 1 && shared_bytes(shape, warps) > shared_limit) warps--;
    if (shared_bytes(shape, warps) > shared_limit) return 0;
    const int blocks = (needed + warps - 1) / warps;
    return (needed + blocks - 1) / blocks;
}

template <class T, int DV>
static cudaError_t launch(const pass_args &args, const mma_shape &shape, int pieces, int warps,
                          cudaStream_t stream)
{
    const int64_t shared = shared_bytes(shape, warps);
    const cudaError_t rc = allow_shared(reinterpret_cast<const void *>(pass_mma<T, DV>), shared);
    if (rc != cudaSuccess) return rc;
    const unsigned tiles = static_cast<unsigned>((args.lanes + warps * ROWS - 1) / (warps * ROWS));
    ATS_LAUNCH((pass_mma<T, DV>), dim3(static_cast<unsigned>(pieces), tiles),
               dim3(static_cast<unsigned>(warps) * 32), static_cast<size_t>(shared), stream, args);
    return cudaGetLastError();
}

template <class T>
static cudaError_t launch_type(const pass_args &args, const mma_shape &shape, int pieces, int warps,
                               cudaStream_t stream)
{
    if (shape.v_pitch <= 64) return launch<T, 64>(args, shape, pieces, warps, stream);
    if (shape.v_pitch <= 128) return launch<T, 128>(args, shape, pieces, warps, stream);
    return launch<T, 256>(args, shape, pieces, warps, stream);
}

cudaError_t launch_mma(const pass_args &args, const mma_shape &shape, int pieces, int warps,
                       cudaStream_t stream)
{
    return args.k_type == ATS_DEVICE_BF16
               ? launch_type<__nv_bfloat16>(args, shape, pieces, warps, stream)
               : launch_type<__half>(args, shape, pieces, warps, stream);
}

} // namespace ats

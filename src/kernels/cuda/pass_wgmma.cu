#include <algorithm>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pass_rows.cuh"

namespace ats {

// Some are for sm_90a alone.
[[maybe_unused]] constexpr int KEYS = 64;
[[maybe_unused]] constexpr int STAGES = 2;
[[maybe_unused]] constexpr int GROUP_ROWS = 64;             // of a warpgroup
[[maybe_unused]] constexpr int COLUMNS = 64;                // of a swizzled column of tiles: 128 bytes
[[maybe_unused]] constexpr int ROW_BYTES = COLUMNS * 2;
[[maybe_unused]] constexpr int EIGHT_ROWS = 8 * ROW_BYTES;  // the unit of the swizzle, and its alignment
[[maybe_unused]] constexpr int STEP_BYTES = 16 * 2;         // 16 columns further along a row

// Rows [first, first + count) of a matrix of `width` elements as columns of tiles, 64 elements wide,
// one after the other; the 16-byte parts of row r change places by r % 8 (128-byte swizzle).
template <class T>
__device__ inline void load_swizzled(unsigned char *shared, const T *global, int first, int count,
                                     int rows, int width)
{
    const int per_row = width / 8;
    for (int i = threadIdx.x; i < count * per_row; i += blockDim.x) {
        const int row = i / per_row, part = i % per_row;
        const bool inside = first + row < rows;
        const T *from = global + int64_t(inside ? first + row : 0) * width + part * 8;
        unsigned char *to = shared + part / 8 * count * ROW_BYTES + row * ROW_BYTES +
                            ((part % 8) ^ (row % 8)) * 16;
        ptx::cp_async16(to, from, inside ? 16 : 0);
    }
}

// s = 64 rows x 64 keys of q k^T, or s += it, one 16-bit half of q; both along their rows.
template <class T>
__device__ inline void multiply_keys(float (&s)[KEYS / 8][4], const unsigned char *q, int q_rows,
                                     const unsigned char *k, int width, bool add)
{
    for (int column = 0; column < width; column += COLUMNS) {
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

// o += p v: weights from registers in two halves, values across their rows.
template <class T, int DV>
__device__ inline void multiply_values(float (&o)[DV / 8][4], const uint32_t (&hi)[KEYS / 16][4],
                                       const uint32_t (&lo)[KEYS / 16][4], const unsigned char *v)
{
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
}

// Threads: a block is one piece x 64 rows per warpgroup; lanes hold rows and keys as in pass_mma, so
// everything between the products is shared with it. Shared memory: the rows (one or two 16-bit
// halves) and two stages of 64 keys and values, swizzled as wgmma reads them. Copies are cp.async;
// fence.proxy.async shows them to the matrix units. Limits: sm_90a; widths that are multiples of 64,
// d_v at most DV; at most 256 keys in a piece.
template <class T, int DV> __global__ void __launch_bounds__(256) pass_wgmma(pass_args args)
{
#if ATS_HAS_WGMMA
    ATS_SHARED(unaligned);
    unsigned char *shared = ptx::align_shared(unaligned, EIGHT_ROWS);
    const piece_args piece = args.pieces[blockIdx.x];
    const view_args view = args.views[piece.view];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int block_rows = static_cast<int>(blockDim.x) / 128 * GROUP_ROWS;
    const int block_row = static_cast<int>(blockIdx.y) * block_rows;
    const int first_row = block_row + warp * ROWS + lane / 4;
    row_pair<KEYS> rows;
    rows.row[0] = load_row(args, view, first_row);
    rows.row[1] = load_row(args, view, first_row + 8);
    if (__syncthreads_and(sees_none(rows.row[0], piece) && sees_none(rows.row[1], piece))) {
        store_nothing(args, piece, block_row, block_rows);
        return;
    }
    const bool masked = !__all_sync(
        0xffffffffu, sees_all(rows.row[0], piece) && sees_all(rows.row[1], piece));
    const bool plain =
        !masked && args.softcap == 0 && args.slope == nullptr && piece.plane == nullptr;

    const int q_bytes = block_rows * args.k_pitch * 2, k_bytes = KEYS * args.k_pitch * 2;
    const int v_bytes = KEYS * args.v_pitch * 2;
    unsigned char *q_hi = shared, *q_lo = q_hi + q_bytes;
    unsigned char *k_tiles = view.q_lo != nullptr ? q_lo + q_bytes : q_lo;
    unsigned char *v_tiles = k_tiles + STAGES * k_bytes;
    const T *k = static_cast<const T *>(piece.k), *v = static_cast<const T *>(piece.v);
    const auto load_tile = [&](int tile) {
        load_swizzled(k_tiles + tile % STAGES * k_bytes, k, tile * KEYS, KEYS, piece.keys,
                      args.k_pitch);
        if (piece.o != nullptr)
            load_swizzled(v_tiles + tile % STAGES * v_bytes, v, tile * KEYS, KEYS, piece.keys,
                          args.v_pitch);
        ptx::cp_commit();
    };
    load_swizzled(q_hi, static_cast<const T *>(view.q_hi), block_row, block_rows, args.lanes,
                  args.k_pitch);
    if (view.q_lo != nullptr)
        load_swizzled(q_lo, static_cast<const T *>(view.q_lo), block_row, block_rows, args.lanes,
                      args.k_pitch);
    load_tile(0);

    const int group = warp / 4 * GROUP_ROWS * ROW_BYTES; // the warpgroup's rows in a column of tiles
    float o[DV / 8][4] = {};
    const int tiles = (piece.keys + KEYS - 1) / KEYS;
    for (int tile = 0; tile < tiles; tile++) {
        if (tile + 1 < tiles) {
            load_tile(tile + 1);
            ptx::cp_wait<1>();
        } else {
            ptx::cp_wait<0>();
        }
        ptx::fence_proxy_async();
        __syncthreads();
        const unsigned char *k_tile = k_tiles + tile % STAGES * k_bytes;
        float s[KEYS / 8][4], top[2] = {-INFINITY, -INFINITY};
        ptx::wgmma_fence();
        multiply_keys<T>(s, q_hi + group, block_rows, k_tile, args.k_pitch, false);
        if (view.q_lo != nullptr)
            multiply_keys<T>(s, q_lo + group, block_rows, k_tile, args.k_pitch, true);
        ptx::wgmma_commit();
        ptx::wgmma_wait(s);
        if (plain && (tile + 1) * KEYS <= piece.keys)
            finish_plain_tile<KEYS>(args, piece, view, rows, first_row, tile * KEYS, s, top);
        else
            finish_tile<KEYS>(args, piece, view, rows, first_row, tile * KEYS, masked, s, top);
        const float f0 = raise_maximum(rows.sums[0], quad_max(top[0]));
        const float f1 = raise_maximum(rows.sums[1], quad_max(top[1]));
        weigh_tile<KEYS>(piece, rows, tile * KEYS, s);
        if (piece.o != nullptr) {
            uint32_t hi[KEYS / 16][4], lo[KEYS / 16][4];
#pragma unroll
            for (int step = 0; step < KEYS / 16; step++)
                split_weights<T>(s[2 * step], s[2 * step + 1], hi[step], lo[step]);
            raise_values<DV>(o, f0, f1);
            ptx::wgmma_fence();
            multiply_values<T, DV>(o, hi, lo, v_tiles + tile % STAGES * v_bytes);
            ptx::wgmma_commit();
            ptx::wgmma_wait(o);
        }
        __syncthreads();
    }
    store_piece<T, KEYS, DV>(args, piece, rows, first_row, o);
#endif
}

static int64_t shared_bytes(const mma_shape &shape, int groups)
{
    const int64_t q = int64_t(shape.q_halves) * groups * GROUP_ROWS + STAGES * KEYS;
    return 2 * (q * shape.k_pitch + STAGES * KEYS * shape.v_pitch) + EIGHT_ROWS;
}

int wgmma_groups(const mma_shape &shape, int lanes, int64_t shared_limit)
{
    if (shape.k_pitch % COLUMNS != 0 || shape.v_pitch % COLUMNS != 0 || shape.v_pitch > 128 ||
        lanes < GROUP_ROWS)
        return 0;
    int groups = std::min(2, (lanes + GROUP_ROWS - 1) / GROUP_ROWS);
    while (groups > 0 && shared_bytes(shape, groups) > shared_limit) groups--;
    return groups;
}

template <class T, int DV>
static cudaError_t launch(const pass_args &args, const mma_shape &shape, int pieces, int groups,
                          cudaStream_t stream)
{
    const int64_t shared = shared_bytes(shape, groups);
    const cudaError_t rc =
        cudaFuncSetAttribute(reinterpret_cast<const void *>(pass_wgmma<T, DV>),
                             cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
    if (rc != cudaSuccess) return rc;
    const int block_rows = groups * GROUP_ROWS;
    const unsigned tiles = static_cast<unsigned>((args.lanes + block_rows - 1) / block_rows);
    ATS_LAUNCH((pass_wgmma<T, DV>), dim3(static_cast<unsigned>(pieces), tiles),
               dim3(static_cast<unsigned>(groups) * 128), static_cast<size_t>(shared), stream, args);
    return cudaGetLastError();
}

template <class T>
static cudaError_t launch_type(const pass_args &args, const mma_shape &shape, int pieces, int groups,
                               cudaStream_t stream)
{
    if (shape.v_pitch <= 64) return launch<T, 64>(args, shape, pieces, groups, stream);
    return launch<T, 128>(args, shape, pieces, groups, stream);
}

cudaError_t launch_wgmma(const pass_args &args, const mma_shape &shape, int pieces, int groups,
                         cudaStream_t stream)
{
    return args.k_type == ATS_DEVICE_BF16
               ? launch_type<__nv_bfloat16>(args, shape, pieces, groups, stream)
               : launch_type<__half>(args, shape, pieces, groups, stream);
}

} // namespace ats

#include <algorithm>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pass_groups.cuh"

namespace ats {

[[maybe_unused]] constexpr int STAGES = 2;

// Rows [first, first + count) of a matrix of `width` elements; rows at or past `rows` become 0.
template <class T>
__device__ inline void load_swizzled(unsigned char *shared, const T *global, int first, int count,
                                     int rows, int width)
{
    const int per_row = (width + COLUMNS - 1) / COLUMNS * 8;
    for (int i = threadIdx.x; i < count * per_row; i += blockDim.x) {
        const int row = i / per_row, part = i % per_row;
        const bool inside = first + row < rows && part * 8 < width;
        const T *from = inside ? global + int64_t(first + row) * width + part * 8 : global;
        unsigned char *to = shared + part / 8 * count * ROW_BYTES + row * ROW_BYTES +
                            ((part % 8) ^ (row % 8)) * 16;
        ptx::cp_async16(to, from, inside ? 16 : 0);
    }
}

// Threads: a block is one piece x 64 rows per warpgroup; lanes hold rows and keys as in pass_mma, so
// everything between the products is shared with it. Shared memory: the rows (one or two 16-bit
// halves) and two stages of 64 keys and values. Copies are cp.async; fence.proxy.async shows them to
// the matrix units. Limits: sm_90a; heads up to 256, d_v at most DV; at most 256 keys in a piece.
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
    if (block_sees_none(args, piece, view, block_row, block_rows)) {
        store_nothing(args, piece, block_row, block_rows, threadIdx.x, blockDim.x);
        return;
    }
    row_pair<KEYS> rows;
    begin_rows(args, piece, view, block_row + warp * ROWS + lane / 4, rows);

    const int q_bytes = tile_bytes(block_rows, args.k_pitch);
    const int k_bytes = tile_bytes(KEYS, args.k_pitch), v_bytes = tile_bytes(KEYS, args.v_pitch);
    unsigned char *q_hi = shared, *q_lo = q_hi + q_bytes;
    const bool halves = uniform(view.q_lo != nullptr), want_o = uniform(piece.o != nullptr);
    unsigned char *k_tiles = q_hi + (halves ? 2 : 1) * q_bytes;
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
    if (halves)
        load_swizzled(q_lo, static_cast<const T *>(view.q_lo), block_row, block_rows, args.lanes,
                      args.k_pitch);
    load_tile(0);

    const int group = warp / 4 * GROUP_ROWS * ROW_BYTES; // the warpgroup's rows in a column of tiles
    float o[DV / 8][4] = {};
    const int tiles = uniform((piece.keys + KEYS - 1) / KEYS);
    for (int tile = 0; tile < tiles; tile++) {
        if (tile + 1 < tiles) {
            load_tile(tile + 1);
            ptx::cp_wait<1>();
        } else {
            ptx::cp_wait<0>();
        }
        ptx::fence_proxy_async();
        __syncthreads();
        float s[KEYS / 8][4], f[2];
        tile_logits<T>(s, q_hi + group, halves ? q_lo + group : nullptr, block_rows,
                       k_tiles + tile % STAGES * k_bytes, args.k_pitch);
        weigh_products(args, piece, view, rows, tile * KEYS, s, f);
        if (want_o)
            tile_values<T, DV>(o, f, s, v_tiles + tile % STAGES * v_bytes);
        __syncthreads();
    }
    store_piece<T, KEYS, DV>(args, piece, rows, o);
#endif
}

static int64_t shared_bytes(const mma_shape &shape, int groups)
{
    return EIGHT_ROWS + shape.q_halves * tile_bytes(groups * GROUP_ROWS, shape.k_pitch) +
           STAGES * (tile_bytes(KEYS, shape.k_pitch) + tile_bytes(KEYS, shape.v_pitch));
}

int wgmma_groups(const mma_shape &shape, int lanes, int64_t shared_limit)
{
    if (shape.v_pitch > 128) return 0;
    int groups = std::min(2, (lanes + GROUP_ROWS - 1) / GROUP_ROWS);
    while (groups > 0 && shared_bytes(shape, groups) > shared_limit) groups--;
    return groups;
}

template <class T, int DV>
static cudaError_t launch(const pass_args &args, const mma_shape &shape, int pieces, int groups,
                          cudaStream_t stream)
{
    const int64_t shared = shared_bytes(shape, groups);
    const cudaError_t rc = allow_shared(reinterpret_cast<const void *>(pass_wgmma<T, DV>), shared);
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

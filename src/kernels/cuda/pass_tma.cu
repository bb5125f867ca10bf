#include <algorithm>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pass_groups.cuh"

namespace ats {

[[maybe_unused]] constexpr int PRODUCERS = 128; // threads: the last warpgroup, of which one warp works
// A block of two groups and producers has 168 registers a thread; producers leave most of theirs.
[[maybe_unused]] constexpr int PRODUCER_REGISTERS = 56;
[[maybe_unused]] constexpr int GROUP_REGISTERS = 224;

// Where a full barrier is passed, the tile is there; where an empty one is, nobody reads it any more.
struct pipeline {
    uint64_t q_full, q_empty;
    uint64_t k_full[TMA_STAGES], k_empty[TMA_STAGES], v_full[TMA_STAGES], v_empty[TMA_STAGES];
};
constexpr int PIPELINE_BYTES = EIGHT_ROWS; // what follows stays aligned
static_assert(sizeof(pipeline) <= PIPELINE_BYTES, "the barriers have a place of their own");

// A place in a ring of stages, and the parity of its round.
struct ring_place {
    int stage = 0;
    uint32_t parity = 0;
    __device__ void advance(int stages)
    {
        if (++stage < stages) return;
        stage = 0;
        parity ^= 1;
    }
};

struct tma_args {
    const unsigned char *q, *k, *v; // row 0 of the maps
    int32_t pieces, stages;
};

// Shared memory of a block.
struct tma_places {
    unsigned char *q, *k, *v;
    pipeline *bars;
    int q_bytes, k_bytes, v_bytes, block_rows, block_row;
};

__device__ inline int row_of(const unsigned char *base, const void *at, int pitch)
{
    return static_cast<int>((static_cast<const unsigned char *>(at) - base) / (2 * pitch));
}

// `rows` rows from row `row` on of a matrix, column of tiles by column of tiles.
__device__ inline void copy_matrix(unsigned char *shared, const CUtensorMap *map, int row, int rows,
                                   int width, uint64_t *bar)
{
#pragma unroll 1
    for (int column = 0; column < width; column += COLUMNS)
#pragma unroll 1
        for (int part = 0; part < rows; part += GROUP_ROWS, shared += GROUP_ROWS * ROW_BYTES)
            ptx::copy_tile(shared, map, column, row + part, bar);
}

// The last warp: walks over the pieces that the others walk over, and keeps the rings full.
__device__ inline void produce(const pass_args &args, const tma_args &tma, const tma_places &at,
                               const CUtensorMap *q_map, const CUtensorMap *k_map,
                               const CUtensorMap *v_map)
{
    ring_place k, v, q;
    int view_index = -1;
    const bool leader = threadIdx.x % 32 == 0;
    for (int i = blockIdx.x; i < tma.pieces; i += gridDim.x) {
        const piece_args piece = args.pieces[i];
        const view_args view = args.views[piece.view];
        if (block_sees_none(args, piece, view, at.block_row, at.block_rows) || !leader) continue;
        if (piece.view != view_index) {
            view_index = piece.view;
            ptx::barrier_wait(&at.bars->q_empty, q.parity ^ 1);
            ptx::barrier_expect(&at.bars->q_full, (view.q_lo != nullptr ? 2 : 1) * at.q_bytes);
            const int row = row_of(tma.q, view.q_hi, args.k_pitch) + at.block_row;
            copy_matrix(at.q, q_map, row, at.block_rows, args.k_pitch, &at.bars->q_full);
            if (view.q_lo != nullptr)
                copy_matrix(at.q + at.q_bytes, q_map,
                            row_of(tma.q, view.q_lo, args.k_pitch) + at.block_row, at.block_rows,
                            args.k_pitch, &at.bars->q_full);
            q.advance(1);
        }
        const int k_row = row_of(tma.k, piece.k, args.k_pitch);
        const int v_row = row_of(tma.v, piece.v, args.v_pitch);
        for (int key = 0; key < piece.keys; key += KEYS) {
            uint64_t *full = &at.bars->k_full[k.stage];
            ptx::barrier_wait(&at.bars->k_empty[k.stage], k.parity ^ 1);
            ptx::barrier_expect(full, at.k_bytes);
            copy_matrix(at.k + k.stage * at.k_bytes, k_map, k_row + key, KEYS, args.k_pitch, full);
            k.advance(tma.stages);
            if (piece.o == nullptr) continue;
            full = &at.bars->v_full[v.stage];
            ptx::barrier_wait(&at.bars->v_empty[v.stage], v.parity ^ 1);
            ptx::barrier_expect(full, at.v_bytes);
            copy_matrix(at.v + v.stage * at.v_bytes, v_map, v_row + key, KEYS, args.v_pitch, full);
            v.advance(tma.stages);
        }
    }
}

// A warp of a warpgroup: products and sums of its 16 rows.
template <class T, int DV>
__device__ inline void consume(const pass_args &args, const tma_args &tma, const tma_places &at)
{
    const int lane = threadIdx.x % 32, warp = uniform(static_cast<int>(threadIdx.x) / 32);
    const int group = warp / 4 * GROUP_ROWS * ROW_BYTES; // the warpgroup's rows in a column of tiles
    const int warp_row = at.block_row + warp * ROWS;
    ring_place k, v, q;
    int view_index = -1;
    for (int i = blockIdx.x; i < tma.pieces; i += gridDim.x) {
        const piece_args piece = args.pieces[i];
        const view_args view = args.views[piece.view];
        if (block_sees_none(args, piece, view, at.block_row, at.block_rows)) {
            store_nothing(args, piece, warp_row, ROWS, lane, 32);
            continue;
        }
        const int view_of = uniform(piece.view), keys = uniform(piece.keys);
        const bool halves = uniform(view.q_lo != nullptr), want_o = uniform(piece.o != nullptr);
        if (view_of != view_index) {
            if (view_index >= 0 && lane == 0) ptx::barrier_arrive(&at.bars->q_empty);
            view_index = view_of;
            ptx::barrier_wait(&at.bars->q_full, q.parity);
            q.advance(1);
        }
        row_pair<KEYS> rows;
        begin_rows(args, piece, view, warp_row + lane / 4, rows);
        const unsigned char *q_hi = at.q + group;
        const unsigned char *q_lo = halves ? q_hi + at.q_bytes : nullptr;
        float o[DV / 8][4] = {};
        for (int key = 0; key < keys; key += KEYS) {
            float s[KEYS / 8][4], f[2];
            ptx::barrier_wait(&at.bars->k_full[k.stage], k.parity);
            tile_logits<T>(s, q_hi, q_lo, at.block_rows, at.k + k.stage * at.k_bytes, args.k_pitch);
            if (lane == 0) ptx::barrier_arrive(&at.bars->k_empty[k.stage]);
            k.advance(tma.stages);
            weigh_products(args, piece, view, rows, key, s, f);
            if (!want_o) continue;
            ptx::barrier_wait(&at.bars->v_full[v.stage], v.parity);
            tile_values<T, DV>(o, f, s, at.v + v.stage * at.v_bytes);
            if (lane == 0) ptx::barrier_arrive(&at.bars->v_empty[v.stage]);
            v.advance(tma.stages);
        }
        store_piece<T, KEYS, DV>(args, piece, rows, o);
    }
}

// Threads: one or two warpgroups of 64 rows, as in pass_wgmma, and a warp that fills their tiles by
// TMA: copies announce themselves on mbarriers, so the groups wait for data and never for each other,
// and one weighs while the other multiplies. Blocks stay and take every gridDim.x-th piece: the first
// tiles of a piece are on their way while the one before is at work. Shared memory: barriers, rows
// (one or two 16-bit halves), rings of tiles of 64 keys and of their values. Rows past a piece's last
// are those of its neighbour, or zeros past the matrix; finish_tile drops them. Limits: those of
// pass_wgmma; rows at most 2^31.
template <class T, int DV>
__global__ void __launch_bounds__(256 + PRODUCERS, 1)
    pass_tma(pass_args args, tma_args tma, const __grid_constant__ CUtensorMap q_map,
             const __grid_constant__ CUtensorMap k_map, const __grid_constant__ CUtensorMap v_map)
{
#if ATS_HAS_WGMMA
    ATS_SHARED(unaligned);
    unsigned char *shared = ptx::align_shared(unaligned, EIGHT_ROWS);
    tma_places at;
    const int warps = static_cast<int>(blockDim.x - PRODUCERS) / 32;
    at.block_rows = warps * ROWS;
    at.block_row = static_cast<int>(blockIdx.y) * at.block_rows;
    at.q_bytes = tile_bytes(at.block_rows, args.k_pitch);
    at.k_bytes = tile_bytes(KEYS, args.k_pitch);
    at.v_bytes = tile_bytes(KEYS, args.v_pitch);
    // Barriers follow the rings; the rows, one half or two of them, are last.
    at.k = shared;
    at.v = at.k + tma.stages * at.k_bytes;
    at.bars = reinterpret_cast<pipeline *>(at.v + tma.stages * at.v_bytes);
    at.q = at.v + tma.stages * at.v_bytes + PIPELINE_BYTES;
    if (threadIdx.x == 0) {
        ptx::barrier_init(&at.bars->q_full, 1);
        ptx::barrier_init(&at.bars->q_empty, warps);
        for (int stage = 0; stage < tma.stages; stage++) {
            ptx::barrier_init(&at.bars->k_full[stage], 1);
            ptx::barrier_init(&at.bars->v_full[stage], 1);
            ptx::barrier_init(&at.bars->k_empty[stage], warps);
            ptx::barrier_init(&at.bars->v_empty[stage], warps);
        }
        ptx::fence_barriers();
    }
    __syncthreads();
    const int warp = uniform(static_cast<int>(threadIdx.x) / 32);
    if (warp >= warps) {
        ptx::keep_registers<PRODUCER_REGISTERS>();
        if (warp == warps) produce(args, tma, at, &q_map, &k_map, &v_map);
    } else {
        ptx::take_registers<GROUP_REGISTERS>();
        consume<T, DV>(args, tma, at);
    }
#endif
}

static int64_t shared_bytes(const mma_shape &shape, int groups, int stages)
{
    return EIGHT_ROWS + PIPELINE_BYTES +
           shape.q_halves * tile_bytes(groups * GROUP_ROWS, shape.k_pitch) +
           stages * (tile_bytes(KEYS, shape.k_pitch) + tile_bytes(KEYS, shape.v_pitch));
}

tma_shape tma_block(const mma_shape &shape, int lanes, int64_t shared_limit)
{
    tma_shape block = {std::min(2, (lanes + GROUP_ROWS - 1) / GROUP_ROWS), TMA_STAGES};
    if (shape.v_pitch > 128) return {0, 0};
    while (block.groups > 0 && shared_bytes(shape, block.groups, 2) > shared_limit) block.groups--;
    while (shared_bytes(shape, block.groups, block.stages) > shared_limit) block.stages--;
    return block;
}

template <class T, int DV>
static cudaError_t launch(const pass_args &args, const mma_shape &shape, const tma_shape &block,
                          const tma_maps &maps, int pieces, int processors, cudaStream_t stream)
{
    const int64_t shared = shared_bytes(shape, block.groups, block.stages);
    const cudaError_t rc = allow_shared(reinterpret_cast<const void *>(pass_tma<T, DV>), shared);
    if (rc != cudaSuccess) return rc;
    const int block_rows = block.groups * GROUP_ROWS;
    const int tiles = (args.lanes + block_rows - 1) / block_rows;
    const int across = std::min(pieces, std::max(1, processors / tiles));
    const tma_args tma = {maps.q_base, maps.k_base, maps.v_base, pieces, block.stages};
    ATS_LAUNCH((pass_tma<T, DV>), dim3(static_cast<unsigned>(across), static_cast<unsigned>(tiles)),
               dim3(static_cast<unsigned>(block.groups * 128 + PRODUCERS)),
               static_cast<size_t>(shared), stream, args, tma, maps.q, maps.k, maps.v);
    return cudaGetLastError();
}

template <class T, class... A>
static cudaError_t launch_type(const pass_args &args, const mma_shape &shape, A &&...rest)
{
    if (shape.v_pitch <= 64) return launch<T, 64>(args, shape, rest...);
    return launch<T, 128>(args, shape, rest...);
}

cudaError_t launch_tma(const pass_args &args, const mma_shape &shape, const tma_shape &block,
                       const tma_maps &maps, int pieces, int processors, cudaStream_t stream)
{
    return args.k_type == ATS_DEVICE_BF16
               ? launch_type<__nv_bfloat16>(args, shape, block, maps, pieces, processors, stream)
               : launch_type<__half>(args, shape, block, maps, pieces, processors, stream);
}

} // namespace ats

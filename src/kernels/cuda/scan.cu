// What needs single keys, from the logits that a pass leaves on the device: lists of the best ones, and
// how many are heavier than something.
#include <algorithm>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pass.cuh"
#include "kernels/cuda/ptx.cuh"

namespace ats {

constexpr int WARP = 32, MAX_WARPS = 4;
constexpr int AT_ONCE = 8; // logits of a thread on their way

// The best keys of a thread's row so far, best first; entry i at i * WARP, so that the lanes of a warp
// never meet in a bank.
struct row_list {
    float *score;
    int32_t *place;
    int limit, count;
    float threshold; // scores above belong: the last one of a full list
};

__device__ inline bool before(float score, int32_t place, float other, int32_t other_place)
{
    return score > other || (score == other && place < other_place);
}

// An entry that belongs finds its place from the end.
__device__ inline void insert(row_list &list, float score, int32_t place)
{
    int at = list.count < list.limit ? list.count++ : list.limit - 1;
    for (; at > 0; at--) {
        const float other = list.score[(at - 1) * WARP];
        const int32_t other_place = list.place[(at - 1) * WARP];
        if (!before(score, place, other, other_place)) break;
        list.score[at * WARP] = other;
        list.place[at * WARP] = other_place;
    }
    list.score[at * WARP] = score;
    list.place[at * WARP] = place;
    if (list.count == list.limit) list.threshold = list.score[(list.limit - 1) * WARP];
}

// Keys of a piece come in order, so of equal scores the first one stays.
__device__ inline void scan_piece(const pass_args &args, const scan_args &scan,
                                  const piece_args &piece, int row, row_list &heavy,
                                  row_list &payload)
{
    const int64_t lanes = args.lanes;
    const bool wanted = row < args.rows && (piece.sums[row] > heavy.threshold ||
                                            piece.sums[lanes + row] > payload.threshold);
    if (!wanted) return;
    const int32_t first = static_cast<int32_t>((piece.z - scan.z) / lanes);
    for (int key = 0; key < piece.keys; key += AT_ONCE) {
        float z[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            z[i] = key + i < piece.keys ? piece.z[(key + i) * lanes + row] : -INFINITY;
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            if (!(z[i] > -INFINITY)) continue; // no key, an illegal one, or none that will be used
            const float score = z[i] + piece.log_norm[key + i];
            if (z[i] > heavy.threshold) insert(heavy, z[i], first + key + i);
            if (score > payload.threshold) insert(payload, score, first + key + i);
        }
    }
}

// Takes over what belongs of another warp's list of the same row.
__device__ inline void join(row_list &list, const float *score, const int32_t *place, int count)
{
    for (int i = 0; i < count; i++) {
        const float s = score[i * WARP];
        const int last = (list.limit - 1) * WARP;
        if (list.count == list.limit &&
            !before(s, place[i * WARP], list.score[last], list.place[last]))
            return;
        insert(list, s, place[i * WARP]);
    }
}

__device__ inline void store_list(const pass_args &args, const scan_args &scan, int payload,
                                  int row, const row_list &list)
{
    const int64_t lanes = args.lanes, part = int64_t(payload) * gridDim.x + blockIdx.x;
    if (row >= lanes) return;
    for (int i = 0; i < scan.limit; i++) {
        const int64_t to = (part * scan.limit + i) * lanes + row;
        const int32_t place = i < list.count ? list.place[i * WARP] : -1;
        scan.list_place[to] = place;
        scan.list_z[to] = place >= 0 ? scan.z[place * lanes + row] : 0.0f;
    }
}

// Threads: a block is SCAN_PIECES pieces x 32 rows; a lane is a row, so that lanes read neighbours, and
// warps take pieces in turn. Shared memory: two lists per warp and row, and their lengths. The order of
// entries (score, then place) is total, so the lists do not depend on who found what. A piece is read
// by the rows whose maxima in it reach their lists.
__global__ void __launch_bounds__(MAX_WARPS *WARP) best_keys(pass_args args, scan_args scan)
{
    ATS_SHARED(shared);
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    const int row = static_cast<int>(blockIdx.y) * WARP + lane, cells = scan.limit * WARP;
    float *scores = reinterpret_cast<float *>(shared);
    int32_t *places = reinterpret_cast<int32_t *>(scores + 2 * warps * cells);
    int32_t *counts = places + 2 * warps * cells;
    const auto list_of = [&](int payload, int of_warp) {
        const int at = (payload * warps + of_warp) * cells + lane;
        return row_list{scores + at, places + at, scan.limit, 0, -INFINITY};
    };
    row_list lists[2] = {list_of(0, warp), list_of(1, warp)};
    const int first = static_cast<int>(blockIdx.x) * SCAN_PIECES;
    const int last = min(first + SCAN_PIECES, scan.pieces);
    for (int i = first + warp; i < last; i += warps)
        scan_piece(args, scan, args.pieces[i], row, lists[0], lists[1]);
#pragma unroll
    for (int payload = 0; payload < 2; payload++)
        counts[(payload * warps + warp) * WARP + lane] = lists[payload].count;
    __syncthreads();
#pragma unroll
    for (int payload = 0; payload < 2; payload++) {
        if (payload % warps != warp) continue;
        for (int other = 0; other < warps; other++) {
            const row_list from = list_of(payload, other);
            if (other != warp)
                join(lists[payload], from.score, from.place,
                     counts[(payload * warps + other) * WARP + lane]);
        }
        store_list(args, scan, payload, row, lists[payload]);
    }
}

// Threads: as in best_keys. Counts are whole numbers, added in the order of warps.
__global__ void __launch_bounds__(MAX_WARPS *WARP) count_keys(pass_args args, scan_args scan)
{
    ATS_SHARED(shared);
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    const int row = static_cast<int>(blockIdx.y) * WARP + lane;
    const int64_t lanes = args.lanes;
    int32_t *counts = reinterpret_cast<int32_t *>(shared);
    float above[ATS_DEVICE_COUNTS];
    int32_t count[ATS_DEVICE_COUNTS] = {};
#pragma unroll
    for (int i = 0; i < ATS_DEVICE_COUNTS; i++)
        above[i] = i < scan.n_above && row < args.rows ? scan.above[i * lanes + row] : INFINITY;
    const int first = static_cast<int>(blockIdx.x) * SCAN_PIECES;
    const int last = min(first + SCAN_PIECES, scan.pieces);
    for (int p = first + warp; row < args.rows && p < last; p += warps) {
        const piece_args piece = args.pieces[p];
#pragma unroll 4
        for (int key = 0; key < piece.keys; key++) {
            const float z = piece.z[key * lanes + row];
#pragma unroll
            for (int i = 0; i < ATS_DEVICE_COUNTS; i++) count[i] += z > above[i] ? 1 : 0;
        }
    }
#pragma unroll
    for (int i = 0; i < ATS_DEVICE_COUNTS; i++)
        counts[(i * warps + warp) * WARP + lane] = count[i];
    __syncthreads();
    if (row >= lanes) return;
    for (int i = warp; i < scan.n_above; i += warps) {
        int32_t sum = 0;
        for (int w = 0; w < warps; w++) sum += counts[(i * warps + w) * WARP + lane];
        scan.counts[(int64_t(blockIdx.x) * scan.n_above + i) * lanes + row] = sum;
    }
}

static dim3 grid(const pass_args &args, const scan_args &scan)
{
    return dim3(static_cast<unsigned>(scan_parts(scan.pieces)),
                static_cast<unsigned>((args.lanes + WARP - 1) / WARP));
}

cudaError_t launch_best(const pass_args &args, const scan_args &scan, int64_t shared_limit,
                        cudaStream_t stream)
{
    const int64_t each = 2 * WARP * (8 * int64_t(scan.limit) + 4);
    const int warps = static_cast<int>(std::min<int64_t>(MAX_WARPS, shared_limit / each));
    const cudaError_t rc =
        allow_shared(reinterpret_cast<const void *>(best_keys), warps * each);
    if (rc != cudaSuccess) return rc;
    ATS_LAUNCH(best_keys, grid(args, scan), dim3(static_cast<unsigned>(warps) * WARP),
               static_cast<size_t>(warps * each), stream, args, scan);
    return cudaGetLastError();
}

cudaError_t launch_counts(const pass_args &args, const scan_args &scan, cudaStream_t stream)
{
    const size_t shared = sizeof(int32_t) * ATS_DEVICE_COUNTS * MAX_WARPS * WARP;
    ATS_LAUNCH(count_keys, grid(args, scan), dim3(MAX_WARPS * WARP), shared, stream, args, scan);
    return cudaGetLastError();
}

} // namespace ats

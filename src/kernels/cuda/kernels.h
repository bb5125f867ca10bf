// Launchers of the module's kernels: everything asynchronous on `stream`, nothing allocated.
#pragma once
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/device.h"

namespace ats {

struct pass_args;

// Shared memory of pass_mma depends on these.
struct mma_shape {
    int k_pitch, v_pitch; // elements
    int q_halves;         // 2 where some view of the pass is not exact in 16 bits
};

// Warps of a block for so many lanes; 0: the shape does not fit shared_limit bytes.
int mma_warps(const mma_shape &shape, int lanes, int64_t shared_limit);
// 16-bit keys and values of one type.
cudaError_t launch_mma(const pass_args &args, const mma_shape &shape, int pieces, int warps,
                       cudaStream_t stream);
// The same for sm_90a: warpgroups of a block, 0 where the shape is not for it.
int wgmma_groups(const mma_shape &shape, int lanes, int64_t shared_limit);
cudaError_t launch_wgmma(const pass_args &args, const mma_shape &shape, int pieces, int groups,
                         cudaStream_t stream);
// The same with tiles by TMA. groups 0: the shape is not for it.
constexpr int TMA_STAGES = 4;
struct tma_shape {
    int groups, stages;
};
struct tma_maps {
    CUtensorMap q, k, v;
    const unsigned char *q_base, *k_base, *v_base; // row 0
};
tma_shape tma_block(const mma_shape &shape, int lanes, int64_t shared_limit);
cudaError_t launch_tma(const pass_args &args, const mma_shape &shape, const tma_shape &block,
                       const tma_maps &maps, int pieces, int processors, cudaStream_t stream);
// The map of a matrix of `rows` rows of `pitch` 16-bit elements, in tiles of 64 x 64 with the 128-byte
// swizzle; false where the driver makes none or the matrix breaks its rules (16-byte strides).
bool make_tensor_map(CUtensorMap *out, ats_device_type type, const void *at, int64_t rows, int pitch);
// Any types, fp32 arithmetic; views give q.
cudaError_t launch_simt(const pass_args &args, int pieces, cudaStream_t stream);
// z holds q.k of every piece: logits in place.
cudaError_t launch_logits(const pass_args &args, int pieces, cudaStream_t stream);
// Sums of finished logits; weights go where `weights` points: fp32 [keys, lanes] per piece, or two
// 16-bit halves of the values' type (binary16: times 2^15) one after the other.
struct weight_args {
    void *const *weights; // [pieces]
    ats_device_type type;
};
cudaError_t launch_sums(const pass_args &args, const weight_args &weights, int pieces,
                        cudaStream_t stream);
// Lists of the best keys and counts of heavier ones, from what launch_* left in z and sums of pieces
// whose z follow each other. A block takes SCAN_PIECES of them and 32 rows.
constexpr int SCAN_PIECES = 16;
struct scan_args {
    int32_t pieces, limit;
    const float *z;     // of the first piece
    float *list_z;      // [2, parts, limit, lanes] by weight, and by payload
    int32_t *list_place; // likewise: keys from the first piece's first on; -1: none
    int32_t n_above;
    const float *above; // [n_above, lanes]
    int32_t *counts;    // [parts, n_above, lanes]
};
inline int64_t scan_parts(int64_t pieces) { return (pieces + SCAN_PIECES - 1) / SCAN_PIECES; }
cudaError_t launch_best(const pass_args &args, const scan_args &scan, int64_t shared_limit,
                        cudaStream_t stream);
cudaError_t launch_counts(const pass_args &args, const scan_args &scan, cudaStream_t stream);
// norm, log_norm and bad of values [keys, pitch]; bad rows are set to 0 in place.
cudaError_t launch_norms(ats_device_type type, void *values, int64_t keys, int pitch, float *norm,
                         float *log_norm, uint8_t *bad, cudaStream_t stream);

} // namespace ats

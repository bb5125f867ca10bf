// A device that holds one problem: its keys, or windows of them, and per slot two halves with a
// stream each, so that one half computes while the other's results are copied and scattered.
#pragma once
#include <mutex>
#include <vector>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/pass.cuh"
#include "kernels/cuda/runtime.h"

namespace ats {

// Kernels for 16-bit keys and values: sm_80 and later; sm_90a with copies by cp.async; or by TMA.
enum class rung { mma, wgmma, tma };

constexpr int MAX_VIEWS = 4; // of a group of pieces

// Keys [first, first + count) of the problem on the device.
struct key_rows {
    int64_t first, count;
    unsigned char *k, *v;
    int64_t *position;
    float *norm, *log_norm, *plane;
    uint8_t *bad;
};

// How much a half takes at a time.
struct chunk_plan {
    bool resident;   // all keys stay on the device
    int64_t window;  // keys copied at a time
    int64_t pieces;  // of a group
    int64_t side;    // side rows of a group
};

// What goes to the device with a group; the same layout on both sides.
struct group_input {
    piece_args *pieces;
    view_args *views;
    unsigned char *q; // [MAX_VIEWS] lanes x k_pitch x 4 bytes: fp32, or two 16-bit halves
    float *row_scale, *q_at;
    int64_t *low, *high; // [MAX_VIEWS, lanes]
    float *side_k, *side_v, *side_norm, *side_log_norm, *side_plane;
    int64_t *side_position;
    float *above; // [ATS_DEVICE_COUNTS, lanes]
    void **weights, **value_rows, **outputs; // [pieces] for the batched products
};

struct group_output {
    float *z;    // [pieces * leaf, lanes]
    float *sums; // [pieces, ATS_DEVICE_SUMS, lanes]
    float *o;    // [pieces, rows, v_pitch]
    float *list_z;       // [2, parts, best, lanes]
    int32_t *list_place; // likewise
    int32_t *counts;     // [parts, ATS_DEVICE_COUNTS, lanes]
};

struct unfused; // the cublas kind's handle

struct half {
    cudaStream_t stream = nullptr;
    group_input host_in, in;
    group_output host_out, out;
    key_rows host_window, window;
    unsigned char *weights = nullptr; // [pieces * leaf, lanes] x 4 bytes, cublas only
    unfused *blas = nullptr;
    // The group under way.
    const ats_device_pass *pass = nullptr;
    const ats_device_piece *pieces = nullptr;
    int64_t count = 0, keys = 0, side = 0, n_views = 0;
    bool want_o = false;
    bool measured = false, no_values = false; // time alone is wanted
    int64_t view_index[MAX_VIEWS] = {}; // of the pass
    bool exact = true;                  // no view needs a second half
};

struct slot {
    std::mutex lock;
    half halves[2];
};

} // namespace ats

struct ats_device {
    ats_device_kind kind;
    ats_device_problem problem;
    int k_pitch, v_pitch;
    ats::chunk_plan plan;
    int64_t shared_limit;
    ats::rung rung = ats::rung::mma; // where it takes the shape
    int least_lanes = 64;            // for the rungs of warpgroups
    int processors = 1;
    float *slope = nullptr;
    ats::key_rows keys = {};
    std::vector<ats::slot> slots;
    ats::workspace *space = nullptr;
    char notice[256] = "";

    ats_device(ats_device_kind k, const ats_device_problem &p, int n_slots);
};

namespace ats {

inline int64_t tile_lanes(const ats_device_problem &p, int64_t tile)
{
    return tile + 1 < p.n_tiles ? p.tile : p.lanes - tile * p.tile;
}
inline int64_t type_size(ats_device_type type) { return type == ATS_DEVICE_F32 ? 4 : 2; }

// Bytes of a problem's device and pinned blocks under a plan; with blocks, places everything.
void place_all(ats_device *device, void *device_block, void *pinned_block, size_t *device_bytes,
               size_t *pinned_bytes);
chunk_plan plan_chunks(const ats_device &device, int64_t group_bytes, bool resident);
// Copies keys to `to` through the half's pinned window and takes the norms of their values.
ats_device_status load_keys(ats_device *device, half *through, const key_rows &to, int64_t first,
                            int64_t count, ats_device_error *error);
// Fills the half with pieces from `from` on, as many as fit; returns how many.
int64_t fill_group(const ats_device *device, half *h, const ats_device_pass *pass, int64_t from);
ats_device_status upload_group(half *h, const ats_device *device, bool side,
                               ats_device_error *error);
// The group's products and sums, after its input is on its way.
ats_device_status compute_group(ats_device *device, half *h, const pass_args &args, bool side,
                                ats_device_error *error);

// scan.cpp: lists and counts of the group under way, where its pass wants them; and what comes back.
ats_device_status scan_group(ats_device *device, half *h, const pass_args &args,
                             ats_device_error *error);
void scan_results(const ats_device *device, const half *h, int64_t count);

// rung.cpp: with the device's workspace in place, before it is planned.
ats_device_status choose_rung(ats_device *device, int capability, ats_device_error *error);

// cublas.cpp
ats_device_status unfused_probe(char *detail, int64_t size, ats_device_error *error);
ats_device_status unfused_open(half *h, ats_device_error *error);
void unfused_close(half *h);
ats_device_status unfused_group(ats_device *device, half *h, const pass_args &args, bool side,
                                ats_device_error *error);

} // namespace ats

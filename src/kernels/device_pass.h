/* The cpu backend's planner on a device: which keys a base and its variants need, asked for as
 * pieces, and the answers laid where ats_cpu_evaluate looks for them.
 * Ownership: a run owns its device and its answers; start with ats_device_run_begin, release with
 * ats_device_run_end. Workers use their own rooms. */
#ifndef ATS_KERNELS_DEVICE_PASS_H
#define ATS_KERNELS_DEVICE_PASS_H

#include <pthread.h>

#include "kernels/cpu.h"
#include "kernels/device.h"

typedef struct ats_device_room {
    ats_arena arena;        /* reset between variants */
    ats_cpu_pieces *pieces; /* [n_tiles] */
} ats_device_room;

typedef struct ats_device_run {
    const ats_device_api *api;
    ats_device_kind kind;
    ats_device *device;
    ats_arena arena;
    int64_t n_rooms;
    ats_device_room *rooms;
    float *slope;
    const ats_cpu_tiles *tiles;
    ats_device_view view;     /* the base's queries at no distance */
    ats_device_piece *leaves; /* [n_leaves] */
    pthread_mutex_t fetching; /* of logits that are not there */
    ats_cpu_device hooks;     /* what ats_cpu_evaluate takes */
} ats_device_run;

ATS_MUST_CHECK ats_code ats_device_run_begin(ats_device_run *run, const ats_device_api *api,
                                             ats_device_kind kind, ats_err *err);
void ats_device_run_end(ats_device_run *run);
/* A device's failure as this library's. */
ats_code ats_device_code(ats_device_status status, const ats_device_error *error, ats_err *err);

/* device_base.c: the hooks for the base; ctx is the run. */
ATS_MUST_CHECK ats_code ats_device_base(void *ctx, const ats_cpu_tiles *tiles, ats_cpu_pool *heavy,
                                        ats_cpu_pool *payload, ats_err *err);
ATS_MUST_CHECK ats_code ats_device_regions(void *ctx, ats_err *err);
ATS_MUST_CHECK ats_code ats_device_logits(void *ctx, int64_t leaf, ats_err *err);

/* Lanes of all tiles side by side. */
int64_t ats_device_lanes(const ats_cpu_tiles *tiles);
ats_device_state ats_device_state_of(const ats_cpu_state *state);
/* The rows of every tile, side by side, as they see keys moved by delta; edit NULL: the base. */
ATS_MUST_CHECK ats_code ats_device_view_make(ats_arena *arena, const ats_cpu_tiles *tiles,
                                             const ats_edit *edit, int64_t delta,
                                             ats_device_view *out, ats_err *err);

#endif

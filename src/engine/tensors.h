/* Loaded tensors of a few samples and layers, the oldest dropped first.
 * Ownership: the cache owns what it hands out; it stays valid until the next begin. */
#ifndef ATS_ENGINE_TENSORS_H
#define ATS_ENGINE_TENSORS_H

#include <pthread.h>

#include "capture/capture.h"

enum { ATS_TENSOR_SLOTS = 16 };

typedef struct ats_tensor_slot {
    const ats_capture *capture; /* NULL: empty */
    int64_t sample, layer;
    int64_t first, count; /* key heads */
    int64_t stamp;        /* of the last use */
    ats_attention attention;
} ats_tensor_slot;

/* What to have ready. */
typedef struct ats_tensor_want {
    const ats_capture *capture;
    int64_t sample, layer, first, count;
    const ats_stream *stream; /* k and v to a file; NULL: into memory */
} ats_tensor_want;

typedef struct ats_tensors {
    size_t budget; /* bytes to keep, with those in use */
    int64_t clock, begun;
    ats_tensor_slot slots[ATS_TENSOR_SLOTS];
    ats_attention spare; /* the memory of one that was dropped, for the next to be loaded */
    /* What a thread is loading meanwhile. */
    pthread_t thread;
    bool reading;
    int n_ahead;
    ats_tensor_want want[2];
    ats_attention ahead[2], spares[2];
    bool loaded[2];
} ats_tensors;

/* What was handed out before is no longer in use. */
void ats_tensors_begin(ats_tensors *tensors);
/* Tensors of a sample and layer (indices into the capture). */
ATS_MUST_CHECK ats_code ats_tensors_get(ats_tensors *tensors, const ats_tensor_want *want,
                                        const ats_attention **out, ats_err *err);
/* Starts to load what a later get will ask for, as far as it is not there; errors wait for that
 * get. The captures share a mutex (ats_capture_share) when others use HDF5 meanwhile. */
void ats_tensors_ahead(ats_tensors *tensors, const ats_tensor_want *want, int count);
/* Waits until nothing is loaded ahead any more. */
void ats_tensors_settle(ats_tensors *tensors);
void ats_tensors_fini(ats_tensors *tensors);

#endif

/* From a capture to the backends' problem: rows, positions, masks and regions of one
 * (sample, layer, key head). The only place where captures and kernels meet.
 * Ownership: everything made lives in the arena; tensors stay with the ats_attention. */
#ifndef ATS_ENGINE_PROBLEM_H
#define ATS_ENGINE_PROBLEM_H

#include "base/arena.h"
#include "capture/capture.h"
#include "kernels/backend.h"

/* The span axis: named spans (or roles), then sink, recent, rest; the result file adds inserted.
 * sink: the first 4 rows and rows of role "sink". recent: the last 64 rows. rest: rows in none of
 * the named spans, sink, recent. */
typedef struct ats_span_axis {
    int64_t count, n_named;
    const char *const *names; /* [count] */
    bool by_role;
    const char *const *roles; /* [n_named] role of the first span seen under the name */
} ats_span_axis;

/* Union over samples (indices into the capture), in first-seen order. Refuses more than 64 names
 * and the reserved names recent, rest, inserted; a span named sink is folded into sink. */
ATS_MUST_CHECK ats_code ats_span_axis_make(ats_arena *arena, const ats_capture *capture,
                                           const int64_t *samples, int64_t n_samples, bool by_role,
                                           ats_span_axis *out, ats_err *err);
/* The same over samples of any capture. */
ATS_MUST_CHECK ats_code ats_span_axis_of(ats_arena *arena, const ats_sample *const *samples,
                                         int64_t n_samples, bool by_role, ats_span_axis *out,
                                         ats_err *err);
/* Is a named entry of the axis annotated in this sample? sink, recent and rest always are. */
bool ats_span_axis_has(const ats_span_axis *axis, const ats_sample *sample, int64_t span);
/* Index of a name on the axis ("inserted" is axis->count), or of the first named span of that
 * role; -1: none. */
int64_t ats_span_axis_find(const ats_span_axis *axis, const char *name);

typedef struct ats_pick {
    int64_t n_heads;
    const int64_t *heads; /* query heads, all of one key head */
    int64_t n_probes;
    const int64_t *probes; /* probe indices of the sample */
} ats_pick;
/* Every query head of a key head and every probe of the sample. */
ATS_MUST_CHECK ats_code ats_pick_group(ats_arena *arena, const ats_layer *layer,
                                       const ats_sample *sample, int64_t kv_head, ats_pick *out,
                                       ats_err *err);

/* The problem's sizes, contract and regions without tensors: for planning. Rows and masks point to
 * where nothing is to be read. masked: the capture stores keep or bias. */
ATS_MUST_CHECK ats_code ats_problem_shape(ats_arena *arena, const ats_layer *layer,
                                          const ats_sample *sample, const ats_pick *pick,
                                          const ats_span_axis *axis, double temperature,
                                          int64_t top_k, bool masked, ats_problem *out,
                                          ats_err *err);

ATS_MUST_CHECK ats_code ats_problem_make(ats_arena *arena, const ats_layer *layer,
                                         const ats_sample *sample, const ats_attention *attention,
                                         int64_t kv_head, const ats_pick *pick,
                                         const ats_span_axis *axis, double temperature,
                                         int64_t top_k, ats_problem *out, ats_err *err);

#endif

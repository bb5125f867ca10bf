/* Inside the reference backend: a perturbed sequence as a list of entries, one route over it, and
 * the comparison of two routes. Everything is double; values and keys are widened from the stored
 * bits each time they are needed.
 * Ownership: all memory belongs to the arena it was made in. One scratch per thread. */
#ifndef ATS_KERNELS_ATTENTION_REFERENCE_H
#define ATS_KERNELS_ATTENTION_REFERENCE_H

#include "base/arena.h"
#include "kernels/backend.h"

/* One row of the perturbed sequence. */
typedef struct ref_entry {
    int64_t key;      /* base index, or -2 - side row */
    int64_t base;     /* base index or -1: where keep, segment and bias are looked up */
    int64_t side_k;   /* side row the key comes from, -1: base */
    int64_t side_v;   /* side row the value comes from, -1: base */
    int64_t position; /* after the edit */
    int64_t delta;    /* positions the base key is moved by */
    bool hidden;
} ref_entry;

typedef struct ref_sequence {
    const ats_problem *problem;
    const ats_edit *edit; /* NULL: the base */
    double scale, temperature;
    int64_t length;
    ref_entry *entries; /* [length], base indices ascending */
    double *value_norm; /* [length] */
} ref_sequence;

/* One row's weights over a sequence. */
typedef struct ref_route {
    const ref_sequence *sequence;
    bool defined;  /* a legal key or a sink */
    double *z;     /* [length] logits in nats, -inf: illegal */
    double *w;     /* [length] weights */
    double *log_w; /* [length] log of w without cancellation, -inf: illegal */
    double lse, lse_keys, null_weight, log_null;
    int64_t legal;
} ref_route;

typedef struct ref_scratch {
    float *narrow;         /* [max(d_qk, d_v)] */
    double *q, *key;       /* [d_qk] */
    double *value, *other; /* [d_v] */
    double *vectors;       /* [ATS_N_PARTS + 2, d_v] */
    double *top_score;     /* [2, top_k] */
    int64_t *top;          /* [2, top_k] */
} ref_scratch;

/* A list of the `limit` largest scores, ties to the earlier offer. */
typedef struct ref_top {
    int64_t limit, count;
    int64_t *item;
    double *score;
} ref_top;

int64_t ref_length(const ats_problem *problem, const ats_edit *edit);
ATS_MUST_CHECK ats_code ref_sequence_make(ats_arena *arena, const ats_problem *problem,
                                          const ats_edit *edit, ref_sequence *out, ats_err *err);
ATS_MUST_CHECK ats_code ref_scratch_make(ats_arena *arena, const ats_problem *problem,
                                         ref_scratch *out, ats_err *err);
/* Room for a route over `length` rows. */
ATS_MUST_CHECK ats_code ref_route_make(ats_arena *arena, int64_t length, ref_route *out,
                                       ats_err *err);

/* Value row of entry t, widened: out [d_v]. */
void ref_value(const ref_sequence *sequence, int64_t t, ref_scratch *scratch, double *out);
/* Logits, weights and LSE of one problem row. Fails where a legal key is not finite. */
ATS_MUST_CHECK ats_code ref_route_compute(const ref_sequence *sequence, int64_t row,
                                          ref_scratch *scratch, ref_route *route, ats_err *err);

void ref_top_reset(ref_top *top);
void ref_top_offer(ref_top *top, int64_t item, double score);

/* Statistics of one row, as documented at the fields. */
void ref_route_stats(const ref_route *route, int64_t row, ref_scratch *scratch,
                     ats_route_stats *out);
void ref_pair_stats(const ref_route *base, const ref_route *variant, int64_t row,
                    ref_scratch *scratch, ats_pair_stats *out);

#endif

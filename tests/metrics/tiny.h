/* A problem small enough for pencil and paper: logits are given, q = 1, k = logit, scale 1.
 * Two value dimensions, regions gold {1}, absent {}, sink {0}, recent {2}, rest {3}.
 * Ownership: the caller's arena. */
#ifndef ATS_TESTS_METRICS_TINY_H
#define ATS_TESTS_METRICS_TINY_H

#include "base/arena.h"
#include "kernels/backend.h"

enum { TINY_GOLD, TINY_ABSENT, TINY_SINK, TINY_RECENT, TINY_REST, TINY_REGIONS, TINY_TOP = 3 };

/* logits: [n_keys], values: [n_keys, 2], both used in place. */
void tiny_problem(const float *logits, const float *values, int64_t n_keys, ats_problem *out);
/* An edit that hides base rows [start, stop) and inserts side rows at the end. */
void tiny_edit(ats_arena *arena, const ats_problem *problem, int64_t start, int64_t stop,
               const float *logits, const float *values, int64_t n_rows, ats_edit *out);
/* Evaluates with the reference backend; check sees the base (pair all NULL) and the variant. */
typedef void (*tiny_check)(const ats_problem *problem, const ats_stats *base,
                           const ats_stats *variant);
void tiny_run(const ats_problem *problem, const ats_edit *edit, tiny_check check);
/* Value of the metric of that name; span and part by index. variant == base: the base twin. */
double tiny_value(const ats_problem *problem, const ats_stats *base, const ats_stats *variant,
                  const char *name, int64_t span, int64_t part);

#endif

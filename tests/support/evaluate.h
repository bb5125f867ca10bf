/* Runs a backend and keeps a copy of everything it emitted.
 * Ownership: the copies live in the caller's arena. */
#ifndef ATS_TESTS_SUPPORT_EVALUATE_H
#define ATS_TESTS_SUPPORT_EVALUATE_H

#include "base/arena.h"
#include "kernels/backend.h"

typedef struct stats_set {
    const ats_problem *problem;
    int64_t n_variants;
    ats_stats base;
    ats_stats *variants; /* [n_variants] */
    int *emitted;        /* [1 + n_variants] times, the base first */
} stats_set;

/* Fails (cmocka) when the backend fails, or emits the base late, or something not exactly once. */
void evaluate_all(ats_arena *arena, const ats_backend *backend, const ats_problem *problem,
                  const ats_edit *edits, int64_t count, stats_set *out);
/* Name of the first array with different bits (NaN equals NaN of the same bits), or NULL. */
const char *stats_difference(const ats_problem *problem, const ats_stats *x, const ats_stats *y);

#endif

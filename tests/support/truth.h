/* One row of one route, materialised by the reference: what a comparison needs to know about it.
 * Ownership: the caller's arena. */
#ifndef ATS_TESTS_SUPPORT_TRUTH_H
#define ATS_TESTS_SUPPORT_TRUTH_H

#include "base/arena.h"
#include "kernels/backend.h"

typedef struct row_truth {
    int64_t length;
    int64_t *key;  /* [length] base index or -2 - side row */
    double *z, *w; /* [length] logits (-inf: illegal) and weights */
    double *norm;  /* [length] |v| */
    bool defined;
    double bound;   /* A of bars.h */
    double sd;      /* of z under w, null route included */
    double abs_sum; /* sum w |v| */
} row_truth;

void row_truth_make(ats_arena *arena, const ats_problem *problem, const ats_edit *edit, int64_t row,
                    row_truth *out);
/* Place of a key in the sequence, -1: not there. */
int64_t row_truth_find(const row_truth *truth, int64_t key);

#endif

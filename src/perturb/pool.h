/* Donor rows: which rows of which samples may be inserted elsewhere, and drawing them.
 *
 * Left out: the first 32 rows of every donor sample, rows of role `sink`; of the sample itself also
 * every named span and everything from the first probe's row on. Private to perturb/. */
#ifndef ATS_PERTURB_POOL_H
#define ATS_PERTURB_POOL_H

#include "base/rng.h"
#include "perturb/family.h"

enum { ATS_DONOR_FIRST = 32 };

typedef struct ats_pool_range {
    int64_t donor;       /* index into the build's donors */
    int64_t start, stop; /* rows */
    int64_t before;      /* eligible rows in earlier ranges */
} ats_pool_range;

typedef struct ats_pool {
    int64_t count; /* eligible rows */
    int64_t n_ranges;
    const ats_pool_range *ranges; /* [n_ranges] */
} ats_pool;

typedef struct ats_pool_row {
    const ats_donor *donor;
    int64_t row;
} ats_pool_row;

/* No tensors needed. Refuses a pool of fewer than `needed` rows, with the counts. */
ATS_MUST_CHECK ats_code ats_pool_make(const ats_build *ctx, int64_t needed, ats_pool *out,
                                      ats_err *err);
/* `count` different rows with finite keys and values, in random order: [count] in the arena. */
ATS_MUST_CHECK ats_code ats_pool_draw(const ats_build *ctx, const ats_pool *pool, ats_rng *rng,
                                      int64_t count, ats_pool_row **out, ats_err *err);

/* One row of this build's key head, widened: out [d_qk] or [d_v]. */
void ats_key_row(const ats_build *ctx, const ats_donor *donor, int64_t row, float *out);
void ats_value_row(const ats_build *ctx, const ats_donor *donor, int64_t row, float *out);
/* The sample itself as a donor. */
ats_donor ats_own(const ats_build *ctx);

#endif

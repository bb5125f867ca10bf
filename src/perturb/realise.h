/* Logits of side rows as the contract gives them at temperature 1, and the record of what an edit
 * did. Private to perturb/. */
#ifndef ATS_PERTURB_REALISE_H
#define ATS_PERTURB_REALISE_H

#include "perturb/rows.h"

/* Mean over the evaluated query heads of the key head, at the last evaluated probe, after the
 * edit's query move. */
typedef struct ats_mean_query {
    const double *q;  /* [d_qk] */
    double slope;     /* mean ALiBi slope, 0: none */
    int64_t position; /* of the probe after the move */
} ats_mean_query;

ATS_MUST_CHECK ats_code ats_mean_query_make(const ats_build *ctx, const ats_edit *edit,
                                            ats_mean_query *out, ats_err *err);
/* Its best logit over base rows [start, stop) where the edit puts them. */
ATS_MUST_CHECK ats_code ats_mean_query_best(const ats_build *ctx, const ats_edit *edit,
                                            const ats_mean_query *query, int64_t start,
                                            int64_t stop, double *out, ats_err *err);

/* The stored queries of the evaluated heads and probes: out [heads * probes, d_qk]. */
void ats_queries(const ats_build *ctx, float *out);

/* cap(scale * product) - slope * distance. */
double ats_logit(const ats_layer *layer, double product, double slope, int64_t distance);

#endif

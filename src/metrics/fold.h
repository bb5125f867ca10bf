/* Norms and products of vectors in a head's value space, and the same behind the head's slice of
 * the output projection. |c W_O|^2 = c G c^T with G = W_O W_O^T, so G is made once per head.
 * Pure functions; sums in double. */
#ifndef ATS_METRICS_FOLD_H
#define ATS_METRICS_FOLD_H

#include <stdint.h>

/* |a - b|; b NULL: |a|; a NULL: |b|; both NULL: 0. a, b: [d]. */
double ats_norm(const float *a, const float *b, int64_t d);
double ats_dot(const float *a, const float *b, int64_t d); /* a, b: [d] */

/* gram [d, d] = W_O W_O^T. w_o: [d, d_model]. */
void ats_fold_gram(const float *w_o, int64_t d, int64_t d_model, double *gram);
/* row [d] = W_O r. w_o: [d, d_model], r: [d_model]. */
void ats_fold_readout(const float *w_o, const float *r, int64_t d, int64_t d_model, double *row);

/* |(a - b) W_O| from the Gram matrix [d, d]; a or b may be NULL (zero). */
double ats_norm_gram(const double *gram, const float *a, const float *b, int64_t d);
/* The same from W_O [d, d_model] itself. */
double ats_norm_projected(const float *w_o, int64_t d_model, const float *a, const float *b,
                          int64_t d);

#endif

/* The online-softmax state of a set of keys, for one row: running maximum and the sums taken
 * relative to it. Merging two states gives the state of the union (Milakov and Gimelshein 2018,
 * extended by the entropy and square sums). The identity is the state of no key; neither
 * (-inf) - (-inf) nor 0 * inf is ever formed. Pure functions. */
#ifndef ATS_KERNELS_STATE_H
#define ATS_KERNELS_STATE_H

#include <stdint.h>

typedef struct ats_state {
    double m;  /* largest logit, nats; -inf: no key */
    double l;  /* sum exp(z - m) */
    double e;  /* sum exp(z - m) (z - m) */
    double s2; /* sum exp(2 (z - m)) */
    double a;  /* sum exp(z - m) |v| */
    double n;  /* number of keys */
} ats_state;

/* Factors that bring two states to their common maximum; both 0 when both are empty. */
typedef struct ats_state_factors {
    double m, fx, fy;
} ats_state_factors;

ats_state ats_state_identity(void);
ats_state_factors ats_state_common(double mx, double my);
ats_state ats_state_merge(const ats_state *x, const ats_state *y);
/* m + log l, nats; -inf for the identity. */
double ats_state_lse(const ats_state *x);
/* log(exp a + exp b); -inf only when both are. */
double ats_log_add(double a, double b);

/* Merges value sums: out[i] = fx x[i] + fy y[i], i < count. A factor of 0 drops its side unread. */
void ats_state_merge_values(const ats_state_factors *factors, int64_t count, const float *x,
                            const float *y, float *out);

#endif

/* How well one list of numbers foretells another, pair by pair.
 *
 * Pairs with a number that is not finite are left out. Pure functions but for the arena. */
#ifndef ATS_METRICS_ASSOCIATION_H
#define ATS_METRICS_ASSOCIATION_H

#include "base/arena.h"

typedef struct ats_association {
    int64_t n;               /* pairs that count */
    double rank_correlation; /* Spearman's rho, ties share the mean rank; NaN: n < 3 or no spread */
    double slope;            /* least squares of y on x, with an intercept; NaN: no spread of x */
    double mean_x, mean_y;   /* NaN: no pair */
    double mean_error;       /* mean |y - x| */
} ats_association;

/* x, y: [n]. */
ATS_MUST_CHECK ats_code ats_associate(ats_arena *arena, int64_t n, const double *x, const double *y,
                                      ats_association *out, ats_err *err);

#endif

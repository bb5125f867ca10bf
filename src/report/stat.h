/* Statistics of paired differences: one number per cluster, in double.
 *
 * Interval: BCa bootstrap over clusters (Efron 1987) at an expanded level (Hesterberg 2015). Tests:
 * exact sign-flip, Wilcoxon signed-rank. Many tests: Holm 1979, Benjamini and Hochberg 1995. All
 * two-sided unless said. Nothing here knows of files or gates.
 * Ownership: the caller's arrays; a bootstrap belongs to its arena. */
#ifndef ATS_REPORT_STAT_H
#define ATS_REPORT_STAT_H

#include "base/arena.h"

double ats_stat_normal_cdf(double z);
double ats_stat_normal_quantile(double p);             /* p in (0, 1); -inf and inf at the ends */
double ats_stat_t_cdf(double t, int64_t freedom);      /* Student's t, freedom >= 1 */
double ats_stat_t_quantile(double p, int64_t freedom); /* p in (0, 1) */

typedef enum ats_stat_test {
    ATS_TEST_NONE, /* fewer than 2 numbers */
    ATS_TEST_SIGN_FLIP,
    ATS_TEST_WILCOXON_EXACT,
    ATS_TEST_WILCOXON_NORMAL
} ats_stat_test;
const char *ats_stat_test_name(ats_stat_test test);

/* Sums of n numbers under all 2^n choices of signs (n <= ATS_STAT_FLIP_MAX). Shares of choices with
 * |sum| >= |observed|, sum <= observed and sum >= observed, the observed one counted; sums that
 * differ by rounding alone are equal. n = 0: NaN. */
enum { ATS_STAT_FLIP_MAX = 24, ATS_STAT_EXACT_CLUSTERS = 20, ATS_STAT_WILCOXON_EXACT = 50 };
typedef struct ats_stat_flips {
    double two_sided, lower, upper;
} ats_stat_flips;
ats_stat_flips ats_stat_sign_flip(const double *d, int64_t n);

/* Zeros are dropped, ties share the mean rank. Exact up to ATS_STAT_WILCOXON_EXACT numbers that are
 * not 0 (the distribution given the ties, Streitberg and Roehmel 1986), above that normal with the
 * tie correction and no continuity correction. rank_sum: of the positive ones. All zero: p is 1. */
typedef struct ats_stat_wilcoxon {
    double rank_sum, p;
    ats_stat_test test;
    int64_t n_zero;
} ats_stat_wilcoxon;
ATS_MUST_CHECK ats_code ats_stat_signed_rank(ats_arena *arena, const double *d, int64_t n,
                                             ats_stat_wilcoxon *out, ats_err *err);
/* The same with the method given: for comparison with other programs. */
ATS_MUST_CHECK ats_code ats_stat_signed_rank_by(ats_arena *arena, const double *d, int64_t n,
                                                ats_stat_test test, ats_stat_wilcoxon *out,
                                                ats_err *err);

/* adjusted [n] from p [n]; NaN entries stay NaN and do not count. */
ATS_MUST_CHECK ats_code ats_stat_holm(ats_arena *arena, const double *p, int64_t n,
                                      double *adjusted, ats_err *err);
ATS_MUST_CHECK ats_code ats_stat_benjamini_hochberg(ats_arena *arena, const double *p, int64_t n,
                                                    double *adjusted, ats_err *err);

/* The resamples of n clusters, the same for every row of a comparison: how often each cluster is
 * drawn. Equal seeds give equal counts on every machine. */
typedef struct ats_stat_bootstrap {
    int64_t n, resamples;
    const float *counts; /* [resamples, n] small whole numbers */
    double *means;       /* [resamples] room */
} ats_stat_bootstrap;
ATS_MUST_CHECK ats_code ats_stat_bootstrap_make(ats_arena *arena, uint64_t seed, int64_t n,
                                                int64_t resamples, ats_stat_bootstrap *out,
                                                ats_err *err);

typedef struct ats_stat_interval {
    double low, high;             /* expanded level: what verdicts use */
    double plain_low, plain_high; /* BCa at the nominal level, as other programs print it */
} ats_stat_interval;
/* Interval of the mean of d [bootstrap->n], at 1 - alpha. n < 2: NaN. */
ats_stat_interval ats_stat_bca(ats_stat_bootstrap *bootstrap, const double *d, double alpha);
/* The BCa step alone, from the statistic, its resampled values (sorted in place) and its jackknife
 * values: quantiles of `values` at the levels that belong to -z and z. */
void ats_stat_bca_of(double statistic, double *values, int64_t n_values, const double *jackknife,
                     int64_t n, double z, double *low, double *high);

#endif

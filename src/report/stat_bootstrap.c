#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "report/stat.h"

ats_code ats_stat_bootstrap_make(ats_arena *arena, uint64_t seed, int64_t n, int64_t resamples,
                                 ats_stat_bootstrap *out, ats_err *err)
{
    float *counts = NULL;
    double *means = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW0(arena, n * resamples, &counts, err));
    ATS_TRY(ATS_NEW(arena, resamples, &means, err));
    ats_rng rng = ats_rng_stream(seed, "", "", 0, 0, "cluster bootstrap");
    for (int64_t r = 0; r < resamples; r++)
        for (int64_t i = 0; i < n; i++) counts[r * n + ats_rng_below(&rng, n)]++;
    *out = (ats_stat_bootstrap){.n = n, .resamples = resamples, .counts = counts, .means = means};
out:
    return rc;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Linear between order statistics (type 7 of Hyndman and Fan). */
static double quantile(const double *sorted, int64_t n, double p)
{
    const double place = p * (double)(n - 1);
    const int64_t below = (int64_t)floor(place), above = below + 1 < n ? below + 1 : below;
    return sorted[below] + (place - (double)below) * (sorted[above] - sorted[below]);
}

/* Share of values below x, equal ones counted half. */
static double share_below(const double *sorted, int64_t n, double x)
{
    int64_t less = 0, equal = 0;
    for (int64_t i = 0; i < n && sorted[i] <= x; i++) *(sorted[i] < x ? &less : &equal) += 1;
    return ((double)less + 0.5 * (double)equal) / (double)n;
}

/* Acceleration: sum u^3 / (6 (sum u^2)^1.5), u the jackknife's deviations below their mean. */
static double acceleration(const double *jackknife, int64_t n)
{
    double mean = 0, squares = 0, cubes = 0;
    for (int64_t i = 0; i < n; i++) mean += jackknife[i] / (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double u = mean - jackknife[i];
        squares += u * u;
        cubes += u * u * u;
    }
    return squares > 0 ? cubes / (6 * pow(squares, 1.5)) : 0;
}

static double corrected(const double *sorted, int64_t n, double bias, double a, double z)
{
    const double level = ats_stat_normal_cdf(bias + (bias + z) / (1 - a * (bias + z)));
    return quantile(sorted, n, level);
}

/* Sorted values. A statistic outside its resamples has bias inf: the nearest end stands for it. */
static void interval(double statistic, const double *sorted, int64_t n_values, double a, double z,
                     double *low, double *high)
{
    const double edge = 0.5 / (double)n_values;
    const double share = fmin(1 - edge, fmax(edge, share_below(sorted, n_values, statistic)));
    const double bias = ats_stat_normal_quantile(share);
    *low = corrected(sorted, n_values, bias, a, -z);
    *high = corrected(sorted, n_values, bias, a, z);
}

void ats_stat_bca_of(double statistic, double *values, int64_t n_values, const double *jackknife,
                     int64_t n, double z, double *low, double *high)
{
    qsort(values, (size_t)n_values, sizeof *values, compare_doubles);
    interval(statistic, values, n_values, acceleration(jackknife, n), z, low, high);
}

ats_stat_interval ats_stat_bca(ats_stat_bootstrap *bootstrap, const double *d, double alpha)
{
    const int64_t n = bootstrap->n;
    ats_stat_interval made = {(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    double mean = 0, spread = 0, scale = 0;
    if (n < 2) return made;
    for (int64_t i = 0; i < n; i++) mean += d[i] / (double)n;
    for (int64_t i = 0; i < n; i++) {
        spread = fmax(spread, fabs(d[i] - mean));
        scale = fmax(scale, fabs(d[i]));
    }
    if (spread <= 1e-14 * scale) return (ats_stat_interval){mean, mean, mean, mean};
    /* about the mean, so that resamples that draw every cluster once equal it exactly enough */
    for (int64_t r = 0; r < bootstrap->resamples; r++) {
        const float *counts = bootstrap->counts + r * n;
        double sum = 0;
        for (int64_t i = 0; i < n; i++) sum += (double)counts[i] * (d[i] - mean);
        bootstrap->means[r] = sum / (double)n;
    }
    /* the jackknife of a mean deviates below its mean by (d - mean) / (n - 1): the factor cancels
     */
    const double a = -acceleration(d, n);
    const double size = (double)n;
    const double wide = sqrt(size / (size - 1)) * ats_stat_t_quantile(1 - alpha / 2, n - 1);
    qsort(bootstrap->means, (size_t)bootstrap->resamples, sizeof(double), compare_doubles);
    interval(0, bootstrap->means, bootstrap->resamples, a, ats_stat_normal_quantile(1 - alpha / 2),
             &made.plain_low, &made.plain_high);
    interval(0, bootstrap->means, bootstrap->resamples, a, wide, &made.low, &made.high);
    made.low += mean;
    made.high += mean;
    made.plain_low += mean;
    made.plain_high += mean;
    return made;
}

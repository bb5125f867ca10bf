/* Tolerances of a backend against the reference, as functions of the arithmetic path and of
 * A, the bound on a row's logits. No test holds a literal tolerance of its own.
 *
 * A = (scale |q| max|k| + max|bias| + max|sink|) / temperature: the largest magnitude that enters
 * a logit. u = 2^-24 is the unit roundoff of fp32.
 *
 * lse        A logit is a sum of d products in partial sums: error <= c u A with c about 16 for the
 *            blocked orders in use (random signs keep it near sqrt(d) u); exp2 by polynomial adds
 *            7e-8 and the weighted sum a few u. 2e-6 (1 + A) is 32 u (1 + A).
 * mass       w = exp(z - L): d w / w = dz - dL, so twice the LSE bar, relative. Sums of weights
 *            inherit it, as all terms are positive.
 * divergence tv, js and hellinger^2 are sums of terms that are Lipschitz in the weights (at most 1
 *            per unit of |dw|), so the relative error of the weights is their absolute error.
 *            hellinger itself is compared by its square: the root has no derivative at 0.
 * entropy    dH = sum dw (log w + H) <= mass bar x sd of z under w, plus the direct error.
 * output     |d sum w v| <= mass bar x sum w |v|: relative to sum w |v|, which equals |o| where the
 *            values do not cancel. */
#ifndef ATS_KERNELS_BARS_H
#define ATS_KERNELS_BARS_H

#include <math.h>

typedef enum ats_bar_path {
    ATS_BAR_DOUBLE,  /* reference against another double computation */
    ATS_BAR_FP32,    /* fp32 arithmetic */
    ATS_BAR_SPLIT16, /* 16-bit matrix units, weights split hi + lo */
    ATS_BAR_FAST     /* 16-bit matrix units, weights rounded to bfloat16 */
} ats_bar_path;

typedef struct ats_bars {
    double lse;        /* nats, absolute; logits too */
    double mass;       /* relative */
    double divergence; /* absolute; tv, js, hellinger^2 */
    double entropy;    /* nats, absolute */
    double output;     /* L2, relative to sum w |v| */
} ats_bars;

/* A weight below this is nothing beside a row that sums to 1, and fp32 may flush it to 0. */
#define ATS_BAR_TINY 1e-30
/* Statistics stored as float carry half a unit in the last place. */
#define ATS_BAR_FLOAT_STORE 0x1p-24

static inline double ats_bar_bound(double scale, double q_norm, double k_norm_max, double bias_max,
                                   double sink_abs, double temperature)
{
    return (fabs(scale) * q_norm * k_norm_max + bias_max + sink_abs) / temperature;
}

/* bound: A; sd: standard deviation of the logits under the row's weights, nats. */
static inline ats_bars ats_bars_of(ats_bar_path path, double bound, double sd)
{
    static const struct {
        double lse, mass, output, output_bound; /* output + output_bound * A */
    } FACTORS[] = {
        /* Sums of at most 256 products in double: 256 x 2^-53 = 2.8e-14 per unit of A. */
        [ATS_BAR_DOUBLE] = {1e-13, 2e-13, 2 * ATS_BAR_FLOAT_STORE, 2e-13},
        [ATS_BAR_FP32] = {2e-6, 4e-6, 4e-6, 4e-6},
        /* hi + lo keeps 16 bits of a weight: 4 times the fp32 bars, and one rounding of the pair.
         */
        [ATS_BAR_SPLIT16] = {8e-6, 1.6e-5, 2e-5, 2e-5},
        /* Weights of 8 bits: 2^-8 each, whatever A. */
        [ATS_BAR_FAST] = {8e-6, 1.6e-5, 4e-3, 0},
    };
    const double grow = 1 + bound;
    return (ats_bars){.lse = FACTORS[path].lse * grow,
                      .mass = FACTORS[path].mass * grow,
                      .divergence = FACTORS[path].mass * grow,
                      .entropy = FACTORS[path].mass * grow * (1 + sd),
                      .output = FACTORS[path].output + FACTORS[path].output_bound * bound};
}

#endif

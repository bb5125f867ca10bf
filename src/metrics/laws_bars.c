#include <math.h>

#include "kernels/bars.h"
#include "metrics/fold.h"
#include "metrics/laws.h"

/* A bias of this or less leaves a key no weight that fp32 could hold: it does not count as size. */
static const double no_weight = -1e4;

/* max |k| over keys whose norm is finite: what stands behind a mask may be anything. */
static ats_code longest_key(ats_arena *arena, const ats_problem *problem, double *out, ats_err *err)
{
    float *key = NULL;
    ats_code rc = ATS_NEW(arena, problem->d_qk, &key, err);
    if (rc != ATS_OK) return rc;
    double longest = 0;
    for (int64_t i = 0; i < problem->n_keys; i++) {
        ats_widen(problem->k_dtype, problem->k, i * problem->d_qk, problem->d_qk, key);
        const double norm = ats_norm(key, NULL, problem->d_qk);
        if (isfinite(norm) && norm > longest) longest = norm;
    }
    *out = longest;
    return ATS_OK;
}

/* Largest |bias|, ALiBi or stored plane, that a key with weight may carry. */
static double largest_bias(const ats_problem *problem, int64_t row)
{
    double largest = 0;
    for (int64_t i = 0; i < problem->n_keys; i++) {
        double bias = problem->bias != NULL ? (double)problem->bias[row][i] : 0;
        if (problem->alibi_slope != NULL)
            bias -= (double)problem->alibi_slope[row] *
                    (double)(problem->q_pos[row] - problem->key_pos[i]);
        if (isfinite(bias) && bias > no_weight && fabs(bias) > largest) largest = fabs(bias);
    }
    return largest;
}

static double row_bound(const ats_problem *problem, int64_t row, double longest)
{
    const double sink = problem->sink != NULL ? fabs((double)problem->sink[row]) : 0;
    const double bias =
        problem->bias != NULL || problem->alibi_slope != NULL ? largest_bias(problem, row) : 0;
    return ats_bar_bound(problem->contract.scale,
                         ats_norm(problem->q + row * problem->d_qk, NULL, problem->d_qk), longest,
                         bias, isfinite(sink) ? sink : 0, problem->contract.temperature);
}

/* Standard deviation of z under w. E (z - L)^2 = sum w log^2 w, which n weights keep below
 * (1 + log n)^2. */
static double logit_spread(const ats_route_stats *route, int64_t row, double bound)
{
    const double n = (double)route->legal_keys[row] + 1;
    return fmin(bound, 1 + log(n));
}

/* sum w |v| / |o|: how much larger than the output its terms are. */
static double cancellation(const ats_problem *problem, const ats_route_stats *route, int64_t row)
{
    double terms = 0;
    for (int64_t s = row * problem->n_regions; s < (row + 1) * problem->n_regions; s++)
        if (route->region_abs[s] > 0) terms += route->region_abs[s];
    const double norm = ats_norm(route->output + row * problem->d_v, NULL, problem->d_v);
    return terms > norm && norm > 0 ? terms / norm : 1;
}

ats_code ats_law_bars_make(ats_arena *arena, const ats_problem *problem, const ats_stats *base,
                           ats_law_bars *out, ats_err *err)
{
    double *lse = NULL, *mass = NULL, *entropy = NULL, *output = NULL, longest = 0;
    const bool wide = problem->k_dtype == ATS_F32 && problem->v_dtype == ATS_F32;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, problem->n_rows, &lse, err));
    ATS_TRY(ATS_NEW(arena, problem->n_rows, &mass, err));
    ATS_TRY(ATS_NEW(arena, problem->n_rows, &entropy, err));
    ATS_TRY(ATS_NEW(arena, problem->n_rows, &output, err));
    ATS_TRY(longest_key(arena, problem, &longest, err));
    for (int64_t row = 0; row < problem->n_rows; row++) {
        const double bound = row_bound(problem, row, longest);
        const ats_bars bars = ats_bars_of(wide ? ATS_BAR_FP32 : ATS_BAR_SPLIT16, bound,
                                          logit_spread(&base->route, row, bound));
        lse[row] = bars.lse;
        mass[row] = bars.mass;
        entropy[row] = bars.entropy;
        output[row] = bars.output * cancellation(problem, &base->route, row);
    }
    *out = (ats_law_bars){.lse = lse, .mass = mass, .entropy = entropy, .output = output};
out:
    return rc;
}

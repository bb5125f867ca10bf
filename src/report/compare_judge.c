#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/compare_private.h"

const char *ats_claim_name(ats_claim claim)
{
    static const char *const names[] = {"unchanged", "improved", "inconclusive", "regressed"};
    return names[claim];
}

static ats_code resamples_of(ats_compare_resamples *r, int64_t n, ats_stat_bootstrap **out,
                             ats_err *err)
{
    enum { MOST = sizeof r->made / sizeof *r->made };
    for (int64_t i = 0; i < r->count; i++)
        if (r->made[i].n == n) {
            *out = &r->made[i];
            return ATS_OK;
        }
    ats_stat_bootstrap *place = &r->made[r->count < MOST ? r->count : MOST - 1];
    ats_code rc = ats_stat_bootstrap_make(r->arena, r->seed, n, r->resamples, place, err);
    if (rc != ATS_OK) return rc;
    if (r->count < MOST) r->count++;
    *out = place;
    return ATS_OK;
}

/* p by the test that fits n: exact sign-flip below 20 clusters, signed-rank from there on. */
static ats_code test_of(ats_arena *arena, const double *d, int64_t n, ats_compare_numbers *out,
                        ats_err *err)
{
    ats_stat_wilcoxon w;
    out->p = NAN;
    out->test = ATS_TEST_NONE;
    if (n < 2) return ATS_OK;
    if (n < ATS_STAT_EXACT_CLUSTERS) {
        out->test = ATS_TEST_SIGN_FLIP;
        out->p = ats_stat_sign_flip(d, n).two_sided;
        return ATS_OK;
    }
    ats_code rc = ats_stat_signed_rank(arena, d, n, &w, err);
    if (rc != ATS_OK) return rc;
    out->test = w.test;
    out->p = w.p;
    return ATS_OK;
}

ats_code ats_compare_measure(ats_compare_resamples *resamples, const double *base,
                             const double *candidate, int64_t n_clusters, bool interval,
                             ats_compare_numbers *out, ats_err *err)
{
    ats_arena scratch = {.blocks = NULL};
    const double none = (double)NAN;
    ats_compare_numbers made = {.base = 0, .interval = {none, none, none, none}};
    ats_stat_bootstrap *bootstrap = NULL;
    double *d = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(&scratch, n_clusters, &d, err));
    for (int64_t i = 0; i < n_clusters; i++) {
        const double difference = candidate[i] - base[i];
        if (isnan(difference)) continue;
        made.base += base[i];
        made.candidate += candidate[i];
        made.difference += difference;
        d[made.n++] = difference;
    }
    const double n = made.n > 0 ? (double)made.n : none;
    made.base /= n;
    made.candidate /= n;
    made.difference /= n;
    for (int64_t i = 0; i < made.n; i++)
        made.error += (d[i] - made.difference) * (d[i] - made.difference);
    made.error = made.n > 1 ? sqrt(made.error / (n * (n - 1))) : none;
    made.p = none;
    if (resamples != NULL) ATS_TRY(test_of(&scratch, d, made.n, &made, err));
    if (resamples != NULL && interval && made.n >= 2) {
        ATS_TRY(resamples_of(resamples, made.n, &bootstrap, err));
        made.interval = ats_stat_bca(bootstrap, d, resamples->alpha);
    }
    *out = made;
out:
    ats_arena_fini(&scratch);
    return rc;
}

/* What a gate forbids. A way is forbidden where its limit is written, the way to the worse also by
 * `equivalence` alone; where neither way is better, one limit says which is the worse, and
 * `equivalence` alone forbids both. */
typedef struct bounds {
    double fall, rise; /* infinite: not forbidden */
    double same;
    int good; /* sign of a difference that is an improvement; 0: neither */
} bounds;

static bounds bounds_of(const ats_compare_gate *gate)
{
    const bool fall = !isnan(gate->max_drop), rise = !isnan(gate->max_rise);
    const double infinite = (double)INFINITY, same = gate->equivalence;
    bounds b = {.fall = fall ? gate->max_drop : infinite, .rise = rise ? gate->max_rise : infinite};
    b.same = !isnan(same) ? same : fmin(b.fall, b.rise);
    b.good = gate->better == ATS_BETTER_MORE ? 1 : gate->better == ATS_BETTER_LESS ? -1 : 0;
    if (!fall && b.good == 1) b.fall = same;
    if (!rise && b.good == -1) b.rise = same;
    if (b.good != 0) return b;
    if (fall != rise) b.good = fall ? 1 : -1;
    if (!fall && !rise) b.fall = b.rise = same;
    return b;
}

/* Is the mean change on a forbidden way beyond its limit? Of NaN: no. */
static bool is_beyond(const bounds *b, double difference)
{
    return -difference > b->fall || difference > b->rise;
}

/* Below 20 clusters an interval alone is too short: both one-sided sign-flip tests of a difference
 * of -limit and +limit must reject as well (two one-sided tests, Schuirmann 1987). */
static bool tests_agree(const double *values, int64_t n_clusters, double limit, double alpha)
{
    double up[ATS_STAT_EXACT_CLUSTERS], down[ATS_STAT_EXACT_CLUSTERS];
    int64_t n = 0;
    for (int64_t i = 0; i < n_clusters; i++) {
        if (isnan(values[i])) continue;
        if (n == ATS_STAT_EXACT_CLUSTERS - 1) return true; /* 20 clusters or more */
        up[n] = values[i] + limit;
        down[n++] = values[i] - limit;
    }
    return ats_stat_sign_flip(up, n).upper <= alpha / 2 &&
           ats_stat_sign_flip(down, n).lower <= alpha / 2;
}

/* Sign of the whole interval; 0 where it holds 0 or there is none. */
static int way_of(const ats_compare_numbers *x)
{
    return x->interval.low > 0 ? 1 : x->interval.high < 0 ? -1 : 0;
}

/* Every comparison is written so that NaN claims nothing. */
static ats_claim claim_of(const ats_compare_row *row, int64_t n_clusters, double alpha)
{
    const ats_compare_numbers *x = &row->numbers;
    const bounds b = bounds_of(row->gate);
    const int way = way_of(x);
    const bool significant = way != 0 && row->p_adjusted <= alpha;
    if (significant && is_beyond(&b, x->difference)) return ATS_CLAIM_REGRESSED;
    if (x->interval.low >= -b.same && x->interval.high <= b.same &&
        tests_agree(row->values, n_clusters, b.same, alpha))
        return ATS_CLAIM_UNCHANGED;
    if (significant && way == b.good) return ATS_CLAIM_IMPROVED;
    return ATS_CLAIM_INCONCLUSIVE;
}

void ats_compare_judge_exact(const ats_compare_gate *gate, double noise, ats_compare_row *row)
{
    const bounds b = bounds_of(gate);
    const double d = row->numbers.difference;
    const int way = d > 0 ? 1 : -1;
    row->claim = ATS_CLAIM_INCONCLUSIVE;
    if (isnan(d)) return;
    if (fabs(d) <= fmax(b.same, noise))
        row->claim = ATS_CLAIM_UNCHANGED;
    else if (is_beyond(&b, d))
        row->claim = ATS_CLAIM_REGRESSED;
    else if (way == b.good)
        row->claim = ATS_CLAIM_IMPROVED;
}

/* Fewest clusters whose sign-flip test can reach alpha over n_gates gates. */
static int64_t clusters_needed(int64_t n_gates, double alpha)
{
    int64_t n = 2;
    while (n < ATS_STAT_EXACT_CLUSTERS && (double)n_gates * ldexp(1, (int)(1 - n)) > alpha) n++;
    return n;
}

static ats_code reason(ats_arena *arena, const ats_compare_options *options, int64_t n_gates,
                       const ats_compare_row *row, const char **out, ats_err *err)
{
    const ats_compare_numbers *x = &row->numbers;
    const int64_t needed = clusters_needed(n_gates, options->alpha);
    const bounds b = bounds_of(row->gate);
    const int way = way_of(x);
    const char *word = way > 0 ? "rise" : "drop";
    *out = "";
    if (row->claim != ATS_CLAIM_INCONCLUSIVE) return ATS_OK;
    if (x->n == 0)
        *out = "; no case has a number on both sides";
    else if (x->n == 1)
        *out = "; one cluster has no interval";
    else if (x->n < needed)
        return ats_arena_printf(
            arena, out, err, "; %lld clusters can show nothing at %g over %lld gate%s, %lld could",
            (long long)x->n, options->alpha, (long long)n_gates, n_gates == 1 ? "" : "s",
            (long long)needed);
    else if (way != 0 && is_beyond(&b, x->difference))
        return ats_arena_printf(arena, out, err,
                                "; the %s is large but not beyond chance over all gates", word);
    else if (way != 0 && way == -b.good)
        return ats_arena_printf(arena, out, err,
                                "; a %s within max_%s that is not within equivalence", word, word);
    else if (way != 0 && b.good == 0)
        return ats_arena_printf(arena, out, err,
                                "; a %s that is not within equivalence, and neither way is better",
                                word);
    else
        *out = "; the interval reaches past what would be unchanged";
    return ATS_OK;
}

ats_code ats_compare_sentence(ats_arena *arena, const ats_compare_options *options, int64_t n_gates,
                              bool exact, ats_compare_row *row, ats_err *err)
{
    const ats_compare_gate *gate = row->gate;
    const ats_compare_numbers *x = &row->numbers;
    const char *of = gate->span != NULL ? gate->span : gate->part;
    char base[32], candidate[32], difference[32], low[32], high[32];
    const char *why = "", *chance = "", *limits = "", *better = "";
    ats_code rc = ATS_OK;
    if (!exact) ATS_TRY(reason(arena, options, n_gates, row, &why, err));
    if (!exact && x->n >= 2)
        ATS_TRY(ats_arena_printf(arena, &chance, err, " [%s, %s], p %.3g (Holm %.3g)",
                                 ats_compare_number(x->interval.low, low),
                                 ats_compare_number(x->interval.high, high), x->p,
                                 row->p_adjusted));
    if (!isnan(gate->max_drop))
        ATS_TRY(ats_arena_printf(arena, &limits, err, "; max_drop %g", gate->max_drop));
    if (!isnan(gate->max_rise))
        ATS_TRY(ats_arena_printf(arena, &limits, err, "%s; max_rise %g", limits, gate->max_rise));
    if (!isnan(gate->equivalence))
        ATS_TRY(
            ats_arena_printf(arena, &limits, err, "%s; equivalence %g", limits, gate->equivalence));
    if (gate->better == ATS_BETTER_LESS) better = " (less is better)";
    ATS_TRY(ats_arena_printf(
        arena, &row->sentence, err,
        "gate '%s' %s: %s%s%s%s %s -> %s, difference %s%s, n %lld%s%s%s", gate->name,
        ats_claim_name(row->claim), gate->metric, of != NULL ? "[" : "", of != NULL ? of : "",
        of != NULL ? "]" : "", ats_compare_number(x->base, base),
        ats_compare_number(x->candidate, candidate), ats_compare_number(x->difference, difference),
        chance, (long long)x->n, better, limits, why));
out:
    return rc;
}

ats_code ats_compare_judge(ats_arena *arena, const ats_compare_options *options, int64_t n_clusters,
                           ats_compare_row *rows, int64_t n_gates, ats_err *err)
{
    double *p = NULL, *adjusted = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, n_gates, &p, err));
    ATS_TRY(ATS_NEW(arena, n_gates, &adjusted, err));
    for (int64_t g = 0; g < n_gates; g++) p[g] = rows[g].numbers.p;
    ATS_TRY(ats_stat_holm(arena, p, n_gates, adjusted, err));
    for (int64_t g = 0; g < n_gates; g++) {
        rows[g].p_adjusted = adjusted[g];
        rows[g].claim = claim_of(&rows[g], n_clusters, options->alpha);
        ATS_TRY(ats_compare_sentence(arena, options, n_gates, false, &rows[g], err));
    }
out:
    return rc;
}

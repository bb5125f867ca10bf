#include "metrics/laws.h"

#include <math.h>

#include "metrics/fold.h"

/* One row of one comparison. */
typedef struct law_row {
    const ats_problem *problem;
    const ats_law_bars *bars;
    const ats_stats *base, *stats;
    const ats_edit *edit;
    int64_t row;
} law_row;

/* Residual over bound; a NaN residual is as bad as it gets. */
static double badness(double residual, double bound)
{
    if (isnan(residual)) return (double)INFINITY;
    if (residual <= 0) return 0;
    return bound > 0 ? residual / bound : (double)INFINITY;
}

static void compare(const law_row *at, ats_law *law, double residual, double bound)
{
    if (!(residual <= bound)) law->broken++;
    if (law->rows++ == 0 || badness(residual, bound) > badness(law->residual, law->bound)) {
        law->residual = residual;
        law->bound = bound;
        law->worst_row = at->row;
    }
}

static double lse(const law_row *at) { return at->stats->route.lse[at->row]; }
static double lse_base(const law_row *at) { return at->base->route.lse[at->row]; }
static double shift(const law_row *at) { return lse(at) - lse_base(at); }

/* Two evaluations may each be off by the bar. */
static double lse_bound(const law_row *at) { return 2 * at->bars->lse[at->row]; }
static double mass_bound(const law_row *at) { return 2 * at->bars->mass[at->row]; }

/* exp(L - L') against masses, both between 0 and 1 */
static double share_bound(const law_row *at) { return lse_bound(at) + mass_bound(at); }

static const float *output(const law_row *at, const ats_stats *stats)
{
    return stats->route.output + at->row * at->problem->d_v;
}

static const float *part(const law_row *at, int64_t index)
{
    return at->stats->pair.delta + (at->row * ATS_N_PARTS + index) * at->problem->d_v;
}

/* Absolute bound of a vector in the output space. */
static double output_bound(const law_row *at)
{
    const int64_t d = at->problem->d_v;
    return 2 * at->bars->output[at->row] *
           (ats_norm(output(at, at->base), NULL, d) + ats_norm(output(at, at->stats), NULL, d));
}

static bool has_pair(const law_row *at) { return at->stats->pair.tv != NULL; }

/* Any variant. */

static void any_mass(const law_row *at, ats_law *law)
{
    const ats_route_stats *r = &at->stats->route;
    compare(at, law, fabs(exp(r->lse_keys[at->row] - lse(at)) + r->null_weight[at->row] - 1),
            share_bound(at));
}

static void any_survivors(const law_row *at, ats_law *law)
{
    if (!has_pair(at)) return;
    const ats_pair_stats *p = &at->stats->pair;
    compare(at, law, fabs(p->survivors_base[at->row] + p->removal[at->row] - 1), mass_bound(at));
    compare(at, law, fabs(p->survivors[at->row] + p->intrusion[at->row] - 1), mass_bound(at));
}

static void any_parts(const law_row *at, ats_law *law)
{
    if (!has_pair(at)) return;
    const int64_t d = at->problem->d_v;
    const float *o = output(at, at->base), *p = output(at, at->stats);
    double square = 0, size = 0;
    for (int64_t i = 0; i < d; i++) {
        double x = (double)o[i] - (double)p[i];
        for (int64_t k = 0; k < ATS_N_PARTS; k++) x += (double)part(at, k)[i];
        square += x * x;
    }
    for (int64_t k = 0; k < ATS_N_PARTS; k++) size += ats_norm(part(at, k), NULL, d);
    compare(at, law, sqrt(square), output_bound(at) + 2 * at->bars->output[at->row] * size);
}

static void any_entropy(const law_row *at, ats_law *law)
{
    const ats_route_stats *r = &at->stats->route;
    const double h = r->entropy[at->row];
    const double n = (double)r->legal_keys[at->row] + (r->null_weight[at->row] > 0 ? 1 : 0);
    compare(at, law, isnan(h) ? h : fmax(fmax(-h, h - log(n)), 0), at->bars->entropy[at->row]);
}

static void any_order(const law_row *at, ats_law *law)
{
    if (!has_pair(at)) return;
    const ats_pair_stats *p = &at->stats->pair;
    const double tv = p->tv[at->row], h2 = p->hellinger[at->row] * p->hellinger[at->row];
    const double js = p->js[at->row];
    compare(at, law, isnan(tv + h2) ? (double)NAN : fmax(h2 - tv, 0), mass_bound(at));
    compare(at, law, isnan(tv + h2) ? (double)NAN : fmax(tv * tv - h2 * (2 - h2), 0),
            2 * mass_bound(at));
    compare(at, law, isnan(tv + js) ? (double)NAN : fmax(js - tv, 0), mass_bound(at));
}

/* Overlay. */

static void overlay_tv(const law_row *at, ats_law *law)
{
    compare(at, law, fabs(at->stats->pair.tv[at->row] + expm1(-shift(at))), share_bound(at));
}

static void overlay_intrusion(const law_row *at, ats_law *law)
{
    compare(at, law, fabs(at->stats->pair.intrusion[at->row] + expm1(-shift(at))), share_bound(at));
}

/* squared: the square root turns a rounding of 1e-16 into 1e-8 */
static void overlay_hellinger(const law_row *at, ats_law *law)
{
    const double h = at->stats->pair.hellinger[at->row];
    compare(at, law, fabs(h * h + expm1(-shift(at) / 2)), share_bound(at));
}

static void overlay_js(const law_row *at, ats_law *law)
{
    const double e = at->stats->pair.intrusion[at->row];
    const double own = e < 1 ? (1 - e) * log1p(-e) : 0;
    const double js = (e * log(2.0) + own - (2 - e) * log1p(-e / 2)) / (2 * log(2.0));
    compare(at, law, fabs(at->stats->pair.js[at->row] - js), share_bound(at));
}

static void no_reroute(const law_row *at, ats_law *law)
{
    compare(at, law, fabs(at->stats->pair.reroute_tv[at->row]), share_bound(at));
    compare(at, law, fabs(at->stats->pair.reroute_js[at->row]), share_bound(at));
}

/* Own shift plus competition of one region; false when it has no key in either route. */
static bool region_shift(const law_row *at, int64_t region, double *out)
{
    const int64_t i = at->row * at->problem->n_regions + region;
    const double before = at->base->route.region_lse[i], after = at->stats->route.region_lse[i];
    if (before == -(double)INFINITY && after == -(double)INFINITY) return false;
    *out = after - before - shift(at);
    return true;
}

static void overlay_log_mass(const law_row *at, ats_law *law)
{
    double moved;
    for (int64_t s = 0; s < at->problem->n_regions; s++)
        if (region_shift(at, s, &moved))
            compare(at, law, fabs(moved - log(at->stats->pair.survivors[at->row])),
                    2 * lse_bound(at) + mass_bound(at));
}

static void only_parts(const law_row *at, ats_law *law, unsigned allowed)
{
    for (int64_t k = 0; k < ATS_N_PARTS; k++)
        if (!(allowed >> k & 1))
            compare(at, law, ats_norm(part(at, k), NULL, at->problem->d_v), output_bound(at));
}

static void overlay_parts(const law_row *at, ats_law *law)
{
    only_parts(at, law, 1U << ATS_PART_INTRUSION | 1U << ATS_PART_DILUTION);
}

/* Masked rows. */

static void mask_tv(const law_row *at, ats_law *law)
{
    const ats_pair_stats *p = &at->stats->pair;
    compare(at, law, fabs(p->tv[at->row] - p->removal[at->row]), mass_bound(at));
    compare(at, law, fabs(p->intrusion[at->row]), mass_bound(at));
}

/* L' - L = log(1 - M), from the state of what is left and not by subtraction */
static void mask_lse(const law_row *at, ats_law *law)
{
    compare(at, law, fabs(shift(at) - log(at->stats->pair.survivors_base[at->row])),
            lse_bound(at) + mass_bound(at));
}

static bool hidden_from(const ats_edit *edit, const ats_region *region)
{
    for (int64_t i = 0; i < edit->n_segments; i++) {
        const ats_segment *s = &edit->segments[i];
        if (s->kind != ATS_SEG_HIDE) continue;
        for (int64_t r = 0; r < region->n_ranges; r++)
            if (region->ranges[r].start < s->stop && s->start < region->ranges[r].stop) return true;
    }
    return false;
}

static void mask_log_mass(const law_row *at, ats_law *law)
{
    double moved;
    for (int64_t s = 0; s < at->problem->n_regions; s++) {
        if (at->edit == NULL || hidden_from(at->edit, &at->problem->regions[s])) continue;
        if (region_shift(at, s, &moved))
            compare(at, law, fabs(moved + log(at->stats->pair.survivors_base[at->row])),
                    2 * lse_bound(at) + mass_bound(at));
    }
}

static void mask_parts(const law_row *at, ats_law *law)
{
    only_parts(at, law, 1U << ATS_PART_REMOVAL | 1U << ATS_PART_DILUTION);
}

/* Payload swap: the same arithmetic on the same keys, so the same bits. */

static void compare_bits(const law_row *at, ats_law *law, double a, double b)
{
    if (a == b || (isnan(a) && isnan(b))) /* also equal infinities */
        compare(at, law, 0, 0);
    else
        compare(at, law, fabs(a - b), 0);
}

static void swap_route(const law_row *at, ats_law *law)
{
    const ats_route_stats *b = &at->base->route, *v = &at->stats->route;
    const int64_t row = at->row, n = at->problem->n_regions, k = at->problem->top_k;
    compare_bits(at, law, v->lse[row], b->lse[row]);
    compare_bits(at, law, v->null_weight[row], b->null_weight[row]);
    compare_bits(at, law, v->entropy[row], b->entropy[row]);
    compare_bits(at, law, v->sum_w2[row], b->sum_w2[row]);
    for (int64_t s = row * n; s < (row + 1) * n; s++)
        compare_bits(at, law, v->region_lse[s], b->region_lse[s]);
    for (int64_t i = row * k; i < (row + 1) * k; i++) {
        compare_bits(at, law, (double)v->top_index[i], (double)b->top_index[i]);
        compare_bits(at, law, v->top_weight[i], b->top_weight[i]);
    }
    compare_bits(at, law, at->stats->pair.tv[row], 0);
    compare_bits(at, law, at->stats->pair.js[row], 0);
    compare_bits(at, law, at->stats->pair.hellinger[row], 0);
}

static void swap_parts(const law_row *at, ats_law *law)
{
    only_parts(at, law, 1U << ATS_PART_PAYLOAD);
}

/* Temperature: a key may only move past one whose logit is within rounding of its own. */
static void same_ranking(const law_row *at, ats_law *law)
{
    const int64_t k = at->problem->top_k, first = at->row * k;
    const ats_route_stats *b = &at->base->route, *v = &at->stats->route;
    for (int64_t i = 0; i < k; i++) {
        const int64_t key = v->top_index[first + i];
        if (key == -1 || b->top_index[first + i] == -1) return;
        int64_t was = i;
        if (b->top_index[first + i] != key)
            for (was = 0; was < k && b->top_index[first + was] != key;) was++;
        /* not in the base's list: no further up than its last place */
        const double w = b->top_weight[first + (was < k ? was : k - 1)];
        compare(at, law, fabs(log(w) - log(b->top_weight[first + i])), lse_bound(at));
    }
}

/* Nothing may change. */

static void same_lse(const law_row *at, ats_law *law)
{
    const int64_t n = at->problem->n_regions;
    compare(at, law, fabs(shift(at)), lse_bound(at));
    for (int64_t s = at->row * n; s < (at->row + 1) * n; s++) {
        const double before = at->base->route.region_lse[s], after = at->stats->route.region_lse[s];
        if (before != after) compare(at, law, fabs(after - before), lse_bound(at));
    }
}

static void same_entropy(const law_row *at, ats_law *law)
{
    compare(at, law, fabs(at->stats->route.entropy[at->row] - at->base->route.entropy[at->row]),
            2 * at->bars->entropy[at->row]);
}

static void same_tv(const law_row *at, ats_law *law)
{
    if (has_pair(at)) compare(at, law, fabs(at->stats->pair.tv[at->row]), share_bound(at));
}

static void same_output(const law_row *at, ats_law *law)
{
    compare(at, law, ats_norm(output(at, at->stats), output(at, at->base), at->problem->d_v),
            output_bound(at));
}

static const struct {
    ats_law_kind kind;
    const char *name, *statement;
    void (*check)(const law_row *at, ats_law *law);
} laws[] = {
    {ATS_LAWS_ANY, "any.mass", "sum w + null = 1", any_mass},
    {ATS_LAWS_ANY, "any.survivors", "A + removal = 1 and B + intrusion = 1", any_survivors},
    {ATS_LAWS_ANY, "any.parts", "the five parts sum to o' - o", any_parts},
    {ATS_LAWS_ANY, "any.entropy", "0 <= H <= log(legal keys and null route)", any_entropy},
    {ATS_LAWS_ANY, "any.divergences",
     "hellinger^2 <= tv, tv^2 <= hellinger^2 (2 - hellinger^2), js <= tv", any_order},
    {ATS_LAWS_OVERLAY, "overlay.intrusion", "intrusion = 1 - exp(-lse_shift)", overlay_intrusion},
    {ATS_LAWS_OVERLAY, "overlay.tv", "tv = 1 - exp(-lse_shift)", overlay_tv},
    {ATS_LAWS_OVERLAY, "overlay.hellinger", "hellinger^2 = 1 - exp(-lse_shift / 2)",
     overlay_hellinger},
    {ATS_LAWS_OVERLAY, "overlay.js", "js in closed form of intrusion", overlay_js},
    {ATS_LAWS_OVERLAY, "overlay.reroute", "reroute_tv = reroute_js = 0", no_reroute},
    {ATS_LAWS_OVERLAY, "overlay.log_mass_shift",
     "log_mass_shift = log(1 - intrusion) for every span", overlay_log_mass},
    {ATS_LAWS_OVERLAY, "overlay.parts", "o' - o = intrusion + dilution", overlay_parts},
    {ATS_LAWS_MASK, "mask.tv", "tv = removal, intrusion = 0", mask_tv},
    {ATS_LAWS_MASK, "mask.lse", "lse_shift = log(1 - removal)", mask_lse},
    {ATS_LAWS_MASK, "mask.log_mass_shift",
     "log_mass_shift = -log(1 - removal) for every span that lost no key", mask_log_mass},
    {ATS_LAWS_MASK, "mask.reroute", "reroute_tv = reroute_js = 0", no_reroute},
    {ATS_LAWS_MASK, "mask.parts", "o' - o = removal + dilution", mask_parts},
    {ATS_LAWS_PAYLOAD_SWAP, "payload_swap.route", "the route is bit-identical", swap_route},
    {ATS_LAWS_PAYLOAD_SWAP, "payload_swap.parts", "o' - o = payload", swap_parts},
    {ATS_LAWS_TEMPERATURE, "temperature.ranking", "the heaviest keys keep their order",
     same_ranking},
    {ATS_LAWS_SAME, "same.lse", "log-sum-exp of the row and of every span unchanged", same_lse},
    {ATS_LAWS_SAME, "same.entropy", "entropy unchanged", same_entropy},
    {ATS_LAWS_SAME, "same.tv", "tv = 0", same_tv},
    {ATS_LAWS_SAME, "same.output", "output unchanged", same_output},
};

int64_t ats_laws_check(ats_law_kind kind, const ats_problem *problem, const ats_law_bars *bars,
                       const ats_stats *base, const ats_stats *stats, const ats_edit *edit,
                       ats_law *out)
{
    int64_t count = 0;
    for (size_t i = 0; i < sizeof laws / sizeof *laws; i++) {
        if (laws[i].kind != ATS_LAWS_ANY && laws[i].kind != kind) continue;
        ATS_ASSERT(count < ATS_LAWS_MAX);
        ats_law *law = &out[count++];
        *law = (ats_law){.name = laws[i].name, .statement = laws[i].statement, .worst_row = -1};
        law_row at = {problem, bars, base, stats, edit, 0};
        const bool needs_pair = laws[i].kind != ATS_LAWS_ANY && laws[i].kind != ATS_LAWS_SAME &&
                                laws[i].kind != ATS_LAWS_TEMPERATURE;
        if (needs_pair && !has_pair(&at)) continue;
        for (at.row = 0; at.row < problem->n_rows; at.row++)
            if (lse(&at) != -(double)INFINITY && lse_base(&at) != -(double)INFINITY)
                laws[i].check(&at, law);
    }
    return count;
}

ats_law ats_law_duplicates(const ats_problem *problem, const ats_law_bars *bars,
                           const ats_stats *base, const ats_stats *stats, int64_t region,
                           int64_t copies)
{
    ats_law law = {.name = "overlay.duplicates",
                   .statement = "n copies and the span hold (n + 1) G / (1 + n G)",
                   .worst_row = -1};
    law_row at = {problem, bars, base, stats, NULL, 0};
    if (!has_pair(&at)) return law;
    for (at.row = 0; at.row < problem->n_rows; at.row++) {
        const int64_t i = at.row * problem->n_regions + region;
        if (lse(&at) == -(double)INFINITY || lse_base(&at) == -(double)INFINITY) continue;
        const double g = exp(base->route.region_lse[i] - lse_base(&at)), n = (double)copies;
        const double both = exp(stats->route.region_lse[i] - lse(&at)) +
                            exp(stats->pair.inserted_lse[at.row] - lse(&at));
        compare(&at, &law, fabs(both - (n + 1) * g / (1 + n * g)), share_bound(&at));
    }
    return law;
}

void ats_law_merge(ats_law *into, const ats_law *from)
{
    if (into->name == NULL) {
        *into = *from;
        return;
    }
    const bool worse =
        from->rows > 0 && (into->rows == 0 || badness(from->residual, from->bound) >
                                                  badness(into->residual, into->bound));
    if (worse) {
        into->residual = from->residual;
        into->bound = from->bound;
        into->worst_row = from->worst_row;
    }
    into->rows += from->rows;
    into->broken += from->broken;
}

bool ats_law_holds(const ats_law *law) { return law->broken == 0; }

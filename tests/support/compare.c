#include "support/compare.h"

#include <math.h>
#include <stdlib.h>

#include "support/check.h"
#include "support/truth.h"

typedef struct place {
    report *r;
    const ats_problem *p;
    int64_t variant, row;
} place;

static void near_at(const place *at, const char *field, double got, double want, double bar)
{
    report_near(at->r, field, at->variant, at->row, got, want, bar);
}

/* Relative bar with a floor for weights that fp32 may flush. */
static void relative(const place *at, const char *field, double got, double want, double bar)
{
    near_at(at, field, got, want, bar * fabs(want) + ATS_BAR_TINY);
}

static void vector_at(const place *at, const char *field, const float *got, const float *want,
                      int64_t index, double bar)
{
    const int64_t dv = at->p->d_v;
    report_vector(at->r, field, at->variant, at->row, got + index * dv, want + index * dv, dv, bar);
}

static int descending(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a < b) - (a > b);
}

/* Scores of the legal keys by weight or by |w v|, largest first; returns how many are positive. */
static int64_t sorted_scores(ats_arena *arena, const row_truth *truth, bool payload, double **out)
{
    ats_err err = {.code = ATS_OK};
    int64_t count = 0;
    assert_ok(ATS_NEW(arena, truth->length + 1, out, &err), &err);
    for (int64_t t = 0; t < truth->length; t++) {
        const double score = truth->w[t] > 0 ? truth->w[t] * (payload ? truth->norm[t] : 1) : 0;
        if (score > 0) (*out)[count++] = score;
    }
    qsort(*out, (size_t)count, sizeof **out, descending);
    return count;
}

/* The i-th entry may be any key whose score is within the bar of the i-th largest. */
static void compare_top(ats_arena *arena, const place *at, const row_truth *truth, double bar,
                        bool payload, const int64_t *index, const double *weight,
                        const double *norm)
{
    const char *field = payload ? "topc" : "top";
    double *scores = NULL;
    const int64_t available = sorted_scores(arena, truth, payload, &scores);
    for (int64_t i = 0; i < at->p->top_k; i++) {
        if (i >= available) {
            report_count(at->r, field, at->variant, at->row, index[i], -1, -1);
            near_at(at, field, weight[i], (double)NAN, 0);
            continue;
        }
        const int64_t t = row_truth_find(truth, index[i]);
        if (t < 0) {
            if (scores[i] > ATS_BAR_TINY)
                report_count(at->r, field, at->variant, at->row, index[i], 0, at->p->n_keys);
            continue;
        }
        const double w = truth->w[t], score = payload ? w * truth->norm[t] : w;
        relative(at, field, score, scores[i], 2 * bar);
        relative(at, field, weight[i], w, bar);
        if (payload) relative(at, "topc_norm", norm[i], score, bar);
        for (int64_t j = 0; j < i; j++)
            if (index[j] == index[i])
                report_count(at->r, field, at->variant, at->row, index[i], -1, -1);
    }
}

static bool in_region(const ats_region *region, int64_t key)
{
    for (int64_t i = 0; i < region->n_ranges; i++)
        if (key >= region->ranges[i].start && key < region->ranges[i].stop) return true;
    return false;
}

/* Keys outside whose logit is above the region's best by more (less) than twice the logit bar. */
static void compare_heavier(const place *at, const row_truth *truth, const ats_region *region,
                            double bar, int64_t got)
{
    double best = -(double)INFINITY;
    for (int64_t t = 0; t < truth->length; t++)
        if (in_region(region, truth->key[t])) best = fmax(best, truth->z[t]);
    int64_t surely = 0, maybe = 0;
    for (int64_t t = 0; t < truth->length; t++) {
        if (!isfinite(truth->z[t]) || in_region(region, truth->key[t])) continue;
        surely += truth->z[t] > best + 2 * bar;
        maybe += truth->z[t] > best - 2 * bar;
    }
    report_count(at->r, "region_heavier", at->variant, at->row, got, surely, maybe);
}

static void compare_regions(const place *at, const row_truth *truth, const ats_bars *bars,
                            const ats_route_stats *got, const ats_route_stats *want)
{
    for (int64_t g = 0; g < at->p->n_regions; g++) {
        const int64_t i = at->row * at->p->n_regions + g;
        near_at(at, "region_lse", got->region_lse[i], want->region_lse[i], bars->lse);
        near_at(at, "region_max", got->region_max[i], want->region_max[i], bars->lse);
        near_at(at, "region_max_out", got->region_max_out[i], want->region_max_out[i], bars->lse);
        relative(at, "region_abs", got->region_abs[i], want->region_abs[i], bars->output);
        vector_at(at, "region_output", got->region_output, want->region_output, i,
                  bars->output * fabs(want->region_abs[i]) + ATS_BAR_TINY);
        if (truth->defined)
            compare_heavier(at, truth, &at->p->regions[g], bars->lse, got->region_heavier[i]);
        else
            report_count(at->r, "region_heavier", at->variant, at->row, got->region_heavier[i], 0,
                         0);
    }
}

static void compare_route(ats_arena *arena, const place *at, const row_truth *truth,
                          const ats_route_stats *got, const ats_route_stats *want)
{
    const ats_bars bars = ats_bars_of(at->r->path, truth->bound, truth->sd);
    const int64_t row = at->row, k = at->p->top_k;
    near_at(at, "lse", got->lse[row], want->lse[row], bars.lse);
    near_at(at, "lse_keys", got->lse_keys[row], want->lse_keys[row], bars.lse);
    relative(at, "null_weight", got->null_weight[row], want->null_weight[row], bars.mass);
    near_at(at, "entropy", got->entropy[row], want->entropy[row], bars.entropy);
    relative(at, "sum_w2", got->sum_w2[row], want->sum_w2[row], 2 * bars.mass);
    relative(at, "max_weight", got->max_weight[row], want->max_weight[row], bars.mass);
    report_count(at->r, "legal_keys", at->variant, row, got->legal_keys[row], want->legal_keys[row],
                 want->legal_keys[row]);
    vector_at(at, "output", got->output, want->output, row,
              bars.output * truth->abs_sum + ATS_BAR_TINY);
    compare_top(arena, at, truth, bars.mass, false, got->top_index + row * k,
                got->top_weight + row * k, NULL);
    compare_top(arena, at, truth, bars.mass, true, got->topc_index + row * k,
                got->topc_weight + row * k, got->topc_norm + row * k);
    compare_regions(at, truth, &bars, got, want);
}

/* One key of the union in both routes, for the overlap of the top lists. */
typedef struct pair_row {
    const row_truth *base, *variant;
} pair_row;

static double base_weight(const pair_row *pair, int64_t t)
{
    const int64_t key = pair->variant->key[t];
    return key >= 0 ? pair->base->w[key] : 0;
}

static bool survives(const pair_row *pair, int64_t t)
{
    const int64_t key = pair->variant->key[t];
    return key >= 0 && isfinite(pair->base->z[key]) && isfinite(pair->variant->z[t]);
}

/* The k-th largest weight (0 when there are fewer) among keys of one route. */
static double threshold(ats_arena *arena, const pair_row *pair, bool base, bool only_survivors,
                        int64_t k, int64_t *listed)
{
    ats_err err = {.code = ATS_OK};
    double *scores = NULL;
    int64_t count = 0;
    assert_ok(ATS_NEW(arena, pair->variant->length + 1, &scores, &err), &err);
    for (int64_t t = 0; t < pair->variant->length; t++) {
        if (only_survivors && !survives(pair, t)) continue;
        const double w = base ? base_weight(pair, t) : pair->variant->w[t];
        if (w > 0) scores[count++] = w;
    }
    qsort(scores, (size_t)count, sizeof *scores, descending);
    *listed = count < k ? count : k;
    return count < k ? 0 : scores[k - 1];
}

static void compare_overlap(ats_arena *arena, const place *at, const pair_row *pair,
                            bool only_survivors, double bar, int64_t got, int64_t got_k)
{
    int64_t old_count, new_count, surely = 0, maybe = 0;
    const int64_t k = at->p->top_k;
    const double old_bar = threshold(arena, pair, true, only_survivors, k, &old_count);
    const double new_bar = threshold(arena, pair, false, only_survivors, k, &new_count);
    for (int64_t t = 0; t < pair->variant->length; t++) {
        if (only_survivors && !survives(pair, t)) continue;
        const double w_base = base_weight(pair, t), w = pair->variant->w[t];
        if (!(w_base > 0) || !(w > 0)) continue;
        surely += w_base > old_bar * (1 + 2 * bar) && w > new_bar * (1 + 2 * bar);
        maybe += w_base >= old_bar * (1 - 2 * bar) && w >= new_bar * (1 - 2 * bar);
    }
    const char *field = only_survivors ? "overlap_survivors" : "overlap_all";
    report_count(at->r, field, at->variant, at->row, got, surely, maybe);
    const int64_t larger = old_count > new_count ? old_count : new_count;
    report_count(at->r, "overlap_k", at->variant, at->row, got_k, larger, larger);
}

/* Scale of the five parts: what was summed, and the survivors' mean value times their mass, from
 * which dilution and reroute are made. */
static double delta_scale(const pair_row *pair)
{
    double mass_base = 0, mass = 0, values = 0;
    for (int64_t t = 0; t < pair->variant->length; t++) {
        if (!survives(pair, t)) continue;
        const int64_t b = pair->variant->key[t];
        mass_base += pair->base->w[b];
        mass += pair->variant->w[t];
        values += pair->base->w[b] * (pair->base->norm[b] + pair->variant->norm[t]);
    }
    const double mean = mass_base > 0 ? values / mass_base : 0;
    return pair->base->abs_sum + pair->variant->abs_sum + mean * (mass_base + mass);
}

static void compare_pair(ats_arena *arena, const place *at, const pair_row *pair,
                         const ats_pair_stats *got, const ats_pair_stats *want)
{
    const double bound = fmax(pair->base->bound, pair->variant->bound);
    const ats_bars bars = ats_bars_of(at->r->path, bound, 0);
    const int64_t row = at->row;
    relative(at, "intrusion", got->intrusion[row], want->intrusion[row], bars.mass);
    relative(at, "removal", got->removal[row], want->removal[row], bars.mass);
    relative(at, "survivors_base", got->survivors_base[row], want->survivors_base[row], bars.mass);
    relative(at, "survivors", got->survivors[row], want->survivors[row], bars.mass);
    near_at(at, "tv", got->tv[row], want->tv[row], bars.divergence);
    near_at(at, "js", got->js[row], want->js[row], bars.divergence);
    near_at(at, "hellinger^2", got->hellinger[row] * got->hellinger[row],
            want->hellinger[row] * want->hellinger[row], bars.divergence);
    /* Conditioning divides by a mass of the same relative error. */
    near_at(at, "reroute_tv", got->reroute_tv[row], want->reroute_tv[row], 2 * bars.divergence);
    near_at(at, "reroute_js", got->reroute_js[row], want->reroute_js[row], 2 * bars.divergence);
    near_at(at, "inserted_lse", got->inserted_lse[row], want->inserted_lse[row], bars.lse);
    relative(at, "inserted_abs", got->inserted_abs[row], want->inserted_abs[row], bars.output);
    vector_at(at, "inserted_output", got->inserted_output, want->inserted_output, row,
              bars.output * fabs(want->inserted_abs[row]) + ATS_BAR_TINY);
    if (!pair->base->defined || !pair->variant->defined) {
        report_count(at->r, "overlap_k", at->variant, row, got->overlap_k_all[row], 0, 0);
        report_count(at->r, "overlap_k", at->variant, row, got->overlap_k_survivors[row], 0, 0);
        report_count(at->r, "overlap_all", at->variant, row, got->overlap_all[row], 0, 0);
        report_count(at->r, "overlap_survivors", at->variant, row, got->overlap_survivors[row], 0,
                     0);
        vector_at(at, "delta", got->delta, want->delta, row * ATS_N_PARTS, 0);
        return;
    }
    compare_overlap(arena, at, pair, false, bars.mass, got->overlap_all[row],
                    got->overlap_k_all[row]);
    compare_overlap(arena, at, pair, true, bars.mass, got->overlap_survivors[row],
                    got->overlap_k_survivors[row]);
    const double scale = bars.output * delta_scale(pair) + ATS_BAR_TINY;
    for (int64_t part = 0; part < ATS_N_PARTS; part++)
        vector_at(at, "delta", got->delta, want->delta, row * ATS_N_PARTS + part, scale);
}

void compare_sets(report *r, const ats_problem *problem, const ats_edit *edits,
                  const stats_set *got, const stats_set *want)
{
    ats_arena arena;
    ats_arena_init(&arena, false);
    for (int64_t row = 0; row < problem->n_rows; row++) {
        row_truth base;
        ats_arena_reset(&arena);
        place at = {.r = r, .p = problem, .variant = -1, .row = row};
        row_truth_make(&arena, problem, NULL, row, &base);
        compare_route(&arena, &at, &base, &got->base.route, &want->base.route);
        for (at.variant = 0; at.variant < got->n_variants; at.variant++) {
            row_truth variant;
            const ats_stats *mine = &got->variants[at.variant];
            const ats_stats *right = &want->variants[at.variant];
            row_truth_make(&arena, problem, &edits[at.variant], row, &variant);
            compare_route(&arena, &at, &variant, &mine->route, &right->route);
            const pair_row pair = {.base = &base, .variant = &variant};
            compare_pair(&arena, &at, &pair, &mine->pair, &right->pair);
        }
    }
    ats_arena_fini(&arena);
}

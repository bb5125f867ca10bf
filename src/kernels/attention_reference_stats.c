#include "kernels/attention_reference.h"

#include <math.h>
#include <string.h>

void ref_top_reset(ref_top *top) { top->count = 0; }

void ref_top_offer(ref_top *top, int64_t item, double score)
{
    int64_t at = top->count;
    if (at == top->limit) {
        if (!(score > top->score[at - 1])) return;
        at--;
    } else {
        top->count++;
    }
    for (; at > 0 && score > top->score[at - 1]; at--) {
        top->score[at] = top->score[at - 1];
        top->item[at] = top->item[at - 1];
    }
    top->score[at] = score;
    top->item[at] = item;
}

static void zero(double *x, int64_t n) { memset(x, 0, (size_t)n * sizeof *x); }

static void add(double factor, const double *x, int64_t n, double *sum)
{
    for (int64_t j = 0; j < n; j++) sum[j] += factor * x[j];
}

static void narrow(const double *x, int64_t n, float *out)
{
    for (int64_t j = 0; j < n; j++) out[j] = (float)x[j];
}

/* -w log w, 0 at w = 0. */
static double surprise(double w, double log_w) { return w > 0 ? w * -log_w : 0.0; }

static void fill_totals(const ref_route *route, int64_t row, ref_scratch *scratch,
                        ats_route_stats *out)
{
    const ref_sequence *s = route->sequence;
    const int64_t dv = s->problem->d_v;
    double entropy = 0.0 + surprise(route->null_weight, route->log_null); /* never -0 */
    double squares = route->null_weight * route->null_weight, heaviest = 0;
    double *sum = scratch->vectors;
    zero(sum, dv);
    for (int64_t t = 0; t < s->length; t++) {
        const double w = route->w[t];
        if (!isfinite(route->z[t])) continue;
        entropy += surprise(w, route->log_w[t]);
        squares += w * w;
        if (w > heaviest) heaviest = w;
        ref_value(s, t, scratch, scratch->value);
        add(w, scratch->value, dv, sum);
    }
    out->null_weight[row] = route->null_weight;
    out->entropy[row] = entropy;
    out->sum_w2[row] = squares;
    out->max_weight[row] = heaviest;
    out->legal_keys[row] = route->legal;
    narrow(sum, dv, out->output + row * dv);
}

/* Heaviest keys by logit, and keys of largest |w v|. */
static void fill_tops(const ref_route *route, int64_t row, ref_scratch *scratch,
                      ats_route_stats *out)
{
    const ref_sequence *s = route->sequence;
    const int64_t k = s->problem->top_k;
    ref_top heavy = {.limit = k, .item = scratch->top, .score = scratch->top_score};
    ref_top payload = {.limit = k, .item = scratch->top + k, .score = scratch->top_score + k};
    for (int64_t t = 0; t < s->length; t++) {
        if (!isfinite(route->z[t]) || route->w[t] == 0) continue;
        ref_top_offer(&heavy, t, route->z[t]);
        const double norm = route->w[t] * s->value_norm[t];
        if (norm > 0) ref_top_offer(&payload, t, norm);
    }
    for (int64_t i = 0; i < k; i++) {
        const bool in_heavy = i < heavy.count, in_payload = i < payload.count;
        const int64_t a = in_heavy ? heavy.item[i] : 0, b = in_payload ? payload.item[i] : 0;
        out->top_index[row * k + i] = in_heavy ? s->entries[a].key : -1;
        out->top_weight[row * k + i] = in_heavy ? route->w[a] : (double)NAN;
        out->topc_index[row * k + i] = in_payload ? s->entries[b].key : -1;
        out->topc_weight[row * k + i] = in_payload ? route->w[b] : (double)NAN;
        out->topc_norm[row * k + i] = in_payload ? payload.score[i] : (double)NAN;
    }
}

/* Keys must be asked for in ascending base order; *at starts at 0. */
static bool inside(const ats_region *region, int64_t *at, const ref_entry *entry)
{
    if (entry->base < 0) return false;
    while (*at < region->n_ranges && region->ranges[*at].stop <= entry->base) ++*at;
    return *at < region->n_ranges && region->ranges[*at].start <= entry->base;
}

static void fill_region(const ref_route *route, const ats_region *region, int64_t place,
                        ref_scratch *scratch, ats_route_stats *out)
{
    const ref_sequence *s = route->sequence;
    const int64_t dv = s->problem->d_v;
    double best_in = -(double)INFINITY, best_out = -(double)INFINITY;
    int64_t at = 0, heavier = 0;
    for (int64_t t = 0; t < s->length; t++) {
        double *best = inside(region, &at, &s->entries[t]) ? &best_in : &best_out;
        if (route->z[t] > *best) *best = route->z[t];
    }
    double sum = 0, absolute = 0;
    double *vector = scratch->vectors;
    zero(vector, dv);
    at = 0;
    for (int64_t t = 0; t < s->length; t++) {
        const bool in = inside(region, &at, &s->entries[t]);
        if (!isfinite(route->z[t])) continue;
        if (!in) {
            heavier += route->z[t] > best_in;
            continue;
        }
        sum += exp(route->z[t] - best_in);
        absolute += route->w[t] * s->value_norm[t];
        ref_value(s, t, scratch, scratch->value);
        add(route->w[t], scratch->value, dv, vector);
    }
    out->region_max[place] = best_in;
    out->region_max_out[place] = best_out;
    out->region_lse[place] = sum > 0 ? best_in + log(sum) : -(double)INFINITY;
    out->region_heavier[place] = heavier;
    out->region_abs[place] = absolute;
    narrow(vector, dv, out->region_output + place * dv);
}

void ref_route_stats(const ref_route *route, int64_t row, ref_scratch *scratch,
                     ats_route_stats *out)
{
    const ats_problem *p = route->sequence->problem;
    out->lse[row] = route->lse;
    out->lse_keys[row] = route->lse_keys;
    if (!route->defined) return;
    fill_totals(route, row, scratch, out);
    fill_tops(route, row, scratch, out);
    for (int64_t r = 0; r < p->n_regions; r++)
        fill_region(route, &p->regions[r], row * p->n_regions + r, scratch, out);
}

#include "kernels/attention_reference.h"

#include <math.h>
#include <string.h>

/* Every base row appears exactly once in the variant, so walking the variant's entries walks the
 * union of both routes. `both`: in S; else in R (base only), I (variant only) or neither. */
typedef struct ref_step {
    bool in_base, in_variant;
    double w_base, w; /* 0 where not legal */
} ref_step;

static ref_step step_at(const ref_route *base, const ref_route *variant, int64_t t)
{
    const int64_t b = variant->sequence->entries[t].base;
    ref_step step = {.in_base = b >= 0 && isfinite(base->z[b]),
                     .in_variant = isfinite(variant->z[t])};
    if (step.in_base) step.w_base = base->w[b];
    if (step.in_variant) step.w = variant->w[t];
    return step;
}

/* p ln(2p/(p+q))/2 + q ln(2q/(p+q))/2 = m g(x) with m = (p+q)/2, x = (p-q)/(p+q) and
 * g(x) = [(1+x) ln(1+x) + (1-x) ln(1-x)] / 2 = sum x^2k / (2k (2k-1)); no cancellation near x = 0.
 */
static double js_term(double p, double q)
{
    if (p + q == 0) return 0;
    const double x = (p - q) / (p + q), half = 0.5 * (p + q);
    if (fabs(x) == 1) return half * log(2.0);
    const double x2 = x * x;
    if (fabs(x) < 0.02)
        return half * x2 *
               (1.0 / 2 + x2 * (1.0 / 12 + x2 * (1.0 / 30 + x2 * (1.0 / 56 + x2 / 90))));
    return half * 0.5 * ((1 + x) * log1p(x) + (1 - x) * log1p(-x));
}

static double squared(double x) { return x * x; }

static void fill_distances(const ref_route *base, const ref_route *variant, int64_t row,
                           ats_pair_stats *out)
{
    const double n0 = base->null_weight, n1 = variant->null_weight;
    double only_base = 0, only_variant = 0, a = n0, b = n1;
    double tv = fabs(n0 - n1), js = js_term(n0, n1), roots = squared(sqrt(n0) - sqrt(n1));
    for (int64_t t = 0; t < variant->sequence->length; t++) {
        const ref_step step = step_at(base, variant, t);
        if (step.in_base && step.in_variant) {
            a += step.w_base;
            b += step.w;
        } else {
            only_base += step.w_base;
            only_variant += step.w;
        }
        tv += fabs(step.w_base - step.w);
        js += js_term(step.w_base, step.w);
        roots += squared(sqrt(step.w_base) - sqrt(step.w));
    }
    out->intrusion[row] = only_variant;
    out->removal[row] = only_base;
    out->survivors_base[row] = a;
    out->survivors[row] = b;
    out->tv[row] = 0.5 * tv;
    out->js[row] = js / log(2.0);
    out->hellinger[row] = sqrt(0.5 * roots); /* 1 - sum sqrt(w w') as half a sum of squares */
}

static void fill_conditional(const ref_route *base, const ref_route *variant, int64_t row,
                             ats_pair_stats *out)
{
    const double a = out->survivors_base[row], b = out->survivors[row];
    if (!(a > 0) || !(b > 0)) return;
    const double n0 = base->null_weight / a, n1 = variant->null_weight / b;
    double tv = fabs(n0 - n1), js = js_term(n0, n1);
    for (int64_t t = 0; t < variant->sequence->length; t++) {
        const ref_step step = step_at(base, variant, t);
        if (!step.in_base || !step.in_variant) continue;
        tv += fabs(step.w_base / a - step.w / b);
        js += js_term(step.w_base / a, step.w / b);
    }
    out->reroute_tv[row] = 0.5 * tv;
    out->reroute_js[row] = js / log(2.0);
}

static int64_t shared(const ref_top *x, const ref_top *y)
{
    int64_t count = 0;
    for (int64_t i = 0; i < x->count; i++)
        for (int64_t j = 0; j < y->count; j++) count += x->item[i] == y->item[j];
    return count;
}

static void overlap(const ref_route *base, const ref_route *variant, bool survivors_only,
                    ref_scratch *scratch, int64_t *members, int64_t *denominator)
{
    const int64_t k = base->sequence->problem->top_k;
    ref_top old_top = {.limit = k, .item = scratch->top, .score = scratch->top_score};
    ref_top new_top = {.limit = k, .item = scratch->top + k, .score = scratch->top_score + k};
    for (int64_t t = 0; t < variant->sequence->length; t++) {
        const ref_step step = step_at(base, variant, t);
        const ref_entry *e = &variant->sequence->entries[t];
        if (survivors_only && !(step.in_base && step.in_variant)) continue;
        if (step.w_base > 0) ref_top_offer(&old_top, e->key, base->z[e->base]);
        if (step.w > 0) ref_top_offer(&new_top, e->key, variant->z[t]);
    }
    *members = shared(&old_top, &new_top);
    *denominator = old_top.count > new_top.count ? old_top.count : new_top.count;
}

static void fill_inserted(const ref_route *variant, int64_t row, ref_scratch *scratch,
                          ats_pair_stats *out)
{
    const ref_sequence *s = variant->sequence;
    const int64_t dv = s->problem->d_v;
    double best = -(double)INFINITY, sum = 0, absolute = 0;
    double *vector = scratch->vectors;
    memset(vector, 0, (size_t)dv * sizeof *vector);
    for (int64_t t = 0; t < s->length; t++)
        if (s->entries[t].base < 0 && variant->z[t] > best) best = variant->z[t];
    for (int64_t t = 0; t < s->length; t++) {
        if (s->entries[t].base >= 0 || !isfinite(variant->z[t])) continue;
        sum += exp(variant->z[t] - best);
        absolute += variant->w[t] * s->value_norm[t];
        ref_value(s, t, scratch, scratch->value);
        for (int64_t j = 0; j < dv; j++) vector[j] += variant->w[t] * scratch->value[j];
    }
    out->inserted_lse[row] = sum > 0 ? best + log(sum) : -(double)INFINITY;
    out->inserted_abs[row] = absolute;
    for (int64_t j = 0; j < dv; j++) out->inserted_output[row * dv + j] = (float)vector[j];
}

/* One key's share of the five sums of metrics.md; `mean` and `moved` collect sum_S (w/A) vbar and
 * sum_S w' vbar, from which dilution and reroute are made. */
static void add_parts(const ref_step *step, double a, int64_t dv, const double *old_value,
                      const double *new_value, double *parts, double *mean, double *moved)
{
    const bool survives = step->in_base && step->in_variant;
    for (int64_t j = 0; j < dv; j++) {
        if (survives) {
            const double vbar = 0.5 * (old_value[j] + new_value[j]);
            mean[j] += a > 0 ? step->w_base / a * vbar : 0;
            moved[j] += step->w * vbar;
            parts[ATS_PART_PAYLOAD * dv + j] +=
                0.5 * (step->w_base + step->w) * (new_value[j] - old_value[j]);
        } else if (step->in_base) {
            parts[ATS_PART_REMOVAL * dv + j] -= step->w_base * old_value[j];
        } else {
            parts[ATS_PART_INTRUSION * dv + j] += step->w * new_value[j];
        }
    }
}

static void fill_delta(const ref_route *base, const ref_route *variant, int64_t row,
                       ref_scratch *scratch, ats_pair_stats *out)
{
    const int64_t dv = base->sequence->problem->d_v;
    const double a = out->survivors_base[row], b = out->survivors[row];
    double *parts = scratch->vectors;
    double *mean = parts + ATS_N_PARTS * dv, *moved = mean + dv;
    memset(parts, 0, (size_t)((ATS_N_PARTS + 2) * dv) * sizeof *parts);
    for (int64_t t = 0; t < variant->sequence->length; t++) {
        const ref_step step = step_at(base, variant, t);
        if (!step.in_base && !step.in_variant) continue;
        if (step.in_base)
            ref_value(base->sequence, variant->sequence->entries[t].base, scratch, scratch->value);
        if (step.in_variant) ref_value(variant->sequence, t, scratch, scratch->other);
        add_parts(&step, a, dv, scratch->value, scratch->other, parts, mean, moved);
    }
    for (int64_t j = 0; j < dv; j++) {
        parts[ATS_PART_DILUTION * dv + j] = a > 0 ? (b - a) * mean[j] : 0;
        parts[ATS_PART_REROUTE * dv + j] = moved[j] - b * mean[j];
    }
    float *delta = out->delta + row * ATS_N_PARTS * dv;
    for (int64_t j = 0; j < ATS_N_PARTS * dv; j++) delta[j] = (float)parts[j];
}

void ref_pair_stats(const ref_route *base, const ref_route *variant, int64_t row,
                    ref_scratch *scratch, ats_pair_stats *out)
{
    if (!base->defined || !variant->defined) return;
    fill_distances(base, variant, row, out);
    fill_conditional(base, variant, row, out);
    overlap(base, variant, false, scratch, &out->overlap_all[row], &out->overlap_k_all[row]);
    overlap(base, variant, true, scratch, &out->overlap_survivors[row],
            &out->overlap_k_survivors[row]);
    fill_inserted(variant, row, scratch, out);
    fill_delta(base, variant, row, scratch, out);
}

#include "kernels/cpu.h"

#include <math.h>

static const double NONE = (double)-INFINITY;

/* exp(x - y) where x may be -inf: 0. */
static double ratio(double x, double y) { return x > NONE ? exp(x - y) : 0.0; }

/* lse_keys and lse of every row. */
static void fold_lse(const ats_cpu_variant *v)
{
    for (int64_t row = 0; row < v->base->problem->n_rows; row++) {
        double m = NONE, l = 0;
        for (int64_t i = 0; i < v->n_parts; i++)
            if (v->parts[i].v != NULL && (double)v->parts[i].v->m[row] > m)
                m = (double)v->parts[i].v->m[row];
        for (int64_t i = 0; i < v->n_parts; i++)
            if (v->parts[i].v != NULL)
                l += ratio((double)v->parts[i].v->m[row], m) * v->parts[i].v->l[row];
        v->lse_keys[row] = l > 0 ? m + log(l) : NONE;
        v->lse[row] = ats_log_add(v->lse_keys[row], v->sink[row]);
    }
}

ats_code ats_cpu_fold(ats_cpu_worker *worker, ats_cpu_variant *v, ats_err *err)
{
    const ats_cpu_base *base = v->base;
    double *g = NULL;
    const ats_code rc = ATS_NEW(&worker->arena, 2 * v->n_parts * base->lanes, &g, err);
    if (rc != ATS_OK) return rc;
    if (v->edit == NULL || !v->identical)
        fold_lse(v);
    else
        for (int64_t row = 0; row < base->problem->n_rows; row++) {
            v->lse[row] = base->stats.route.lse[row];
            v->lse_keys[row] = base->stats.route.lse_keys[row];
        }
    for (int64_t i = 0; i < v->n_parts; i++, g += 2 * base->lanes) {
        v->parts[i].gb = g;
        v->parts[i].gv = g + base->lanes;
    }
    return ATS_OK;
}

void ats_cpu_factors(const ats_cpu_variant *v, const double *base_lse)
{
    for (int64_t i = 0; i < v->n_parts; i++) {
        const ats_cpu_part *part = &v->parts[i];
        for (int64_t row = 0; row < v->base->problem->n_rows; row++) {
            part->gb[row] = part->b != NULL ? ratio((double)part->b->m[row], base_lse[row]) : 0;
            part->gv[row] = part->v != NULL ? ratio((double)part->v->m[row], v->lse[row]) : 0;
        }
    }
}

/* H = lse - sum w z, taken relative to the largest logit: w_keys (lse - m - e/l) + w_0 (lse - z_0).
 */
static void row_totals(const ats_cpu_variant *v, int64_t row, ats_route_stats *out)
{
    const double lse = v->lse[row], sink = v->sink[row];
    double m = NONE, l = 0, e = 0, s2 = 0, n = 0;
    for (int64_t i = 0; i < v->n_parts; i++)
        if (v->parts[i].v != NULL && (double)v->parts[i].v->m[row] > m)
            m = (double)v->parts[i].v->m[row];
    for (int64_t i = 0; i < v->n_parts; i++) {
        const ats_cpu_state *s = v->parts[i].v;
        if (s == NULL || !((double)s->m[row] > NONE)) continue;
        const double below = (double)s->m[row] - m, f = exp(below);
        l += f * s->l[row];
        if (f > 0) e += f * (s->e[row] + below * s->l[row]);
        s2 += v->parts[i].gv[row] * v->parts[i].gv[row] * s->s2[row];
        n += s->n[row];
    }
    const double null = ratio(sink, lse), keys = ratio(v->lse_keys[row], lse);
    double entropy = 0.0;
    if (l > 0) entropy += keys * ((lse - m) - e / l);
    if (null > 0) entropy += null * (lse - sink);
    out->null_weight[row] = null;
    out->entropy[row] = entropy > 0 ? entropy : 0.0;
    out->sum_w2[row] = s2 + null * null;
    out->max_weight[row] = ratio(m, lse);
    out->legal_keys[row] = (int64_t)n;
}

static bool in_region(const ats_cpu_variant *v, int64_t region, const ats_cpu_part *part)
{
    const ats_key_tree *tree = &v->base->tree;
    return part->run >= 0 && tree->member[region * tree->n_runs + part->run] != 0;
}

static void row_region(const ats_cpu_variant *v, int64_t row, int64_t region, ats_route_stats *out)
{
    const int64_t at = row * v->base->problem->n_regions + region;
    double inside = NONE, outside = NONE, l = 0, a = 0;
    for (int64_t i = 0; i < v->n_parts; i++) {
        const ats_cpu_part *part = &v->parts[i];
        if (part->v == NULL) continue;
        double *best = in_region(v, region, part) ? &inside : &outside;
        if ((double)part->v->m[row] > *best) *best = (double)part->v->m[row];
    }
    for (int64_t i = 0; i < v->n_parts && inside > NONE; i++) {
        const ats_cpu_part *part = &v->parts[i];
        if (part->v == NULL || !in_region(v, region, part)) continue;
        l += ratio((double)part->v->m[row], inside) * part->v->l[row];
        a += part->gv[row] * part->v->a[row];
    }
    out->region_max[at] = inside;
    out->region_max_out[at] = outside;
    out->region_lse[at] = l > 0 ? inside + log(l) : NONE;
    out->region_abs[at] = a;
}

/* An edit that changes no logit has the base's route to the last bit. */
static void copy_route(const ats_cpu_variant *v, ats_route_stats *out)
{
    const ats_problem *p = v->base->problem;
    const ats_route_stats *base = &v->base->stats.route;
    for (int64_t row = 0; row < p->n_rows; row++) {
        out->null_weight[row] = base->null_weight[row];
        out->entropy[row] = base->entropy[row];
        out->sum_w2[row] = base->sum_w2[row];
        out->max_weight[row] = base->max_weight[row];
        out->legal_keys[row] = base->legal_keys[row];
    }
    for (int64_t i = 0; i < p->n_rows * p->n_regions; i++) out->region_lse[i] = base->region_lse[i];
}

void ats_cpu_route(const ats_cpu_variant *v, ats_route_stats *out)
{
    const ats_problem *p = v->base->problem;
    for (int64_t row = 0; row < p->n_rows; row++) {
        out->lse[row] = v->lse[row];
        out->lse_keys[row] = v->lse_keys[row];
        if (!(v->lse[row] > NONE)) continue;
        row_totals(v, row, out);
        for (int64_t region = 0; region < p->n_regions; region++) row_region(v, row, region, out);
    }
    if (v->edit != NULL && v->identical) copy_route(v, out);
}

#include "kernels/cpu.h"

static const double NONE = -(double)INFINITY;

/* H = lse - sum w z, taken relative to the largest logit m of a key: with w_keys the mass of all
 * keys, H = w_keys (lse - m) - sum w (z - m) + w_0 (lse - z_0). */
static void row_totals(const ats_cpu_variant *v, int64_t row, ats_route_stats *out)
{
    const ats_cpu_norm *norm = &v->norm[row];
    const double m = v->keys[row], null = ats_cpu_weight(v->sink[row], norm);
    double keys = 0, e = 0, s2 = 0, n = 0, entropy = 0;
    for (int64_t i = 0; i < v->n_parts; i++) {
        const ats_cpu_state *s = v->parts[i].v;
        if (s == NULL || !((double)s->m[row] > NONE)) continue;
        const double g = v->parts[i].gv[row];
        keys += g * s->l[row];
        if (g > 0) e += g * (s->e[row] + ((double)s->m[row] - m) * s->l[row]);
        s2 += g * g * s->s2[row];
        n += s->n[row];
    }
    if (keys > 0) entropy += keys * ((norm->peak - m) + norm->log_sum) - e;
    if (null > 0) entropy += null * ((norm->peak - v->sink[row]) + norm->log_sum);
    out->lse_keys[row] = !(v->sink[row] > NONE) ? out->lse[row]
                         : m > NONE             ? m + log(v->key_sum[row])
                                                : NONE;
    out->null_weight[row] = null;
    out->entropy[row] = entropy > 0 ? entropy : 0.0;
    out->sum_w2[row] = s2 + null * null;
    out->max_weight[row] = ats_cpu_weight(m, norm);
    out->legal_keys[row] = (int64_t)n;
}

static bool is_member(const ats_cpu_variant *v, int64_t region, int64_t run)
{
    const ats_key_tree *tree = &v->base->tree;
    return run >= 0 && tree->member[region * tree->n_runs + run] != 0;
}

/* Best logits inside and outside the region. */
static void region_bests(const ats_cpu_variant *v, int64_t region, ats_route_stats *out)
{
    const ats_problem *p = v->base->problem;
    for (int64_t row = 0; row < p->n_rows; row++)
        out->region_max[row * p->n_regions + region] =
            out->region_max_out[row * p->n_regions + region] = NONE;
    for (int64_t i = 0; i < v->n_parts; i++) {
        const ats_cpu_part *part = &v->parts[i];
        if (part->v == NULL) continue;
        double *best = is_member(v, region, part->run) ? out->region_max : out->region_max_out;
        best += region;
        for (int64_t row = 0; row < p->n_rows; row++, best += p->n_regions)
            *best = (double)part->v->m[row] > *best ? (double)part->v->m[row] : *best;
    }
}

/* The region's own log sum, for masses below the smallest double. */
static double tiny_lse(const ats_cpu_variant *v, int64_t row, int64_t region, double best)
{
    double sum = 0;
    for (int64_t i = 0; i < v->n_parts; i++) {
        const ats_cpu_part *part = &v->parts[i];
        if (part->v == NULL || !is_member(v, region, part->run)) continue;
        if ((double)part->v->m[row] > NONE)
            sum += exp((double)part->v->m[row] - best) * part->v->l[row];
    }
    return best + log(sum);
}

static void region_sums(const ats_cpu_variant *v, int64_t region, double *mass,
                        ats_route_stats *out)
{
    const ats_problem *p = v->base->problem;
    double *absolute = out->region_abs + region;
    for (int64_t row = 0; row < p->n_rows; row++) absolute[row * p->n_regions] = mass[row] = 0;
    for (int64_t run = 0; run < v->base->tree.n_runs; run++) {
        if (!is_member(v, region, run)) continue;
        for (int64_t i = v->run_parts[run]; i < v->run_parts[run + 1]; i++) {
            const ats_cpu_part *part = &v->parts[i];
            if (part->run != run || part->v == NULL) continue;
            for (int64_t row = 0; row < p->n_rows; row++) {
                mass[row] += part->gv[row] * part->v->l[row];
                absolute[row * p->n_regions] += part->gv[row] * part->v->a[row];
            }
        }
    }
    for (int64_t row = 0; row < p->n_rows; row++) {
        const int64_t at = row * p->n_regions + region;
        const double best = out->region_max[at];
        if (!(best > NONE))
            out->region_lse[at] = NONE;
        else if (mass[row] > 1e-290)
            out->region_lse[at] = v->norm[row].peak + (v->norm[row].log_sum + log(mass[row]));
        else
            out->region_lse[at] = tiny_lse(v, row, region, best);
    }
}

/* An edit that changes no logit has the base's route to the last bit. */
static void copy_route(const ats_cpu_variant *v, ats_route_stats *out)
{
    const ats_problem *p = v->base->problem;
    const ats_route_stats *base = &v->base->stats.route;
    for (int64_t row = 0; row < p->n_rows; row++) {
        out->lse_keys[row] = base->lse_keys[row];
        out->null_weight[row] = base->null_weight[row];
        out->entropy[row] = base->entropy[row];
        out->sum_w2[row] = base->sum_w2[row];
        out->max_weight[row] = base->max_weight[row];
        out->legal_keys[row] = base->legal_keys[row];
    }
    for (int64_t i = 0; i < p->n_rows * p->n_regions; i++) out->region_lse[i] = base->region_lse[i];
}

static void blank_regions(const ats_problem *p, int64_t row, ats_route_stats *out)
{
    for (int64_t at = row * p->n_regions; at < (row + 1) * p->n_regions; at++)
        out->region_lse[at] = out->region_max[at] = out->region_max_out[at] = out->region_abs[at] =
            (double)NAN;
}

void ats_cpu_route(const ats_cpu_variant *v, ats_route_stats *out)
{
    const ats_problem *p = v->base->problem;
    for (int64_t row = 0; row < p->n_rows; row++) {
        out->lse[row] = v->norm[row].peak + v->norm[row].log_sum;
        out->lse_keys[row] = NONE;
        if (ats_cpu_defined(&v->norm[row])) row_totals(v, row, out);
    }
    for (int64_t region = 0; region < p->n_regions; region++) {
        region_bests(v, region, out);
        region_sums(v, region, v->scratch, out);
    }
    if (v->edit != NULL && v->identical) copy_route(v, out);
    for (int64_t row = 0; row < p->n_rows; row++)
        if (!ats_cpu_defined(&v->norm[row])) blank_regions(p, row, out);
}

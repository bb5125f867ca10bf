/* Masses and divergences between base and variant. Keys with unchanged logits share one likelihood
 * ratio c = w'/w, so they are one atom of every divergence; the others are walked key by key. */
#include "kernels/cpu.h"

#include <math.h>

static const double NONE = -(double)INFINITY;

static bool defined(const ats_cpu_variant *v, int64_t row)
{
    return ats_cpu_defined(&v->norm[row]) && ats_cpu_defined(&v->base->norm[row]);
}

/* log of the survivors' mass: from what is missing while that is the smaller part. */
static double log_survivors(double survivors, double missing)
{
    if (missing < 0.5) return log1p(-missing);
    return survivors > 0 ? log(survivors) : NONE;
}

/* Masses of survivors, removed and inserted keys into a, b, removal, intrusion [rows]. */
static void sum_masses(const ats_cpu_variant *v, ats_pair_stats *out)
{
    const int64_t rows = v->base->problem->n_rows;
    for (int64_t row = 0; row < rows; row++) {
        out->survivors_base[row] = v->base->stats.route.null_weight[row];
        out->survivors[row] = ats_cpu_weight(v->sink[row], &v->norm[row]);
        out->removal[row] = out->intrusion[row] = 0;
    }
    for (int64_t i = 0; i < v->n_parts; i++) {
        const ats_cpu_part *part = &v->parts[i];
        double *old = part->survives ? out->survivors_base : out->removal;
        double *new = part->survives ? out->survivors : out->intrusion;
        for (int64_t row = 0; part->b != NULL && row < rows; row++)
            old[row] += part->gb[row] * part->b->l[row];
        for (int64_t row = 0; part->v != NULL && row < rows; row++)
            new[row] += part->gv[row] * part->v->l[row];
    }
}

/* c = w'/w of unchanged keys. Where every survivor is unchanged it is B / A, and the norm follows
 * from it without the rounding of two long sums. */
static void row_ratios(const ats_cpu_variant *v, int64_t row, ats_pair_stats *out)
{
    const ats_cpu_norm *old = &v->base->norm[row];
    ats_cpu_norm *new = &v->norm[row];
    v->log_a[row] = log_survivors(out->survivors_base[row], out->removal[row]);
    v->log_b[row] = log_survivors(out->survivors[row], out->intrusion[row]);
    out->survivors_base[row] = v->log_a[row] > NONE ? exp(v->log_a[row]) : 0.0;
    out->survivors[row] = v->log_b[row] > NONE ? exp(v->log_b[row]) : 0.0;
    v->log_c[row] = (old->peak - new->peak) + (old->log_sum - new->log_sum);
    v->scratch[row] = 1;
    if (v->touched_survivors || !(v->log_a[row] > NONE) || !(v->log_b[row] > NONE)) return;
    const double before = v->log_c[row];
    v->log_c[row] = v->identical ? 0.0 : v->log_b[row] - v->log_a[row];
    *new = (ats_cpu_norm){old->peak, old->log_sum - v->log_c[row]};
    v->scratch[row] = exp(v->log_c[row] - before);
}

/* log sum exp and sum w |v| over inserted rows. */
static void row_inserted(const ats_cpu_variant *v, int64_t row, ats_pair_stats *out)
{
    double m = NONE, l = 0, a = 0;
    for (int64_t i = 0; i < v->n_parts; i++)
        if (v->parts[i].run < 0 && (double)v->parts[i].v->m[row] > m)
            m = (double)v->parts[i].v->m[row];
    for (int64_t i = 0; i < v->n_parts && m > NONE; i++) {
        const ats_cpu_part *part = &v->parts[i];
        if (part->run >= 0 || !((double)part->v->m[row] > NONE)) continue;
        l += exp((double)part->v->m[row] - m) * part->v->l[row];
        a += part->gv[row] * part->v->a[row];
    }
    out->inserted_lse[row] = l > 0 ? m + log(l) : NONE;
    out->inserted_abs[row] = a;
}

static void blank_masses(int64_t row, ats_pair_stats *out)
{
    out->survivors_base[row] = out->survivors[row] = out->removal[row] = out->intrusion[row] =
        (double)NAN;
}

void ats_cpu_pair_masses(const ats_cpu_variant *v, ats_pair_stats *out)
{
    const int64_t rows = v->base->problem->n_rows;
    sum_masses(v, out);
    for (int64_t row = 0; row < rows; row++) {
        if (defined(v, row)) {
            row_ratios(v, row, out);
            continue;
        }
        v->scratch[row] = 1;
        blank_masses(row, out);
    }
    for (int64_t i = 0; i < v->n_parts; i++)
        for (int64_t row = 0; v->parts[i].v != NULL && row < rows; row++)
            v->parts[i].gv[row] *= v->scratch[row];
    for (int64_t row = 0; row < rows; row++)
        if (defined(v, row)) row_inserted(v, row, out);
}

/* p log(2p/(p+q))/2 + q log(2q/(p+q))/2 in nats; with u = (p-q)/(p+q) small it is (p+q) u^2/4 to
 * leading order, and log1p keeps that. */
static double divergence(double p, double q)
{
    const double s = p + q;
    if (!(s > 0)) return 0;
    const double u = (p - q) / s, t = u * u;
    if (t < 1e-4) return 0.25 * s * t * (1 + t * (1.0 / 6 + t * (1.0 / 15 + t / 28)));
    const double x = p > 0 ? 2 * p / s * log(2 * p / s) : 0;
    const double y = q > 0 ? 2 * q / s * log(2 * q / s) : 0;
    return 0.25 * s * (x + y);
}

/* The same for p = mass, q = exp(log_ratio) mass, exact however close the ratio is to 1. */
static double atom_divergence(double mass, double log_ratio)
{
    const double u = tanh(0.5 * log_ratio), t = u * u, s = mass * (1 + exp(log_ratio));
    if (t < 1e-4) return 0.25 * s * t * (1 + t * (1.0 / 6 + t * (1.0 / 15 + t / 28)));
    return divergence(mass, mass * exp(log_ratio));
}

typedef struct distances {
    double tv, roots, js, reroute_tv, reroute_js; /* js in nats */
} distances;

/* One atom of mass w with weights w and exp(log_ratio) w; conditioned weights w / A likewise. */
static void add_atom(distances *d, double w, double log_ratio, double w_given, double log_given)
{
    if (!(w > 0)) return;
    const double root = expm1(0.5 * log_ratio);
    d->tv += w * fabs(expm1(log_ratio));
    d->roots += w * root * root;
    d->js += atom_divergence(w, log_ratio);
    d->reroute_tv += w_given * fabs(expm1(log_given));
    d->reroute_js += atom_divergence(w_given, log_given);
}

/* The null route when its logit changed. */
static void add_null(distances *d, double p, double q, double a, double b)
{
    const double root = sqrt(p) - sqrt(q);
    d->tv += fabs(p - q);
    d->roots += root * root;
    d->js += divergence(p, q);
    if (!(a > 0) || !(b > 0)) return;
    d->reroute_tv += fabs(p / a - q / b);
    d->reroute_js += divergence(p / a, q / b);
}

/* Adds the sums of changed keys to d [rows]. */
static ats_code add_touched(ats_cpu_worker *worker, const ats_cpu_variant *v,
                            const ats_pair_stats *pair, distances *d, ats_err *err)
{
    const ats_cpu_base *base = v->base;
    const int64_t lanes = base->lanes, rows = base->problem->n_rows;
    float *f = NULL;
    const ats_code rc = ATS_NEW0(&worker->arena, 6 * lanes, &f, err);
    if (rc != ATS_OK) return rc;
    float *mb = f, *fb = f + lanes, *mv = f + 2 * lanes, *fv = f + 3 * lanes;
    float *ia = f + 4 * lanes, *ib = f + 5 * lanes;
    for (int64_t row = 0; row < rows; row++) {
        if (!defined(v, row)) continue;
        ia[row] = pair->survivors_base[row] > 0 ? (float)(1 / pair->survivors_base[row]) : 0.0f;
        ib[row] = pair->survivors[row] > 0 ? (float)(1 / pair->survivors[row]) : 0.0f;
    }
    for (int64_t t = 0; t < v->n_touched; t++) {
        const ats_cpu_touched *touched = &v->touched[t];
        const ats_cpu_part *part = &v->parts[touched->part];
        for (int64_t row = 0; row < rows; row++) {
            const bool any = part->b->m[row] > -INFINITY && defined(v, row);
            mb[row] = any ? part->b->m[row] : 0.0f;
            mv[row] = any ? part->v->m[row] : 0.0f;
            fb[row] = any ? (float)part->gb[row] : 0.0f;
            fv[row] = any ? (float)part->gv[row] : 0.0f;
        }
        const ats_cpu_pair args = {
            touched->keys, lanes, touched->zb, touched->zv, mb, fb, mv, fv, ia, ib, worker->sums};
        base->ops->pair(&args);
        for (int64_t row = 0; row < rows; row++) {
            const float *sums = worker->sums + row;
            d[row].tv += (double)sums[0];
            d[row].roots += (double)sums[lanes];
            d[row].js += (double)sums[2 * lanes];
            d[row].reroute_tv += (double)sums[3 * lanes];
            d[row].reroute_js += (double)sums[4 * lanes];
        }
    }
    return ATS_OK;
}

static void row_distances(const ats_cpu_variant *v, int64_t row, distances d, ats_pair_stats *out)
{
    const double a = out->survivors_base[row], b = out->survivors[row];
    const double log_c = v->log_c[row];
    const double log_given = v->touched_survivors ? log_c + v->log_a[row] - v->log_b[row] : 0.0;
    const double null = v->base->stats.route.null_weight[row];
    const bool given = a > 0 && b > 0;
    double same = v->rescaled ? 0 : null;
    for (int64_t i = 0; i < v->n_parts; i++)
        if (v->parts[i].same) same += v->parts[i].gb[row] * v->parts[i].b->l[row];
    add_atom(&d, same, log_c, given ? same / a : 0, given ? log_given : 0);
    if (v->rescaled) add_null(&d, null, ats_cpu_weight(v->sink[row], &v->norm[row]), a, b);
    const double lost = out->removal[row] + out->intrusion[row];
    out->tv[row] = 0.5 * (d.tv + lost);
    out->hellinger[row] =
        sqrt(0.5 * (d.roots + lost)); /* 1 - sum sqrt(w w') as half a square sum */
    out->js[row] = d.js / log(2.0) + 0.5 * lost;
    out->reroute_tv[row] = given ? 0.5 * d.reroute_tv : (double)NAN;
    out->reroute_js[row] = given ? d.reroute_js / log(2.0) : (double)NAN;
}

ats_code ats_cpu_divergences(ats_cpu_worker *worker, const ats_cpu_variant *v, ats_pair_stats *out,
                             ats_err *err)
{
    const int64_t rows = v->base->problem->n_rows;
    distances *d = NULL;
    ats_code rc = ATS_NEW0(&worker->arena, rows, &d, err);
    if (rc != ATS_OK) return rc;
    if (v->n_touched > 0) rc = add_touched(worker, v, out, d, err);
    for (int64_t row = 0; rc == ATS_OK && row < rows; row++)
        if (defined(v, row)) row_distances(v, row, d[row], out);
    return rc;
}

#include "kernels/cpu.h"

static const double NONE = -(double)INFINITY;

static ats_code make_factors(ats_cpu_worker *worker, ats_cpu_variant *v, ats_err *err)
{
    const int64_t lanes = v->base->lanes;
    ats_code rc = ATS_OK;
    for (int64_t i = 0; i < v->n_parts; i++) {
        ats_cpu_part *part = &v->parts[i];
        if (part->v != NULL) ATS_TRY(ATS_NEW(&worker->arena, lanes, &part->gv, err));
        if (part->b == NULL || v->edit == NULL) continue;
        if (part->node >= 0)
            part->gb = v->base->weight[part->node];
        else
            ATS_TRY(ATS_NEW(&worker->arena, lanes, &part->gb, err));
    }
out:
    return rc;
}

/* Weights of base states against the base's norm; nodes have theirs already. */
static void base_factors(const ats_cpu_variant *v)
{
    for (int64_t i = 0; i < v->n_parts; i++) {
        const ats_cpu_part *part = &v->parts[i];
        if (part->b == NULL || part->node >= 0) continue;
        v->base->ops->exponentials(v->base->lanes, part->b->m, v->base->peak, v->base->log_sum,
                                   part->gb);
    }
}

/* gv = exp(m - largest m), and the sum over keys of exp(z - largest m). */
static void relative_factors(const ats_cpu_variant *v)
{
    double *sum = v->key_sum;
    const int64_t rows = v->base->problem->n_rows;
    for (int64_t row = 0; row < v->base->lanes; row++) v->keys[row] = NONE;
    for (int64_t row = 0; row < rows; row++) sum[row] = 0;
    for (int64_t i = 0; i < v->n_parts; i++) {
        const ats_cpu_state *s = v->parts[i].v;
        for (int64_t row = 0; s != NULL && row < rows; row++)
            v->keys[row] = (double)s->m[row] > v->keys[row] ? (double)s->m[row] : v->keys[row];
    }
    for (int64_t i = 0; i < v->n_parts; i++) {
        const ats_cpu_part *part = &v->parts[i];
        if (part->v == NULL) continue;
        v->base->ops->exponentials(v->base->lanes, part->v->m, v->keys, NULL, part->gv);
        for (int64_t row = 0; row < rows; row++) sum[row] += part->gv[row] * part->v->l[row];
    }
}

static ats_cpu_norm join(double m, double sum, double sink)
{
    ats_cpu_norm norm = {m > sink ? m : sink, 0};
    if (!(norm.peak > NONE)) return norm;
    const double keys = m > NONE ? sum * exp(m - norm.peak) : 0;
    const double null = sink > NONE ? exp(sink - norm.peak) : 0;
    norm.log_sum = log(keys + null);
    return norm;
}

ats_code ats_cpu_fold(ats_cpu_worker *worker, ats_cpu_variant *v, ats_err *err)
{
    const int64_t rows = v->base->problem->n_rows;
    const ats_code rc = make_factors(worker, v, err);
    if (rc != ATS_OK) return rc;
    relative_factors(v);
    for (int64_t row = 0; row < rows; row++) {
        v->norm[row] = v->edit != NULL && v->identical
                           ? v->base->norm[row]
                           : join(v->keys[row], v->key_sum[row], v->sink[row]);
        v->scratch[row] = ats_cpu_weight(v->keys[row], &v->norm[row]);
    }
    for (int64_t i = 0; i < v->n_parts; i++)
        for (int64_t row = 0; v->parts[i].v != NULL && row < rows; row++)
            v->parts[i].gv[row] *= v->scratch[row];
    if (v->edit != NULL) base_factors(v);
    return ATS_OK;
}

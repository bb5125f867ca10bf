#include "perturb/realise.h"

#include <math.h>

#include "perturb/cache.h"
#include "perturb/target.h"

double ats_logit(const ats_layer *layer, double product, double slope, int64_t distance)
{
    double x = layer->contract.scale * product;
    const double cap = layer->contract.softcap;
    if (cap > 0) x = cap * tanh(x / cap);
    return x - slope * (double)distance;
}

static double slope_of(const ats_layer *layer, int64_t head)
{
    return layer->alibi_slope != NULL ? (double)layer->alibi_slope[head] : 0;
}

void ats_queries(const ats_build *ctx, float *out)
{
    const int64_t d = ctx->layer->d_qk, probes = ctx->sample->n_probes;
    for (int64_t h = 0; h < ats_head_count(ctx); h++)
        for (int64_t p = 0; p < ats_probe_count(ctx); p++, out += d) {
            const int64_t row = ats_head_at(ctx, h) * probes + ats_probe_at(ctx, p);
            ats_widen(ctx->attention->q_dtype, ctx->attention->q, row * d, d, out);
        }
}

ats_code ats_mean_query_make(const ats_build *ctx, const ats_edit *edit, ats_mean_query *out,
                             ats_err *err)
{
    const int64_t d = ctx->layer->d_qk, heads = ats_head_count(ctx), probes = ats_probe_count(ctx);
    float *q = NULL;
    double *mean = NULL, slope = 0;
    ats_code rc;
    if (probes == 0) ATS_TRY(ats_fail(err, ATS_E_INPUT, "sample %s has no probe", ctx->sample->id));
    ATS_TRY(ATS_NEW(ctx->arena, heads * probes * d, &q, err));
    ATS_TRY(ATS_NEW0(ctx->arena, d, &mean, err));
    ats_queries(ctx, q);
    ats_build_move(ctx, edit->query_delta, heads * probes, q, q);
    for (int64_t h = 0; h < heads; h++) {
        const float *row = q + (h * probes + probes - 1) * d;
        for (int64_t i = 0; i < d; i++) mean[i] += (double)row[i] / (double)heads;
        slope += slope_of(ctx->layer, ats_head_at(ctx, h)) / (double)heads;
    }
    const int64_t last = ats_probe_at(ctx, probes - 1);
    *out = (ats_mean_query){.q = mean,
                            .slope = slope,
                            .position = ctx->sample->probes[last].position + edit->query_delta};
out:
    return rc;
}

/* How far the edit moves a base row. */
static int64_t row_delta(const ats_edit *edit, int64_t row)
{
    for (int64_t i = 0; i < edit->n_segments; i++) {
        const ats_segment *s = &edit->segments[i];
        if (s->kind == ATS_SEG_KEEP && row >= s->start && row < s->stop) return s->delta;
    }
    return 0;
}

ats_code ats_mean_query_best(const ats_build *ctx, const ats_edit *edit,
                             const ats_mean_query *query, int64_t start, int64_t stop, double *out,
                             ats_err *err)
{
    const int64_t d = ctx->layer->d_qk;
    const ats_donor own = ats_own(ctx);
    float *k = NULL;
    double best = -INFINITY;
    ats_code rc;
    ATS_TRY(ATS_NEW(ctx->arena, d, &k, err));
    for (int64_t row = start; row < stop; row++) {
        const int64_t delta = row_delta(edit, row);
        ats_key_row(ctx, &own, row, k);
        ats_build_move(ctx, delta, 1, k, k);
        double product = 0;
        for (int64_t i = 0; i < d; i++) product += query->q[i] * (double)k[i];
        const int64_t distance = query->position - ctx->sample->position[row] - delta;
        best = fmax(best, ats_logit(ctx->layer, product, query->slope, distance));
    }
    *out = best;
out:
    return rc;
}

/* A mean that leaves out what is not defined. */
typedef struct mean {
    double sum;
    int64_t count;
} mean;

static void mean_add(mean *m, double x)
{
    if (isnan(x)) return;
    m->sum += x;
    m->count++;
}

static double mean_of(const mean *m)
{
    return m->count > 0 ? m->sum / (double)m->count : (double)NAN;
}

static double any_norm(const float *x, int64_t n) { return sqrt(ats_vector_dot_any(x, x, n)); }

static void compare_keys(const ats_rows *rows, float *target, mean *cosine, mean *ratio)
{
    const ats_sample *sample = rows->ctx->sample;
    for (int64_t j = 0; j < rows->n; j++) {
        const float *k = rows->k + j * rows->d;
        /* R(p) keeps dot products: the target's key is brought to the row's position. */
        ats_key_row(rows->ctx, rows->base, rows->target[j], target);
        ats_build_move(rows->ctx, rows->position[j] - sample->position[rows->target[j]], 1, target,
                       target);
        const double a = any_norm(k, rows->d), b = any_norm(target, rows->d);
        mean_add(cosine, ats_vector_dot_any(k, target, rows->d) / (a * b));
        mean_add(ratio, b > 0 ? a / b : (double)NAN);
    }
}

/* Adds the logits of all rows for one query. */
static void add_logits(const ats_rows *rows, const float *q, double slope, int64_t position,
                       mean *logit)
{
    for (int64_t j = 0; j < rows->n; j++)
        mean_add(logit,
                 ats_logit(rows->ctx->layer, ats_vector_dot_any(q, rows->k + j * rows->d, rows->d),
                           slope, position - rows->position[j]));
}

/* Without a cap a logit is linear in the query and the key: the mean query times the mean key, less
 * the mean slope times distance. sums [2, d]. */
static double linear_logit(const ats_rows *rows, const ats_edit *edit, const float *q, double *sums)
{
    const ats_build *ctx = rows->ctx;
    const int64_t heads = ats_head_count(ctx), probes = ats_probe_count(ctx), d = rows->d;
    double *query = sums, *key = sums + d, product = 0, slope = 0, position = 0, row_position = 0;
    for (int64_t i = 0; i < heads * probes; i++)
        for (int64_t x = 0; x < d; x++) query[x] += (double)q[i * d + x];
    for (int64_t j = 0; j < rows->n; j++) {
        for (int64_t x = 0; x < d; x++) key[x] += (double)rows->k[j * d + x];
        row_position += (double)rows->position[j];
    }
    for (int64_t x = 0; x < d; x++) product += query[x] * key[x];
    for (int64_t h = 0; h < heads; h++) slope += slope_of(ctx->layer, ats_head_at(ctx, h));
    for (int64_t p = 0; p < probes; p++)
        position +=
            (double)(ctx->sample->probes[ats_probe_at(ctx, p)].position + edit->query_delta);
    const double n = (double)rows->n, queries = (double)(heads * probes);
    const double distance = position / (double)probes - row_position / n;
    return ctx->layer->contract.scale * (product / (n * queries)) -
           slope / (double)heads * distance;
}

static ats_code mean_logit(const ats_rows *rows, const ats_edit *edit, double *out, ats_err *err)
{
    const ats_build *ctx = rows->ctx;
    const int64_t heads = ats_head_count(ctx), probes = ats_probe_count(ctx);
    mean logit = {0, 0};
    float *q = NULL;
    double *sums = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(ctx->arena, heads * probes * rows->d, &q, err));
    ATS_TRY(ATS_NEW0(ctx->arena, 2 * rows->d, &sums, err));
    ats_queries(ctx, q);
    ats_build_move(ctx, edit->query_delta, heads * probes, q, q);
    *out = ctx->layer->contract.softcap > 0 || rows->n == 0 ? (double)NAN
                                                            : linear_logit(rows, edit, q, sums);
    if (isfinite(*out)) goto out;
    for (int64_t h = 0; h < heads; h++)
        for (int64_t p = 0; p < probes; p++, q += rows->d)
            add_logits(rows, q, slope_of(ctx->layer, ats_head_at(ctx, h)),
                       ctx->sample->probes[ats_probe_at(ctx, p)].position + edit->query_delta,
                       &logit);
    *out = mean_of(&logit);
out:
    return rc;
}

void ats_rows_hand_over(ats_rows *rows, ats_built *out)
{
    bool donors = false;
    for (int64_t j = 0; j < rows->n; j++) donors = donors || rows->donor_row[j] >= 0;
    out->edit.side.k = rows->k;
    out->edit.side.v = rows->v;
    out->realised = (ats_realised){.rows = rows->n,
                                   .donor_sample = donors ? rows->donor_sample : NULL,
                                   .donor_row = donors ? rows->donor_row : NULL,
                                   .cosine = NAN,
                                   .norm_ratio = NAN,
                                   .logit = NAN};
}

ats_code ats_rows_compare(ats_rows *rows, ats_built *out, ats_err *err)
{
    mean cosine = {0, 0}, ratio = {0, 0};
    float *target = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(rows->ctx->arena, rows->d, &target, err));
    compare_keys(rows, target, &cosine, &ratio);
    ats_rows_hand_over(rows, out);
    out->realised.cosine = mean_of(&cosine);
    out->realised.norm_ratio = mean_of(&ratio);
out:
    return rc;
}

ats_code ats_rows_finish(ats_rows *rows, ats_built *out, ats_err *err)
{
    ats_code rc;
    ATS_TRY(ats_rows_compare(rows, out, err));
    ATS_TRY(mean_logit(rows, &out->edit, &out->realised.logit, err));
out:
    return rc;
}

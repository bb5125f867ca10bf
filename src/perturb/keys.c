#include <math.h>
#include <string.h>

#include "perturb/cache.h"
#include "perturb/params.h"
#include "perturb/realise.h"
#include "perturb/rows.h"
#include "perturb/target.h"

static int64_t capture_index(const ats_capture *capture, const ats_sample *sample)
{
    for (int64_t i = 0; capture != NULL && i < capture->n_samples; i++)
        if (&capture->samples[i] == sample || strcmp(capture->samples[i].id, sample->id) == 0)
            return i;
    return -1;
}

static void record_donor(ats_rows *rows, int64_t j)
{
    rows->donor_sample[j] = capture_index(rows->ctx->capture, rows->donors[j].donor->sample);
    rows->donor_row[j] = rows->donors[j].row;
}

static void move_key(ats_rows *rows, int64_t j, const ats_donor *donor, int64_t row)
{
    float *k = rows->k + j * rows->d;
    ats_key_row(rows->ctx, donor, row, k);
    ats_build_move(rows->ctx, rows->position[j] - donor->sample->position[row], 1, k, k);
}

void ats_keys_donor(ats_rows *rows)
{
    for (int64_t j = 0; j < rows->n; j++) {
        move_key(rows, j, rows->donors[j].donor, rows->donors[j].row);
        record_donor(rows, j);
    }
}

void ats_keys_copy(ats_rows *rows)
{
    for (int64_t j = 0; j < rows->n; j++) move_key(rows, j, rows->base, rows->from[j]);
}

static ats_code no_direction(const ats_rows *rows, const char *what, ats_err *err)
{
    return ats_fail(err, ATS_E_SUITE,
                    "%s: no direction orthogonal to the span's %s was found (head size %lld, "
                    "differences of the pool's rows); use cosine 1 or -1, or `basis: isotropic`",
                    rows->ctx->family->kind, what, (long long)rows->d);
}

/* out = ratio |x| (cosine x/|x| + sin u); x, out: [d] in content space. */
static bool at_cosine(ats_rng *rng, const float *x, double cosine, double ratio,
                      const double *diffs, int64_t n_diffs, int64_t d, double *scratch, float *out)
{
    double *axis = scratch, *u = scratch + d;
    const double norm = ats_vector_norm(x, d), sine = sqrt((1 - cosine) * (1 + cosine));
    for (int64_t i = 0; i < d; i++) {
        axis[i] = (double)x[i];
        u[i] = 0;
    }
    if (sine > 0 && norm > 0 && !ats_orthogonal(rng, axis, diffs, n_diffs, d, u)) return false;
    for (int64_t i = 0; i < d; i++)
        out[i] = (float)(ratio * (cosine * axis[i] + norm * sine * u[i]));
    return true;
}

ats_code ats_keys_similar(ats_rows *rows, const char *purpose, double cosine, double ratio,
                          bool isotropic, ats_err *err)
{
    const ats_sample *sample = rows->ctx->sample;
    const bool real = !isotropic && fabs(cosine) < 1;
    ats_rng rng = ats_row_stream(rows->ctx, purpose);
    double *diffs = NULL, *scratch = NULL;
    int64_t n_diffs = 0;
    ats_code rc;
    if (real) ATS_TRY(ats_differences(rows->ctx, "key differences", false, &diffs, &n_diffs, err));
    ATS_TRY(ATS_NEW(rows->ctx->arena, 2 * rows->d, &scratch, err));
    for (int64_t j = 0; j < rows->n; j++) {
        float *k = rows->k + j * rows->d;
        ats_key_row(rows->ctx, rows->base, rows->from[j], k);
        ats_build_move(rows->ctx, -sample->position[rows->from[j]], 1, k, k);
        if (!at_cosine(&rng, k, cosine, ratio, diffs, n_diffs, rows->d, scratch, k))
            ATS_TRY(no_direction(rows, "key", err));
        ats_build_move(rows->ctx, rows->position[j], 1, k, k);
    }
out:
    return rc;
}

ats_code ats_values_similar(ats_rows *rows, const char *purpose, double cosine, ats_err *err)
{
    ats_rng rng = ats_row_stream(rows->ctx, purpose);
    double *diffs = NULL, *scratch = NULL;
    int64_t n_diffs = 0;
    ats_code rc;
    if (fabs(cosine) < 1)
        ATS_TRY(ats_differences(rows->ctx, "value differences", true, &diffs, &n_diffs, err));
    ATS_TRY(ATS_NEW(rows->ctx->arena, 2 * rows->dv, &scratch, err));
    for (int64_t j = 0; j < rows->n; j++) {
        float *v = rows->v + j * rows->dv;
        ats_value_row(rows->ctx, rows->base, rows->from[j], v);
        if (!at_cosine(&rng, v, cosine, 1, diffs, n_diffs, rows->dv, scratch, v))
            ATS_TRY(no_direction(rows, "value", err));
    }
out:
    return rc;
}

/* The raw product scale * q.k that gives this capped logit. */
static ats_code invert_cap(const ats_build *ctx, double logit, double *out, ats_err *err)
{
    const double cap = ctx->layer->contract.softcap;
    if (cap > 0 && fabs(logit) >= cap)
        return ats_fail(err, ATS_E_SUITE,
                        "layer %lld: a logit of %.4g nats is beyond the soft cap %.4g; use a "
                        "smaller margin",
                        (long long)ctx->layer->index, logit, cap);
    *out = cap > 0 ? cap * atanh(logit / cap) : logit;
    return ATS_OK;
}

/* k + t q so that the query's logit at this place is `logit`. */
static ats_code aim(const ats_build *ctx, const ats_mean_query *query, double logit, int64_t pos,
                    float *k, ats_err *err)
{
    const int64_t d = ctx->layer->d_qk;
    const double scale = ctx->layer->contract.scale;
    double raw = 0, length2 = 0, now = 0;
    const ats_code rc =
        invert_cap(ctx, logit + query->slope * (double)(query->position - pos), &raw, err);
    if (rc != ATS_OK) return rc;
    for (int64_t i = 0; i < d; i++) {
        length2 += query->q[i] * query->q[i];
        now += query->q[i] * (double)k[i];
    }
    if (!(length2 > 0) || !(scale != 0))
        return ats_fail(err, ATS_E_SUITE,
                        "layer %lld: the mean query of key head %lld is zero, so no key has a "
                        "margin there",
                        (long long)ctx->layer->index, (long long)ctx->kv_head);
    const double t = (raw - scale * now) / (scale * length2);
    for (int64_t i = 0; i < d; i++) k[i] = (float)((double)k[i] + t * query->q[i]);
    return ATS_OK;
}

ats_code ats_keys_targeted(ats_rows *rows, const ats_built *out, double margin, int64_t start,
                           int64_t stop, ats_err *err)
{
    ats_mean_query query;
    double best = 0;
    ats_code rc;
    ATS_TRY(ats_mean_query_make(rows->ctx, &out->edit, &query, err));
    ATS_TRY(ats_mean_query_best(rows->ctx, &out->edit, &query, start, stop, &best, err));
    ats_keys_donor(rows);
    for (int64_t j = 0; j < rows->n; j++)
        ATS_TRY(
            aim(rows->ctx, &query, best + margin, rows->position[j], rows->k + j * rows->d, err));
out:
    return rc;
}

ats_code ats_keys_by_source(ats_rows *rows, const ats_built *out, const char *purpose,
                            int64_t start, int64_t stop, ats_err *err)
{
    const ats_build *ctx = rows->ctx;
    if (ats_arg_is(ctx, "source", "similar"))
        return ats_keys_similar(rows, purpose, ats_arg(ctx, "cosine"), ats_arg(ctx, "norm_ratio"),
                                ats_arg_is(ctx, "basis", "isotropic"), err);
    if (ats_arg_is(ctx, "source", "targeted"))
        return ats_keys_targeted(rows, out, ats_arg(ctx, "margin"), start, stop, err);
    ats_keys_donor(rows);
    return ATS_OK;
}

bool ats_payload_needs_donor(const char *payload)
{
    return strcmp(payload, "donor") == 0 || strcmp(payload, "orthogonal") == 0;
}

/* The donor's value without its part along the span's value t, at the norm of t; 0 if parallel. */
static void orthogonal_value(const float *t, int64_t n, float *v)
{
    const double t2 = ats_vector_dot(t, t, n), before = ats_vector_norm(v, n);
    const double part = t2 > 0 ? ats_vector_dot(v, t, n) / t2 : 0;
    for (int64_t i = 0; i < n; i++) v[i] = (float)((double)v[i] - part * (double)t[i]);
    const double now = ats_vector_norm(v, n);
    const double factor = now > 1e-6 * before ? sqrt(t2) / now : 0;
    for (int64_t i = 0; i < n; i++) v[i] = (float)((double)v[i] * factor);
}

static void one_value(ats_rows *rows, int64_t j, const char *payload, const float *own, float *v)
{
    const int64_t n = rows->dv;
    if (ats_payload_needs_donor(payload)) {
        ats_value_row(rows->ctx, rows->donors[j].donor, rows->donors[j].row, v);
        record_donor(rows, j);
        if (strcmp(payload, "orthogonal") == 0) orthogonal_value(own, n, v);
        return;
    }
    const float sign =
        strcmp(payload, "same") == 0 ? 1 : (strcmp(payload, "opposed") == 0 ? -1 : 0);
    for (int64_t i = 0; i < n; i++) v[i] = sign == 0 ? 0 : sign * own[i];
}

ats_code ats_values_payload(ats_rows *rows, const char *payload, ats_err *err)
{
    float *own = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(rows->ctx->arena, rows->dv, &own, err));
    for (int64_t j = 0; j < rows->n; j++) {
        ats_value_row(rows->ctx, rows->base, rows->from[j], own);
        one_value(rows, j, payload, own, rows->v + j * rows->dv);
    }
out:
    return rc;
}

#include "perturb/rows.h"

#include <math.h>
#include <string.h>

#include "perturb/params.h"
#include "perturb/target.h"

ats_code ats_rows_begin(const ats_build *ctx, const ats_built *out, int64_t start, int64_t stop,
                        ats_rows *rows, ats_err *err)
{
    const int64_t n = out->edit.side.count;
    ats_rows r = {.ctx = ctx,
                  .n = n,
                  .d = ctx->layer->d_qk,
                  .dv = ctx->layer->d_v,
                  .position = out->edit.side.position};
    ats_donor *base = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW0(ctx->arena, n * r.d, &r.k, err));
    ATS_TRY(ATS_NEW0(ctx->arena, n * r.dv, &r.v, err));
    ATS_TRY(ATS_NEW(ctx->arena, n, &r.target, err));
    ATS_TRY(ATS_NEW(ctx->arena, n, &r.from, err));
    ATS_TRY(ATS_NEW(ctx->arena, n, &r.donor_sample, err));
    ATS_TRY(ATS_NEW(ctx->arena, n, &r.donor_row, err));
    ATS_TRY(ATS_NEW(ctx->arena, 1, &base, err));
    *base = ats_own(ctx);
    r.base = base;
    for (int64_t j = 0; j < n; j++) {
        r.target[j] = r.from[j] = start + j % (stop - start);
        r.donor_sample[j] = r.donor_row[j] = -1;
    }
    *rows = r;
out:
    return rc;
}

ats_code ats_rows_draw(ats_rows *rows, const char *purpose, ats_err *err)
{
    ats_rng rng = ats_row_stream(rows->ctx, purpose);
    ats_pool pool;
    ats_pool_row *drawn = NULL;
    ats_code rc;
    ATS_TRY(ats_pool_make(rows->ctx, rows->n, &pool, err));
    ATS_TRY(ats_pool_draw(rows->ctx, &pool, &rng, rows->n, &drawn, err));
    rows->donors = drawn;
out:
    return rc;
}

ats_code ats_rows_norms(const ats_rows *rows, double **key, double **value, ats_err *err)
{
    double *k = NULL, *v = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(rows->ctx->arena, rows->n, &k, err));
    ATS_TRY(ATS_NEW(rows->ctx->arena, rows->n, &v, err));
    for (int64_t j = 0; j < rows->n; j++) {
        k[j] = ats_vector_norm(rows->k + j * rows->d, rows->d);
        v[j] = ats_vector_norm(rows->v + j * rows->dv, rows->dv);
    }
    *key = k;
    *value = v;
out:
    return rc;
}

static void scale_to(float *x, int64_t n, double norm)
{
    const double now = ats_vector_norm(x, n);
    if (!(now > 0)) return;
    for (int64_t i = 0; i < n; i++) x[i] = (float)((double)x[i] * (norm / now));
}

void ats_rows_scale(ats_rows *rows, const double *key, const double *value)
{
    for (int64_t j = 0; j < rows->n; j++) {
        scale_to(rows->k + j * rows->d, rows->d, key[j]);
        scale_to(rows->v + j * rows->dv, rows->dv, value[j]);
    }
}

ats_code ats_rows_decoy(ats_rows *rows, ats_err *err)
{
    double *key = NULL, *value = NULL;
    ats_code rc;
    ATS_TRY(ats_rows_norms(rows, &key, &value, err));
    ATS_TRY(ats_rows_draw(rows, "control donors", err));
    ats_keys_donor(rows);
    ATS_TRY(ats_values_payload(rows, "donor", err));
    ats_rows_scale(rows, key, value);
out:
    return rc;
}

int64_t ats_donors_needed(const ats_build *ctx, int64_t rows)
{
    const bool has_payload = ats_family_param(ctx->family, "payload") >= 0;
    const bool has_source = ats_family_param(ctx->family, "source") >= 0;
    const bool by_payload = has_payload && ats_payload_needs_donor(ats_arg_text(ctx, "payload"));
    const bool by_source = has_source && !ats_arg_is(ctx, "source", "similar");
    if (by_payload || by_source || ctx->arm == ATS_ARM_CONTROL) return rows > 2 ? rows : 2;
    return has_source && ats_arg_is(ctx, "basis", "real") ? 2 : 0;
}

#include "perturb/families.h"
#include "perturb/params.h"
#include "perturb/place.h"
#include "perturb/realise.h"
#include "perturb/rows.h"
#include "perturb/script.h"
#include "perturb/target.h"

static const char *const words_to[] = {"unit", "equal_norm", "unscaled", NULL};

static const ats_param_def params[] = {
    {.name = "to",
     .type = ATS_PARAM_WORD,
     .unit = "1",
     .doc =
         "unit: queries and keys to norm 1; equal_norm: keys to their RMS norm; unscaled: scale 1.",
     .required = true,
     .words = words_to},
};

static ats_code layout(const ats_build *ctx, ats_built *out, ats_err *err)
{
    int64_t *base = NULL;
    const int64_t n = ctx->sample->n_keys;
    ats_code rc;
    if (ats_arg_is(ctx, "to", "unscaled")) {
        ats_script script = ats_script_begin(ctx->arena, n);
        out->edit.scale = 1;
        return ats_script_emit(&script, &out->edit, err);
    }
    ATS_TRY(ATS_NEW(ctx->arena, n, &base, err));
    for (int64_t i = 0; i < n; i++) base[i] = i;
    rc = ats_place_swap(ctx, base, n, true, false, out, err);
out:
    return rc;
}

static void to_norm(float *x, int64_t d, double norm)
{
    const double now = ats_vector_norm(x, d);
    if (!(now > 0) || !isfinite(now)) return;
    for (int64_t i = 0; i < d; i++) x[i] = (float)((double)x[i] * (norm / now));
}

/* Root mean square of the finite key norms. */
static double rms_norm(const ats_rows *rows)
{
    double sum = 0;
    int64_t count = 0;
    for (int64_t j = 0; j < rows->n; j++) {
        const double norm = ats_vector_norm(rows->k + j * rows->d, rows->d);
        if (!isfinite(norm)) continue;
        sum += norm * norm;
        count++;
    }
    return count > 0 ? sqrt(sum / (double)count) : 0;
}

static ats_code unit_queries(const ats_build *ctx, ats_built *out, ats_err *err)
{
    const int64_t d = ctx->layer->d_qk, n = ats_head_count(ctx) * ats_probe_count(ctx);
    float *q = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(ctx->arena, n * d, &q, err));
    ats_queries(ctx, q);
    for (int64_t i = 0; i < n; i++) to_norm(q + i * d, d, 1);
    out->edit.q = q;
out:
    return rc;
}

static ats_code fill(const ats_build *ctx, ats_built *out, ats_err *err)
{
    const bool unit = ats_arg_is(ctx, "to", "unit");
    ats_rows rows;
    ats_code rc = ATS_OK;
    if (ats_arg_is(ctx, "to", "unscaled")) return ATS_OK;
    ATS_TRY(ats_rows_begin(ctx, out, 0, ctx->sample->n_keys, &rows, err));
    ats_keys_copy(&rows);
    const double norm = unit ? 1 : rms_norm(&rows);
    for (int64_t j = 0; j < rows.n; j++) to_norm(rows.k + j * rows.d, rows.d, norm);
    if (unit) ATS_TRY(unit_queries(ctx, out, err));
    rc = ats_rows_compare(&rows, out, err);
out:
    return rc;
}

const ats_family ats_family_normalise = {
    .kind = "normalise",
    .summary = "Norms or scale taken out of the logits.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = NULL,
    .has_control = false,
    .has_positions = false,
    .layout = layout,
    .fill = fill,
};

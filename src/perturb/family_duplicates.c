#include "perturb/families.h"
#include "perturb/params.h"
#include "perturb/place.h"
#include "perturb/rows.h"
#include "perturb/target.h"

static const ats_param_def params[] = {
    ATS_PARAM_SPAN,
    {.name = "jitter",
     .type = ATS_PARAM_REAL,
     .unit = "1",
     .doc = "Cosine of a copy's keys to the originals; 1: exact copies.",
     .number = 1,
     .min = -1,
     .max = 1},
    ATS_PARAM_PAYLOAD("same"),
    ATS_PARAM_PLACES,
    {.name = "copies",
     .type = ATS_PARAM_INT,
     .unit = "1",
     .doc = "Number of copies of the whole span.",
     .required = true,
     .min = 1,
     .max = ATS_ROWS_MAX},
};

static ats_code check(const ats_param *values, ats_position_mode mode, ats_err *err)
{
    (void)mode;
    return ats_check_depth(&ats_family_duplicates, values, err);
}

/* First row of the block that the control twin copies. */
static ats_code control_block(const ats_build *ctx, const ats_span *span, int64_t *start,
                              ats_err *err)
{
    const int64_t length = span->stop - span->start;
    ats_code rc;
    ATS_TRY(ats_filler_block(ctx, span->start, span->stop, length, "control block", start, err));
    if (*start < 0)
        rc = ats_fail(err, ATS_E_SUITE,
                      "duplicates: the control twin copies %lld consecutive rows outside every "
                      "named span, and there are none; write `control: false`",
                      (long long)length);
out:
    return rc;
}

static ats_code layout(const ats_build *ctx, ats_built *out, ats_err *err)
{
    const ats_span *span = ats_target_before_probes(ctx, out);
    int64_t start = 0;
    ats_pool pool;
    ats_code rc = ATS_OK;
    if (span == NULL) return ATS_OK;
    const int64_t copies = ats_arg_int(ctx, "copies"), length = span->stop - span->start;
    const ats_place place = ats_place_of(ctx, span, copies, length, false);
    ATS_TRY(ats_place_layout(ctx, &place, out, err));
    if (out->edit.side.count == 0) goto out;
    if (ctx->arm == ATS_ARM_CONTROL) ATS_TRY(control_block(ctx, span, &start, err));
    if (ats_payload_needs_donor(ats_arg_text(ctx, "payload")))
        ATS_TRY(ats_pool_make(ctx, copies * length, &pool, err));
    else if (ats_arg(ctx, "jitter") < 1)
        ATS_TRY(ats_pool_make(ctx, 2, &pool, err));
out:
    return rc;
}

static ats_code copy(const ats_build *ctx, ats_rows *rows, const char *jitter, const char *donors,
                     ats_err *err)
{
    const char *payload = ats_arg_text(ctx, "payload");
    const double cosine = ats_arg(ctx, "jitter");
    ats_code rc;
    if (ats_payload_needs_donor(payload)) ATS_TRY(ats_rows_draw(rows, donors, err));
    if (cosine == 1)
        ats_keys_copy(rows);
    else
        ATS_TRY(ats_keys_similar(rows, jitter, cosine, 1, false, err));
    rc = ats_values_payload(rows, payload, err);
out:
    return rc;
}

static ats_code fill(const ats_build *ctx, ats_built *out, ats_err *err)
{
    const ats_span *span = ats_target_find(ctx, out);
    double *key = NULL, *value = NULL;
    int64_t start = 0;
    ats_rows rows;
    ats_code rc;
    ATS_TRY(ats_rows_begin(ctx, out, span->start, span->stop, &rows, err));
    ATS_TRY(copy(ctx, &rows, "jitter", "donors", err));
    if (ctx->arm == ATS_ARM_CONTROL) {
        ATS_TRY(ats_rows_norms(&rows, &key, &value, err));
        ATS_TRY(control_block(ctx, span, &start, err));
        for (int64_t j = 0; j < rows.n; j++) rows.from[j] += start - span->start;
        ATS_TRY(copy(ctx, &rows, "control jitter", "control donors", err));
        ats_rows_scale(&rows, key, value);
    }
    rc = ats_rows_finish(&rows, out, err);
out:
    return rc;
}

const ats_family ats_family_duplicates = {
    .kind = "duplicates",
    .summary = "Further copies of a span.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = "copies",
    .has_control = true,
    .has_positions = true,
    .check = check,
    .layout = layout,
    .fill = fill,
};

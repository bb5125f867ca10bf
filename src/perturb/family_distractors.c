#include "perturb/families.h"
#include "perturb/params.h"
#include "perturb/place.h"
#include "perturb/rows.h"
#include "perturb/target.h"

static const ats_param_def params[] = {
    ATS_PARAM_SPAN,
    ATS_PARAM_SOURCES,
    ATS_PARAM_PAYLOAD("donor"),
    ATS_PARAM_PLACES,
    {.name = "count",
     .type = ATS_PARAM_INT,
     .unit = "rows",
     .doc = "Number of distractor rows.",
     .required = true,
     .min = 1,
     .max = ATS_ROWS_MAX},
};

static ats_code check(const ats_param *values, ats_position_mode mode, ats_err *err)
{
    (void)mode;
    const ats_code rc = ats_check_source(&ats_family_distractors, values, err);
    return rc != ATS_OK ? rc : ats_check_depth(&ats_family_distractors, values, err);
}

static ats_code layout(const ats_build *ctx, ats_built *out, ats_err *err)
{
    const int64_t count = ats_arg_int(ctx, "count");
    const ats_span *span = ats_target_before_probes(ctx, out);
    ats_pool pool;
    ats_code rc = ATS_OK;
    if (span == NULL) return ATS_OK;
    const ats_place place = ats_place_of(ctx, span, count, 1, true);
    ATS_TRY(ats_place_layout(ctx, &place, out, err));
    if (out->edit.side.count > 0)
        ATS_TRY(ats_pool_make(ctx, ats_donors_needed(ctx, count), &pool, err));
out:
    return rc;
}

static ats_code fill(const ats_build *ctx, ats_built *out, ats_err *err)
{
    const ats_span *span = ats_target_find(ctx, out);
    const char *payload = ats_arg_text(ctx, "payload");
    ats_rows rows;
    ats_code rc;
    ATS_TRY(ats_rows_begin(ctx, out, span->start, span->stop, &rows, err));
    if (ats_payload_needs_donor(payload) || !ats_arg_is(ctx, "source", "similar"))
        ATS_TRY(ats_rows_draw(&rows, "donors", err));
    ATS_TRY(ats_keys_by_source(&rows, out, "similar keys", span->start, span->stop, err));
    ATS_TRY(ats_values_payload(&rows, payload, err));
    if (ctx->arm == ATS_ARM_CONTROL) ATS_TRY(ats_rows_decoy(&rows, err));
    rc = ats_rows_finish(&rows, out, err);
out:
    return rc;
}

const ats_family ats_family_distractors = {
    .kind = "distractors",
    .summary = "Rows that compete with a span: real, similar to it, or at a chosen logit.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = "count",
    .doses = (const char *const[]){"margin", "cosine", "norm_ratio", "depth", NULL},
    .has_control = true,
    .has_positions = true,
    .check = check,
    .layout = layout,
    .fill = fill,
};

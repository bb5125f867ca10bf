#include "perturb/families.h"
#include "perturb/params.h"
#include "perturb/place.h"
#include "perturb/rows.h"
#include "perturb/target.h"

static const ats_param_def params[] = {
    ATS_PARAM_SPAN,
    ATS_PARAM_SOURCES,
};

static ats_code check(const ats_param *values, ats_position_mode mode, ats_err *err)
{
    (void)mode;
    return ats_check_source(&ats_family_key_replace, values, err);
}

static ats_code layout(const ats_build *ctx, ats_built *out, ats_err *err)
{
    const ats_span *span = ats_target_find(ctx, out);
    int64_t *base = NULL;
    ats_pool pool;
    ats_code rc = ATS_OK;
    if (span == NULL) return ATS_OK;
    const int64_t length = span->stop - span->start;
    ATS_TRY(ats_need_moves(ctx, "from another place", err));
    ATS_TRY(ats_pool_make(ctx, ats_donors_needed(ctx, length), &pool, err));
    ATS_TRY(ATS_NEW(ctx->arena, length, &base, err));
    for (int64_t i = 0; i < length; i++) base[i] = span->start + i;
    rc = ats_place_swap(ctx, base, length, true, false, out, err);
out:
    return rc;
}

static ats_code fill(const ats_build *ctx, ats_built *out, ats_err *err)
{
    const ats_span *span = ats_target_find(ctx, out);
    ats_rows rows;
    ats_code rc;
    ATS_TRY(ats_rows_begin(ctx, out, span->start, span->stop, &rows, err));
    if (!ats_arg_is(ctx, "source", "similar")) ATS_TRY(ats_rows_draw(&rows, "donors", err));
    ATS_TRY(ats_keys_by_source(&rows, out, "similar keys", span->start, span->stop, err));
    rc = ats_rows_finish(&rows, out, err);
out:
    return rc;
}

const ats_family ats_family_key_replace = {
    .kind = "key_replace",
    .summary = "Keys of a span replaced; values stay.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = "cosine",
    .has_control = false,
    .has_positions = false,
    .check = check,
    .layout = layout,
    .fill = fill,
};

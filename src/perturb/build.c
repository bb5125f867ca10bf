#include <math.h>

#include "perturb/family.h"
#include "perturb/params.h"
#include "perturb/script.h"

static double standard_dose(const ats_build *ctx)
{
    return ctx->family->dose != NULL ? ats_arg(ctx, ctx->family->dose) : (double)NAN;
}

static ats_code build(const ats_build *ctx, ats_built *out, ats_err *err)
{
    ats_code rc;
    ATS_TRY(ctx->family->layout(ctx, out, err));
    if (out->skipped) goto out;
    ATS_TRY(ats_edit_validate(ctx->arena, &out->edit, ctx->sample, ctx->layer, ctx->allow_past_max,
                              err));
    /* `move` adds no rows: there is no content to make. */
    if (ctx->attention == NULL || ctx->family->fill == NULL) goto out;
    if (ctx->mode == ATS_MODE_MOVE) goto out;
    ATS_TRY(ctx->family->fill(ctx, out, err));
    rc = ats_edit_check_rows(&out->edit, ctx->layer, err);
out:
    return rc;
}

ats_code ats_perturb_build(const ats_build *ctx, ats_built *out, ats_err *err)
{
    ATS_ASSERT((ctx->mode != ATS_MODE_NONE) == ctx->family->has_positions);
    ats_built built = {
        .edit = {.temperature = 1},
        .realised = {.cosine = NAN, .norm_ratio = NAN, .logit = NAN},
        .dose = standard_dose(ctx),
    };
    const ats_code rc = build(ctx, &built, err);
    if (rc != ATS_OK)
        return ats_prepend(err, rc, "%s, sample %s, layer %lld",
                           ctx->variant_id != NULL ? ctx->variant_id : ctx->family->kind,
                           ctx->sample->id, (long long)ctx->layer->index);
    *out = built;
    return ATS_OK;
}

ats_build ats_build_alone(const ats_build *ctx, const ats_build_part *part)
{
    ats_build alone = *ctx;
    alone.family = part->family;
    alone.params = part->params;
    alone.mode = part->mode;
    alone.replicate = part->replicate;
    alone.variant_id = part->variant_id;
    alone.n_parts = 0;
    return alone;
}

double ats_perturb_effort(const ats_build *ctx, const ats_built *out)
{
    double effort = ctx->family->effort != NULL ? ctx->family->effort(ctx, out) : 0;
    for (int64_t i = 0; i < ctx->n_parts; i++) {
        const ats_build alone = ats_build_alone(ctx, &ctx->part[i]);
        effort += ats_perturb_effort(&alone, out);
    }
    return effort;
}

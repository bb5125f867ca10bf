#include <math.h>
#include <string.h>

#include "perturb/combine.h"
#include "perturb/families.h"
#include "perturb/params.h"

static const ats_param_def params[] = {
    {.name = "first",
     .type = ATS_PARAM_TEXT,
     .unit = "1",
     .doc = "Name of a perturbation of this suite.",
     .required = true},
    {.name = "second",
     .type = ATS_PARAM_TEXT,
     .unit = "1",
     .doc = "Name of another; its rows stand behind the first one's at a common place.",
     .required = true},
};

static ats_code build_part(const ats_build *ctx, const ats_build_part *part, bool tensors,
                           ats_built *out, ats_err *err)
{
    ats_build alone = ats_build_alone(ctx, part);
    if (!tensors) alone.attention = NULL;
    return ats_perturb_build(&alone, out, err);
}

static ats_code build(const ats_build *ctx, bool tensors, ats_built *out, ats_err *err)
{
    ats_built part[2];
    ats_code rc = ATS_OK;
    ATS_ASSERT(ctx->n_parts == 2);
    for (int i = 0; i < 2; i++) {
        part[i] = (ats_built){.dose = NAN};
        ATS_TRY(build_part(ctx, &ctx->part[i], tensors, &part[i], err));
        if (!part[i].skipped) continue;
        out->skipped = true;
        memcpy(out->reason, part[i].reason, sizeof out->reason);
        goto out;
    }
    ATS_TRY(ats_edits_combine(ctx, &part[0].edit, &part[1].edit, &out->edit, err));
    out->realised.rows = part[0].realised.rows + part[1].realised.rows;
out:
    return rc;
}

static ats_code layout(const ats_build *ctx, ats_built *out, ats_err *err)
{
    return build(ctx, false, out, err);
}

static ats_code fill(const ats_build *ctx, ats_built *out, ats_err *err)
{
    return build(ctx, true, out, err);
}

const ats_family ats_family_combine = {
    .kind = "combine",
    .summary = "Two perturbations at once, every variant of one with every variant of the other.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = NULL,
    .has_control = false,
    .has_positions = false,
    .layout = layout,
    .fill = fill,
};

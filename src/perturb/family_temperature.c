#include "perturb/families.h"
#include "perturb/params.h"
#include "perturb/script.h"

static const ats_param_def params[] = {
    {.name = "tau",
     .type = ATS_PARAM_REAL,
     .unit = "1",
     .doc = "Temperature on top of the suite's.",
     .required = true,
     .min = 1e-6,
     .max = 1e6},
};

static ats_code layout(const ats_build *ctx, ats_built *out, ats_err *err)
{
    ats_script script = ats_script_begin(ctx->arena, ctx->sample->n_keys);
    out->edit.temperature = ats_arg(ctx, "tau");
    return ats_script_emit(&script, &out->edit, err);
}

const ats_family ats_family_temperature = {
    .kind = "temperature",
    .summary = "Every logit, the sink's too, divided by tau.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = "tau",
    .has_control = false,
    .has_positions = false,
    .layout = layout,
};

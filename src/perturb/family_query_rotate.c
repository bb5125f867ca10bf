#include <stdio.h>
#include <string.h>

#include "perturb/families.h"
#include "perturb/params.h"
#include "base/rng.h"
#include "perturb/realise.h"
#include "perturb/script.h"
#include "perturb/target.h"

static const char *const words_rotation[] = {"angle", "random", NULL};

static const ats_param_def params[] = {
    {.name = "rotation",
     .type = ATS_PARAM_WORD,
     .unit = "1",
     .doc = "One angle for every pair, or independent random angles.",
     .text = "angle",
     .words = words_rotation},
    {.name = "seed",
     .type = ATS_PARAM_INT,
     .unit = "1",
     .doc = "random: number of the draw.",
     .number = 0,
     .min = 0,
     .max = ATS_ROWS_MAX},
    {.name = "angle",
     .type = ATS_PARAM_REAL,
     .unit = "degrees",
     .doc = "Angle of every rotary pair.",
     .number = NAN,
     .min = -360,
     .max = 360,
     .group = "rotation",
     .group_word = "angle"},
};

static ats_code check(const ats_param *values, ats_position_mode mode, ats_err *err)
{
    (void)mode;
    const ats_family *family = &ats_family_query_rotate;
    if (strcmp(ats_table_text(family, values, "rotation"), "angle") == 0 &&
        isnan(ats_table_number(family, values, "angle")))
        return ats_fail(err, ATS_E_SUITE,
                        "query_rotate: `rotation: angle` needs a number of degrees; write "
                        "`rotation: {angle: 30}`, or `rotation: random`");
    return ATS_OK;
}

static ats_code layout(const ats_build *ctx, ats_built *out, ats_err *err)
{
    ats_script script = ats_script_begin(ctx->arena, ctx->sample->n_keys);
    if (ats_arg_is(ctx, "rotation", "random")) out->dose = NAN;
    return ats_script_emit(&script, &out->edit, err);
}

/* One angle a pair, for all probes of a query head: [pairs], radians. */
static void head_angles(const ats_build *ctx, int64_t head, int64_t pairs, double *angle)
{
    const double fixed = ats_arg(ctx, "angle") * (M_PI / 180);
    char purpose[64];
    snprintf(purpose, sizeof purpose, "rotation %lld of head %lld",
             (long long)ats_arg_int(ctx, "seed"), (long long)head);
    ats_rng rng = ats_row_stream(ctx, purpose);
    const bool random = ats_arg_is(ctx, "rotation", "random");
    for (int64_t i = 0; i < pairs; i++) angle[i] = random ? 2 * M_PI * ats_rng_unit(&rng) : fixed;
}

/* Turns each pair of q [d]; layers without RoPE are paired as `half` over the whole width. */
static void rotate(const ats_rope *rope, const double *angle, int64_t pairs, float *q)
{
    const bool interleaved = rope->layout == ATS_ROPE_INTERLEAVED;
    for (int64_t i = 0; i < pairs; i++) {
        float *a = q + (interleaved ? 2 * i : i), *b = q + (interleaved ? 2 * i + 1 : i + pairs);
        const double x = (double)*a, y = (double)*b, c = cos(angle[i]), s = sin(angle[i]);
        *a = (float)(x * c - y * s);
        *b = (float)(y * c + x * s);
    }
}

static ats_code fill(const ats_build *ctx, ats_built *out, ats_err *err)
{
    const ats_rope *rope = &ctx->layer->contract.rope;
    const int64_t d = ctx->layer->d_qk, heads = ats_head_count(ctx), probes = ats_probe_count(ctx);
    const int64_t pairs = rope->layout != ATS_ROPE_NONE ? rope->pairs : d / 2;
    float *q = NULL;
    double *angle = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(ctx->arena, heads * probes * d, &q, err));
    ATS_TRY(ATS_NEW(ctx->arena, pairs, &angle, err));
    ats_queries(ctx, q);
    for (int64_t h = 0; h < heads; h++) {
        head_angles(ctx, ats_head_at(ctx, h), pairs, angle);
        for (int64_t p = 0; p < probes; p++) rotate(rope, angle, pairs, q + (h * probes + p) * d);
    }
    out->edit.q = q;
out:
    return rc;
}

const ats_family ats_family_query_rotate = {
    .kind = "query_rotate",
    .summary = "Queries rotated inside the rotary pairs.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = "angle",
    .has_control = false,
    .has_positions = false,
    .check = check,
    .layout = layout,
    .fill = fill,
};

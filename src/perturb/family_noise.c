#include <string.h>

#include "perturb/families.h"
#include "perturb/params.h"
#include "perturb/place.h"
#include "perturb/quantise.h"
#include "perturb/rows.h"
#include "perturb/round.h"
#include "perturb/target.h"

static const char *const words_round[] = {"none", "bf16", "fp8", "int8", "int4", NULL};
static const char *const words_tensor[] = {"keys", "values", "both", NULL};
static const char *const words_per[] = {"token", "channel", NULL};

static const ats_param_def params[] = {
    {.name = "sigma",
     .type = ATS_PARAM_REAL,
     .unit = "1",
     .doc = "Size of the noise vector over the row's norm (root mean square).",
     .number = NAN,
     .min = 0,
     .max = 1000},
    {.name = "round",
     .type = ATS_PARAM_WORD,
     .unit = "1",
     .doc = "Rounding of every element: to a float format, or to the levels of an integer between "
            "the least and the largest element of its group.",
     .text = "none",
     .words = words_round},
    {.name = "tensor",
     .type = ATS_PARAM_WORD,
     .unit = "1",
     .doc = "What is disturbed: keys, values, or both.",
     .text = "keys",
     .words = words_tensor},
    {.name = "per",
     .type = ATS_PARAM_WORD,
     .unit = "1",
     .doc = "int8, int4: a group is a stretch of one row (token) or of one element over rows "
            "(channel).",
     .text = "token",
     .words = words_per},
    {.name = "group",
     .type = ATS_PARAM_INT,
     .unit = "1",
     .doc = "int8, int4: elements of a group; 0: the whole row or column.",
     .number = 0,
     .min = 0,
     .max = ATS_ROWS_MAX},
};

static ats_code check(const ats_param *values, ats_position_mode mode, ats_err *err)
{
    (void)mode;
    const bool sigma = !isnan(ats_table_number(&ats_family_noise, values, "sigma"));
    const bool rounds = strcmp(ats_table_text(&ats_family_noise, values, "round"), "none") != 0;
    if (sigma != rounds) return ATS_OK;
    return ats_fail(err, ATS_E_SUITE, "noise: give `sigma` or `round`, %s",
                    sigma ? "not both" : "one of the two is needed");
}

static bool disturbs(const ats_build *ctx, const char *tensor)
{
    return ats_arg_is(ctx, "tensor", tensor) || ats_arg_is(ctx, "tensor", "both");
}

static ats_code layout(const ats_build *ctx, ats_built *out, ats_err *err)
{
    int64_t *base = NULL;
    const int64_t n = ctx->sample->n_keys;
    ats_code rc;
    ATS_TRY(ATS_NEW(ctx->arena, n, &base, err));
    for (int64_t i = 0; i < n; i++) base[i] = i;
    rc = ats_place_swap(ctx, base, n, disturbs(ctx, "keys"), disturbs(ctx, "values"), out, err);
out:
    return rc;
}

/* Independent normal elements, so that the noise vector's expected squared norm is (sigma |x|)^2.
 */
static void add_noise(ats_rng *rng, double sigma, int64_t d, double *normals, float *x)
{
    const double size = sigma * ats_vector_norm(x, d) / sqrt((double)d);
    ats_rng_normals(rng, d, normals);
    for (int64_t i = 0; i < d; i++) x[i] = (float)((double)x[i] + size * normals[i]);
}

static void round_rows(const ats_build *ctx, int64_t rows, int64_t d, float *x)
{
    const bool bf16 = ats_arg_is(ctx, "round", "bf16"), fp8 = ats_arg_is(ctx, "round", "fp8");
    for (int64_t i = 0; (bf16 || fp8) && i < rows * d; i++)
        x[i] = bf16 ? ats_bf16_to_f32(ats_f32_to_bf16(x[i])) : ats_round_e4m3(x[i]);
    if (bf16 || fp8) return;
    ats_quantise(ats_arg_is(ctx, "round", "int8") ? 8 : 4, ats_arg_is(ctx, "per", "channel"),
                 ats_arg_int(ctx, "group"), rows, d, x);
}

/* x: [rows, d]; normals: [d] room. */
static void disturb(const ats_build *ctx, const char *purpose, int64_t rows, int64_t d,
                    double *normals, float *x)
{
    const double sigma = ats_arg(ctx, "sigma");
    ats_rng rng = ats_row_stream(ctx, purpose);
    if (isnan(sigma)) {
        round_rows(ctx, rows, d, x);
        return;
    }
    for (int64_t j = 0; j < rows; j++) add_noise(&rng, sigma, d, normals, x + j * d);
}

static ats_code fill(const ats_build *ctx, ats_built *out, ats_err *err)
{
    const ats_layer *layer = ctx->layer;
    double *normals = NULL;
    ats_rows rows;
    ats_code rc;
    ATS_TRY(
        ATS_NEW(ctx->arena, layer->d_qk > layer->d_v ? layer->d_qk : layer->d_v, &normals, err));
    ATS_TRY(ats_rows_begin(ctx, out, 0, ctx->sample->n_keys, &rows, err));
    ats_keys_copy(&rows);
    if (disturbs(ctx, "keys")) disturb(ctx, "noise", rows.n, rows.d, normals, rows.k);
    if (disturbs(ctx, "values")) {
        for (int64_t j = 0; j < rows.n; j++)
            ats_value_row(ctx, rows.base, rows.from[j], rows.v + j * rows.dv);
        disturb(ctx, "value noise", rows.n, rows.dv, normals, rows.v);
    }
    rc = ats_rows_compare(&rows, out, err);
out:
    return rc;
}

/* Rounding draws nothing. */
static double effort(const ats_build *ctx, const ats_built *out)
{
    const double rows = isnan(ats_arg(ctx, "sigma")) ? 0 : (double)out->edit.side.count;
    return rows * ((disturbs(ctx, "keys") ? (double)ctx->layer->d_qk : 0) +
                   (disturbs(ctx, "values") ? (double)ctx->layer->d_v : 0));
}

const ats_family ats_family_noise = {
    .kind = "noise",
    .summary = "Keys or values with noise, or rounded as a cache would.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = "sigma",
    .has_control = false,
    .has_positions = false,
    .check = check,
    .layout = layout,
    .fill = fill,
    .effort = effort,
};

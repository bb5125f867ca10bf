#include <string.h>

#include "perturb/families.h"
#include "perturb/params.h"
#include "perturb/place.h"
#include "perturb/rows.h"
#include "perturb/round.h"
#include "perturb/target.h"

static const char *const words_round[] = {"none", "bf16", "fp8", NULL};

static const ats_param_def params[] = {
    {.name = "sigma",
     .type = ATS_PARAM_REAL,
     .unit = "1",
     .doc = "Size of the noise vector over the key's norm (root mean square).",
     .number = NAN,
     .min = 0,
     .max = 1000},
    {.name = "round",
     .type = ATS_PARAM_WORD,
     .unit = "1",
     .doc = "Rounding of every key element.",
     .text = "none",
     .words = words_round},
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

static ats_code layout(const ats_build *ctx, ats_built *out, ats_err *err)
{
    int64_t *base = NULL;
    const int64_t n = ctx->sample->n_keys;
    ats_code rc;
    ATS_TRY(ATS_NEW(ctx->arena, n, &base, err));
    for (int64_t i = 0; i < n; i++) base[i] = i;
    rc = ats_place_swap(ctx, base, n, true, false, out, err);
out:
    return rc;
}

/* Independent normal elements, so that the noise vector's expected squared norm is (sigma |k|)^2.
 */
static void add_noise(ats_rng *rng, double sigma, int64_t d, double *normals, float *k)
{
    const double size = sigma * ats_vector_norm(k, d) / sqrt((double)d);
    ats_rng_normals(rng, d, normals);
    for (int64_t i = 0; i < d; i++) k[i] = (float)((double)k[i] + size * normals[i]);
}

static void round_key(bool bf16, int64_t d, float *k)
{
    for (int64_t i = 0; i < d; i++)
        k[i] = bf16 ? ats_bf16_to_f32(ats_f32_to_bf16(k[i])) : ats_round_e4m3(k[i]);
}

static ats_code fill(const ats_build *ctx, ats_built *out, ats_err *err)
{
    const double sigma = ats_arg(ctx, "sigma");
    ats_rng rng = ats_row_stream(ctx, "noise");
    double *normals = NULL;
    ats_rows rows;
    ats_code rc;
    ATS_TRY(ATS_NEW(ctx->arena, ctx->layer->d_qk, &normals, err));
    ATS_TRY(ats_rows_begin(ctx, out, 0, ctx->sample->n_keys, &rows, err));
    ats_keys_copy(&rows);
    for (int64_t j = 0; j < rows.n; j++) {
        float *k = rows.k + j * rows.d;
        if (isnan(sigma))
            round_key(ats_arg_is(ctx, "round", "bf16"), rows.d, k);
        else
            add_noise(&rng, sigma, rows.d, normals, k);
    }
    rc = ats_rows_compare(&rows, out, err);
out:
    return rc;
}

const ats_family ats_family_noise = {
    .kind = "noise",
    .summary = "Keys with noise, or rounded.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = "sigma",
    .has_control = false,
    .has_positions = false,
    .check = check,
    .layout = layout,
    .fill = fill,
};

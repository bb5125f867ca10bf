#include <string.h>

#include "perturb/cache.h"
#include "perturb/families.h"
#include "perturb/params.h"
#include "perturb/place.h"
#include "perturb/rows.h"
#include "perturb/target.h"

static const char *const words_direction[] = {"keep", "orthogonal", "mean_key", "sink_like", NULL};
static const char *const words_value[] = {"small", "donor", "large", NULL};

static const ats_param_def params[] = {
    ATS_PARAM_SPAN,
    {.name = "direction",
     .type = ATS_PARAM_WORD,
     .unit = "1",
     .doc = "Key direction: an irrelevant row scaled in place, orthogonal to the span, the mean "
            "key, the sink's.",
     .text = "orthogonal",
     .words = words_direction},
    {.name = "quantile",
     .type = ATS_PARAM_REAL,
     .unit = "1",
     .doc = "Quantile of the key norms of the head that `multiple` multiplies.",
     .number = 0.95,
     .min = 0,
     .max = 1},
    {.name = "value",
     .type = ATS_PARAM_WORD,
     .unit = "1",
     .doc = "Value: scaled to the 5 % quantile of value norms, the donor's own, scaled to the 95 % "
            "quantile.",
     .text = "donor",
     .words = words_value},
    {.name = "count",
     .type = ATS_PARAM_INT,
     .unit = "rows",
     .doc = "Number of rows.",
     .number = 1,
     .min = 1,
     .max = ATS_ROWS_MAX},
    ATS_PARAM_PLACES,
    {.name = "multiple",
     .type = ATS_PARAM_REAL,
     .unit = "1",
     .doc = "Key norm as a multiple of the quantile.",
     .required = true,
     .min = 0,
     .max = 1e6},
};

static ats_code check(const ats_param *values, ats_position_mode mode, ats_err *err)
{
    const char *direction = ats_table_text(&ats_family_high_norm, values, "direction");
    if (strcmp(direction, "keep") == 0 && mode != ATS_MODE_OVERLAY && mode != ATS_MODE_REPLACE)
        return ats_fail(err, ATS_E_SUITE,
                        "high_norm: `direction: keep` scales rows where they stand and moves "
                        "nothing; write `positions: replace` (or overlay), not %s",
                        ats_mode_name(mode));
    return ats_check_depth(&ats_family_high_norm, values, err);
}

static ats_code layout(const ats_build *ctx, ats_built *out, ats_err *err)
{
    const int64_t count = ats_arg_int(ctx, "count");
    const ats_span *span = ats_target_before_probes(ctx, out);
    const bool own_value = ats_arg_is(ctx, "value", "donor");
    int64_t *base = NULL;
    ats_pool pool;
    ats_code rc = ATS_OK;
    if (span == NULL) return ATS_OK;
    const ats_place place = ats_place_of(ctx, span, count, 1, true);
    if (ats_arg_is(ctx, "direction", "keep")) {
        ATS_TRY(ats_place_filler(ctx, &place, &base, err));
        return ats_place_swap(ctx, base, count, true, !own_value, out, err);
    }
    ATS_TRY(ats_place_layout(ctx, &place, out, err));
    if (out->edit.side.count > 0) ATS_TRY(ats_pool_make(ctx, count > 2 ? count : 2, &pool, err));
out:
    return rc;
}

/* Quantile of the finite key or value norms of this key head, linear between order statistics. */
static ats_code norm_quantile(const ats_build *ctx, bool values, double q, double *out,
                              ats_err *err)
{
    const double *norms = NULL;
    int64_t count = 0;
    const ats_code rc = ats_build_norms(ctx, values, &norms, &count, err);
    if (rc != ATS_OK) return rc;
    const double at = q * (double)(count - 1);
    const int64_t low = (int64_t)at, high = low + 1 < count ? low + 1 : low;
    *out = norms[low] + (at - (double)low) * (norms[high] - norms[low]);
    return ATS_OK;
}

enum { MEAN_ROWS = 4096 };

/* mean[d] += content-space keys of rows start, start + step, ... below stop; finite ones. */
static int64_t add_content(const ats_build *ctx, int64_t start, int64_t stop, int64_t step,
                           float *k, double *mean)
{
    const ats_donor own = ats_own(ctx);
    const int64_t d = ctx->layer->d_qk;
    int64_t count = 0;
    for (int64_t row = start; row < stop; row += step) {
        ats_key_row(ctx, &own, row, k);
        if (!isfinite(ats_vector_norm(k, d))) continue;
        ats_build_move(ctx, -ctx->sample->position[row], 1, k, k);
        for (int64_t i = 0; i < d; i++) mean[i] += (double)k[i];
        count++;
    }
    return count;
}

/* The content-space sum over (at most MEAN_ROWS of) the sample, kept for later variants. */
static ats_code all_content(const ats_build *ctx, float *k, double *mean, ats_err *err)
{
    const int64_t n = ctx->sample->n_keys, d = ctx->layer->d_qk;
    ats_build_cache scratch;
    ats_build_cache *cache = ats_build_cache_of(ctx, &scratch);
    double *sum = cache->mean;
    ats_code rc = ATS_OK;
    if (sum == NULL) {
        ATS_TRY(ATS_NEW0(cache == &scratch ? ctx->arena : &cache->arena, d, &sum, err));
        add_content(ctx, 0, n, 1 + (n - 1) / MEAN_ROWS, k, sum);
        cache->mean = sum;
    }
    memcpy(mean, sum, (size_t)d * sizeof *mean);
out:
    return rc;
}

/* Every row gets the same content: the mean key, or the mean of rows of role sink (else row 0). */
static ats_code fixed_direction(ats_rows *rows, bool sinks, ats_err *err)
{
    const ats_build *ctx = rows->ctx;
    const ats_sample *sample = ctx->sample;
    double *mean = NULL;
    float *k = NULL;
    int64_t count = 0;
    ats_code rc;
    ATS_TRY(ATS_NEW0(ctx->arena, rows->d, &mean, err));
    ATS_TRY(ATS_NEW(ctx->arena, rows->d, &k, err));
    for (int64_t s = 0; sinks && s < sample->n_spans; s++)
        if (strcmp(sample->spans[s].role, "sink") == 0)
            count += add_content(ctx, sample->spans[s].start, sample->spans[s].stop, 1, k, mean);
    if (sinks && count == 0) add_content(ctx, 0, 1, 1, k, mean);
    if (!sinks) ATS_TRY(all_content(ctx, k, mean, err));
    for (int64_t j = 0; j < rows->n; j++) {
        float *row = rows->k + j * rows->d;
        for (int64_t i = 0; i < rows->d; i++) row[i] = (float)mean[i];
        ats_build_move(ctx, rows->position[j], 1, row, row);
    }
out:
    return rc;
}

/* Rows scaled in place: side row j is the base row at the same place of the script. */
static ats_code own_rows(ats_rows *rows, const ats_edit *edit, ats_err *err)
{
    ats_code rc = ATS_OK;
    for (int64_t i = 0; i < edit->n_segments; i++) {
        const ats_segment *s = &edit->segments[i];
        for (int64_t r = s->start; s->kind == ATS_SEG_SWAP && r < s->stop; r++)
            rows->from[s->row + r - s->start] = r;
    }
    ats_keys_copy(rows);
    ATS_TRY(ats_values_payload(rows, "same", err));
out:
    return rc;
}

static ats_code directions(const ats_build *ctx, const ats_built *out, ats_rows *rows, ats_err *err)
{
    ats_code rc;
    if (ats_arg_is(ctx, "direction", "keep")) return own_rows(rows, &out->edit, err);
    ATS_TRY(ats_rows_draw(rows, "donors", err));
    ATS_TRY(ats_values_payload(rows, "donor", err));
    if (ats_arg_is(ctx, "direction", "orthogonal"))
        return ats_keys_similar(rows, "direction", 0, 1, false, err);
    rc = fixed_direction(rows, ats_arg_is(ctx, "direction", "sink_like"), err);
out:
    return rc;
}

static ats_code fill(const ats_build *ctx, ats_built *out, ats_err *err)
{
    const ats_span *span = ats_target_find(ctx, out);
    const bool control = ctx->arm == ATS_ARM_CONTROL;
    double *key = NULL, *value = NULL, norm = 0, value_norm = 0;
    ats_rows rows;
    ats_code rc;
    ATS_TRY(ats_rows_begin(ctx, out, span->start, span->stop, &rows, err));
    ATS_TRY(directions(ctx, out, &rows, err));
    ATS_TRY(norm_quantile(ctx, false, control ? 0.5 : ats_arg(ctx, "quantile"), &norm, err));
    if (!control) norm *= ats_arg(ctx, "multiple");
    ATS_TRY(ats_rows_norms(&rows, &key, &value, err));
    for (int64_t j = 0; j < rows.n; j++) key[j] = norm;
    if (!ats_arg_is(ctx, "value", "donor")) {
        const double q = ats_arg_is(ctx, "value", "small") ? 0.05 : 0.95;
        ATS_TRY(norm_quantile(ctx, true, q, &value_norm, err));
        for (int64_t j = 0; j < rows.n; j++) value[j] = value_norm;
    }
    ats_rows_scale(&rows, key, value);
    rc = ats_rows_finish(&rows, out, err);
out:
    return rc;
}

const ats_family ats_family_high_norm = {
    .kind = "high_norm",
    .summary = "Irrelevant rows with long keys.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = "multiple",
    .doses = (const char *const[]){"count", NULL},
    .has_control = true,
    .has_positions = true,
    .check = check,
    .layout = layout,
    .fill = fill,
};

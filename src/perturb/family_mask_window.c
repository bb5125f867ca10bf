#include <string.h>

#include "perturb/families.h"
#include "perturb/mask.h"
#include "perturb/params.h"
#include "perturb/target.h"

enum { RECENT_ROWS = 64 };

static const char *const words_pattern[] = {"slide",  "around", "outside", "sink",
                                            "recent", "random", "every",   NULL};

static const ats_param_def params[] = {
    {.name = "pattern",
     .type = ATS_PARAM_WORD,
     .unit = "1",
     .doc = "Which rows are hidden.",
     .required = true,
     .words = words_pattern},
    ATS_PARAM_SPAN,
    {.name = "width",
     .type = ATS_PARAM_INT,
     .unit = "rows",
     .doc = "slide: rows hidden; around, outside: rows on either side of the span; sink: first "
            "rows; recent: last rows before the first probe.",
     .number = NAN,
     .min = 0,
     .max = ATS_ROWS_MAX},
    {.name = "at",
     .type = ATS_PARAM_REAL,
     .unit = "1",
     .doc = "slide: where the window starts, as a depth of the rows that can be hidden.",
     .number = 0,
     .min = 0,
     .max = 1},
    {.name = "stride",
     .type = ATS_PARAM_INT,
     .unit = "rows",
     .doc = "slide: window starts are multiples of it; every: distance of block starts.",
     .number = NAN,
     .min = 1,
     .max = ATS_ROWS_MAX},
    {.name = "block",
     .type = ATS_PARAM_INT,
     .unit = "rows",
     .doc = "every: rows hidden in each stride.",
     .number = NAN,
     .min = 1,
     .max = ATS_ROWS_MAX},
    {.name = "offset",
     .type = ATS_PARAM_INT,
     .unit = "rows",
     .doc = "every: first row of the first block.",
     .number = 0,
     .min = 0,
     .max = ATS_ROWS_MAX},
    {.name = "keep",
     .type = ATS_PARAM_REAL,
     .unit = "1",
     .doc = "random: share of the rows that stays.",
     .number = NAN,
     .min = 0,
     .max = 1},
};

static ats_code need(const ats_param *values, const char *pattern, const char *name, ats_err *err)
{
    const ats_family *family = &ats_family_mask_window;
    if (strcmp(ats_table_text(family, values, "pattern"), pattern) != 0) return ATS_OK;
    if (!isnan(ats_table_number(family, values, name))) return ATS_OK;
    return ats_fail(err, ATS_E_SUITE, "mask_window: `pattern: %s` needs `%s`", pattern, name);
}

static ats_code check(const ats_param *values, ats_position_mode mode, ats_err *err)
{
    const ats_family *family = &ats_family_mask_window;
    ats_code rc;
    (void)mode;
    ATS_TRY(need(values, "slide", "width", err));
    ATS_TRY(need(values, "random", "keep", err));
    ATS_TRY(need(values, "every", "block", err));
    ATS_TRY(need(values, "every", "stride", err));
    const double block = ats_table_number(family, values, "block");
    const double stride = ats_table_number(family, values, "stride");
    if (strcmp(ats_table_text(family, values, "pattern"), "every") == 0 && block >= stride)
        rc = ats_fail(err, ATS_E_SUITE,
                      "mask_window: blocks of %g rows every %g rows hide everything; use a block "
                      "smaller than the stride",
                      block, stride);
out:
    return rc;
}

/* Rows that are hidden: hidden [n_keys], only [0, cap) may be set. */
typedef struct mask {
    uint8_t *hidden;
    int64_t cap;
} mask;

static void hide(const mask *m, int64_t start, int64_t stop)
{
    if (start < 0) start = 0;
    if (stop > m->cap) stop = m->cap;
    if (start < stop) memset(m->hidden + start, 1, (size_t)(stop - start));
}

static int64_t width_or(const ats_build *ctx, int64_t standard)
{
    return isnan(ats_arg(ctx, "width")) ? standard : ats_arg_int(ctx, "width");
}

static ats_code hide_slide(const ats_build *ctx, const mask *m, ats_err *err)
{
    const int64_t width = ats_arg_int(ctx, "width");
    const int64_t stride = isnan(ats_arg(ctx, "stride")) ? 1 : ats_arg_int(ctx, "stride");
    if (width > m->cap)
        return ats_fail(err, ATS_E_SUITE,
                        "mask_window: a window of %lld rows does not fit into the %lld rows before "
                        "the first probe; use a smaller width",
                        (long long)width, (long long)m->cap);
    const int64_t start =
        (int64_t)floor(ats_arg(ctx, "at") * (double)(m->cap - width) / (double)stride) * stride;
    hide(m, start, start + width);
    return ATS_OK;
}

static void hide_by_span(const ats_build *ctx, const mask *m, const ats_span *span, bool outside)
{
    const int64_t width = width_or(ctx, 0);
    if (!outside) {
        hide(m, span->start - width, span->stop + width);
        return;
    }
    hide(m, 0, span->start - width);
    hide(m, span->stop + width, m->cap);
}

static void hide_sinks(const ats_build *ctx, const mask *m)
{
    const ats_sample *sample = ctx->sample;
    hide(m, 0, width_or(ctx, ATS_START_ROWS));
    for (int64_t i = 0; i < sample->n_spans; i++)
        if (strcmp(sample->spans[i].role, "sink") == 0)
            hide(m, sample->spans[i].start, sample->spans[i].stop);
}

static void hide_every(const ats_build *ctx, const mask *m)
{
    const int64_t block = ats_arg_int(ctx, "block"), stride = ats_arg_int(ctx, "stride");
    for (int64_t row = ats_arg_int(ctx, "offset"); row < m->cap; row += stride)
        hide(m, row, row + block);
}

static ats_code hide_pattern(const ats_build *ctx, const mask *m, ats_built *out, ats_err *err)
{
    const char *pattern = ats_arg_text(ctx, "pattern");
    const bool around = strcmp(pattern, "around") == 0, outside = strcmp(pattern, "outside") == 0;
    if (strcmp(pattern, "slide") == 0) return hide_slide(ctx, m, err);
    if (strcmp(pattern, "random") == 0) {
        const double keep = ats_arg(ctx, "keep");
        out->dose = keep;
        return ats_mask_random(ctx, llround((1 - keep) * (double)m->cap), "random mask", m->hidden,
                               err);
    }
    if (around || outside) {
        const ats_span *span = ats_target_find(ctx, out);
        if (span != NULL) hide_by_span(ctx, m, span, outside);
        out->dose = (double)width_or(ctx, 0);
    } else if (strcmp(pattern, "sink") == 0) {
        hide_sinks(ctx, m);
        out->dose = (double)width_or(ctx, ATS_START_ROWS);
    } else if (strcmp(pattern, "recent") == 0) {
        const int64_t width = width_or(ctx, RECENT_ROWS);
        hide(m, m->cap - width, m->cap);
        out->dose = (double)width;
    } else {
        hide_every(ctx, m);
        out->dose = ats_arg(ctx, "block");
    }
    return ATS_OK;
}

static ats_code layout(const ats_build *ctx, ats_built *out, ats_err *err)
{
    mask m = {.cap = ats_row_cap(ctx)};
    int64_t count = 0;
    ats_code rc;
    ATS_TRY(ATS_NEW0(ctx->arena, ctx->sample->n_keys, &m.hidden, err));
    ATS_TRY(hide_pattern(ctx, &m, out, err));
    if (out->skipped) goto out;
    if (ctx->arm == ATS_ARM_CONTROL) {
        for (int64_t i = 0; i < m.cap; i++) count += m.hidden[i];
        memset(m.hidden, 0, (size_t)ctx->sample->n_keys);
        ATS_TRY(ats_mask_random(ctx, count, "control mask", m.hidden, err));
    }
    ATS_TRY(ats_mask_check(ctx, m.hidden, ats_arg_text(ctx, "pattern"), err));
    rc = ats_mask_emit(ctx, m.hidden, out, err);
out:
    return rc;
}

const ats_family ats_family_mask_window = {
    .kind = "mask_window",
    .summary = "Rows hidden from the probes.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = "width",
    .doses = (const char *const[]){"block", NULL},
    .has_control = true,
    .has_positions = false,
    .check = check,
    .layout = layout,
};

#include "perturb/annotated.h"

#include <math.h>
#include <string.h>

#include "perturb/params.h"
#include "perturb/place.h"
#include "perturb/script.h"
#include "perturb/target.h"

typedef struct span_rows {
    int64_t start, stop;
} span_rows;

/* The span's rows, which must stand before the first probe; false: out is marked skipped. */
static bool find(const ats_build *ctx, const char *param, ats_built *out, span_rows *rows)
{
    const char *text = ats_arg_text(ctx, param);
    const ats_span *span = ats_span_find(ctx->sample, text);
    if (span == NULL) {
        ats_skip(out, "sample %s has no span of name or role '%s'", ctx->sample->id, text);
        return false;
    }
    if (span->stop > ats_row_cap(ctx)) {
        ats_skip(out, "sample %s: span '%s' ends after the first probe's row", ctx->sample->id,
                 span->name);
        return false;
    }
    *rows = (span_rows){span->start, span->stop};
    return true;
}

/* A random block of filler as long as the span, for the control twin. */
static ats_code twin(const ats_build *ctx, const char *purpose, span_rows apart, span_rows *rows,
                     ats_err *err)
{
    const int64_t length = rows->stop - rows->start;
    int64_t start = -1;
    ats_code rc;
    ATS_TRY(ats_filler_block(ctx, apart.start, apart.stop, length, purpose, &start, err));
    if (start < 0)
        ATS_TRY(ats_fail(err, ATS_E_SUITE,
                         "superseded: the control twin needs %lld consecutive rows outside every "
                         "named span, and there are none; write `control: false`",
                         (long long)length));
    *rows = (span_rows){start, start + length};
out:
    return rc;
}

/* a M b becomes b M a: b starts where a started, a ends where b ended. */
static ats_code exchange(const ats_build *ctx, ats_script *script, span_rows a, span_rows b,
                         ats_err *err)
{
    const int64_t *p = ctx->sample->position;
    const int64_t wide_a = p[a.stop - 1] - p[a.start], wide_b = p[b.stop - 1] - p[b.start];
    ats_code rc;
    ATS_TRY(ats_script_move(script, a.start, a.stop, p[b.stop - 1] - p[a.stop - 1], err));
    ATS_TRY(ats_script_move(script, a.stop, b.start, wide_b - wide_a, err));
    rc = ats_script_move(script, b.start, b.stop, p[a.start] - p[b.start], err);
out:
    return rc;
}

/* The block goes before row `at`; the rows it passes close up. */
static ats_code put(const ats_build *ctx, ats_script *script, span_rows a, int64_t at, ats_err *err)
{
    const int64_t *p = ctx->sample->position;
    const int64_t wide = p[a.stop - 1] - p[a.start] + 1;
    ats_code rc = ATS_OK;
    if (at > a.start && at < a.stop) at = at - a.start <= a.stop - at ? a.start : a.stop;
    if (at > a.stop) {
        ATS_TRY(ats_script_move(script, a.start, a.stop, p[at - 1] - p[a.stop - 1], err));
        ATS_TRY(ats_script_move(script, a.stop, at, -wide, err));
    } else if (at < a.start) {
        ATS_TRY(ats_script_move(script, at, a.start, wide, err));
        ATS_TRY(ats_script_move(script, a.start, a.stop, p[at] - p[a.start], err));
    }
out:
    return rc;
}

static ats_code exchange_layout(const ats_build *ctx, ats_script *script, ats_built *out,
                                ats_err *err)
{
    span_rows stale, current;
    ats_code rc = ATS_OK;
    if (!find(ctx, "stale", out, &stale) || !find(ctx, "current", out, &current)) return ATS_OK;
    if (stale.start < current.stop && current.start < stale.stop)
        ATS_TRY(ats_fail(
            err, ATS_E_SUITE, "superseded: spans '%s' [%lld, %lld) and '%s' [%lld, %lld) overlap",
            ats_arg_text(ctx, "stale"), (long long)stale.start, (long long)stale.stop,
            ats_arg_text(ctx, "current"), (long long)current.start, (long long)current.stop));
    if (ctx->arm == ATS_ARM_CONTROL) {
        ATS_TRY(twin(ctx, "control stale", (span_rows){0, 0}, &stale, err));
        ATS_TRY(twin(ctx, "control current", stale, &current, err));
    }
    const bool first = stale.start < current.start;
    rc = exchange(ctx, script, first ? stale : current, first ? current : stale, err);
out:
    return rc;
}

ats_code ats_annotated_layout(const ats_build *ctx, ats_built *out, ats_err *err)
{
    const char *what = ats_arg_text(ctx, "annotated");
    const bool hide = strncmp(what, "hide", 4) == 0;
    const char *which = strstr(what, "_stale") != NULL ? "stale" : "current";
    ats_script script = ats_script_begin(ctx->arena, ctx->sample->n_keys);
    span_rows rows;
    ats_code rc = ATS_OK;
    out->dose = NAN;
    if (!hide) ATS_TRY(ats_need_moves(ctx, what, err));
    if (strcmp(what, "swap") == 0) {
        ATS_TRY(exchange_layout(ctx, &script, out, err));
    } else if (find(ctx, which, out, &rows)) {
        const ats_place place = {.start = rows.start, .stop = rows.stop};
        const int64_t at = hide ? 0 : ats_place_depth(ctx, &place, ats_arg(ctx, "to"));
        if (ctx->arm == ATS_ARM_CONTROL)
            ATS_TRY(twin(ctx, "control span", (span_rows){0, 0}, &rows, err));
        if (hide)
            ATS_TRY(ats_script_hide(&script, rows.start, rows.stop, err));
        else
            ATS_TRY(put(ctx, &script, rows, at, err));
    }
    if (!out->skipped) rc = ats_script_emit(&script, &out->edit, err);
out:
    return rc;
}

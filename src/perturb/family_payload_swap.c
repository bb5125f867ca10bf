#include <string.h>

#include "perturb/families.h"
#include "perturb/params.h"
#include "perturb/rows.h"
#include "perturb/script.h"
#include "perturb/target.h"

static const ats_param_def params[] = {
    ATS_PARAM_SPAN,
    {.name = "other",
     .type = ATS_PARAM_TEXT,
     .unit = "1",
     .doc = "Name or role of the span to exchange values with; absent: donor rows."},
};

/* The other span, or NULL for donors; out is marked skipped when it is named and absent. */
static const ats_span *other_span(const ats_build *ctx, ats_built *out)
{
    const char *text = ats_arg_text(ctx, "other");
    if (text == NULL) return NULL;
    const ats_span *span = ats_span_find(ctx->sample, text);
    if (span == NULL)
        ats_skip(out, "sample %s has no span of name or role '%s'", ctx->sample->id, text);
    return span;
}

static ats_code swap_values(const ats_build *ctx, ats_script *script, const ats_span *span,
                            int64_t *row, int64_t *position, ats_err *err)
{
    const int64_t length = span->stop - span->start;
    memcpy(position + *row, ctx->sample->position + span->start, (size_t)length * sizeof *position);
    const ats_code rc = ats_script_swap(script, span->start, span->stop, *row, false, true, err);
    *row += length;
    return rc;
}

static ats_code layout(const ats_build *ctx, ats_built *out, ats_err *err)
{
    const ats_span *a = ats_target_find(ctx, out);
    const ats_span *b = a != NULL ? other_span(ctx, out) : NULL;
    ats_script script = ats_script_begin(ctx->arena, ctx->sample->n_keys);
    int64_t *position = NULL, row = 0;
    ats_pool pool;
    ats_code rc = ATS_OK;
    if (out->skipped) return ATS_OK;
    if (b != NULL && a->start < b->stop && b->start < a->stop)
        ATS_TRY(ats_fail(err, ATS_E_SUITE,
                         "payload_swap: spans '%s' [%lld, %lld) and '%s' [%lld, %lld) overlap; "
                         "name two spans apart from each other",
                         a->name, (long long)a->start, (long long)a->stop, b->name,
                         (long long)b->start, (long long)b->stop));
    const int64_t total = a->stop - a->start + (b != NULL ? b->stop - b->start : 0);
    if (b == NULL) ATS_TRY(ats_pool_make(ctx, total, &pool, err));
    ATS_TRY(ATS_NEW(ctx->arena, total, &position, err));
    ATS_TRY(swap_values(ctx, &script, a, &row, position, err));
    if (b != NULL) ATS_TRY(swap_values(ctx, &script, b, &row, position, err));
    out->edit.side.count = total;
    out->edit.side.position = position;
    rc = ats_script_emit(&script, &out->edit, err);
out:
    return rc;
}

/* Rows of the shorter span are used in turn. */
static void exchange(ats_rows *rows, const ats_span *a, const ats_span *b)
{
    const int64_t na = a->stop - a->start, nb = b->stop - b->start;
    for (int64_t j = 0; j < na + nb; j++) {
        const int64_t row = j < na ? b->start + j % nb : a->start + (j - na) % na;
        ats_value_row(rows->ctx, rows->base, row, rows->v + j * rows->dv);
    }
}

static ats_code fill(const ats_build *ctx, ats_built *out, ats_err *err)
{
    const ats_span *a = ats_target_find(ctx, out), *b = other_span(ctx, out);
    ats_rows rows;
    ats_code rc;
    ATS_TRY(ats_rows_begin(ctx, out, a->start, a->stop, &rows, err));
    if (b != NULL) {
        exchange(&rows, a, b);
    } else {
        ATS_TRY(ats_rows_draw(&rows, "donors", err));
        ATS_TRY(ats_values_payload(&rows, "donor", err));
    }
    ats_rows_hand_over(&rows, out);
out:
    return rc;
}

const ats_family ats_family_payload_swap = {
    .kind = "payload_swap",
    .summary = "Values exchanged between two spans, or replaced by donors; keys stay.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = NULL,
    .has_control = false,
    .has_positions = false,
    .layout = layout,
    .fill = fill,
};

#include "perturb/target.h"

#include <stdio.h>
#include <string.h>

#include "perturb/params.h"

const ats_span *ats_span_find(const ats_sample *sample, const char *text)
{
    for (int64_t i = 0; i < sample->n_spans; i++)
        if (strcmp(sample->spans[i].name, text) == 0) return &sample->spans[i];
    for (int64_t i = 0; i < sample->n_spans; i++)
        if (strcmp(sample->spans[i].role, text) == 0) return &sample->spans[i];
    return NULL;
}

void ats_skip(ats_built *out, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    out->skipped = true;
    vsnprintf(out->reason, sizeof out->reason, fmt, args);
    va_end(args);
}

const ats_span *ats_target_find(const ats_build *ctx, ats_built *out)
{
    const char *text = ats_arg_text(ctx, "span");
    if (text == NULL) text = ctx->target;
    const ats_span *span = text != NULL ? ats_span_find(ctx->sample, text) : NULL;
    if (span == NULL)
        ats_skip(out, "sample %s has no span of name or role '%s'", ctx->sample->id,
                 text != NULL ? text : "(no target given)");
    return span;
}

const ats_span *ats_target_before_probes(const ats_build *ctx, ats_built *out)
{
    const ats_span *span = ats_target_find(ctx, out);
    if (span == NULL || span->stop <= ats_row_cap(ctx)) return span;
    ats_skip(out, "sample %s: span '%s' ends at row %lld, after the first probe's row %lld",
             ctx->sample->id, span->name, (long long)span->stop, (long long)ats_row_cap(ctx));
    return NULL;
}

int64_t ats_probe_count(const ats_build *ctx)
{
    return ctx->n_probes > 0 ? ctx->n_probes : ctx->sample->n_probes;
}

int64_t ats_probe_at(const ats_build *ctx, int64_t i)
{
    return ctx->n_probes > 0 ? ctx->probes[i] : i;
}

static int64_t group_size(const ats_layer *layer) { return layer->n_q_heads / layer->n_kv_heads; }

int64_t ats_head_count(const ats_build *ctx)
{
    return ctx->n_heads > 0 ? ctx->n_heads : group_size(ctx->layer);
}

int64_t ats_head_at(const ats_build *ctx, int64_t i)
{
    return ctx->n_heads > 0 ? ctx->heads[i] : ctx->kv_head * group_size(ctx->layer) + i;
}

/* The probe's own row, or the first row that stands after a probe without one. */
static int64_t probe_row(const ats_sample *sample, const ats_probe *probe)
{
    if (probe->index >= 0) return probe->index;
    int64_t row = 0;
    while (row < sample->n_keys && sample->position[row] <= probe->position) row++;
    return row;
}

int64_t ats_row_cap(const ats_build *ctx)
{
    int64_t cap = ctx->sample->n_keys;
    for (int64_t i = 0; i < ats_probe_count(ctx); i++) {
        const int64_t row = probe_row(ctx->sample, &ctx->sample->probes[ats_probe_at(ctx, i)]);
        if (row < cap) cap = row;
    }
    return cap;
}

ats_code ats_need_moves(const ats_build *ctx, const char *why, ats_err *err)
{
    const ats_layer *layer = ctx->layer;
    const char *fault = NULL;
    if (layer->positions == ATS_POSITIONS_ABSOLUTE)
        fault = "its positions are absolute embeddings, already mixed into keys and queries";
    else if (layer->positions != ATS_POSITIONS_ROPE)
        return ATS_OK;
    else if (layer->rope_dynamic)
        fault = "its rotary frequencies depend on the sequence length (rope_dynamic)";
    else if (layer->contract.rope.layout == ATS_ROPE_NONE || layer->contract.rope.pairs <= 0)
        fault = "it uses RoPE but the capture holds no inv_freq";
    if (fault == NULL) return ATS_OK;
    return ats_fail(err, ATS_E_UNSUPPORTED,
                    "layer %lld: %s %s moves keys to other positions, but %s; leave the layer out "
                    "or use a family that moves nothing (mask_window, payload_swap, temperature)",
                    (long long)layer->index, ctx->family->kind, why, fault);
}

ats_code ats_filler_rows(const ats_build *ctx, int64_t start, int64_t stop, int64_t **out,
                         int64_t *count, ats_err *err)
{
    const ats_sample *sample = ctx->sample;
    const int64_t cap = ats_row_cap(ctx);
    uint8_t *taken = NULL;
    int64_t *rows = NULL, n = 0;
    ats_code rc;
    ATS_TRY(ATS_NEW0(ctx->arena, sample->n_keys, &taken, err));
    ATS_TRY(ATS_NEW(ctx->arena, sample->n_keys, &rows, err));
    for (int64_t s = 0; s < sample->n_spans; s++)
        if (strcmp(sample->spans[s].role, "filler") != 0)
            memset(taken + sample->spans[s].start, 1,
                   (size_t)(sample->spans[s].stop - sample->spans[s].start));
    for (int64_t i = ATS_START_ROWS; i < cap; i++)
        if (!taken[i] && (i < start || i >= stop)) rows[n++] = i;
    *out = rows;
    *count = n;
out:
    return rc;
}

ats_code ats_filler_block(const ats_build *ctx, int64_t start, int64_t stop, int64_t rows,
                          const char *purpose, int64_t *out, ats_err *err)
{
    int64_t *filler = NULL, *starts = NULL, count = 0, n = 0;
    ats_code rc;
    ATS_TRY(ats_filler_rows(ctx, start, stop, &filler, &count, err));
    ATS_TRY(ATS_NEW(ctx->arena, count, &starts, err));
    for (int64_t i = 0; i + rows <= count; i++)
        if (filler[i + rows - 1] == filler[i] + rows - 1) starts[n++] = filler[i];
    ats_rng rng = ats_place_stream(ctx, purpose);
    *out = n > 0 ? starts[ats_rng_below(&rng, n)] : -1;
out:
    return rc;
}

ats_rng ats_place_stream(const ats_build *ctx, const char *purpose)
{
    return ats_rng_stream(ctx->seed, ctx->sample->id, ctx->variant_id, -1, -1, purpose);
}

ats_rng ats_row_stream(const ats_build *ctx, const char *purpose)
{
    return ats_rng_stream(ctx->seed, ctx->sample->id, ctx->variant_id, ctx->layer->index,
                          ctx->kv_head, purpose);
}

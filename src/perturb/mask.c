#include "perturb/mask.h"

#include <math.h>

#include "perturb/script.h"
#include "perturb/target.h"

ats_code ats_mask_random(const ats_build *ctx, int64_t count, const char *purpose, uint8_t *hidden,
                         ats_err *err)
{
    const int64_t cap = ats_row_cap(ctx);
    ats_rng rng = ats_place_stream(ctx, purpose);
    int64_t *rows = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(ctx->arena, cap, &rows, err));
    for (int64_t i = 0; i < cap; i++) rows[i] = i;
    ats_rng_choose(&rng, rows, cap, count);
    for (int64_t i = 0; i < count; i++) hidden[rows[i]] = 1;
out:
    return rc;
}

static bool all_heads_have_sinks(const ats_layer *layer)
{
    if (layer->sink == NULL) return false;
    for (int64_t h = 0; h < layer->n_q_heads; h++)
        if (!isfinite(layer->sink[h])) return false;
    return true;
}

static bool sees_a_key(const ats_build *ctx, int64_t p, const uint8_t *hidden)
{
    const ats_sample *sample = ctx->sample;
    const ats_probe *probe = &sample->probes[p];
    const uint8_t *keep = ctx->attention != NULL ? ctx->attention->keep : NULL;
    for (int64_t i = sample->n_keys - 1; i >= 0; i--) {
        if (hidden[i] || (keep != NULL && !keep[p * sample->n_keys + i])) continue;
        if (sample->segment != NULL && probe->index >= 0 &&
            sample->segment[i] != sample->segment[probe->index])
            continue;
        if (ats_legal_position(&ctx->layer->contract, probe->position, sample->position[i]))
            return true;
    }
    return false;
}

ats_code ats_mask_check(const ats_build *ctx, const uint8_t *hidden, const char *what, ats_err *err)
{
    if (all_heads_have_sinks(ctx->layer)) return ATS_OK;
    for (int64_t i = 0; i < ats_probe_count(ctx); i++) {
        const int64_t p = ats_probe_at(ctx, i);
        if (!sees_a_key(ctx, p, hidden))
            return ats_fail(err, ATS_E_SUITE,
                            "%s: pattern %s leaves probe %lld at position %lld no key to "
                            "attend to, and layer %lld has no sinks; hide fewer rows",
                            ctx->family->kind, what, (long long)p,
                            (long long)ctx->sample->probes[p].position,
                            (long long)ctx->layer->index);
    }
    return ATS_OK;
}

ats_code ats_mask_emit(const ats_build *ctx, const uint8_t *hidden, ats_built *out, ats_err *err)
{
    const int64_t cap = ats_row_cap(ctx);
    ats_script script = ats_script_begin(ctx->arena, ctx->sample->n_keys);
    ats_code rc;
    for (int64_t i = 0, stop; i < cap; i = stop) {
        stop = i + 1;
        while (stop < cap && hidden[stop] == hidden[i]) stop++;
        if (hidden[i]) ATS_TRY(ats_script_hide(&script, i, stop, err));
    }
    rc = ats_script_emit(&script, &out->edit, err);
out:
    return rc;
}

#include <math.h>
#include <string.h>

#include "capture/import_header.h"

static ats_rope_type type_of(const char *word)
{
    static const char *const words[] = {"default", "linear", "llama3", "yarn"};
    int i = 0;
    while (i < 3 && strcmp(words[i], word) != 0) i++;
    return (ats_rope_type)i;
}

static ats_code fail_rope(const ats_layer *layer, ats_err *err, const char *what)
{
    return ats_fail(err, ATS_E_INPUT, "layer %lld: rope: %s", (long long)layer->index, what);
}

static ats_code refuse_keys(const ats_import_rope *rope, const ats_layer *layer, ats_err *err)
{
    const ats_rope_scaling *s = &rope->scaling;
    const bool yarn = strcmp(rope->type, "yarn") == 0, llama3 = strcmp(rope->type, "llama3") == 0;
    const bool plain = strcmp(rope->type, "default") == 0 || strcmp(rope->type, "stored") == 0;
    const struct {
        const char *key;
        bool given, meant;
    } keys[] = {{"factor", s->factor > 0, !plain},
                {"attention_factor", s->attention_factor > 0, yarn},
                {"mscale", s->mscale > 0, yarn},
                {"mscale_all_dim", s->mscale_all_dim > 0, yarn},
                {"beta_fast", s->beta_fast > 0, yarn},
                {"beta_slow", s->beta_slow > 0, yarn},
                {"truncate: false", !rope->truncate, yarn},
                {"low_freq_factor", s->low_freq_factor > 0, llama3},
                {"high_freq_factor", s->high_freq_factor > 0, llama3}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].given && !keys[i].meant)
            return ats_fail(err, ATS_E_INPUT,
                            "layer %lld: rope: %s means nothing for type %s; take it away or state "
                            "the type",
                            (long long)layer->index, keys[i].key, rope->type);
    return ATS_OK;
}

static ats_code stored_frequencies(const double *stored, int64_t pairs, ats_layer *layer,
                                   ats_err *err)
{
    if (stored == NULL)
        return fail_rope(
            layer, err, "type stored needs the tensor inv_freq (names.inv_freq), [rotary_dim / 2]");
    if (pairs < 1 || 2 * pairs > layer->d_qk)
        return ats_fail(err, ATS_E_INPUT,
                        "layer %lld: rope: inv_freq has %lld frequencies; 1 to d_qk / 2 = %lld are "
                        "possible",
                        (long long)layer->index, (long long)pairs, (long long)(layer->d_qk / 2));
    layer->contract.rope.pairs = pairs;
    layer->contract.rope.inv_freq = stored;
    return ATS_OK;
}

static int64_t rotary_width(const ats_import_rope *rope, int64_t d_qk)
{
    if (rope->rotary_dim > 0) return rope->rotary_dim;
    /* transformers: int(head_dim * partial_rotary_factor) */
    if (rope->partial_rotary_factor > 0)
        return (int64_t)((double)d_qk * rope->partial_rotary_factor);
    return d_qk;
}

static ats_code make_frequencies(const ats_import_rope *rope, ats_arena *arena,
                                 ats_rope_scaling *scaling, ats_layer *layer, ats_err *err)
{
    double *inv_freq = NULL;
    ats_code rc;
    *scaling = rope->scaling;
    scaling->type = type_of(rope->type);
    scaling->keep_fractions = !rope->truncate;
    scaling->rotary_dim = rotary_width(rope, layer->d_qk);
    scaling->original_max_position =
        rope->original_max_position_embeddings > 0 ? rope->original_max_position_embeddings
        : scaling->type == ATS_ROPE_YARN           ? rope->max_position_embeddings
                                                   : 0;
    if (scaling->rotary_dim > layer->d_qk)
        return ats_fail(
            err, ATS_E_INPUT, "layer %lld: rope: rotary_dim %lld is more than d_qk = %lld",
            (long long)layer->index, (long long)scaling->rotary_dim, (long long)layer->d_qk);
    rc = ats_rope_scaling_check(scaling, err);
    if (rc != ATS_OK) return ats_prepend(err, rc, "layer %lld", (long long)layer->index);
    ATS_TRY(ATS_NEW(arena, scaling->rotary_dim / 2, &inv_freq, err));
    ats_rope_scaling_frequencies(scaling, inv_freq);
    layer->contract.rope.pairs = scaling->rotary_dim / 2;
    layer->contract.rope.inv_freq = inv_freq;
out:
    return rc;
}

/* The magnitude multiplies the rotated elements alone: of the whole logit, and so of the scale, it
 * is a factor only where every element is rotated. */
static ats_code scale_by_magnitude(const ats_import_rope *rope, double magnitude, ats_layer *layer,
                                   ats_err *err)
{
    if (magnitude == 1) return ATS_OK;
    if (rope->magnitude == NULL)
        return ats_fail(err, ATS_E_INPUT,
                        "layer %lld: rope: yarn multiplies q and k by %.9g; state whether the "
                        "stored ones hold it: magnitude: inside (captured from transformers or "
                        "vLLM) or magnitude: outside (then scale is multiplied by its square)",
                        (long long)layer->index, magnitude);
    const bool inside = strcmp(rope->magnitude, "inside") == 0;
    if (inside && !rope->rotated)
        return fail_rope(layer, err,
                         "magnitude is inside, but q and k are not rotated yet; the factor comes "
                         "with the rotation, so state magnitude: outside");
    if (inside) return ATS_OK;
    if (2 * layer->contract.rope.pairs != layer->d_qk)
        return fail_rope(layer, err,
                         "magnitude is outside, but only some elements of q and k are rotated, and "
                         "it multiplies those alone; multiply them in the tensors and state "
                         "magnitude: inside");
    layer->contract.scale *= magnitude * magnitude;
    return ATS_OK;
}

static ats_code scale_by_mscale(const ats_import_rope *rope, double factor, ats_layer *layer,
                                ats_err *err)
{
    if (factor == 1) return ATS_OK;
    if (rope->softmax_mscale == NULL)
        return ats_fail(err, ATS_E_INPUT,
                        "layer %lld: rope: mscale_all_dim multiplies the softmax scale by %.9g in "
                        "some models; state softmax_mscale: included (scale holds it), apply, or "
                        "none",
                        (long long)layer->index, factor);
    if (strcmp(rope->softmax_mscale, "apply") == 0) layer->contract.scale *= factor;
    return ATS_OK;
}

ats_code ats_import_make_rope(const ats_import_layer *entry, ats_arena *arena, const double *stored,
                              int64_t stored_pairs, ats_layer *layer, ats_err *err)
{
    const ats_import_rope *rope = &entry->rope;
    ats_rope_scaling scaling = {.type = ATS_ROPE_DEFAULT};
    ats_code rc = ATS_OK;
    if (rope->layout == NULL) return ATS_OK;
    ATS_TRY(refuse_keys(rope, layer, err));
    layer->contract.rope.layout =
        strcmp(rope->layout, "half") == 0 ? ATS_ROPE_HALF : ATS_ROPE_INTERLEAVED;
    layer->rope_dynamic = rope->dynamic;
    if (layer->max_position == 0 && rope->max_position_embeddings > 0)
        layer->max_position = (int64_t)rope->max_position_embeddings;
    if (strcmp(rope->type, "stored") == 0)
        return stored_frequencies(stored, stored_pairs, layer, err);
    if (stored != NULL)
        return fail_rope(
            layer, err,
            "the files hold inv_freq and the header describes frequencies; state type: "
            "stored, or give names.inv_freq another name");
    ATS_TRY(make_frequencies(rope, arena, &scaling, layer, err));
    ATS_TRY(scale_by_magnitude(rope, ats_rope_scaling_magnitude(&scaling), layer, err));
    rc = scale_by_mscale(rope, ats_rope_scaling_softmax(&scaling), layer, err);
out:
    return rc;
}

#include "capture/content.h"

#include <string.h>

/* FNV-1a, 64 bits. */
static void mix(uint64_t *sum, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;
    const bool present = bytes != NULL;
    *sum = (*sum ^ present) * 0x100000001b3;
    for (size_t i = 0; present && i < count; i++) *sum = (*sum ^ at[i]) * 0x100000001b3;
}

static void mix_i64(uint64_t *sum, int64_t value) { mix(sum, &value, sizeof value); }

static void mix_text(uint64_t *sum, const char *text)
{
    mix(sum, text, text != NULL ? strlen(text) + 1 : 0);
}

static void add_layer(content *c, const ats_layer *l)
{
    const ats_contract *k = &l->contract;
    const int64_t numbers[] = {l->index,       l->n_q_heads, l->n_kv_heads,   l->d_qk,
                               l->d_v,         l->positions, l->rope_dynamic, l->max_position,
                               l->d_model,     k->window,    k->chunk,        k->causal,
                               k->rope.layout, k->rope.pairs};
    mix(&c->numbers, numbers, sizeof numbers);
    mix(&c->numbers, &k->scale, sizeof k->scale);
    mix(&c->numbers, &k->softcap, sizeof k->softcap);
    mix(&c->numbers, k->rope.inv_freq, (size_t)k->rope.pairs * sizeof(double));
    mix(&c->numbers, l->sink, (size_t)l->n_q_heads * sizeof(float));
    mix(&c->numbers, l->alibi_slope, (size_t)l->n_q_heads * sizeof(float));
    mix(&c->numbers, l->w_o, (size_t)(l->n_q_heads * l->d_v * l->d_model) * sizeof(float));
}

static void add_sample(content *c, const ats_sample *s)
{
    const size_t n = (size_t)s->n_keys;
    mix_i64(&c->numbers, s->n_keys);
    mix(&c->numbers, s->tokens, n * sizeof *s->tokens);
    mix(&c->numbers, s->position, n * sizeof *s->position);
    mix(&c->numbers, s->segment, n * sizeof *s->segment);
    mix(&c->numbers, s->base_index, n * sizeof *s->base_index);
    mix_text(&c->texts, s->id);
    mix_text(&c->texts, s->cluster);
    mix_text(&c->texts, s->variant_of);
    for (size_t i = 0; s->token_text != NULL && i < n; i++) mix_text(&c->texts, s->token_text[i]);
    for (int64_t i = 0; i < s->n_spans; i++) {
        mix_i64(&c->numbers, s->spans[i].start);
        mix_i64(&c->numbers, s->spans[i].stop);
        mix_text(&c->texts, s->spans[i].name);
        mix_text(&c->texts, s->spans[i].role);
    }
    for (int64_t i = 0; i < s->n_probes; i++) {
        mix_i64(&c->numbers, s->probes[i].index);
        mix_i64(&c->numbers, s->probes[i].position);
        mix_text(&c->texts, s->probes[i].role);
    }
}

static void add_tensors(content *c, const ats_layer *l, const ats_sample *s, const ats_attention *a)
{
    const int64_t n = s->n_keys, p = s->n_probes, hq = l->n_q_heads, hkv = l->n_kv_heads;
    const int64_t dtypes[] = {a->q_dtype, a->k_dtype, a->v_dtype, a->bias_heads};
    mix(&c->numbers, dtypes, sizeof dtypes);
    mix(&c->numbers, a->q, (size_t)(hq * p * l->d_qk) * ats_dtype_size(a->q_dtype));
    mix(&c->numbers, a->k, (size_t)(hkv * n * l->d_qk) * ats_dtype_size(a->k_dtype));
    mix(&c->numbers, a->v, (size_t)(hkv * n * l->d_v) * ats_dtype_size(a->v_dtype));
    mix(&c->numbers, a->keep, (size_t)(p * n));
    mix(&c->numbers, a->bias, (size_t)(a->bias_heads * p * n) * sizeof(float));
    mix(&c->numbers, a->out, (size_t)(hq * p * l->d_v) * sizeof(float));
    mix(&c->numbers, a->lse, (size_t)(hq * p) * sizeof(float));
}

static void add_root(content *c, const ats_capture *got)
{
    const char *const texts[] = {got->model_id,       got->checkpoint, got->weights_hash,
                                 got->tokenizer_hash, got->created,    got->producer};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) mix_text(&c->texts, texts[i]);
    for (int64_t i = 0; i < got->n_readouts; i++) mix_text(&c->texts, got->readout_names[i]);
    mix(&c->numbers, got->readouts, (size_t)(got->n_readouts * got->readout_dim) * sizeof(float));
}

ats_code content_of_open(const ats_capture *got, content *out, ats_err *err)
{
    content c = {0};
    add_root(&c, got);
    for (int64_t l = 0; l < got->n_layers; l++) add_layer(&c, &got->layers[l]);
    for (int64_t s = 0; s < got->n_samples; s++) {
        add_sample(&c, &got->samples[s]);
        for (int64_t l = 0; l < got->n_layers; l++) {
            ats_attention a = {0};
            const ats_code rc = ats_attention_load(got, s, l, &a, err);
            if (rc != ATS_OK) return rc;
            add_tensors(&c, &got->layers[l], &got->samples[s], &a);
            ats_attention_fini(&a);
        }
    }
    *out = c;
    return ATS_OK;
}

ats_code content_of(const char *path, content *out, ats_err *err)
{
    ats_capture *got = NULL;
    ats_code rc = ats_capture_open(path, &got, err);
    if (rc != ATS_OK) return rc;
    rc = content_of_open(got, out, err);
    ats_capture_close(got);
    return rc;
}

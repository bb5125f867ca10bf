#include "support/tiny.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "support/check.h"

static const ats_span spans[] = {{"bos", "sink", 0, 1},
                                 {"stale", "stale", 40, 46},
                                 {"gold", "gold", 60, 66},
                                 {"near", "distractor", 90, 96},
                                 {"current", "current", 120, 128},
                                 {"question", "question", 0, 0}};
enum { N_SPANS = sizeof spans / sizeof *spans };

tiny_options tiny_defaults(void)
{
    return (tiny_options){.seed = 1,
                          .n_keys = 200,
                          .n_probes = 3,
                          .n_q_heads = 4,
                          .n_kv_heads = 2,
                          .d_qk = 16,
                          .d_v = 12,
                          .layout = ATS_ROPE_HALF,
                          .dtype = ATS_F32,
                          .max_position = 100000};
}

static void *take(tiny *t, int64_t count, size_t size)
{
    void *out = NULL;
    ats_err err;
    assert_ok(ats_arena_zalloc(&t->arena, count, size, &out, &err), &err);
    return out;
}

static void make_layer(tiny *t, const tiny_options *o)
{
    double *inv_freq = take(t, o->d_qk / 2, sizeof *inv_freq);
    float *slope = take(t, o->n_q_heads, sizeof *slope),
          *sink = take(t, o->n_q_heads, sizeof *sink);
    for (int64_t i = 0; i < o->d_qk / 2; i++)
        inv_freq[i] = pow(10000, -2.0 * (double)i / (double)o->d_qk);
    for (int64_t h = 0; h < o->n_q_heads; h++) slope[h] = 0.01F * (float)(h + 1);
    t->layer = (ats_layer){
        .index = 5,
        .n_q_heads = o->n_q_heads,
        .n_kv_heads = o->n_kv_heads,
        .d_qk = o->d_qk,
        .d_v = o->d_v,
        .contract = {.scale = 1 / sqrt((double)o->d_qk),
                     .softcap = o->softcap,
                     .temperature = 1,
                     .window = o->window,
                     .causal = true,
                     .rope = {.layout = o->layout,
                              .pairs = o->layout == ATS_ROPE_NONE ? 0 : o->d_qk / 2,
                              .inv_freq = o->layout == ATS_ROPE_NONE ? NULL : inv_freq}},
        .positions = o->alibi                     ? ATS_POSITIONS_ALIBI
                     : o->layout == ATS_ROPE_NONE ? ATS_POSITIONS_NONE
                                                  : ATS_POSITIONS_ROPE,
        .max_position = o->max_position,
        .sink = o->sink ? sink : NULL,
        .alibi_slope = o->alibi ? slope : NULL};
}

static void make_sample(tiny *t, const tiny_options *o, int64_t index)
{
    static const char *const ids[TINY_SAMPLES] = {"s00", "s01", "s02"};
    ats_span *own = take(t, N_SPANS, sizeof *own);
    ats_probe *probes = take(t, o->n_probes, sizeof *probes);
    int64_t *position = take(t, o->n_keys, sizeof *position);
    memcpy(own, spans, sizeof spans);
    own[N_SPANS - 1].start = o->n_keys - 8;
    own[N_SPANS - 1].stop = o->n_keys;
    for (int64_t i = 0; i < o->n_keys; i++) position[i] = i;
    for (int64_t p = 0; p < o->n_probes; p++) {
        const int64_t row = o->n_keys - o->n_probes + p;
        probes[p] = (ats_probe){.index = row, .position = position[row], .role = "question"};
    }
    t->samples[index] = (ats_sample){.id = ids[index],
                                     .cluster = ids[index],
                                     .n_keys = o->n_keys,
                                     .position = position,
                                     .n_spans = N_SPANS,
                                     .spans = own,
                                     .n_probes = o->n_probes,
                                     .probes = probes};
}

static void *random_tensor(tiny *t, const tiny_options *o, int64_t count, ats_rng *rng)
{
    void *out = take(t, count, ats_dtype_size(o->dtype));
    for (int64_t i = 0; i < count; i++) {
        const float x = (float)ats_rng_normal(rng);
        ats_narrow(o->dtype, &x, 1, out, i);
    }
    return out;
}

void tiny_make(tiny *out, const tiny_options *options)
{
    const tiny_options *o = options;
    memset(out, 0, sizeof *out);
    ats_arena_init(&out->arena, false);
    make_layer(out, o);
    for (int64_t i = 0; i < TINY_SAMPLES; i++) {
        make_sample(out, o, i);
        ats_rng rng = ats_rng_stream(o->seed, out->samples[i].id, "tiny", 0, 0, "tensors");
        out->attention[i] =
            (ats_attention){.q_dtype = o->dtype,
                            .k_dtype = o->dtype,
                            .v_dtype = o->dtype,
                            .q = random_tensor(out, o, o->n_q_heads * o->n_probes * o->d_qk, &rng),
                            .k = random_tensor(out, o, o->n_kv_heads * o->n_keys * o->d_qk, &rng),
                            .v = random_tensor(out, o, o->n_kv_heads * o->n_keys * o->d_v, &rng)};
    }
    out->capture = (ats_capture){.path = "tiny",
                                 .n_layers = 1,
                                 .layers = &out->layer,
                                 .n_samples = TINY_SAMPLES,
                                 .samples = out->samples};
}

void tiny_free(tiny *t) { ats_arena_fini(&t->arena); }

void tiny_row(ats_dtype dtype, const void *tensor, int64_t rows, int64_t d, int64_t head,
              int64_t row, double *out)
{
    for (int64_t i = 0; i < d; i++)
        out[i] = (double)ats_load(dtype, tensor, (head * rows + row) * d + i);
}

void tiny_rotate(const ats_rope *rope, double delta, double *x)
{
    for (int64_t i = 0; i < rope->pairs; i++) {
        double *a = x + (rope->layout == ATS_ROPE_HALF ? i : 2 * i);
        double *b = x + (rope->layout == ATS_ROPE_HALF ? i + rope->pairs : 2 * i + 1);
        const double angle = delta * rope->inv_freq[i], p = *a, q = *b;
        *a = p * cos(angle) - q * sin(angle);
        *b = q * cos(angle) + p * sin(angle);
    }
}

double tiny_dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

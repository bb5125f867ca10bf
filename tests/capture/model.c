#include "capture/model.h"

#include <hdf5.h>
#include <string.h>

#include "support/check.h"

static void *take(model *m, int64_t count, size_t size)
{
    ats_err err;
    void *memory = NULL;
    assert_ok(ats_arena_zalloc(&m->arena, count, size, &memory, &err), &err);
    return memory;
}

static float number(int64_t i, int64_t seed)
{
    return (float)((i * 37 + seed * 101) % 97 - 48) / 32;
}

static float *floats(model *m, int64_t count, int64_t seed)
{
    float *x = take(m, count, sizeof *x);
    for (int64_t i = 0; i < count; i++) x[i] = number(i, seed);
    return x;
}

static void *words(model *m, ats_dtype dtype, int64_t count, int64_t seed)
{
    void *x = take(m, count, ats_dtype_size(dtype));
    ats_narrow(dtype, floats(m, count, seed), count, x, 0);
    return x;
}

static void make_layers(model *m)
{
    double *frequencies = take(m, 3, sizeof *frequencies);
    for (int i = 0; i < 3; i++) frequencies[i] = 1.0 / (1 + 9 * i);
    m->layers[0] = (ats_layer){.index = 3,
                               .n_q_heads = 4,
                               .n_kv_heads = 2,
                               .d_qk = 8,
                               .d_v = 6,
                               .max_position = 4096,
                               .contract = {.scale = 0.25,
                                            .softcap = 30,
                                            .temperature = 1,
                                            .window = 9,
                                            .causal = true,
                                            .rope = {ATS_ROPE_HALF, 3, frequencies}},
                               .positions = ATS_POSITIONS_ROPE,
                               .rope_dynamic = true,
                               .sink = floats(m, 4, 1),
                               .w_o = floats(m, 4 * 6 * 5, 2),
                               .d_model = 5};
    m->layers[1] =
        (ats_layer){.index = 10,
                    .n_q_heads = 2,
                    .n_kv_heads = 2,
                    .d_qk = 4,
                    .d_v = 4,
                    .max_position = 100,
                    .contract = {.scale = 0.5, .temperature = 1, .chunk = 64, .causal = true},
                    .positions = ATS_POSITIONS_ALIBI,
                    .alibi_slope = floats(m, 2, 3)};
    m->layers[2] = (ats_layer){.index = 21,
                               .n_q_heads = 3,
                               .n_kv_heads = 1,
                               .d_qk = 5,
                               .d_v = 3,
                               .contract = {.scale = -0.125, .temperature = 1, .causal = false},
                               .positions = ATS_POSITIONS_NONE};
}

static void make_spans(model *m, ats_sample *sample)
{
    ats_span *spans = take(m, 2, sizeof *spans);
    spans[0] = (ats_span){"gold", "gold", 2, 5};
    spans[1] = (ats_span){"\xc3\xa9t\xc3\xa9", "filler", 5, 6};
    sample->spans = spans;
    sample->n_spans = 2;
}

static void make_sample(model *m, int index, const char *id, int64_t n)
{
    ats_sample *s = &m->samples[index];
    int32_t *tokens = take(m, n, sizeof *tokens);
    int64_t *position = take(m, n, sizeof *position);
    ats_probe *probes = take(m, MODEL_PROBES, sizeof *probes);
    for (int64_t i = 0; i < n; i++) {
        tokens[i] = (int32_t)(1000 * index + i);
        position[i] = i + 3;
    }
    probes[0] = (ats_probe){.index = n - 1, .position = n + 2, .role = "question"};
    probes[1] = (ats_probe){.index = -1, .position = n + 3, .role = ""};
    *s = (ats_sample){.id = id,
                      .cluster = "doc",
                      .n_keys = n,
                      .tokens = tokens,
                      .position = position,
                      .probes = probes,
                      .n_probes = MODEL_PROBES};
    make_spans(m, s);
}

static void make_samples(model *m)
{
    static const char *const pieces[] = {"<s>", " a\n", "\"",
                                         " z\xc3\xb6"
                                         "e"};
    make_sample(m, 0, "alpha", 20);
    make_sample(m, 1, "beta/2 \xe2\x82\xac", 7);
    make_sample(m, 2, "alpha+1", 21);
    int32_t *segment = take(m, 20, sizeof *segment);
    const char **texts = take(m, 20, sizeof *texts);
    int64_t *base = take(m, 21, sizeof *base);
    for (int i = 0; i < 20; i++) {
        segment[i] = i < 1 ? 0 : 7;
        texts[i] = pieces[i % 4];
    }
    for (int i = 0; i < 21; i++) base[i] = i < 11 ? i : i == 11 ? -1 : i - 1;
    m->samples[0].segment = segment;
    m->samples[0].token_text = texts;
    m->samples[2].variant_of = "alpha";
    m->samples[2].base_index = base;
}

static void make_tensors(model *m, int sample, int layer)
{
    static const ats_dtype dtypes[MODEL_LAYERS][3] = {
        {ATS_F32, ATS_F16, ATS_BF16}, {ATS_BF16, ATS_BF16, ATS_BF16}, {ATS_F32, ATS_F32, ATS_F32}};
    const ats_layer *l = &m->layers[layer];
    const int64_t n = m->samples[sample].n_keys, hq = l->n_q_heads, hkv = l->n_kv_heads;
    const int64_t seed = 10 * sample + layer, p = MODEL_PROBES;
    ats_attention *a = &m->tensors[sample][layer];
    *a = (ats_attention){
        .q_dtype = dtypes[layer][0], .k_dtype = dtypes[layer][1], .v_dtype = dtypes[layer][2]};
    a->q = words(m, a->q_dtype, hq * p * l->d_qk, seed);
    a->k = words(m, a->k_dtype, hkv * n * l->d_qk, seed + 1);
    a->v = words(m, a->v_dtype, hkv * n * l->d_v, seed + 2);
    if (layer == 1) {
        a->keep = take(m, p * n, 1);
        for (int64_t i = 0; i < p * n; i++) a->keep[i] = i % 3 != 0;
    }
    if (layer > 0) {
        a->bias_heads = layer == 1 ? hq : 1;
        a->bias = floats(m, a->bias_heads * p * n, seed + 3);
    }
    if (sample == 0) {
        a->out = floats(m, hq * p * l->d_v, seed + 4);
        a->lse = floats(m, hq * p, seed + 5);
    }
}

void model_make(model *m)
{
    static const char *const readouts[] = {"answer minus foil", "second"};
    *m = (model){.layers = {{0}}};
    make_layers(m);
    make_samples(m);
    for (int s = 0; s < MODEL_SAMPLES; s++)
        for (int l = 0; l < MODEL_LAYERS; l++) make_tensors(m, s, l);
    m->capture = (ats_capture){.model_id = "model",
                               .checkpoint = "step 1",
                               .weights_hash = "w",
                               .tokenizer_hash = "t",
                               .created = "2026-01-01",
                               .producer = "tests",
                               .n_layers = MODEL_LAYERS,
                               .layers = m->layers,
                               .n_samples = MODEL_SAMPLES,
                               .samples = m->samples,
                               .n_readouts = 2,
                               .readout_dim = 5,
                               .readout_names = readouts,
                               .readouts = floats(m, 10, 50)};
}

void model_shrink(model *m)
{
    m->capture.n_layers = 1;
    m->capture.n_samples = 1;
    m->capture.n_readouts = 0;
}

void model_write(const model *m, const char *path)
{
    ats_err err;
    ats_capture_writer *writer = NULL;
    assert_ok(ats_capture_create(path, &m->capture, &writer, &err), &err);
    for (int64_t i = 0; i < m->capture.n_samples; i++)
        assert_ok(ats_capture_add_sample(writer, &m->samples[i], m->tensors[i], &err), &err);
    assert_ok(ats_capture_finish(writer, &err), &err);
}

void model_free(model *m) { ats_arena_fini(&m->arena); }

ats_h5_file model_edit(const char *path)
{
    ats_err err;
    assert_ok(ats_h5_init(&err), &err);
    ats_h5_file file = {.id = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT),
                        .access = H5Pcreate(H5P_DATASET_ACCESS),
                        .path = strdup(path)};
    assert_true(file.id > 0);
    return file;
}

void model_remove(const ats_h5_file *file, const char *name)
{
    assert_true(H5Ldelete(file->id, name, H5P_DEFAULT) >= 0);
}

void model_replace(const ats_h5_file *file, const char *name, ats_h5_type type, int rank,
                   const int64_t *extent, const void *data)
{
    ats_err err;
    if (ats_h5_exists(file, name)) model_remove(file, name);
    assert_ok(ats_h5_save(file, name, type, rank, extent, data, &err), &err);
}

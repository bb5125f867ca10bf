/* Everything that the writer puts into a file comes back from the reader, bit for bit. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/parallel.h"
#include "capture/inspect.h"
#include "capture/model.h"
#include "h5/chunks.h"
#include "h5/scratch.h"
#include "support/check.h"

static void same_bytes(const void *got, const void *want, int64_t count, size_t size)
{
    if (want == NULL) {
        assert_null(got);
        return;
    }
    assert_non_null(got);
    assert_memory_equal(got, want, (size_t)count * size);
}

static void same_layer(const ats_layer *got, const ats_layer *want)
{
    const ats_contract *a = &got->contract, *b = &want->contract;
    assert_int_equal(got->index, want->index);
    assert_int_equal(got->n_q_heads, want->n_q_heads);
    assert_int_equal(got->n_kv_heads, want->n_kv_heads);
    assert_int_equal(got->d_qk, want->d_qk);
    assert_int_equal(got->d_v, want->d_v);
    assert_near(a->scale, b->scale, 0);
    assert_near(a->softcap, b->softcap, 0);
    assert_near(a->temperature, 1, 0);
    assert_int_equal(a->window, b->window);
    assert_int_equal(a->chunk, b->chunk);
    assert_int_equal(a->causal, b->causal);
    assert_int_equal(a->rope.layout, b->rope.layout);
    assert_int_equal(a->rope.pairs, b->rope.pairs);
    same_bytes(a->rope.inv_freq, b->rope.inv_freq, b->rope.pairs, sizeof(double));
    assert_int_equal(got->positions, want->positions);
    assert_int_equal(got->rope_dynamic, want->rope_dynamic);
    assert_int_equal(got->max_position, want->max_position);
    assert_int_equal(got->d_model, want->d_model);
    same_bytes(got->sink, want->sink, want->n_q_heads, sizeof(float));
    same_bytes(got->alibi_slope, want->alibi_slope, want->n_q_heads, sizeof(float));
    same_bytes(got->w_o, want->w_o, want->n_q_heads * want->d_v * want->d_model, sizeof(float));
}

static void same_sample(const ats_sample *got, const ats_sample *want)
{
    const int64_t n = want->n_keys;
    assert_string_equal(got->id, want->id);
    assert_string_equal(got->cluster, want->cluster);
    assert_int_equal(got->variant_of != NULL, want->variant_of != NULL);
    if (want->variant_of != NULL) assert_string_equal(got->variant_of, want->variant_of);
    assert_int_equal(got->n_keys, n);
    same_bytes(got->tokens, want->tokens, n, sizeof(int32_t));
    same_bytes(got->position, want->position, n, sizeof(int64_t));
    same_bytes(got->segment, want->segment, n, sizeof(int32_t));
    same_bytes(got->base_index, want->base_index, n, sizeof(int64_t));
    assert_int_equal(got->token_text != NULL, want->token_text != NULL);
    for (int64_t i = 0; want->token_text != NULL && i < n; i++)
        assert_string_equal(got->token_text[i], want->token_text[i]);
    assert_int_equal(got->n_spans, want->n_spans);
    for (int64_t i = 0; i < want->n_spans; i++) {
        assert_string_equal(got->spans[i].name, want->spans[i].name);
        assert_string_equal(got->spans[i].role, want->spans[i].role);
        assert_int_equal(got->spans[i].start, want->spans[i].start);
        assert_int_equal(got->spans[i].stop, want->spans[i].stop);
    }
    assert_int_equal(got->n_probes, want->n_probes);
    for (int64_t i = 0; i < want->n_probes; i++) {
        assert_int_equal(got->probes[i].index, want->probes[i].index);
        assert_int_equal(got->probes[i].position, want->probes[i].position);
        assert_string_equal(got->probes[i].role, want->probes[i].role);
    }
}

static void same_tensors(const ats_attention *got, const ats_attention *want,
                         const ats_layer *layer, const ats_sample *sample)
{
    const int64_t n = sample->n_keys, p = sample->n_probes;
    const int64_t hq = layer->n_q_heads, hkv = layer->n_kv_heads;
    assert_int_equal(got->q_dtype, want->q_dtype);
    assert_int_equal(got->k_dtype, want->k_dtype);
    assert_int_equal(got->v_dtype, want->v_dtype);
    assert_int_equal(got->bias_heads, want->bias_heads);
    same_bytes(got->q, want->q, hq * p * layer->d_qk, ats_dtype_size(want->q_dtype));
    same_bytes(got->k, want->k, hkv * n * layer->d_qk, ats_dtype_size(want->k_dtype));
    same_bytes(got->v, want->v, hkv * n * layer->d_v, ats_dtype_size(want->v_dtype));
    same_bytes(got->keep, want->keep, p * n, 1);
    same_bytes(got->bias, want->bias, want->bias_heads * p * n, sizeof(float));
    same_bytes(got->out, want->out, hq * p * layer->d_v, sizeof(float));
    same_bytes(got->lse, want->lse, hq * p, sizeof(float));
}

static void same_capture(const ats_capture *got, const model *m)
{
    ats_err err;
    assert_int_equal(got->n_layers, MODEL_LAYERS);
    assert_int_equal(got->n_samples, MODEL_SAMPLES);
    for (int i = 0; i < MODEL_LAYERS; i++) same_layer(&got->layers[i], &m->layers[i]);
    for (int s = 0; s < MODEL_SAMPLES; s++) {
        same_sample(&got->samples[s], &m->samples[s]);
        for (int l = 0; l < MODEL_LAYERS; l++) {
            ats_attention a;
            assert_ok(ats_attention_load(got, s, l, &a, &err), &err);
            same_tensors(&a, &m->tensors[s][l], &m->layers[l], &m->samples[s]);
            assert_true(a.bytes > 0);
            ats_attention_fini(&a);
        }
    }
}

/* Layers loaded one into the memory of another hold the same numbers, in no new memory where the
 * shapes are equal. */
static void test_reload(void **state)
{
    (void)state;
    ats_err err;
    model m;
    ats_capture *got = NULL;
    ats_attention a = {.bytes = 0};
    model_make(&m);
    model_write(&m, scratch_path("reload.h5"));
    assert_ok(ats_capture_open(scratch_path("reload.h5"), &got, &err), &err);
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    ats_capture_share(got, &mutex);
    for (int turn = 0; turn < 2; turn++)
        for (int s = 0; s < MODEL_SAMPLES; s++)
            for (int l = 0; l < MODEL_LAYERS; l++)
                for (int again = 0; again < 2; again++) {
                    const void *before[] = {a.q, a.k, a.v};
                    ats_attention next;
                    assert_ok(ats_attention_reload(got, s, l, 0, got->layers[l].n_kv_heads,
                                                   NULL, &a, &next, &err),
                              &err);
                    assert_null(a.k);
                    a = next;
                    same_tensors(&a, &m.tensors[s][l], &m.layers[l], &m.samples[s]);
                    if (again == 0) continue;
                    assert_ptr_equal(a.q, before[0]);
                    assert_ptr_equal(a.k, before[1]);
                    assert_ptr_equal(a.v, before[2]);
                }
    assert_int_equal(pthread_mutex_trylock(&mutex), 0); /* nobody kept it */
    pthread_mutex_unlock(&mutex);
    ats_attention_fini(&a);
    ats_capture_close(got);
    model_free(&m);
}

static void test_round_trip(void **state)
{
    (void)state;
    ats_err err;
    model m;
    ats_capture *got = NULL;
    model_make(&m);
    model_write(&m, scratch_path("round.h5"));
    assert_ok(ats_capture_open(scratch_path("round.h5"), &got, &err), &err);
    same_capture(got, &m);
    assert_string_equal(got->model_id, "model");
    assert_string_equal(got->checkpoint, "step 1");
    assert_string_equal(got->producer, "tests");
    assert_int_equal(got->n_readouts, 2);
    assert_int_equal(got->readout_dim, 5);
    assert_string_equal(got->readout_names[1], "second");
    same_bytes(got->readouts, m.capture.readouts, 10, sizeof(float));
    ats_capture_close(got);
    model_free(&m);
}

static void test_hash_is_of_the_bytes(void **state)
{
    (void)state;
    ats_err err;
    model m;
    ats_capture *got = NULL;
    int64_t size;
    char want[33];
    model_make(&m);
    model_write(&m, scratch_path("hash.h5"));
    uint8_t *bytes = scratch_read(scratch_path("hash.h5"), &size);
    const XXH128_hash_t hash = XXH3_128bits(bytes, (size_t)size);
    snprintf(want, sizeof want, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
    assert_ok(ats_capture_open(scratch_path("hash.h5"), &got, &err), &err);
    assert_string_equal(got->hash, want);
    ats_capture_close(got);
    free(bytes);
    model_free(&m);
}

static void test_equal_captures_are_equal_bytes(void **state)
{
    (void)state;
    model m;
    int64_t size[2];
    model_make(&m);
    ats_set_threads(1);
    model_write(&m, scratch_path("one.h5"));
    ats_set_threads(3);
    model_write(&m, scratch_path("two.h5"));
    ats_set_threads(0);
    uint8_t *one = scratch_read(scratch_path("one.h5"), &size[0]);
    uint8_t *two = scratch_read(scratch_path("two.h5"), &size[1]);
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(one, two, (size_t)size[0]);
    free(one);
    free(two);
    model_free(&m);
}

static void test_abort_leaves_nothing(void **state)
{
    (void)state;
    ats_err err;
    model m;
    ats_capture_writer *writer = NULL;
    model_make(&m);
    const char *path = scratch_path("aborted.h5"), *temporary = scratch_path("aborted.h5.tmp");
    assert_ok(ats_capture_create(path, &m.capture, &writer, &err), &err);
    assert_true(scratch_exists(temporary));
    ats_capture_abort(writer);
    assert_false(scratch_exists(temporary));
    assert_false(scratch_exists(path));
    model_free(&m);
}

/* RC-19: the same 16-bit patterns as words with a stated type and as a real HDF5 float. */
static void test_bfloat16_both_ways(void **state)
{
    (void)state;
    static const uint16_t bits[8] = {0x3f80, 0x4049, 0xc2f7, 0x0001,
                                     0x7f7f, 0x8000, 0xbf80, 0x0080};
    static const float want[8] = {1.0f,
                                  3.140625f,
                                  -123.5f,
                                  9.183549615799121e-41f,
                                  3.3895313892515355e38f,
                                  -0.0f,
                                  -1.0f,
                                  1.1754943508222875e-38f};
    ats_err err;
    model m;
    model_make(&m);
    model_shrink(&m);
    const int64_t n = 4 * MODEL_PROBES * 8, extent[3] = {4, MODEL_PROBES, 8};
    uint16_t words[64];
    for (int64_t i = 0; i < n; i++) words[i] = bits[i % 8];
    m.tensors[0][0].q = words;
    m.tensors[0][0].q_dtype = ATS_BF16;
    for (int real = 0; real < 2; real++) {
        ats_capture *got = NULL;
        ats_attention a;
        const char *path = scratch_path(real ? "real.h5" : "words.h5");
        model_write(&m, path);
        ats_h5_file file = model_edit(path);
        if (real) model_replace(&file, "/samples/0/layers/3/q", ATS_H5_BF16, 3, extent, words);
        ats_h5_close(&file);
        assert_ok(ats_capture_open(path, &got, &err), &err);
        assert_ok(ats_attention_load(got, 0, 0, &a, &err), &err);
        assert_int_equal(a.q_dtype, ATS_BF16);
        for (int64_t i = 0; i < n; i++) {
            const float x = ats_load(ATS_BF16, a.q, i);
            assert_memory_equal(&x, &want[i % 8], sizeof x);
        }
        ats_attention_fini(&a);
        ats_capture_close(got);
    }
    model_free(&m);
}

/* h5py writes small tensors without chunks, masks as booleans, numbers wider or narrower. */
static void test_other_storage_of_the_same(void **state)
{
    (void)state;
    ats_err err;
    model m;
    ats_capture *got = NULL;
    model_make(&m);
    const char *path = scratch_path("other.h5");
    model_write(&m, path);
    ats_h5_file file = model_edit(path);
    int64_t tokens[7];
    int32_t position[7];
    int8_t keep[2 * 7];
    double lse[3 * 2];
    for (int i = 0; i < 7; i++) {
        tokens[i] = m.samples[1].tokens[i];
        position[i] = (int32_t)m.samples[1].position[i];
    }
    for (int i = 0; i < 14; i++) keep[i] = (int8_t)(m.tensors[1][1].keep[i] != 0 ? -1 : 0);
    for (int i = 0; i < 6; i++) lse[i] = 0.25 * i;
    const int64_t seven[1] = {7}, mask[2] = {2, 7}, rows[2] = {3, 2}, q[3] = {3, 2, 5};
    model_replace(&file, "/samples/1/tokens", ATS_H5_I64, 1, seven, tokens);
    model_replace(&file, "/samples/1/position", ATS_H5_I32, 1, seven, position);
    model_replace(&file, "/samples/1/layers/10/keep", ATS_H5_I8, 2, mask, keep);
    model_replace(&file, "/samples/1/layers/21/lse", ATS_H5_F64, 2, rows, lse);
    model_replace(&file, "/samples/1/layers/21/q", ATS_H5_F32, 3, q, m.tensors[1][2].q);
    assert_ok(ats_h5_put_array(&file, "/layers/3", "causal", ATS_H5_U8, -1, &(uint8_t){1}, &err),
              &err);
    assert_ok(ats_h5_put_array(&file, "/layers/3", "scale", ATS_H5_F32, -1, &(float){0.25f}, &err),
              &err);
    ats_h5_close(&file);
    float narrow[6];
    for (int i = 0; i < 6; i++) narrow[i] = (float)lse[i];
    m.tensors[1][2].lse = narrow;
    assert_ok(ats_capture_open(path, &got, &err), &err);
    same_capture(got, &m);
    ats_capture_close(got);
    model_free(&m);
}

static void test_deflated_tensors(void **state)
{
    (void)state;
    ats_err err;
    model m;
    ats_capture *got = NULL;
    ats_h5_dataset dataset;
    model_make(&m);
    const char *path = scratch_path("deflate.h5"), *name = "/samples/0/layers/3/k";
    model_write(&m, path);
    ats_h5_file file = model_edit(path);
    const ats_h5_layout layout = {.type = ATS_H5_U16,
                                  .rank = 3,
                                  .extent = {2, 20, 8},
                                  .chunked = true,
                                  .chunk = {1, 7, 5},
                                  .shuffle = true,
                                  .compression = ATS_H5_DEFLATE,
                                  .level = 4};
    model_remove(&file, name);
    assert_ok(ats_h5_dataset_create(&file, name, &layout, &dataset, &err), &err);
    assert_ok(ats_h5_write_box(&dataset, NULL, NULL, m.tensors[0][0].k, &err), &err);
    ats_h5_dataset_close(&dataset);
    assert_ok(ats_h5_put_text(&file, name, "storage_dtype", "F16", &err), &err);
    ats_h5_close(&file);
    assert_ok(ats_capture_open(path, &got, &err), &err);
    same_capture(got, &m);
    ats_capture_close(got);
    model_free(&m);
}

static void test_inspect(void **state)
{
    (void)state;
    ats_err err;
    model m;
    ats_capture *got = NULL;
    int64_t size;
    model_make(&m);
    model_write(&m, scratch_path("inspect.h5"));
    assert_ok(ats_capture_open(scratch_path("inspect.h5"), &got, &err), &err);
    for (int json = 0; json < 2; json++) {
        const char *path = scratch_path("inspect.txt");
        FILE *out = fopen(path, "w");
        assert_ok(ats_capture_inspect(got, out, json == 1, &err), &err);
        fclose(out);
        char *text = (char *)scratch_read(path, &size);
        text[size] = '\0';
        if (json == 0)
            assert_says(text, "softcap 30", "window 9", "sink", "w_o[5]", "alpha+1: 21 keys",
                        "variant of alpha", "[2, 5)",
                        "\\\" z\xc3\xb6"
                        "e<s>",
                        "bfloat16", "keep");
        else
            assert_says(text, "\"variant_of\": \"alpha\"", "\"scale\": 0.25", "\"stop\": 5",
                        "\"k_dtype\": \"float16\"", "\"readouts\"");
        free(text);
    }
    ats_capture_close(got);
    model_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_reload),
        cmocka_unit_test(test_hash_is_of_the_bytes),
        cmocka_unit_test(test_equal_captures_are_equal_bytes),
        cmocka_unit_test(test_abort_leaves_nothing),
        cmocka_unit_test(test_bfloat16_both_ways),
        cmocka_unit_test(test_other_storage_of_the_same),
        cmocka_unit_test(test_deflated_tensors),
        cmocka_unit_test(test_inspect),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}

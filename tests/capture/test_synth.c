/* The planted truth of synthetic captures, against attention computed again in the test and
 * against copies really inserted into the reference backend. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/parallel.h"
#include "capture/synth.h"
#include "kernels/reference.h"
#include "support/check.h"

static char directory[64];

static int make_directory(void **state)
{
    (void)state;
    strcpy(directory, "synth-XXXXXX");
    return mkdtemp(directory) == NULL;
}

static int remove_directory(void **state)
{
    (void)state;
    return rmdir(directory);
}

static const char *in_directory(char path[96], const char *name)
{
    snprintf(path, 96, "%s/%s", directory, name);
    return path;
}

static ats_synth_options small_options(void)
{
    ats_synth_options o = ats_synth_defaults();
    o.n_keys = 300;
    o.d_qk = 32;
    o.d_v = 8;
    o.n_probes = 3;
    return o;
}

static ats_capture *write_and_open(const ats_synth_options *options, json_t **truth)
{
    char path[96], truth_path[96];
    ats_err err = {.code = ATS_OK};
    ats_capture *capture = NULL;
    in_directory(path, "c.h5");
    in_directory(truth_path, "c.json");
    assert_ok(ats_synth_write(options, path, truth_path, &err), &err);
    assert_ok(ats_capture_open(path, &capture, &err), &err);
    *truth = json_load_file(truth_path, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(*truth);
    unlink(path);
    unlink(truth_path);
    return capture;
}

/* The truth's entry for a row. */
static const json_t *row_of(const json_t *truth, int64_t s, int64_t l, int64_t h, int64_t p)
{
    const json_t *sample = json_array_get(json_object_get(truth, "samples"), (size_t)s);
    const json_t *layer = json_array_get(json_object_get(sample, "layers"), (size_t)l);
    const json_t *head = json_array_get(json_object_get(layer, "heads"), (size_t)h);
    const json_t *row = json_array_get(json_object_get(head, "probes"), (size_t)p);
    assert_non_null(row);
    return row;
}

/* Logits of one row from the stored words; -inf where the key is not visible. */
static void logits(const ats_layer *layer, const ats_sample *sample, const ats_attention *t,
                   int64_t head, int64_t probe, double *z)
{
    const int64_t d = layer->d_qk, n = sample->n_keys;
    const int64_t kv = head * layer->n_kv_heads / layer->n_q_heads;
    for (int64_t i = 0; i < n; i++) {
        double x = 0;
        for (int64_t j = 0; j < d; j++)
            x += (double)ats_load(t->q_dtype, t->q, (head * sample->n_probes + probe) * d + j) *
                 (double)ats_load(t->k_dtype, t->k, (kv * n + i) * d + j);
        x *= layer->contract.scale;
        if (layer->contract.softcap > 0)
            x = layer->contract.softcap * tanh(x / layer->contract.softcap);
        z[i] = ats_capture_visible(layer, sample, t, probe, i) ? x : -HUGE_VAL;
    }
}

static double direct_lse(const double *z, int64_t n, double sink)
{
    double sum = exp(sink);
    for (int64_t i = 0; i < n; i++) sum += exp(z[i]);
    return log(sum);
}

static void check_row(const ats_capture *capture, const json_t *truth, const ats_attention *t,
                      int64_t s, int64_t l, int64_t head, int64_t probe, double *z, double bar)
{
    const ats_layer *layer = &capture->layers[l];
    const ats_sample *sample = &capture->samples[s];
    const json_t *row = row_of(truth, s, l, head, probe);
    const double sink = layer->sink != NULL ? (double)layer->sink[head] : -HUGE_VAL;
    logits(layer, sample, t, head, probe, z);
    const double lse = direct_lse(z, sample->n_keys, sink);
    const int64_t at = head * sample->n_probes + probe;
    assert_near(json_real_value(json_object_get(row, "lse")), lse, 1e-11);
    assert_near((double)t->lse[at], lse, 1e-6);
    for (int64_t i = 0; i < sample->n_spans; i++) {
        const ats_span *span = &sample->spans[i];
        double mass = 0;
        for (int64_t k = span->start; k < span->stop; k++) mass += exp(z[k] - lse);
        const json_t *stated = json_object_get(json_object_get(row, "mass"), span->name);
        assert_near(json_real_value(stated), mass, 1e-11);
        if (strcmp(span->role, "gold") == 0) assert_near(mass, 0.4, 0.4 * bar);
        if (strcmp(span->role, "distractor") == 0) assert_near(mass, 0.03, 0.03 * bar);
    }
    for (int64_t j = 0; j < layer->d_v; j++) {
        const int64_t kv = head * layer->n_kv_heads / layer->n_q_heads;
        double out = 0;
        for (int64_t i = 0; i < sample->n_keys; i++)
            out += exp(z[i] - lse) *
                   (double)ats_load(t->v_dtype, t->v, (kv * sample->n_keys + i) * layer->d_v + j);
        assert_near((double)t->out[at * layer->d_v + j], out, 1e-6);
    }
}

/* bar: relative error of a planted mass. 16-bit storage in two parts keeps 2^-17 of an offset of
 * about ten nats (bfloat16: 8 + 8 bits), one part 2^-9 of it. */
static void check_truth(const ats_synth_options *options, double bar)
{
    json_t *truth = NULL;
    ats_capture *capture = write_and_open(options, &truth);
    double *z = malloc((size_t)options->n_keys * sizeof *z);
    assert_non_null(z);
    for (int64_t s = 0; s < capture->n_samples; s++)
        for (int64_t l = 0; l < capture->n_layers; l++) {
            ats_attention t = {0};
            ats_err err = {.code = ATS_OK};
            assert_ok(ats_attention_load(capture, s, l, &t, &err), &err);
            for (int64_t h = 0; h < options->n_q_heads; h++)
                for (int64_t p = 0; p < options->n_probes; p++)
                    check_row(capture, truth, &t, s, l, h, p, z, bar);
            ats_attention_fini(&t);
        }
    free(z);
    ats_capture_close(capture);
    json_decref(truth);
}

static void plants_the_masses_asked_for(void **state)
{
    (void)state;
    ats_synth_options o = small_options();
    check_truth(&o, 2e-4);
    o.dtype = ATS_F16;
    check_truth(&o, 1e-5);
    o.dtype = ATS_F32;
    o.d_qk = 16;
    check_truth(&o, 1e-5);
    o.dtype = ATS_BF16; /* too narrow for two parts */
    check_truth(&o, 4e-2);
}

static void plants_them_under_every_contract(void **state)
{
    (void)state;
    ats_synth_options o = small_options();
    o.samples = o.layers = 1;
    o.rope = true;
    o.softcap = 20;
    check_truth(&o, 2e-4);
    o.layout = ATS_ROPE_INTERLEAVED;
    o.window = 120;
    o.sink = true;
    check_truth(&o, 2e-4);
    o.window = 0;
    o.chunk = 128;
    o.n_keys = 384;
    o.w_o = true;
    check_truth(&o, 2e-4);
    o.n_q_heads = 7;
    o.n_kv_heads = 1;
    o.n_probes = 20;
    o.distractors = 0;
    check_truth(&o, 2e-4);
}

/* Gold's retention with `copies` exact copies of a span: exp(L - L'), as nothing old changes. */
static double retention(ats_arena *arena, const ats_problem *problem, const ats_span *span,
                        int64_t row, int64_t copies)
{
    const int64_t rows = span->stop - span->start, d = problem->d_qk, dv = problem->d_v;
    ats_err err = {.code = ATS_OK};
    float *k, *v;
    int64_t *position;
    assert_ok(ATS_NEW(arena, copies * rows * d, &k, &err), &err);
    assert_ok(ATS_NEW(arena, copies * rows * dv, &v, &err), &err);
    assert_ok(ATS_NEW(arena, copies * rows, &position, &err), &err);
    for (int64_t c = 0; c < copies; c++) {
        ats_widen(problem->k_dtype, problem->k, span->start * d, rows * d, k + c * rows * d);
        ats_widen(problem->v_dtype, problem->v, span->start * dv, rows * dv, v + c * rows * dv);
        memcpy(position + c * rows, problem->key_pos + span->start,
               (size_t)rows * sizeof *position);
    }
    const ats_segment segments[] = {
        {.kind = ATS_SEG_KEEP, .start = 0, .stop = span->stop},
        {.kind = ATS_SEG_ROWS, .start = 0, .stop = copies * rows},
        {.kind = ATS_SEG_KEEP, .start = span->stop, .stop = problem->n_keys}};
    const ats_edit edit = {.n_segments = 3,
                           .segments = segments,
                           .side = {.count = copies * rows, .k = k, .v = v, .position = position},
                           .temperature = 1};
    double base = 0, variant = 0;
    assert_ok(ats_reference_row(problem, NULL, row, NULL, NULL, NULL, NULL, &base, &err), &err);
    assert_ok(ats_reference_row(problem, &edit, row, NULL, NULL, NULL, NULL, &variant, &err), &err);
    return exp(base - variant);
}

static const ats_span *span_called(const ats_sample *sample, const char *name)
{
    for (int64_t i = 0; i < sample->n_spans; i++)
        if (strcmp(sample->spans[i].name, name) == 0) return &sample->spans[i];
    fail_msg("no span %s", name);
    return NULL;
}

static void flips_at_the_dose_it_states(void **state)
{
    (void)state;
    ats_synth_options o = small_options();
    o.distractor_mass = 0.07;
    o.samples = o.layers = 1;
    json_t *truth = NULL;
    ats_capture *capture = write_and_open(&o, &truth);
    const ats_layer *layer = &capture->layers[0];
    const ats_sample *sample = &capture->samples[0];
    ats_attention t = {0};
    ats_arena arena = {0};
    ats_err err = {.code = ATS_OK};
    assert_ok(ats_attention_load(capture, 0, 0, &t, &err), &err);
    float *q = malloc((size_t)(o.n_q_heads * o.n_probes * o.d_qk) * sizeof *q);
    int64_t q_pos[2 * 3];
    assert_non_null(q);
    ats_widen(t.q_dtype, t.q, 0, o.n_q_heads * o.n_probes * o.d_qk, q);
    for (int64_t row = 0; row < 6; row++) q_pos[row] = sample->probes[row % 3].position;
    const ats_range all = {0, sample->n_keys};
    const ats_region region = {1, &all};
    const ats_problem problem = {.contract = layer->contract,
                                 .n_keys = sample->n_keys,
                                 .d_qk = o.d_qk,
                                 .d_v = o.d_v,
                                 .k_dtype = t.k_dtype,
                                 .v_dtype = t.v_dtype,
                                 .k = t.k,
                                 .v = t.v,
                                 .key_pos = sample->position,
                                 .n_rows = 6, /* heads 0 and 1 share key head 0 */
                                 .n_probes = 3,
                                 .q = q,
                                 .q_pos = q_pos,
                                 .n_regions = 1,
                                 .regions = &region,
                                 .top_k = 1};
    for (int64_t row = 0; row < 6; row++) {
        const json_t *stated = row_of(truth, 0, 0, row / 3, row % 3);
        const int64_t copies = json_integer_value(json_object_get(stated, "flip_copies"));
        const char *name = json_string_value(json_object_get(stated, "strongest_distractor"));
        const ats_span *span = span_called(sample, name);
        assert_int_equal(copies, 15); /* 1 / 0.07 = 14.3 */
        assert_true(retention(&arena, &problem, span, row, copies) <= 0.5);
        assert_true(retention(&arena, &problem, span, row, copies - 1) > 0.5);
    }
    free(q);
    ats_arena_fini(&arena);
    ats_attention_fini(&t);
    ats_capture_close(capture);
    json_decref(truth);
}

static char *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    char *bytes = malloc(*size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, f), *size);
    fclose(f);
    unlink(path);
    return bytes;
}

static void writes_equal_bytes_at_any_thread_count(void **state)
{
    (void)state;
    ats_synth_options o = small_options();
    o.n_keys = 2500; /* several blocks of rows */
    o.rope = o.sink = o.w_o = true;
    char *bytes[3];
    size_t size[3];
    for (int i = 0; i < 3; i++) {
        char path[96];
        ats_err err = {.code = ATS_OK};
        ats_set_threads(i + 1);
        assert_ok(ats_synth_write(&o, in_directory(path, "same.h5"), NULL, &err), &err);
        bytes[i] = read_file(path, &size[i]);
    }
    ats_set_threads(0);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(size[i], size[0]);
        assert_memory_equal(bytes[i], bytes[0], size[0]);
    }
    for (int i = 0; i < 3; i++) free(bytes[i]);
}

static void seed_changes_the_rows(void **state)
{
    (void)state;
    ats_synth_options o = small_options();
    char *bytes[2];
    size_t size[2];
    for (uint64_t i = 0; i < 2; i++) {
        char path[96];
        ats_err err = {.code = ATS_OK};
        o.seed = 5 + i;
        assert_ok(ats_synth_write(&o, in_directory(path, "seed.h5"), NULL, &err), &err);
        bytes[i] = read_file(path, &size[i]);
    }
    assert_true(size[0] != size[1] || memcmp(bytes[0], bytes[1], size[0]) != 0);
    free(bytes[0]);
    free(bytes[1]);
}

static void refused(ats_synth_options o, const char *a, const char *b)
{
    char path[96];
    ats_err err = {.code = ATS_OK};
    in_directory(path, "refused.h5");
    assert_int_equal(ats_synth_write(&o, path, NULL, &err), ATS_E_USAGE);
    assert_says(err.text, a, b);
    assert_int_equal(access(path, F_OK), -1);
}

static void refuses_what_cannot_be_planted(void **state)
{
    (void)state;
    ats_synth_options o = small_options();
    o.d_qk = 10;
    refused(o, "d_qk is 10", "at least 11");
    o = small_options();
    o.softcap = 3;
    refused(o, "soft cap of 3", "gold");
    o = small_options();
    o.n_q_heads = 5;
    refused(o, "5 query heads", "multiple");
    o = small_options();
    o.chunk = 299;
    refused(o, "chunk", "keys");
    o = small_options();
    o.n_keys = 20;
    refused(o, "do not fit", "more keys");
    o = small_options();
    o.gold_mass = 0.9;
    refused(o, "1.02", "below 0.99");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plants_the_masses_asked_for),
        cmocka_unit_test(plants_them_under_every_contract),
        cmocka_unit_test(flips_at_the_dose_it_states),
        cmocka_unit_test(writes_equal_bytes_at_any_thread_count),
        cmocka_unit_test(seed_changes_the_rows),
        cmocka_unit_test(refuses_what_cannot_be_planted),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}

/* Regression cases that an import decides: RC-04 (meaning of a mask), RC-06 and RC-08 (window and
 * soft cap of 0 and -1), RC-07 d (layout), RC-11 (rotary pairing), RC-12 (YaRN's factor). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture.h"
#include "capture/import.h"
#include "capture/tensor_files.h"
#include "kernels/backend.h"
#include "support/check.h"
#include "support/evaluate.h"

static ats_arena arena;

static int setup(void **state)
{
    ats_arena_init(&arena, false);
    return scratch_setup(state);
}

static int teardown(void **state)
{
    ats_arena_fini(&arena);
    return scratch_teardown(state);
}

/* One layer and sample: header is what the document holds, tensors lie in case.safetensors. */
static ats_code import(const char *header, ats_import_report *report, ats_err *err)
{
    const char *yaml = scratch_path("case.yaml"), *tensors = scratch_path("case.safetensors");
    const ats_import_options options = {.header = yaml,
                                        .n_files = 1,
                                        .files = &tensors,
                                        .output = scratch_path("case.h5"),
                                        .producer = "tests"};
    scratch_write(yaml, header, (int64_t)strlen(header));
    return ats_import(&options, &arena, report, err);
}

typedef struct loaded {
    ats_capture *capture;
    ats_attention a;
} loaded;

static loaded import_and_load(const char *header, ats_import_report *report)
{
    loaded got = {.capture = NULL};
    ats_err err;
    assert_ok(import(header, report, &err), &err);
    assert_ok(ats_capture_open(scratch_path("case.h5"), &got.capture, &err), &err);
    assert_ok(ats_attention_load(got.capture, 0, 0, &got.a, &err), &err);
    return got;
}

static void release(loaded *got)
{
    ats_attention_fini(&got->a);
    ats_capture_close(got->capture);
}

/* Row 0 of head 0 by the reference backend: weights of n keys, output element 0, LSE. */
static void evaluate(const loaded *got, double *weight, double *out, double *lse)
{
    const ats_layer *layer = got->capture->layers;
    const ats_sample *sample = got->capture->samples;
    const ats_backend *backend = NULL;
    ats_region regions[4];
    ats_range ranges[4];
    float q[8], k[32], v[32];
    ats_err err;
    stats_set set;
    const int64_t n = sample->n_keys;
    ats_widen(got->a.q_dtype, got->a.q, 0, layer->d_qk, q);
    ats_widen(got->a.k_dtype, got->a.k, 0, n * layer->d_qk, k);
    ats_widen(got->a.v_dtype, got->a.v, 0, n * layer->d_v, v);
    for (int64_t i = 0; i < n; i++) {
        ranges[i] = (ats_range){i, i + 1};
        regions[i] = (ats_region){1, &ranges[i]};
    }
    const ats_problem p = {.contract = layer->contract,
                           .n_keys = n,
                           .d_qk = layer->d_qk,
                           .d_v = layer->d_v,
                           .k = k,
                           .v = v,
                           .key_pos = sample->position,
                           .n_rows = 1,
                           .n_probes = 1,
                           .q = q,
                           .q_pos = &sample->probes[0].position,
                           .keep = got->a.keep,
                           .n_regions = n,
                           .regions = regions,
                           .top_k = n};
    assert_ok(ats_backend_find("reference", &backend, &err), &err);
    evaluate_all(&arena, backend, &p, NULL, 0, &set);
    *lse = set.base.route.lse[0];
    *out = (double)set.base.route.output[0];
    for (int64_t i = 0; i < n; i++) weight[i] = exp(set.base.route.region_lse[i] - *lse);
}

#define HEAD "version: 1\nmodel_id: m\nlayout: [head, token, dim]\n"
#define ONE_PROBE "samples: [{id: s, probes: [{index: -1, position: 9}]}]\n"
#define LAYER(more) "layers: [{layer: 0, scale: 1, causal: false" more "}]\n"
#define T(name, type, shape, from, to)                                                             \
    "\"layers.0." name "\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":[" from    \
    "," to "]}"

/* q [1, 1, 2] = (1, 0), k [1, 2, 2] = identity, v = (10, 20): scores 1 and 0 at scale 1. */
static void write_scores(void)
{
    static const float data[] = {1, 0, 1, 0, 0, 1, 10, 20};
    safetensors_write(scratch_path("case.safetensors"),
                      "{" T("q", "F32", "[1,1,2]", "0",
                            "8") "," T("k", "F32", "[1,2,2]", "8",
                                       "24") "," T("v", "F32", "[1,2,1]", "24", "32") "}",
                      0, data, sizeof data);
}

#define ROPE(text) ", rope: {layout: half, rotated: true, rope_theta: 10000, " text "}"
#define YARN(text) ROPE("type: yarn, original_max_position_embeddings: 4096, " text)

/* RC-12 a to e: the effective scale, in the report and in the file, and the weights it gives. */
static void yarn_multiplies_q_and_k(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        double scale, p0, bar;
    } rows[] = {
        {HEAD LAYER(YARN("factor: 64, magnitude: outside")) ONE_PROBE, 2.004739701682,
         0.881293818771, 1e-11},
        {HEAD LAYER(YARN("factor: 64, magnitude: inside")) ONE_PROBE, 1, 0.731058578630, 0},
        {HEAD LAYER(YARN("factor: 64, attention_factor: 1.0")) ONE_PROBE, 1, 0.731058578630, 0},
        {HEAD LAYER(YARN("factor: 128, attention_factor: 1.4852030264, magnitude: outside"))
             ONE_PROBE,
         1.4852030264 * 1.4852030264, 0.900771650404, 1e-12},
        {HEAD LAYER(YARN("factor: 0.5")) ONE_PROBE, 1, 0.731058578630, 0},
        {HEAD LAYER(YARN("factor: 40, mscale: 1.0, mscale_all_dim: 1.0, softmax_mscale: apply"))
             ONE_PROBE,
         1.873854207093, 0.866903611792, 1e-11},
        {HEAD LAYER(YARN("factor: 40, mscale: 1.0, mscale_all_dim: 1.0, softmax_mscale: none"))
             ONE_PROBE,
         1, 0.731058578630, 0},
    };
    write_scores();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ats_import_report report;
        double weight[2], out, lse;
        loaded got = import_and_load(rows[i].header, &report);
        assert_near(got.capture->layers[0].contract.scale, rows[i].scale, rows[i].bar);
        assert_near(report.layers[0].scale, rows[i].scale, rows[i].bar);
        assert_near(report.layers[0].stated_scale, 1, 0);
        evaluate(&got, weight, &out, &lse);
        assert_near(weight[0], 1 / (1 + exp(-rows[i].scale)), 1e-9);
        assert_near(weight[0], rows[i].p0, 1e-9);
        release(&got);
    }
}

/* RC-12: what would be guessed or ignored is refused. */
static void yarn_is_stated_or_refused(void **state)
{
    (void)state;
    static const struct {
        const char *header, *says[3];
    } rows[] = {
        {HEAD LAYER(YARN("factor: 64")) ONE_PROBE,
         {"1.41588831", "magnitude: inside", "magnitude: outside"}},
        {HEAD LAYER(YARN("factor: 40, mscale: 1.0, mscale_all_dim: 1.0")) ONE_PROBE,
         {"1.87385421", "softmax_mscale", "included"}},
        {HEAD LAYER(YARN("factor: 64, atention_factor: 1.0")) ONE_PROBE,
         {"unknown key 'atention_factor' in rope", "did you mean 'attention_factor'",
          "case.yaml:4"}},
        {HEAD LAYER(ROPE("factor: 64")) ONE_PROBE,
         {"factor means nothing for type default", "", ""}},
        {HEAD LAYER(ROPE("type: yarn, factor: 64")) ONE_PROBE,
         {"layer 0", "original_max_position_embeddings", "tokens"}},
        {HEAD LAYER(ROPE("type: longrope")) ONE_PROBE, {"'longrope' is not one of", "stored", ""}},
    };
    write_scores();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ats_import_report report;
        ats_err err = {.text = ""};
        remove(scratch_path("case.h5"));
        assert_int_equal(import(rows[i].header, &report, &err), ATS_E_INPUT);
        assert_says(err.text, rows[i].says[0], rows[i].says[1], rows[i].says[2]);
        assert_false(scratch_exists(scratch_path("case.h5")));
        assert_false(scratch_exists(scratch_path("case.h5.import")));
    }
}

/* RC-11 a: pairings of tensors that are not rotated yet; rotated ones are left alone. */
static void pairings_are_as_stated(void **state)
{
    (void)state;
    static const float data[] = {1, 2, 3, 4, 4, 3, 2, 1, 5};
    static const struct {
        const char *rope;
        double q[4], k[4];
    } rows[] = {
        {", rope: {layout: interleaved, rotated: false, rope_theta: 10000}",
         {-1.142639663748, 1.922075596544, 2.959850667913, 4.029799501669},
         {-4.383330010581, -2.405497457562, 1.969104567295, 1.059541034154}},
        {", rope: {layout: half, rotated: false, rope_theta: 10000}",
         {-1.984110648556, 1.959900667497, 2.462377902412, 4.019799668335},
         {-4.242210002522, 2.968654601044, -1.415504960961, 1.089536534356}},
        {", rope: {layout: half, rotated: true, rope_theta: 10000}", {1, 2, 3, 4}, {4, 3, 2, 1}},
    };
    safetensors_write(scratch_path("case.safetensors"),
                      "{" T("q", "F32", "[1,1,4]", "0",
                            "16") "," T("k", "F32", "[1,1,4]", "16",
                                        "32") "," T("v", "F32", "[1,1,1]", "32", "36") "}",
                      0, data, sizeof data);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double bar = i < 2 ? 4 * 3 * 0x1p-24 : 0; /* float storage, two products each */
        char header[600];
        ats_import_report report;
        snprintf(header, sizeof header,
                 HEAD "layers: [{layer: 0, scale: 1/sqrt(d_qk), causal: false%s}]\n"
                      "samples: [{id: s, first_position: 3, probes: [{index: -1, position: 1}]}]\n",
                 rows[i].rope);
        loaded got = import_and_load(header, &report);
        assert_near(got.capture->layers[0].contract.scale, 0.5, 0);
        for (int e = 0; e < 4; e++) {
            assert_near((double)((const float *)got.a.q)[e], rows[i].q[e], bar);
            assert_near((double)((const float *)got.a.k)[e], rows[i].k[e], bar);
        }
        release(&got);
    }
}

/* RC-07 d: K by (token, head) = [[1, 2], [3, 4]], in both layouts. */
static void layouts_give_the_same_capture(void **state)
{
    (void)state;
    static const float by_token[] = {1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8};
    static const float by_head[] = {1, 3, 2, 4, 1, 3, 2, 4, 5, 7, 6, 8};
    static const char tensors[] = "{" T("q", "F32", "[2,2,1]", "0", "16") "," T(
        "k", "F32", "[2,2,1]", "16", "32") "," T("v", "F32", "[2,2,1]", "32", "48") "}";
    static const char rest[] =
        LAYER(", positions: none") "samples: [{id: s, probes: [{index: 1}, {index: 0}]}]\n";
    static const char *const layouts[] = {"layout: [token, head, dim]\n",
                                          "layout: [head, token, dim]\n", ""};
    uint8_t *bytes[2];
    int64_t size[2];
    ats_import_report report;
    ats_err err;
    for (int i = 0; i < 3; i++) {
        char header[600];
        safetensors_write(scratch_path("case.safetensors"), tensors, 0, i == 0 ? by_token : by_head,
                          sizeof by_head);
        snprintf(header, sizeof header, "version: 1\nmodel_id: m\n%squeries: tokens\n%s",
                 layouts[i], rest);
        if (i == 2) {
            assert_int_equal(import(header, &report, &err), ATS_E_INPUT);
            assert_says(err.text, "lacks the key 'layout'");
            break;
        }
        loaded got = import_and_load(header, &report);
        static const float k[] = {1, 3, 2, 4}, q[] = {3, 1, 4, 2};
        assert_memory_equal(got.a.k, k, sizeof k);
        assert_memory_equal(got.a.q, q, sizeof q);
        release(&got);
        bytes[i] = scratch_read(scratch_path("case.h5"), &size[i]);
    }
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(bytes[0], bytes[1], (size_t)size[0]);
    free(bytes[0]);
    free(bytes[1]);
}

/* RC-04: mask bytes 1, 0, 0 over equal scores and V = 10, 20, 30. */
static void masks_mean_what_is_stated(void **state)
{
    (void)state;
    static const float numbers[] = {0, 1, 1, 1, 10, 20, 30};
    uint8_t data[sizeof numbers + 3] = {0};
    memcpy(data, numbers, sizeof numbers);
    data[sizeof numbers] = 1;
    static const char *const types[] = {"BOOL", "U8", "I8"};
    static const struct {
        const char *mask;
        double p[3], out;
    } rows[] = {{"mask: visible\n", {1, 0, 0}, 10}, {"mask: hidden\n", {0, 0.5, 0.5}, 25}};
    ats_import_report report;
    ats_err err;
    for (int t = 0; t < 3; t++) {
        char tensors[600];
        snprintf(
            tensors, sizeof tensors,
            "{" T("q", "F32", "[1,1,1]", "0", "4") "," T("k", "F32", "[1,3,1]", "4", "16") "," T(
                "v", "F32", "[1,3,1]", "16", "28") ","
                                                   "\"layers.0.keep\":{\"dtype\":\"%s\",\"shape\":["
                                                   "1,3],\"data_offsets\":[28,31]}}",
            types[t]);
        safetensors_write(scratch_path("case.safetensors"), tensors, 0, data, sizeof data);
        for (size_t i = 0; i < 2; i++) {
            char header[600];
            double weight[3], out, lse;
            snprintf(header, sizeof header, HEAD "%s" LAYER(", positions: none") ONE_PROBE,
                     rows[i].mask);
            loaded got = import_and_load(header, &report);
            evaluate(&got, weight, &out, &lse);
            assert_near_array(weight, rows[i].p, 3, 1e-12);
            assert_near(out, rows[i].out, 1e-5);
            release(&got);
        }
        assert_int_equal(import(HEAD LAYER(", positions: none") ONE_PROBE, &report, &err),
                         ATS_E_INPUT);
        assert_says(err.text, "layers.0.keep", "mask: visible or mask: hidden");
    }
    safetensors_write(
        scratch_path("case.safetensors"),
        "{" T("q", "F32", "[1,1,1]", "0", "4") "," T("k", "F32", "[1,3,1]", "4", "16") "," T(
            "v", "F32", "[1,3,1]", "16", "28") "," T("bias", "F32", "[1,3]", "28", "40") "}",
        0, (const float[]){0, 1, 1, 1, 10, 20, 30, 1, 0, 0}, 40);
    loaded got = import_and_load(HEAD LAYER(", positions: none") ONE_PROBE, &report);
    assert_true(report.bias_like_mask);
    assert_true(report.tokens_unknown);
    release(&got);
}

/* RC-06 and RC-08: 0 is the documented "none", below is refused. */
static void nothing_is_zero_and_never_negative(void **state)
{
    (void)state;
    ats_import_report report;
    ats_err err;
    write_scores();
    loaded got = import_and_load(
        HEAD LAYER(", positions: none, window: 0, softcap: 0, chunk: 0") ONE_PROBE, &report);
    assert_int_equal(got.capture->layers[0].contract.window, 0);
    release(&got);
    static const char *const bad[] = {HEAD LAYER(", positions: none, window: -1") ONE_PROBE,
                                      HEAD LAYER(", positions: none, softcap: -1") ONE_PROBE,
                                      HEAD LAYER(", positions: none, chunk: -1") ONE_PROBE};
    static const char *const words[] = {"window: -1", "softcap: -1", "chunk: -1"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(import(bad[i], &report, &err), ATS_E_INPUT);
        assert_says(err.text, words[i], "case.yaml:4:");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yarn_multiplies_q_and_k),
        cmocka_unit_test(yarn_is_stated_or_refused),
        cmocka_unit_test(pairings_are_as_stated),
        cmocka_unit_test(layouts_give_the_same_capture),
        cmocka_unit_test(masks_mean_what_is_stated),
        cmocka_unit_test(nothing_is_zero_and_never_negative),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

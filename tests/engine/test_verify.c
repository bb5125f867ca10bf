/* verify: every check holds on sound captures of every feature, and the right one fails on a
 * capture that was tampered with. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/synth.h"
#include "capture/writer.h"
#include "engine/verify.h"
#include "support/check.h"

static char directory[64];

static int make_directory(void **state)
{
    (void)state;
    strcpy(directory, "verify-XXXXXX");
    return mkdtemp(directory) == NULL;
}

static int remove_directory(void **state)
{
    (void)state;
    return rmdir(directory);
}

static ats_synth_options small_options(void)
{
    ats_synth_options o = ats_synth_defaults();
    o.n_keys = 200;
    o.d_qk = 32;
    o.d_v = 16;
    o.n_probes = 2;
    o.samples = o.layers = 1;
    return o;
}

static ats_capture *open_synth(const ats_synth_options *options)
{
    char path[96];
    ats_err err = {.code = ATS_OK};
    ats_capture *capture = NULL;
    snprintf(path, sizeof path, "%s/synth.h5", directory);
    assert_ok(ats_synth_write(options, path, NULL, &err), &err);
    assert_ok(ats_capture_open(path, &capture, &err), &err);
    return capture;
}

static void close_synth(ats_capture *capture)
{
    char path[96];
    snprintf(path, sizeof path, "%s", capture->path);
    ats_capture_close(capture);
    unlink(path);
}

static ats_verify_report verify(const ats_capture *capture)
{
    const ats_verify_options options = {.law_samples = 0};
    ats_verify_report report = {.n_checks = 0};
    ats_err err = {.code = ATS_OK};
    assert_ok(ats_verify_run(capture, &options, &report, &err), &err);
    return report;
}

static const ats_verify_check *check_called(const ats_verify_report *report, const char *name)
{
    for (int64_t i = 0; i < report->n_checks; i++)
        if (strcmp(report->checks[i].name, name) == 0) return &report->checks[i];
    return NULL;
}

static void print_failures(const ats_verify_report *report)
{
    for (int64_t i = 0; i < report->n_checks; i++)
        if (report->checks[i].status == ATS_VERIFY_FAIL)
            fprintf(stderr, "%s: %g over %g at %s\n", report->checks[i].name,
                    report->checks[i].residual, report->checks[i].bound, report->checks[i].where);
}

/* Checks that every capture has, whatever its contract. */
static const char *const always[] = {
    "parity.out",        "parity.lse",      "any.mass",           "any.parts",
    "unchanged.tv",      "overlay.tv",      "overlay.parts",      "duplicates.duplicates",
    "mask.tv",           "mask.parts",      "payload_swap.route", "temperature.ranking",
    "permuted.output",   "constant.mass",   "reference.mass",     "reference.output",
    "overlay.hellinger", "overlay.reroute", "mask.lse",           "payload_swap.parts",
    "duplicates.tv",     "constant.lse",    "reference.tv",       "reference.lse",
};

static void all_hold(const ats_synth_options *options)
{
    ats_capture *capture = open_synth(options);
    ats_verify_report report = verify(capture);
    print_failures(&report);
    assert_int_equal(report.n_failed, 0);
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
        const ats_verify_check *check = check_called(&report, always[i]);
        if (check == NULL) fail_msg("no check %s", always[i]);
        if (check->status != ATS_VERIFY_OK) fail_msg("%s: %s", check->name, check->reason);
        assert_true(check->residual <= check->bound);
        assert_true(check->rows > 0);
    }
    ats_verify_fini(&report);
    close_synth(capture);
}

static void holds_for_every_storage_type(void **state)
{
    (void)state;
    ats_synth_options o = small_options();
    o.samples = 2;
    o.layers = 2;
    all_hold(&o);
    o.samples = o.layers = 1;
    o.dtype = ATS_F16;
    all_hold(&o);
    o.dtype = ATS_F32;
    all_hold(&o);
}

static void holds_for_every_contract(void **state)
{
    (void)state;
    ats_synth_options o = small_options();
    o.rope = true;
    all_hold(&o);
    o.layout = ATS_ROPE_INTERLEAVED;
    o.sink = o.w_o = true;
    all_hold(&o);
    o.softcap = 20;
    o.window = 120;
    all_hold(&o);
    o.window = 0;
    o.chunk = 100;
    all_hold(&o);
}

/* RC-07: seven query heads on one key head */
static void holds_for_odd_groups(void **state)
{
    (void)state;
    ats_synth_options o = small_options();
    o.n_q_heads = 7;
    o.n_kv_heads = 1;
    all_hold(&o);
}

typedef void (*tamper_fn)(ats_sample *sample, ats_layer *layer, ats_attention *tensors);

/* The first layer of the first sample, changed and written anew. */
static ats_capture *tampered(tamper_fn tamper, const ats_synth_options *options)
{
    char path[96];
    ats_capture *sound = open_synth(options), *capture = NULL;
    ats_attention tensors = {0};
    ats_err err = {.code = ATS_OK};
    assert_ok(ats_attention_load(sound, 0, 0, &tensors, &err), &err);
    ats_sample sample = sound->samples[0];
    ats_layer layer = sound->layers[0];
    tamper(&sample, &layer, &tensors);
    ats_capture meta = *sound;
    meta.layers = &layer;
    meta.n_layers = 1;
    ats_capture_writer *writer = NULL;
    snprintf(path, sizeof path, "%s/tampered.h5", directory);
    assert_ok(ats_capture_create(path, &meta, &writer, &err), &err);
    assert_ok(ats_capture_add_sample(writer, &sample, &tensors, &err), &err);
    assert_ok(ats_capture_finish(writer, &err), &err);
    ats_attention_fini(&tensors);
    close_synth(sound);
    assert_ok(ats_capture_open(path, &capture, &err), &err);
    return capture;
}

/* The parity checks that must fail are those named; every law still holds. */
static void only_parity_fails(tamper_fn tamper, bool out, bool lse, const char *where)
{
    const ats_synth_options options = small_options();
    ats_capture *capture = tampered(tamper, &options);
    ats_verify_report report = verify(capture);
    const ats_verify_check *parity_out = check_called(&report, "parity.out");
    const ats_verify_check *parity_lse = check_called(&report, "parity.lse");
    assert_int_equal(report.n_failed, out + lse);
    assert_int_equal(parity_out->status, out ? ATS_VERIFY_FAIL : ATS_VERIFY_OK);
    assert_int_equal(parity_lse->status, lse ? ATS_VERIFY_FAIL : ATS_VERIFY_OK);
    if (where != NULL) assert_string_equal(out ? parity_out->where : parity_lse->where, where);
    ats_verify_fini(&report);
    close_synth(capture);
}

static void change_out(ats_sample *sample, ats_layer *layer, ats_attention *t)
{
    /* head 3, probe 1 */
    t->out[(3 * sample->n_probes + 1) * layer->d_v + 2] += 1e-2F;
}

static void change_lse(ats_sample *sample, ats_layer *layer, ats_attention *t)
{
    (void)layer;
    t->lse[2 * sample->n_probes] += 3e-3F; /* head 2, probe 0 */
}

static void change_key(ats_sample *sample, ats_layer *layer, ats_attention *t)
{
    /* one word of gold's first key, key head 0: the planted mark is the largest element */
    const int64_t at = sample->spans[0].start * layer->d_qk;
    float row[32];
    ats_widen(t->k_dtype, t->k, at, layer->d_qk, row);
    for (int64_t j = 0; j < layer->d_qk; j++) row[j] = row[j] >= 8 ? 7.0F : row[j];
    ats_narrow(t->k_dtype, row, layer->d_qk, t->k, at);
}

static void change_value(ats_sample *sample, ats_layer *layer, ats_attention *t)
{
    const int64_t at = sample->spans[0].start * layer->d_v;
    const float value = 40;
    ats_narrow(t->v_dtype, &value, 1, t->v, at);
}

static void change_scale(ats_sample *sample, ats_layer *layer, ats_attention *t)
{
    (void)sample, (void)t;
    layer->contract.scale *= 1.01;
}

static void finds_what_was_tampered_with(void **state)
{
    (void)state;
    only_parity_fails(change_out, true, false, "synth-000 layer 0 head 3 probe 1");
    only_parity_fails(change_lse, false, true, "synth-000 layer 0 head 2 probe 0");
    only_parity_fails(change_key, true, true, NULL);
    only_parity_fails(change_value, true, false, NULL);
    only_parity_fails(change_scale, true, true, NULL);
}

static void drop_results(ats_sample *sample, ats_layer *layer, ats_attention *t)
{
    (void)sample, (void)layer;
    free(t->out);
    free(t->lse);
    t->out = t->lse = NULL;
}

static void forbid_moves(ats_sample *sample, ats_layer *layer, ats_attention *t)
{
    (void)sample, (void)t;
    layer->positions = ATS_POSITIONS_ABSOLUTE;
}

static void drop_spans(ats_sample *sample, ats_layer *layer, ats_attention *t)
{
    (void)layer, (void)t;
    sample->n_spans = 0;
}

static void not_applicable(tamper_fn tamper, const char *check_name, const char *reason)
{
    const ats_synth_options options = small_options();
    ats_capture *capture = tampered(tamper, &options);
    ats_verify_report report = verify(capture);
    const ats_verify_check *check = check_called(&report, check_name);
    print_failures(&report);
    assert_int_equal(report.n_failed, 0);
    assert_non_null(check);
    assert_int_equal(check->status, ATS_VERIFY_NOT_APPLICABLE);
    assert_says(check->reason, "synth-000, layer 0", reason);
    ats_verify_fini(&report);
    close_synth(capture);
}

static void forget_largest_position(ats_sample *sample, ats_layer *layer, ats_attention *t)
{
    (void)sample, (void)t;
    layer->max_position = 0;
}

static void near_largest_position(ats_sample *sample, ats_layer *layer, ats_attention *t)
{
    (void)t;
    layer->max_position = sample->n_keys + 1;
}

/* 0 is "unknown", not "no room". */
static void moves_where_the_largest_position_is_unknown(void **state)
{
    (void)state;
    const ats_synth_options options = small_options();
    ats_capture *capture = tampered(forget_largest_position, &options);
    ats_verify_report report = verify(capture);
    for (int64_t i = 0; i < report.n_checks; i++)
        assert_true(strcmp(report.checks[i].name, "moved") != 0 ||
                    report.checks[i].status != ATS_VERIFY_NOT_APPLICABLE);
    assert_int_equal(report.n_failed, 0);
    ats_verify_fini(&report);
    close_synth(capture);
    not_applicable(near_largest_position, "moved", "too near the model's largest one");
}

static void lists_what_does_not_apply(void **state)
{
    (void)state;
    not_applicable(drop_results, "parity.out", "lacks the model's own output");
    not_applicable(drop_results, "parity.lse", "lacks the model's own LSE");
    not_applicable(forbid_moves, "moved", "absolute position embeddings");
    not_applicable(drop_spans, "duplicates", "no span");
    not_applicable(drop_spans, "overlay", "no span");
}

/* Captures with stored masks, biases, segments and ALiBi. Their out and lse are dropped: synth
 * computed them without. */
static void add_keep(ats_sample *sample, ats_layer *layer, ats_attention *t)
{
    const int64_t n = sample->n_probes * sample->n_keys;
    drop_results(sample, layer, t);
    t->keep = malloc((size_t)n);
    assert_non_null(t->keep);
    for (int64_t i = 0; i < n; i++) t->keep[i] = i % 7 != 3;
}

static void add_bias(ats_sample *sample, ats_layer *layer, ats_attention *t)
{
    const int64_t n = layer->n_q_heads * sample->n_probes * sample->n_keys;
    drop_results(sample, layer, t);
    t->bias_heads = layer->n_q_heads;
    t->bias = malloc((size_t)n * sizeof *t->bias);
    assert_non_null(t->bias);
    for (int64_t i = 0; i < n; i++) t->bias[i] = (float)(i % 11) * 0.25F;
}

static int32_t segments[200];

static void add_segments(ats_sample *sample, ats_layer *layer, ats_attention *t)
{
    drop_results(sample, layer, t);
    for (int64_t i = 0; i < sample->n_keys; i++) segments[i] = i < 60;
    sample->segment = segments;
}

static const float slopes[] = {0.01F, 0.02F, 0.04F, 0.08F};

static void add_alibi(ats_sample *sample, ats_layer *layer, ats_attention *t)
{
    drop_results(sample, layer, t);
    layer->positions = ATS_POSITIONS_ALIBI;
    layer->alibi_slope = slopes;
}

static void holds_with_masks_and_biases(void **state)
{
    (void)state;
    not_applicable(add_keep, "duplicates", "a copy is not");
    not_applicable(add_bias, "duplicates", "a copy is not");
    not_applicable(add_segments, "duplicates", "a copy is not");
    not_applicable(add_alibi, "parity.lse", "lacks the model's own LSE");
}

/* A model that rounds its output to bfloat16 is not a mismatch. */
static void round_out(ats_sample *sample, ats_layer *layer, ats_attention *t)
{
    for (int64_t i = 0; i < layer->n_q_heads * sample->n_probes * layer->d_v; i++)
        t->out[i] = ats_bf16_to_f32(ats_f32_to_bf16(t->out[i]));
}

static void allows_a_rounded_output(void **state)
{
    (void)state;
    only_parity_fails(round_out, false, false, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_for_every_storage_type),
        cmocka_unit_test(holds_for_every_contract),
        cmocka_unit_test(holds_for_odd_groups),
        cmocka_unit_test(finds_what_was_tampered_with),
        cmocka_unit_test(lists_what_does_not_apply),
        cmocka_unit_test(moves_where_the_largest_position_is_unknown),
        cmocka_unit_test(allows_a_rounded_output),
        cmocka_unit_test(holds_with_masks_and_biases),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}

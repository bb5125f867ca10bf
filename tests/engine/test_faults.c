/* Captures with something missing or wrong in one sample: the others still run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/half.h"
#include "capture/writer.h"
#include "engine/digest.h"
#include "support/check.h"

#define SOURCE ATS_SOURCE_DIR "/examples/captures/recall-short.h5"

typedef struct fixture {
    char folder[64], capture[96], result[96];
    ats_suite *suite;
    ats_plan *plan;
    ats_outcome outcome;
} fixture;

static fixture f;

typedef enum flaw { FLAW_NONE, FLAW_NO_GOLD, FLAW_NAN_KEY } flaw;

/* The tensors of every layer of a sample; NaN goes to key 0, which every probe may see. */
static void load_all(const ats_capture *source, int64_t sample, flaw what, ats_attention *tensors)
{
    ats_err err;
    for (int64_t l = 0; l < source->n_layers; l++) {
        assert_ok(ats_attention_load(source, sample, l, &tensors[l], &err), &err);
        assert_int_equal(tensors[l].k_dtype, ATS_BF16);
        if (what == FLAW_NAN_KEY && l == 1) ((uint16_t *)tensors[l].k)[3] = 0x7fc0;
    }
}

/* Samples 0, 2 and 3 of the bundled capture, the last with a flaw; it is nobody's donor. */
static void write_capture(flaw what)
{
    ats_capture *source = NULL;
    ats_capture_writer *writer = NULL;
    ats_attention tensors[8] = {{0}};
    ats_err err = {.code = ATS_OK};
    assert_ok(ats_capture_open(SOURCE, &source, &err), &err);
    assert_true(source->n_layers <= 8);
    assert_ok(ats_capture_create(f.capture, source, &writer, &err), &err);
    static const int64_t chosen[] = {0, 2, 3};
    static const char *const renamed[] = {"other0", "other1"};
    for (int at = 0; at < 3; at++) {
        const int64_t s = chosen[at];
        int n_renamed = 0;
        ats_sample sample = source->samples[s];
        ats_span spans[64];
        memcpy(spans, sample.spans, (size_t)sample.n_spans * sizeof *spans);
        for (int64_t i = 0; i < sample.n_spans; i++)
            if (s == 3 && what == FLAW_NO_GOLD && strcmp(spans[i].role, "gold") == 0)
                spans[i].name = spans[i].role = renamed[n_renamed++];
        sample.spans = spans;
        load_all(source, s, s == 3 ? what : FLAW_NONE, tensors);
        assert_ok(ats_capture_add_sample(writer, &sample, tensors, &err), &err);
        for (int64_t l = 0; l < source->n_layers; l++) ats_attention_fini(&tensors[l]);
    }
    assert_ok(ats_capture_finish(writer, &err), &err);
    ats_capture_close(source);
}

static int set_up(void **state)
{
    (void)state;
    char folder[] = "/tmp/attnstress-faults-XXXXXX";
    assert_non_null(mkdtemp(folder));
    f = (fixture){.suite = NULL};
    memcpy(f.folder, folder, sizeof folder);
    snprintf(f.capture, sizeof f.capture, "%s/capture.h5", folder);
    snprintf(f.result, sizeof f.result, "%s/result.h5", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ats_outcome_fini(&f.outcome);
    ats_plan_free(f.plan);
    ats_suite_free(f.suite);
    unlink(f.capture);
    unlink(f.result);
    assert_int_equal(rmdir(f.folder), 0);
    return 0;
}

static void plan_suite(const char *samples)
{
    char text[2048];
    const char *const captures[] = {f.capture};
    const ats_plan_options options = {.captures = captures, .n_captures = 1, .backend = "cpu"};
    ats_err err = {.code = ATS_OK};
    snprintf(text, sizeof text,
             "suite: e\nversion: 1\nseed: 7\ncaptures: [x.h5]\n"
             "select: {samples: %s, layers: all, probes: last}\nspans: {target: gold}\n"
             "perturbations:\n"
             "  - {name: d, kind: distractors, positions: overlay, source: donor, count: 2}\n"
             "gates:\n  - {name: g, metric: log_mass_shift, span: gold, min: -50}\n",
             samples);
    assert_ok(ats_suite_parse("suite.yaml", text, NULL, 0, &f.suite, &err), &err);
    assert_ok(ats_plan_make(f.suite, &options, &f.plan, &err), &err);
}

static ats_verdict run_and_judge(ats_arena *arena)
{
    ats_verdict verdict;
    ats_err err = {.code = ATS_OK};
    assert_ok(ats_run(f.plan, f.result, &f.outcome, &err), &err);
    assert_ok(ats_gates_judge(arena, f.plan, &f.outcome, &verdict, &err), &err);
    return verdict;
}

static void samples_without_the_target_are_skipped_and_counted(void **state)
{
    (void)state;
    ats_arena arena;
    ats_arena_init(&arena, false);
    write_capture(FLAW_NO_GOLD);
    plan_suite("all");
    assert_int_equal(f.plan->n_skipped, 2);
    const ats_verdict verdict = run_and_judge(&arena);
    assert_int_equal(f.outcome.n_ok, 4);
    assert_int_equal(f.outcome.n_skipped, 2);
    assert_says(f.outcome.cases[4].message, "gold");
    assert_int_equal(verdict.code, ATS_OK);
    assert_int_equal(verdict.gates[0].n_skipped, 2);
    ats_arena_fini(&arena);
}

/* RC-01: a non-finite number at a visible key fails the sample's cases by tensor and place. */
static void a_bad_sample_fails_alone_and_no_gate_passes(void **state)
{
    (void)state;
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_summary summary;
    const char *text = NULL;
    ats_err err = {.code = ATS_OK};
    write_capture(FLAW_NAN_KEY);
    plan_suite("all");
    const ats_verdict verdict = run_and_judge(&arena);
    assert_int_equal(f.outcome.n_ok, 4);
    assert_int_equal(f.outcome.n_failed, 2);
    assert_says(f.outcome.cases[4].message, "layer 1: k is not finite", "row 0");
    assert_int_equal(verdict.code, ATS_E_GATE);
    assert_says(verdict.gates[0].sentence, "2 of 6 cases failed");
    assert_ok(ats_digest(&arena, f.plan, &f.outcome, &verdict, "attnstress", f.result, &summary, &err), &err);
    assert_ok(ats_summary_text(&arena, &summary, &text, &err), &err);
    assert_says(text, "4 cases ran, 0 skipped, 2 failed", "failed 2:");
    ats_arena_fini(&arena);
}

/* Nothing succeeded: the run ends with the reason and without a result. */
static void all_samples_bad_is_the_input_error(void **state)
{
    (void)state;
    ats_err err = {.code = ATS_OK};
    write_capture(FLAW_NAN_KEY);
    plan_suite("[s01-current]");
    assert_int_equal(ats_run(f.plan, f.result, &f.outcome, &err), ATS_E_INPUT);
    assert_says(err.text, f.capture);
    assert_int_not_equal(access(f.result, F_OK), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(samples_without_the_target_are_skipped_and_counted),
        TEST(a_bad_sample_fails_alone_and_no_gate_passes),
        TEST(all_samples_bad_is_the_input_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* diagnose on a bundled capture against a run's own numbers of the same rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/diagnose.h"
#include "engine/run.h"
#include "support/check.h"

static const char capture_path[] = ATS_SOURCE_DIR "/examples/captures/recall-short.h5";

static ats_diagnose_report diagnose(ats_capture *capture, uint64_t seed)
{
    const ats_diagnose_options options = {.role = "answer", .top = 8, .seed = seed};
    ats_diagnose_report report;
    ats_err err = {.code = ATS_OK};
    assert_ok(ats_diagnose_run(capture, &options, &report, &err), &err);
    return report;
}

static ats_capture *open_capture(void)
{
    ats_capture *capture = NULL;
    ats_err err = {.code = ATS_OK};
    assert_ok(ats_capture_open(capture_path, &capture, &err), &err);
    return capture;
}

/* Entropy, heaviest key and its weight are those of the run's base; lists in common too. */
static void rows_agree_with_a_run(void **state)
{
    (void)state;
    char path[64], text[512];
    ats_suite *suite = NULL;
    ats_plan *plan = NULL;
    ats_outcome outcome;
    ats_result_file *file = NULL;
    ats_err err = {.code = ATS_OK};
    snprintf(path, sizeof path, "/tmp/attnstress-diagnose-%d.h5", (int)getpid());
    snprintf(text, sizeof text,
             "suite: d\nversion: 1\nseed: 1\ncaptures: [%s]\nselect: {probes: {role: answer}}\n"
             "perturbations: [{kind: temperature, tau: 2}]\n",
             capture_path);
    assert_ok(ats_suite_parse("suite.yaml", text, NULL, 0, &suite, &err), &err);
    const ats_plan_options options = {.backend = "reference"};
    assert_ok(ats_plan_make(suite, &options, &plan, &err), &err);
    assert_ok(ats_run(plan, path, &outcome, &err), &err);
    assert_ok(ats_result_open(path, &file, &err), &err);
    ats_result_variable v[4];
    static const char *const names[] = {"base_entropy", "base_max_weight", "base_top_key",
                                        "base_contribution_overlap"};
    for (int i = 0; i < 4; i++) assert_ok(ats_result_read(file, names[i], &v[i], &err), &err);
    ats_capture *capture = open_capture();
    ats_diagnose_report report = diagnose(capture, 1);
    assert_int_equal(report.n_rows, v[0].extent[0] * v[0].extent[1] * v[0].extent[2]);
    for (int64_t i = 0; i < report.n_rows; i++) {
        const ats_diagnose_row_report *row = &report.rows[i];
        const int64_t at = (row->sample * v[0].extent[1] + row->layer) * v[0].extent[2] + row->head;
        assert_near(row->d.entropy, v[0].values[at], 2e-5);
        assert_near(row->d.max_weight, v[1].values[at], 1e-5);
        assert_near((double)row->d.top_key, v[2].values[at], 0);
        assert_int_equal(row->by_weight[0], row->d.top_key);
        assert_true(row->d.label < ATS_CAUSE_UNDEFINED);
    }
    for (int64_t i = 0; i < report.n_heads; i++) {
        const ats_diagnose_head *head = &report.heads[i];
        double overlap = 0;
        for (int64_t s = 0; s < report.n_samples; s++)
            overlap +=
                v[3].values[(s * v[3].extent[1] + head->layer) * v[3].extent[2] + head->head];
        assert_near(head->overlap, overlap / (double)report.n_samples, 1e-5);
    }
    for (int i = 0; i < 4; i++) free(v[i].values);
    ats_diagnose_fini(&report);
    ats_capture_close(capture);
    ats_result_close(file);
    ats_outcome_fini(&outcome);
    ats_plan_free(plan);
    ats_suite_free(suite);
    unlink(path);
}

/* The retrieving heads of layer 0 are sharp, by long queries and longer keys, whatever the
 * rotations. */
static void labels_do_not_hang_on_the_rotations(void **state)
{
    (void)state;
    ats_capture *capture = open_capture();
    ats_diagnose_report a = diagnose(capture, 1), b = diagnose(capture, 2);
    int64_t same = 0;
    for (int64_t i = 0; i < a.n_rows; i++) same += a.rows[i].d.label == b.rows[i].d.label;
    assert_true(same * 10 >= a.n_rows * 9);
    for (int64_t i = 0; i < 4; i++) {
        const double *share = a.heads[i].share;
        assert_true(a.heads[i].label != ATS_CAUSE_DIFFUSE);
        assert_true(share[ATS_CAUSE_TEMPERATURE] + share[ATS_CAUSE_NORM] >
                    4 * (share[ATS_CAUSE_SCALE] + share[ATS_CAUSE_MASK_OR_SINK]));
    }
    ats_diagnose_fini(&a);
    ats_diagnose_fini(&b);
    ats_capture_close(capture);
}

static double number(const ats_result_variable *v, const ats_diagnose_row_report *row)
{
    assert_int_equal(v->rank, 4);
    return v->values[((row->sample * v->extent[1] + row->layer) * v->extent[2] + row->head) *
                         v->extent[3] +
                     row->probe];
}

/* The variables of a result are what `diagnose` says with the suite's seed, to the bit, also when
 * other probes are evaluated beside those that it looks at. */
static void a_result_holds_the_same_answer(void **state)
{
    (void)state;
    static const char *const names[] = {"base_sharpness_alignment",    "base_sharpness_norm",
                                        "base_sharpness_scale",        "base_sharpness_temperature",
                                        "base_sharpness_mask_or_sink", "base_sharpness_label"};
    char path[64], text[512];
    ats_suite *suite = NULL;
    ats_plan *plan = NULL;
    ats_outcome outcome;
    ats_result_file *file = NULL;
    ats_result_variable v[6];
    ats_err err = {.code = ATS_OK};
    snprintf(path, sizeof path, "/tmp/attnstress-sharpness-%d.h5", (int)getpid());
    snprintf(text, sizeof text,
             "suite: d\nversion: 1\nseed: 9\ncaptures: [%s]\nselect: {probes: all}\n"
             "perturbations: [{kind: temperature, tau: 2}]\nmetrics: {sharpness: true}\n",
             capture_path);
    assert_ok(ats_suite_parse("suite.yaml", text, NULL, 0, &suite, &err), &err);
    const ats_plan_options options = {.backend = "cpu"};
    assert_ok(ats_plan_make(suite, &options, &plan, &err), &err);
    assert_ok(ats_run(plan, path, &outcome, &err), &err);
    assert_ok(ats_result_open(path, &file, &err), &err);
    for (int i = 0; i < 6; i++) assert_ok(ats_result_read(file, names[i], &v[i], &err), &err);
    ats_capture *capture = open_capture();
    ats_diagnose_report report = diagnose(capture, 9);
    int64_t labels = 0;
    for (int64_t i = 0; i < report.n_rows; i++) {
        const ats_diagnose_row_report *row = &report.rows[i];
        assert_int_equal(row->probe, 2); /* two questions come before the answer */
        for (int c = 0; c < ATS_N_CAUSES; c++)
            assert_true((float)number(&v[c], row) == (float)row->d.share[c]);
        assert_int_equal((int)number(&v[5], row), row->d.label);
        labels |= 1 << row->d.label;
    }
    assert_true(__builtin_popcountll((unsigned long long)labels) >= 3);
    for (int i = 0; i < 6; i++) free(v[i].values);
    ats_diagnose_fini(&report);
    ats_capture_close(capture);
    ats_result_close(file);
    ats_outcome_fini(&outcome);
    ats_plan_free(plan);
    ats_suite_free(suite);
    unlink(path);
}

static void probes_that_nobody_has_are_named(void **state)
{
    (void)state;
    ats_capture *capture = open_capture();
    const ats_diagnose_options options = {.role = "anser", .top = 8};
    ats_diagnose_report report;
    ats_err err = {.code = ATS_OK};
    assert_int_equal(ats_diagnose_run(capture, &options, &report, &err), ATS_E_INPUT);
    assert_says(err.text, "anser", "recall-short.h5");
    ats_capture_close(capture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_agree_with_a_run),
        cmocka_unit_test(labels_do_not_hang_on_the_rotations),
        cmocka_unit_test(a_result_holds_the_same_answer),
        cmocka_unit_test(probes_that_nobody_has_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

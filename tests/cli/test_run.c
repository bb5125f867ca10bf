#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/program.h"
#include "support/check.h"

static program p;

static int set_up(void **state)
{
    (void)state;
    program_enter(&p);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    program_leave(&p);
    return 0;
}

#define HEAD                                                                                       \
    "suite: tiny\nversion: 1\nseed: 7\ncaptures: [" ATS_SOURCE_DIR                                 \
    "/examples/captures/recall-short.h5]\nselect: {layers: [0], probes: last}\n"                   \
    "spans: {target: gold}\n"
#define DISTRACTORS                                                                                \
    "perturbations:\n  - name: d\n    kind: distractors\n    positions: overlay\n"                 \
    "    source: donor\n    count: [1, 4]\n"
#define GATE(name, bound)                                                                          \
    "  - {name: " name ", metric: log_mass_shift, span: gold, "                                    \
    "where: {perturbation: d, arm: treatment}, " bound "}\n"

static void a_run_writes_its_result_and_says_what_next(void **state)
{
    (void)state;
    program_write(&p, "s.yaml", HEAD DISTRACTORS);
    program_run(&p, "run s.yaml");
    if (p.status != 0) print_error("%s\n", p.err);
    assert_int_equal(p.status, 0);
    assert_true(program_has(&p, "tiny.h5"));
    assert_false(program_has(&p, "tiny.h5.tmp"));
    assert_says(p.out, "tiny on recall-3x128", "16 cases ran, 0 skipped, 0 failed",
                "five weakest heads per perturbation",
                "result tiny.h5; next: " ATS_PROGRAM " explain tiny.h5");
    int lines = 0;
    for (const char *c = p.out; *c != '\0'; c++) lines += *c == '\n';
    assert_true(lines <= 25);
}

static void equal_runs_give_equal_bytes_at_any_thread_count(void **state)
{
    (void)state;
    program_write(&p, "s.yaml", HEAD DISTRACTORS);
    program_run(&p, "run s.yaml -q --threads 1 -o one.h5");
    assert_int_equal(p.status, 0);
    assert_string_equal(p.out, "");
    program_run(&p, "run s.yaml -q --threads 2 -o two.h5");
    assert_int_equal(p.status, 0);
    assert_true(program_same(&p, "one.h5", "two.h5"));
    program_run(&p, "run s.yaml -q --threads 3 -o three.h5");
    assert_true(program_same(&p, "three.h5", "two.h5"));
}

static void gates_decide_the_exit_status(void **state)
{
    (void)state;
    program_write(&p, "pass.yaml", HEAD DISTRACTORS "gates:\n" GATE("easy", "min: -50"));
    program_run(&p, "run pass.yaml");
    assert_int_equal(p.status, 0);
    assert_says(p.out, "0 of 1 gates failed", "gate 'easy' passed");
    program_write(&p, "fail.yaml",
                  HEAD DISTRACTORS "gates:\n" GATE("easy", "min: -50") GATE("hard", "min: 3"));
    program_run(&p, "run fail.yaml");
    assert_int_equal(p.status, 3);
    assert_says(p.err, "tiny.h5 is the result of another run", "suite_hash", "--force");
    program_run(&p, "run fail.yaml --force");
    assert_int_equal(p.status, 1);
    assert_true(program_has(&p, "tiny.h5"));
    assert_false(program_has(&p, "tiny.h5.parts"));
    assert_says(p.out, "1 of 2 gates failed", "gate 'hard' FAILED", "min 3");
    program_run(&p, "run fail.yaml");
    assert_int_equal(p.status, 1); /* judged again from the file */
    assert_says(p.err, "complete already");
    program_run(&p, "run fail.yaml -q");
    assert_int_equal(p.status, 1);
    assert_says(p.err, "gate 'hard' FAILED");
    program_run(&p, "run fail.yaml --json");
    assert_int_equal(p.status, 1);
    assert_says(p.out, "\"exit_status\": 1", "\"verdict\": \"failed\"");
}

/* RC-25 a: many failing gates are still exit status 1. */
static void hundreds_of_failing_gates_are_one(void **state)
{
    (void)state;
    static char text[60000];
    int used = snprintf(text, sizeof text, "%s", HEAD DISTRACTORS "gates:\n");
    for (int g = 0; g < 256; g++)
        used += snprintf(text + used, sizeof text - (size_t)used,
                         "  - {name: g%d, metric: log_mass_shift, span: gold, "
                         "where: {perturbation: d, arm: treatment}, min: 3}\n",
                         g);
    program_write(&p, "s.yaml", text);
    program_run(&p, "run s.yaml");
    assert_int_equal(p.status, 1);
    assert_says(p.out, "256 of 256 gates failed");
}

/* RC-25 a: nothing to run is not a pass. */
static void a_suite_without_a_case_is_an_error(void **state)
{
    (void)state;
    program_write(&p, "s.yaml", HEAD);
    program_run(&p, "run s.yaml");
    assert_int_equal(p.status, 3);
    assert_false(program_has(&p, "tiny.h5"));
}

static void mistakes_in_a_suite_have_their_place(void **state)
{
    (void)state;
    program_write(&p, "s.yaml", HEAD "perturbations:\n  - name: d\n    kind: distractor\n");
    program_run(&p, "run s.yaml");
    assert_int_equal(p.status, 3);
    assert_says(p.err, "s.yaml:9:11", "error:", "distractors");
    program_write(&p, "s.yaml", HEAD DISTRACTORS "gates:\n" GATE("g", "min: 0") "nonsense: 1\n");
    program_run(&p, "plan s.yaml");
    assert_int_equal(p.status, 3);
    assert_says(p.err, "nonsense");
}

static void a_target_that_no_sample_has_is_an_error(void **state)
{
    (void)state;
    program_write(&p, "s.yaml", HEAD DISTRACTORS);
    program_run(&p, "run s.yaml --set spans.target=silver");
    assert_int_equal(p.status, 3);
    assert_says(p.err, "s.yaml:", "perturbation 'd'", "silver");
    assert_false(program_has(&p, "tiny.h5"));
}

static void missing_and_broken_captures_are_named(void **state)
{
    (void)state;
    program_write(&p, "s.yaml", HEAD DISTRACTORS);
    program_run(&p, "run s.yaml --capture nowhere.h5");
    assert_int_equal(p.status, 3);
    assert_says(p.err, "nowhere.h5");
    program_write(&p, "junk.h5", "this is not HDF5");
    program_run(&p, "run s.yaml --capture junk.h5");
    assert_int_equal(p.status, 3);
    assert_says(p.err, "junk.h5");
    program_run(&p, "inspect junk.h5; head -c 2000000 \"$CAPTURES/recall-short.h5\" > half.h5");
    program_run(&p, "run s.yaml --capture half.h5");
    assert_int_equal(p.status, 3);
    assert_says(p.err, "half.h5");
}

static void two_checkpoints_are_not_one_run(void **state)
{
    (void)state;
    program_write(&p, "s.yaml", HEAD DISTRACTORS);
    program_run(&p, "run s.yaml --capture \"$CAPTURES/recall-short.h5\" "
                    "--capture \"$CAPTURES/recall-long.h5\"");
    assert_int_equal(p.status, 3);
    assert_says(p.err, "another checkpoint", "attnstress compare");
}

static void output_that_cannot_be_written_is_an_environment_error(void **state)
{
    (void)state;
    program_write(&p, "s.yaml", HEAD DISTRACTORS);
    program_run(&p, "run s.yaml -o no/such/folder/out.h5");
    assert_int_equal(p.status, 4);
    assert_says(p.err, "no/such/folder");
    program_run(&p, "run s.yaml -o s.yaml");
    assert_int_equal(p.status, 3);
    assert_says(p.err, "the suite itself");
    program_run(&p, "help; cp \"$CAPTURES/recall-short.h5\" cap.h5");
    program_run(&p, "run s.yaml --capture cap.h5 -o ./cap.h5");
    assert_int_equal(p.status, 3);
    assert_says(p.err, "capture of this run");
}

static void an_existing_result_is_replaced_only_by_a_complete_one(void **state)
{
    (void)state;
    program_write(&p, "s.yaml", HEAD DISTRACTORS);
    program_run(&p, "run s.yaml -q -o out.h5; cp out.h5 before.h5");
    program_run(&p, "run s.yaml -q -o out.h5 --set spans.target=silver");
    assert_int_equal(p.status, 3);
    assert_true(program_same(&p, "out.h5", "before.h5"));
    program_run(&p, "run s.yaml -q -o out.h5");
    assert_int_equal(p.status, 0);
    assert_true(program_same(&p, "out.h5", "before.h5"));
}

static void plan_prints_the_work(void **state)
{
    (void)state;
    program_write(&p, "s.yaml", HEAD DISTRACTORS);
    program_run(&p, "plan s.yaml");
    assert_int_equal(p.status, 0);
    assert_says(p.out, "cases 16 (4 samples x 4 variants)", "log_mass_shift", "distinct shifts",
                "memory at most", "time about");
    assert_false(program_has(&p, "tiny.h5"));
    program_run(&p, "plan s.yaml --json");
    assert_int_equal(p.status, 0);
    assert_says(p.out, "\"cases\": 16", "\"variants\"", "\"base_mass\"");
}

static void a_result_can_be_inspected(void **state)
{
    (void)state;
    program_write(&p, "s.yaml", HEAD DISTRACTORS);
    program_run(&p, "run s.yaml -q");
    program_run(&p, "inspect tiny.h5");
    assert_int_equal(p.status, 0);
    assert_says(p.out, "suite_name: tiny", "/log_mass_shift", "/status");
    program_run(&p, "inspect tiny.h5 --values status");
    assert_int_equal(p.status, 0);
    assert_says(p.out, "0 0 0 0");
}

static void details_agree_on_the_gates(void **state)
{
    (void)state;
    program_write(&p, "s.yaml", HEAD DISTRACTORS "gates:\n" GATE("g", "min: -50"));
    program_run(&p, "run s.yaml --json --set select.probes=all | grep '\"value\"' | tee probe.txt");
    program_run(&p, "run s.yaml --json --set select.probes=all --set output.detail=head"
                    " --force | grep '\"value\"' | tee head.txt");
    program_run(&p, "help run; cut -c1-24 probe.txt > a; cut -c1-24 head.txt > b; cat a");
    assert_says(p.out, "\"value\": -");
    assert_true(program_same(&p, "a", "b"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_run_writes_its_result_and_says_what_next),
        TEST(equal_runs_give_equal_bytes_at_any_thread_count),
        TEST(gates_decide_the_exit_status),
        TEST(hundreds_of_failing_gates_are_one),
        TEST(a_suite_without_a_case_is_an_error),
        TEST(mistakes_in_a_suite_have_their_place),
        TEST(a_target_that_no_sample_has_is_an_error),
        TEST(missing_and_broken_captures_are_named),
        TEST(two_checkpoints_are_not_one_run),
        TEST(output_that_cannot_be_written_is_an_environment_error),
        TEST(an_existing_result_is_replaced_only_by_a_complete_one),
        TEST(plan_prints_the_work),
        TEST(a_result_can_be_inspected),
        TEST(details_agree_on_the_gates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

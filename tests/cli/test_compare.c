/* `compare` as it is typed: verdicts and exit statuses, forms, files, refusals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/program.h"
#include "support/check.h"

static program p;

#define SUITE(gates)                                                                               \
    "suite: tiny\nversion: 1\nseed: 7\ncaptures: [x.h5]\n"                                         \
    "select: {layers: [0], probes: last}\nspans: {target: gold}\n"                                 \
    "perturbations:\n  - name: d\n    kind: distractors\n    positions: overlay\n"                 \
    "    source: donor\n    count: [1, 4]\n" gates
#define GATE(name, more)                                                                           \
    "  - {name: " name ", metric: log_mass_shift, span: gold, "                                    \
    "where: {perturbation: d, arm: treatment}, " more "}\n"

static int set_up(void **state)
{
    (void)state;
    program_enter(&p);
    program_write(&p, "s.yaml", SUITE("gates:\n" GATE("holds", "max_drop: 0.1")));
    program_run(&p, "run s.yaml -q --capture $CAPTURES/recall-short.h5 -o a.h5");
    if (p.status != 0) print_error("%s\n", p.err);
    assert_int_equal(p.status, 0);
    program_run(&p, "run s.yaml -q --capture $CAPTURES/recall-long.h5 -o b.h5");
    assert_int_equal(p.status, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    program_leave(&p);
    return 0;
}

/* Two documents: an honest tool can conclude nothing at 5 %. */
static void few_clusters_are_inconclusive(void **state)
{
    (void)state;
    program_run(&p, "compare a.h5 b.h5");
    assert_int_equal(p.status, 2);
    assert_says(p.out, "baseline   a.h5 (trained short), hash", "candidate  b.h5 (trained long)",
                "exact sign-flip", "seed 7", "inconclusive", "2 clusters",
                "attnstress explain b.h5 --case", "verdict: inconclusive");
    int columns = 0;
    for (const char *c = p.out; *c != '\0'; c++) {
        columns = *c == '\n' ? 0 : columns + 1;
        assert_true(columns <= 80);
    }
    assert_null(strchr(p.out, '\x1b'));
    program_run(&p, "compare a.h5 b.h5 --color always");
    assert_says(p.out, "\x1b[33minconclusive");
    program_run(&p, "compare a.h5 b.h5 -q");
    assert_int_equal(p.status, 2);
    assert_string_equal(p.out, "");
    assert_says(p.err, "verdict: inconclusive");
}

static void a_result_equals_itself(void **state)
{
    (void)state;
    program_run(&p, "compare a.h5 a.h5");
    assert_int_equal(p.status, 0);
    assert_says(p.out, "exact:", "verdict: equal");
    program_run(&p, "run s.yaml -q --capture $CAPTURES/recall-short.h5 -o again.h5");
    program_run(&p, "compare a.h5 again.h5");
    assert_int_equal(p.status, 0);
}

static void every_form_is_written(void **state)
{
    (void)state;
    program_run(&p, "compare a.h5 b.h5 --json --junit j.xml");
    assert_int_equal(p.status, 2);
    assert_true(program_has(&p, "j.xml"));
    assert_says(p.out, "\"verdict\": \"inconclusive\"", "\"exit_status\": 2", "\"claim\"",
                "\"interval_plain_bca\"", "\"seed\": 7");
    program_run(&p, "compare a.h5 b.h5 --format csv");
    assert_says(p.out, "kind,name,layer,head,base,candidate", "gate,\"holds\"", "cell,\"d\",0,3");
    program_run(&p, "compare a.h5 b.h5 --format markdown");
    assert_says(p.out, "### attnstress: inconclusive", "| holds | inconclusive |");
    program_run(&p, "compare a.h5 b.h5 --format xml");
    assert_int_equal(p.status, 3);
    assert_says(p.err, "text, json, csv or markdown");
    program_run(&p, "compare a.h5 b.h5 --json --format csv");
    assert_int_equal(p.status, 3);
    program_run(&p, "compare a.h5 b.h5 --junit no/such/folder.xml");
    assert_int_equal(p.status, 4);
    assert_says(p.err, "no/such/folder.xml");
}

static void github_is_told(void **state)
{
    (void)state;
    setenv("GITHUB_ACTIONS", "true", 1);
    program_write(&p, "summary.md", "before\n");
    char path[256];
    snprintf(path, sizeof path, "%s/summary.md", p.folder);
    setenv("GITHUB_STEP_SUMMARY", path, 1);
    program_run(&p, "compare a.h5 b.h5 --gates s.yaml --json");
    unsetenv("GITHUB_ACTIONS");
    unsetenv("GITHUB_STEP_SUMMARY");
    assert_says(p.err, "::warning file=s.yaml,line=14,title=attnstress inconclusive::gate 'holds'");
    assert_true(p.out[0] == '{');
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    static char text[1 << 16];
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    assert_says(text, "before\n", "### attnstress: inconclusive");
}

static void gates_come_from_a_file(void **state)
{
    (void)state;
    program_write(&p, "none.yaml", SUITE(""));
    program_run(&p, "compare a.h5 b.h5 --gates none.yaml");
    assert_int_equal(p.status, 2);
    assert_says(p.out, "nothing was judged");
    program_write(&p, "span.yaml",
                  SUITE("gates:\n  - {name: g, metric: mass, span: silver, max_drop: 1}\n"));
    program_run(&p, "compare a.h5 b.h5 --gates span.yaml");
    assert_int_equal(p.status, 3);
    assert_says(p.err, "span.yaml:14:5: error: gate 'g'", "silver");
    program_write(&p, "metric.yaml",
                  SUITE("gates:\n  - {name: g, metric: masss, span: gold, max_drop: 1}\n"));
    program_run(&p, "compare a.h5 b.h5 --gates metric.yaml");
    assert_int_equal(p.status, 3);
    assert_says(p.err, "metric.yaml:14", "masss", "did you mean 'mass'");
    program_write(&p, "idle.yaml",
                  SUITE("gates:\n  - {name: g, metric: tv, where: {count: 99}, "
                        "max_drop: 1}\n"));
    program_run(&p, "compare a.h5 b.h5 --gates idle.yaml");
    assert_int_equal(p.status, 3);
    assert_says(p.err, "judges no case");
    program_write(&p, "absolute.yaml", SUITE("gates:\n" GATE("low", "min: -9")));
    program_run(&p, "compare a.h5 b.h5 --gates absolute.yaml");
    assert_int_equal(p.status, 2);
    assert_says(p.out, "1 gate has min or max alone");
}

static void other_suites_and_broken_files_are_refused(void **state)
{
    (void)state;
    program_write(&p, "t.yaml", SUITE("gates:\n" GATE("holds", "max_drop: 0.2")));
    program_run(&p, "run t.yaml -q --capture $CAPTURES/recall-long.h5 -o other.h5");
    program_run(&p, "compare a.h5 other.h5");
    assert_int_equal(p.status, 3);
    assert_string_equal(p.out, "");
    assert_says(p.err, "cannot be compared", "suite hash");
    program_run(&p, "run s.yaml -q --set seed=8 --capture $CAPTURES/recall-long.h5 -o seed.h5");
    program_run(&p, "compare a.h5 seed.h5");
    assert_int_equal(p.status, 3);
    assert_says(p.err, "suite hash");
    program_write(&p, "junk.h5", "this is no HDF5\n");
    program_run(&p, "compare a.h5 junk.h5");
    assert_int_equal(p.status, 3);
    assert_says(p.err, "candidate", "junk.h5");
    program_run(&p, "compare a.h5 $CAPTURES/recall-long.h5");
    assert_int_equal(p.status, 3);
    assert_says(p.err, "should be a result file");
    program_run(&p, "compare a.h5");
    assert_int_equal(p.status, 3);
    program_run(&p, "compare a.h5 missing.h5");
    assert_int_equal(p.status, 3);
    assert_says(p.err, "missing.h5");
}

/* RC-25 a: any number of failing gates is exit status 1, and nothing else is. */
static void exit_statuses_are_no_counts(void **state)
{
    (void)state;
    static char text[90000];
    static const int counts[] = {1, 255, 256, 257, 300};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        int used = snprintf(text, sizeof text, "%s", SUITE("gates:\n"));
        for (int g = 0; g < counts[k]; g++)
            used += snprintf(text + used, sizeof text - (size_t)used,
                             "  - {name: g%d, metric: log_mass_shift, span: gold, min: 3}\n", g);
        program_write(&p, "many.yaml", text);
        program_run(&p, "run many.yaml -q --force --capture $CAPTURES/recall-short.h5 -o many.h5");
        assert_int_equal(p.status, 1);
    }
    program_run(&p, "run s.yaml -q --capture $CAPTURES/recall-short.h5");
    assert_int_equal(p.status, 0);
    program_run(&p, "run s.yaml --no-such-option");
    assert_int_equal(p.status, 3);
    program_run(&p, "run s.yaml --capture missing.h5");
    assert_int_equal(p.status, 3);
    program_write(&p, "empty.yaml", "suite: empty\nversion: 1\nseed: 1\ncaptures: [x.h5]\n");
    program_run(&p, "run empty.yaml --capture $CAPTURES/recall-short.h5");
    assert_int_equal(p.status, 3);
}

/* Twenty-four documents decide what two could not. */
static void the_example_says_what_its_page_says(void **state)
{
    (void)state;
    program_run(&p, "compare $CAPTURES/../compare/short-24.h5 $CAPTURES/../compare/long-24.h5");
    assert_int_equal(p.status, 1);
    assert_says(p.out, "improved     the fact is found at all", "0.1831 [0.129, 0.252] 7e-07  24",
                "regressed    four rivals at the fact's own logit", "-0.3417 [-0.502, -0.206]",
                "verdict: regressed: 2 of 6 gates regressed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_clusters_are_inconclusive),
        cmocka_unit_test(a_result_equals_itself),
        cmocka_unit_test(every_form_is_written),
        cmocka_unit_test(github_is_told),
        cmocka_unit_test(gates_come_from_a_file),
        cmocka_unit_test(other_suites_and_broken_files_are_refused),
        cmocka_unit_test(exit_statuses_are_no_counts),
        cmocka_unit_test(the_example_says_what_its_page_says),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

#include "suite/fixture.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "suite-test-XXXXXX");
    char in[100];
    if (mkdtemp(folder) == NULL) return -1;
    snprintf(in, sizeof in, "%s/sub", folder);
    return mkdir(in, 0700);
}

static int drop_folder(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static const char *in_folder(const char *name)
{
    static char paths[4][160];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void included_files_lie_below_the_local_keys(void **state)
{
    (void)state;
    write_file("sub/common.yaml", "include: base.yaml\nseed: 5\ncaptures: [a.h5, /abs/b.h5]\n"
                                  "select: {layers: [1, 2], probes: all}\n");
    write_file("sub/base.yaml", "suite: base\nseed: 4\nspans: {target: fact}\n"
                                "perturbations: [{kind: temperature, tau: 2}]\n");
    write_file("main.yaml", "include: [sub/common.yaml]\nsuite: mine\nselect: {layers: [7]}\n");
    ats_suite *s = NULL;
    ats_err err;
    assert_ok(ats_suite_load(in_folder("main.yaml"), NULL, 0, &s, &err), &err);
    assert_string_equal(s->name, "mine");
    assert_int_equal(s->seed, 5);
    assert_string_equal(s->target, "fact");
    assert_int_equal(s->select.layers.count, 1);
    assert_int_equal(s->select.layers.items[0], 7);
    assert_int_equal(s->select.probes, ATS_PROBES_ALL);
    assert_string_equal(s->captures.items[0], in_folder("sub/a.h5"));
    assert_string_equal(s->captures.items[1], "/abs/b.h5");
    ats_suite_free(s);
}

static void an_error_is_told_in_the_file_that_holds_it(void **state)
{
    (void)state;
    write_file("sub/bad.yaml",
               "suite: base\n# two\nsede: 4\nperturbations: [{kind: temperature, tau: x}]\n");
    write_file("main.yaml", "include: sub/bad.yaml\nlevle: 1\n");
    ats_suite *s = NULL;
    ats_err err;
    assert_int_equal(ats_suite_load(in_folder("main.yaml"), NULL, 0, &s, &err), ATS_E_SUITE);
    assert_says(err.text, "main.yaml:2:1: error: unknown key 'levle'",
                "sub/bad.yaml:3:1: error: ", "sub/bad.yaml:4:42: error: tau");
}

static void include_cycles_are_refused(void **state)
{
    (void)state;
    write_file("one.yaml", "suite: a\ninclude: two.yaml\n");
    write_file("two.yaml", "include: sub/../one.yaml\n");
    ats_suite *s = NULL;
    ats_err err;
    assert_int_equal(ats_suite_load(in_folder("one.yaml"), NULL, 0, &s, &err), ATS_E_SUITE);
    assert_says(err.text, "two.yaml:1:10: error:", "includes itself", "[E-include-cycle]");
    write_file("one.yaml", "suite: a\ninclude: [no.yaml]\n");
    assert_int_equal(ats_suite_load(in_folder("one.yaml"), NULL, 0, &s, &err), ATS_E_SUITE);
    assert_says(err.text, "one.yaml:2:11: error:", "no.yaml cannot be opened");
}

/* Each file includes the next one twice: 2^n readings are refused early. */
static void included_files_are_counted(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        char name[32], text[120];
        snprintf(name, sizeof name, "x%d.yaml", i);
        snprintf(text, sizeof text, "include: [x%d.yaml, x%d.yaml]\n", i + 1, i + 1);
        write_file(name, i < 11 ? text : "suite: x\n");
    }
    ats_suite *s = NULL;
    ats_err err;
    assert_int_equal(ats_suite_load(in_folder("x0.yaml"), NULL, 0, &s, &err), ATS_E_SUITE);
    assert_says(err.text, "more than 64 files");
}

static void overrides_reach_every_place(void **state)
{
    (void)state;
    const char *text = WARM "  - {name: warm.2, kind: distractors, positions: overlay, count: 1,\n"
                            "     source: {similar: {cosine: 0.5}}, control: false}\n"
                            "gates: [{name: g, metric: tv, max: 1}]\n";
    ats_suite *s = must_load_set(text, "perturbations.warm.tau=[3, 5, 7]");
    assert_int_equal(s->n_variants, 4);
    assert_string_equal(s->variants[2].id, "warm/tau=7#0");
    assert_says(s->resolved, "tau: [3, 5, 7]");
    ats_suite_free(s);
    s = must_load_set(text, "perturbations.warm.2.source.similar.cosine=[0.1,0.2]");
    assert_int_equal(s->n_variants, 4);
    ats_suite_free(s);
    s = must_load_set(text, "perturbations.warm.2.count=[1,2]");
    assert_int_equal(s->n_variants, 4);
    ats_suite_free(s);
    s = must_load_set(text, "select.layers=[1]");
    assert_int_equal(s->select.layers.count, 1);
    ats_suite_free(s);
    s = must_load_set(text, "gates.g.max=0.5");
    assert_near(s->gates[0].max, 0.5, 0);
    ats_suite_free(s);
    s = must_load_set(text, "captures=x=1.h5");
    assert_string_equal(s->captures.items[0], "x=1.h5");
    ats_suite_free(s);
}

static void wrong_overrides_are_told(void **state)
{
    (void)state;
    ats_err err;
    must_refuse(WARM, "perturbations.wram.tau=1", &err);
    assert_says(err.text, "--set perturbations.wram.tau:1:1: error:", "did you mean 'warm'?");
    must_refuse(WARM, "seed", &err);
    assert_says(err.text, "--set:1:1: error:", "path=value");
    must_refuse(WARM, "seed=", &err);
    assert_says(err.text, "path=value");
    must_refuse(WARM, "suite.x=1", &err);
    assert_says(err.text, "is a single value");
    must_refuse(WARM, "sede=1", &err);
    assert_says(err.text, "did you mean 'seed'?");
    must_refuse(WARM, "seed=010", &err);
    assert_says(err.text, "--set seed:1:1: error: seed: '010'");
    must_refuse(WARM, "seed=[1", &err);
    assert_says(err.text, "--set seed:", "[E-syntax]");
    must_refuse(WARM, "include=x.yaml", &err);
    assert_says(err.text, "'include' stands in the file alone");
}

static void a_document_is_one_mapping(void **state)
{
    (void)state;
    ats_err err;
    must_refuse("", NULL, &err);
    assert_says(err.text, "the suite is empty");
    must_refuse("# nothing\n", NULL, &err);
    assert_says(err.text, "the suite is empty");
    must_refuse("- a\n", NULL, &err);
    assert_says(err.text, "a suite is a mapping, this is a list");
    must_refuse(WARM "select:\n", NULL, &err);
    assert_says(err.text, "select: a mapping is wanted here, this is a single value");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(included_files_lie_below_the_local_keys),
        cmocka_unit_test(an_error_is_told_in_the_file_that_holds_it),
        cmocka_unit_test(include_cycles_are_refused),
        cmocka_unit_test(included_files_are_counted),
        cmocka_unit_test(overrides_reach_every_place),
        cmocka_unit_test(wrong_overrides_are_told),
        cmocka_unit_test(a_document_is_one_mapping),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}

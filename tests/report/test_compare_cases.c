/* Regression cases RC-24 (numbers that are none, cases without a partner) and RC-25 b, c (JUnit
 * that CI servers can read, whatever a message holds). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/compare.h"
#include "report/planted.h"
#include "support/check.h"

static char xml_path[64];
static ats_err err;

static int make_folder(void **state)
{
    const int failed = planted_make_folder(state);
    snprintf(xml_path, sizeof xml_path, "%s/junit.xml", planted_folder);
    return failed;
}

static int remove_folder(void **state)
{
    unlink(xml_path);
    return planted_remove_folder(state);
}

/* One layer, head and probe: a case is a sample's number. */
static double given(const planted *p, int64_t s, int64_t v, int64_t l, int64_t h, int64_t probe)
{
    (void)v;
    (void)l;
    (void)h;
    (void)probe;
    return p->values[s];
}

static planted results(int64_t n, const char *const *ids, const double *values)
{
    planted p = planted_standard();
    p.n_samples = n;
    p.n_layers = p.n_heads = p.n_probes = 1;
    p.value = given;
    p.values = values;
    for (int64_t i = 0; i < n; i++) p.ids[i] = ids[i];
    return p;
}

static ats_compare_gate tolerance(double value)
{
    return (ats_compare_gate){.name = "tolerance",
                              .metric = "log_mass_shift",
                              .span = "gold",
                              .max_drop = value,
                              .max_rise = NAN,
                              .equivalence = NAN,
                              .n_variants = 1,
                              .variants = planted_variants};
}

static ats_code compare(const planted *base, const planted *cand, const ats_compare_gate *gate,
                        ats_comparison **out)
{
    planted other = *cand;
    other.capture_hash = "bb";
    assert_ok(planted_write(planted_base, base, &err), &err);
    assert_ok(planted_write(planted_cand, &other, &err), &err);
    const ats_compare_options options = {
        .base = planted_base, .candidate = planted_cand, .n_gates = 1, .gates = gate};
    *out = NULL;
    return ats_compare(&options, out, &err);
}

static const ats_compare_finding *find(const ats_comparison *c, ats_finding_kind kind,
                                       const char *sample)
{
    for (int64_t i = 0; i < c->n_stored; i++)
        if (c->findings[i].kind == kind && strcmp(c->findings[i].sample, sample) == 0)
            return &c->findings[i];
    print_error("no finding about %s\n", sample);
    fail();
    return NULL;
}

static void rc24_a_missing_new_and_undefined_fail(void **state)
{
    (void)state;
    static const char *const before[] = {"c1", "c2", "c3"}, *const after[] = {"c1", "c2", "c4"};
    static const double a[] = {0.50, 0.40, 0.30}, b[] = {0.50, (double)NAN, 0.30};
    const planted base = results(3, before, a), cand = results(3, after, b);
    const ats_compare_gate gate = tolerance(0.01);
    ats_comparison *c;
    assert_ok(compare(&base, &cand, &gate, &c), &err);
    assert_int_equal(ats_code_exit(c->code), 1);
    assert_string_equal(c->verdict, "failed");
    assert_says(find(c, ATS_FINDING_UNDEFINED, "c2")->text, "baseline 0.4, candidate nan");
    assert_says(find(c, ATS_FINDING_MISSING, "c3")->text, "the candidate lacks this sample");
    assert_says(find(c, ATS_FINDING_EXTRA, "c4")->text, "the baseline lacks this sample");
    assert_int_equal(c->rows[0].numbers.n, 1); /* one pair was compared */
    assert_int_equal(c->rows[0].claim, ATS_CLAIM_INCONCLUSIVE);
    ats_comparison_free(c);
}

static void rc24_b_no_two_of_these_are_equal(void **state)
{
    (void)state;
    static const char *const ids[] = {"x", "y", "z"};
    static const double a[] = {(double)NAN, (double)INFINITY, (double)NAN};
    static const double b[] = {(double)-INFINITY, (double)-INFINITY, 5};
    const planted base = results(3, ids, a), cand = results(3, ids, b);
    const ats_compare_gate gate = tolerance(0.01);
    ats_comparison *c;
    assert_ok(compare(&base, &cand, &gate, &c), &err);
    for (int i = 0; i < 3; i++) find(c, ATS_FINDING_UNDEFINED, ids[i]);
    assert_int_equal(c->rows[0].numbers.n, 0);
    assert_int_equal(ats_code_exit(c->code), 1);
    ats_comparison_free(c);
}

static void rc24_c_undefined_on_both_sides_is_equal_and_counted(void **state)
{
    (void)state;
    static const char *const ids[] = {"a", "b", "c", "d", "e", "f", "g"};
    static const double values[] = {(double)NAN, 1, 1.5, 2, 2.5, 3, 3.5};
    const planted both = results(7, ids, values);
    const ats_compare_gate gate = tolerance(0.01);
    ats_comparison *c;
    assert_ok(compare(&both, &both, &gate, &c), &err);
    assert_int_equal(c->n_findings, 0);
    assert_true(c->n_undefined_both > 0);
    assert_int_equal(c->rows[0].numbers.n, 6);
    assert_int_equal(ats_code_exit(c->code), 0);
    ats_comparison_free(c);
}

static void rc24_d_an_empty_comparison_is_an_error(void **state)
{
    (void)state;
    static const char *const before[] = {"c1"}, *const after[] = {"d1"};
    static const double a[] = {0.5};
    const planted base = results(1, before, a), cand = results(1, after, a);
    const ats_compare_gate gate = tolerance(0.01);
    ats_comparison *c;
    assert_int_equal(ats_code_exit(compare(&base, &cand, &gate, &c)), 3);
    assert_says(err.text, "no sample in common");
}

static void rc24_e_the_difference_is_paired(void **state)
{
    (void)state;
    static const char *const ids[] = {"1", "2", "3", "4", "5"};
    static const double a[] = {.10, .20, .30, .40, .50}, b[] = {.12, .21, .33, .42, .52};
    const planted base = results(5, ids, a), cand = results(5, ids, b);
    const ats_compare_gate gate = tolerance(0.01);
    ats_comparison *c;
    assert_ok(compare(&base, &cand, &gate, &c), &err);
    /* the files hold float32: two numbers below 1 differ by at most 2^-24 each */
    assert_near(c->rows[0].numbers.difference, 0.02, 0x1p-23);
    assert_near(c->rows[0].numbers.error, 0.003162277660, 0x1p-23);
    assert_true(c->rows[0].numbers.interval.low > 0); /* unpaired it would reach far below */
    ats_comparison_free(c);
}

static int shell(const char *command, const char *path)
{
    char line[512];
    snprintf(line, sizeof line, command, path);
    const int status = system(line); /* NOLINT: fixed commands on the test's own file */
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* Everything but NUL, which ends a text in C. */
#define HOSTILE                                                                                    \
    "\x08\x1b[31m \xff \xef\xbf\xbe \xed\xa0\x80 ]]> & < > \" ' <script>alert(1)</script> "        \
    "\xe2\x80\xae right-to-left \xc2\x85"

static void rc25_b_hostile_texts_stay_readable(void **state)
{
    (void)state;
    static const char *ids[] = {"s\x1b[2J\xff", "t<b>", "u"};
    static const double a[] = {1, 1, 1}, b[] = {1, 0, (double)NAN};
    char name[301];
    for (int i = 0; i < 300; i++) name[i] = i % 10 == 9 ? '/' : i == 50 ? '\n' : 'n';
    name[300] = '\0';
    ats_compare_gate gates[2] = {tolerance(0.01), tolerance(0.01)};
    gates[0].name = name;
    gates[1].name = HOSTILE;
    planted base = results(3, ids, a), cand = results(3, ids, b);
    cand.capture_hash = "bb";
    base.suite_name = cand.suite_name = "suite " HOSTILE;
    assert_ok(planted_write(planted_base, &base, &err), &err);
    assert_ok(planted_write(planted_cand, &cand, &err), &err);
    const ats_compare_options options = {
        .base = planted_base, .candidate = planted_cand, .n_gates = 2, .gates = gates};
    ats_comparison *c = NULL;
    const char *text = NULL;
    assert_ok(ats_compare(&options, &c, &err), &err);
    assert_ok(ats_compare_junit(&c->arena, c, &text, &err), &err);
    assert_says(text, "tests=\"3\" failures=\"3\"", "\\x1B[31m", "\\xFF", "]]&#62;", "classname=");
    assert_null(strpbrk(text, "\x08\x1b"));
    write_text(xml_path, text);
    static const char schema[] =
        "xmllint --noout --schema " ATS_SOURCE_DIR "/tests/report/junit.xsd %s 2>/dev/null";
    assert_int_equal(shell(schema, xml_path), 0);
    assert_int_equal(shell("sed -i 's/<failure /<failure line=\"3\" /' %s", xml_path), 0);
    assert_int_not_equal(shell(schema, xml_path), 0); /* it does refuse */
    write_text(xml_path, text);
    assert_int_equal(shell("test \"$(xmllint --xpath 'count(//testcase)' %s)\" = 3", xml_path), 0);
    assert_int_equal(shell("test \"$(xmllint --xpath 'count(//failure)' %s)\" = 3", xml_path), 0);
    ats_comparison_free(c);
}

static void rc25_c_names_are_unique(void **state)
{
    (void)state;
    static const char *const ids[] = {"x"};
    static const double a[] = {1};
    const planted both = results(1, ids, a);
    ats_compare_gate gates[2] = {tolerance(0.01), tolerance(0.02)};
    planted other = both;
    other.capture_hash = "bb";
    assert_ok(planted_write(planted_base, &both, &err), &err);
    assert_ok(planted_write(planted_cand, &other, &err), &err);
    const ats_compare_options options = {
        .base = planted_base, .candidate = planted_cand, .n_gates = 2, .gates = gates};
    ats_comparison *c = NULL;
    const char *text = NULL;
    assert_ok(ats_compare(&options, &c, &err), &err);
    assert_ok(ats_compare_junit(&c->arena, c, &text, &err), &err);
    assert_says(text, "classname=\"planted.gate.1\" name=\"tolerance\"",
                "classname=\"planted.gate.2\" name=\"tolerance\"");
    ats_comparison_free(c);
}

static const char *no_style(const char *name)
{
    (void)name;
    return "";
}

/* Every line of the table fits 80 columns and is valid text, whatever ids hold. */
static void text_fits_a_terminal(void **state)
{
    (void)state;
    static const char *ids[] = {"s\x1b[2J\xff", "\xc3\xa9\xc3\xa9", "u"};
    static const double a[] = {1, 1, 1}, b[] = {(double)NAN, 0, 1};
    ats_compare_gate gate = tolerance(0.01);
    gate.name = "caf\xc3\xa9 \xe6\xbc\xa2 a name that is longer than the room a name has, by far, "
                "and goes on";
    planted base = results(3, ids, a), cand = results(3, ids, b);
    ats_comparison *c;
    const char *text = NULL;
    assert_ok(compare(&base, &cand, &gate, &c), &err);
    assert_ok(ats_compare_text(&c->arena, c, no_style, &text, &err), &err);
    assert_null(strpbrk(text, "\x1b\xff"));
    int columns = 0;
    for (const char *p = text; *p != '\0'; p++) {
        /* the one wide character of the text starts with E6 */
        columns = *p == '\n' ? 0
                             : columns + (((unsigned char)*p & 0xc0) != 0x80) +
                                   ((unsigned char)*p == 0xe6);
        assert_true(columns <= 80);
    }
    assert_says(text, "\\x1B[2J\\xFF", "verdict: failed");
    ats_comparison_free(c);
}

/* GitHub's commands: one line each, %, CR, LF escaped, at the gate's line. */
static void annotations_point_at_the_suite(void **state)
{
    (void)state;
    static const char *const ids[] = {"a", "b", "c", "d", "e", "f", "g"};
    static const double a[] = {1, 2, 3, 4, 5, 6, 7}, b[] = {0, 1, 2, 3, 4, 5, 6};
    ats_compare_gate gate = tolerance(0.5);
    gate.name = "100% of it,\nor: less";
    gate.file = "suites/a,b.yaml";
    gate.line = 12;
    const planted base = results(7, ids, a), cand = results(7, ids, b);
    ats_comparison *c;
    const char *text = NULL;
    assert_ok(compare(&base, &cand, &gate, &c), &err);
    assert_ok(ats_compare_github(&c->arena, c, &text, &err), &err);
    assert_says(text, "::error file=suites/a%2Cb.yaml,line=12,title=attnstress regressed::gate "
                      "'100%25 of it,%0Aor: less' regressed");
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    ats_comparison_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rc24_a_missing_new_and_undefined_fail),
        cmocka_unit_test(rc24_b_no_two_of_these_are_equal),
        cmocka_unit_test(rc24_c_undefined_on_both_sides_is_equal_and_counted),
        cmocka_unit_test(rc24_d_an_empty_comparison_is_an_error),
        cmocka_unit_test(rc24_e_the_difference_is_paired),
        cmocka_unit_test(rc25_b_hostile_texts_stay_readable),
        cmocka_unit_test(rc25_c_names_are_unique),
        cmocka_unit_test(text_fits_a_terminal),
        cmocka_unit_test(annotations_point_at_the_suite),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

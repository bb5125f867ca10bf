/* Dose curves and interactions of a real run against sums of their own over the result's cells. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/run.h"
#include "support/check.h"

#define HEAD                                                                                       \
    "suite: c\nversion: 1\nseed: 3\ncaptures: [" ATS_SOURCE_DIR                                    \
    "/examples/captures/recall-short.h5]\n"                                                        \
    "select: {samples: [s00-gold, s01-gold], layers: [0, 1], probes: {role: answer}}\n"            \
    "spans: {target: gold}\nperturbations:\n"

typedef struct fixture {
    char path[96];
    ats_suite *suite;
    ats_plan *plan;
    ats_outcome outcome;
    ats_result_file *file;
    ats_arena arena;
} fixture;

static fixture f;

static void run_suite(const char *text)
{
    ats_err err = {.code = ATS_OK};
    snprintf(f.path, sizeof f.path, "/tmp/attnstress-curve-%d.h5", (int)getpid());
    assert_ok(ats_suite_parse("suite.yaml", text, NULL, 0, &f.suite, &err), &err);
    const ats_plan_options options = {.backend = "cpu"};
    assert_ok(ats_plan_make(f.suite, &options, &f.plan, &err), &err);
    assert_ok(ats_run(f.plan, f.path, &f.outcome, &err), &err);
    assert_ok(ats_result_open(f.path, &f.file, &err), &err);
}

static int tear_down(void **state)
{
    (void)state;
    ats_result_close(f.file);
    ats_outcome_fini(&f.outcome);
    ats_plan_free(f.plan);
    ats_suite_free(f.suite);
    ats_arena_fini(&f.arena);
    unlink(f.path);
    f = (fixture){.file = NULL};
    return 0;
}

static ats_result_variable read_variable(const char *name)
{
    ats_result_variable v;
    ats_err err = {.code = ATS_OK};
    assert_ok(ats_result_read(f.file, name, &v, &err), &err);
    return v;
}

/* Cell (case, layer, head) of a variable with one probe; x: last index, or 0. */
static double cell(const ats_result_variable *v, int64_t c, int64_t l, int64_t h, int64_t x)
{
    int64_t width = 1;
    for (int i = 3; i < v->rank; i++) width *= v->extent[i];
    return v->values[((c * v->extent[1] + l) * v->extent[2] + h) * width + x];
}

static int64_t target_span(void)
{
    char **names = NULL;
    int64_t n = 0, at = -1;
    ats_err err = {.code = ATS_OK};
    assert_ok(ats_result_texts(f.file, "span", &names, &n, &err), &err);
    for (int64_t i = 0; i < n; i++)
        if (strcmp(names[i], "gold") == 0) at = i;
    ats_result_free_texts(names, n);
    assert_true(at >= 0);
    return at;
}

static ats_result_curves curves(void)
{
    ats_result_curves c;
    ats_err err = {.code = ATS_OK};
    assert_ok(ats_result_curves_read(f.file, &f.arena, &c, &err), &err);
    return c;
}

/* In overlay: excess 0, strength and tolerance from the summed odds, a half dose that a walk along
 * the grid brackets. One curve per sample and cosine, six doses and their twins in it. */
static void curves_say_what_the_cells_say(void **state)
{
    (void)state;
    run_suite(HEAD "  - {name: near, kind: distractors, positions: overlay, source: {similar: "
                   "{cosine: [0.9, 0.99]}}, count: [1, 4, 16, 64, 256, 512]}\n");
    const ats_result_curves c = curves();
    const int64_t gold = target_span();
    ats_result_variable shift = read_variable("log_mass_shift"),
                        odds = read_variable("inserted_log_odds"), dose = read_variable("dose"),
                        rows = read_variable("rows"), pair = read_variable("pair_case"),
                        margin = read_variable("margin");
    assert_int_equal(c.n, 4);
    assert_int_equal(c.n_cases, 2 * 2 * 6 * 2);
    int observed = 0;
    for (int64_t k = 0; k < c.n; k++)
        for (int64_t l = 0; l < c.n_layers; l++)
            for (int64_t h = 0; h < c.n_heads; h++) {
                double sum[2] = {0}, n[2] = {0}, above = 0, below = INFINITY, broken = INFINITY;
                for (int64_t i = 0; i < c.n_cases; i += 2) {
                    if (c.of_case[i] != k) continue;
                    const int64_t twin = (int64_t)pair.values[i];
                    assert_int_equal(c.of_case[twin], k);
                    for (int arm = 0; arm < 2; arm++) {
                        sum[arm] += exp(cell(&odds, arm ? twin : i, l, h, 0));
                        n[arm] += rows.values[arm ? twin : i];
                    }
                    const double retention = exp(cell(&shift, i, l, h, gold));
                    const double d = dose.values[i];
                    if (retention >= 0.5 && d > above) above = d;
                    if (retention < 0.5 && d < below) below = d;
                    if (cell(&margin, i, l, h, gold) < 0 && d < broken) broken = d;
                }
                const int64_t at = (k * c.n_layers + l) * c.n_heads + h;
                const double r = sum[0] / n[0], control = sum[1] / n[1];
                assert_near(c.row_tolerance[at] * r, 1, 1e-5);
                assert_near(c.competition_strength[at], log(r / control), 1e-5);
                assert_near(c.excess[at], 0, 1e-6);
                if (c.half_dose_censored[at] == 0) {
                    assert_true(c.half_dose[at] >= above * 0.999999);
                    assert_true(c.half_dose[at] <= below * 1.000001);
                    observed++;
                } else {
                    assert_near(c.half_dose[at], c.half_dose_censored[at] > 0 ? 512 : 1, 0);
                    assert_true(c.half_dose_censored[at] > 0 ? above == 512 : below == 1);
                }
                if (c.breakdown_dose_censored[at] == 0)
                    assert_near(c.breakdown_dose[at], broken, 0);
            }
    assert_true(observed >= 8);
    ats_result_variable *all[] = {&shift, &odds, &dose, &rows, &pair, &margin};
    for (int i = 0; i < 6; i++) free(all[i]->values);
}

/* Two overlays that only compete take log(1 + a + b) together. */
static void overlays_interact_in_closed_form(void **state)
{
    (void)state;
    run_suite(HEAD
              "  - {name: a, kind: distractors, positions: overlay, source: {similar: {cosine: "
              "0.95}}, count: [3, 9], control: false}\n"
              "  - {name: b, kind: high_norm, positions: overlay, multiple: 3, direction: "
              "mean_key, control: false}\n"
              "  - {name: both, combine: [a, b]}\n");
    ats_result_variable interaction = read_variable("interaction"),
                        first = read_variable("first_case"), second = read_variable("second_case"),
                        odds = read_variable("inserted_log_odds");
    int combined = 0;
    for (int64_t c = 0; c < interaction.extent[0]; c++)
        for (int64_t l = 0; l < interaction.extent[1]; l++)
            for (int64_t h = 0; h < interaction.extent[2]; h++) {
                const double got = cell(&interaction, c, l, h, 0);
                if (first.values[c] < 0) {
                    assert_true(isnan(got));
                    continue;
                }
                const double a = exp(cell(&odds, (int64_t)first.values[c], l, h, 0));
                const double b = exp(cell(&odds, (int64_t)second.values[c], l, h, 0));
                assert_near(got, log((1 + a) * (1 + b) / (1 + a + b)), 2e-5);
                combined++;
            }
    assert_int_equal(combined, 2 * 2 * 2 * 4);
    free(interaction.values);
    free(first.values);
    free(second.values);
    free(odds.values);
}

/* Dips recomputed with the twin taken out. */
static void a_move_of_the_target_is_a_position_curve(void **state)
{
    (void)state;
    run_suite(HEAD "  - {name: depth, kind: superseded, positions: move, annotated: place_current, "
                   "current: gold, to: [0, 0.25, 0.5, 0.75, 1]}\n");
    const ats_result_curves c = curves();
    const int64_t gold = target_span();
    ats_result_variable shift = read_variable("log_mass_shift"), to = read_variable("to"),
                        pair = read_variable("pair_case");
    assert_int_equal(c.n, 2);
    assert_string_equal(c.dose_name[0], "to");
    for (int64_t k = 0; k < c.n; k++)
        for (int64_t l = 0; l < c.n_layers; l++)
            for (int64_t h = 0; h < c.n_heads; h++) {
                double y[5] = {0};
                for (int64_t i = 0; i < c.n_cases; i += 2) {
                    if (c.of_case[i] != k) continue;
                    const int64_t twin = (int64_t)pair.values[i];
                    y[(int)lround(4 * to.values[i])] =
                        cell(&shift, i, l, h, gold) - cell(&shift, twin, l, h, gold);
                }
                const int64_t at = (k * c.n_layers + l) * c.n_heads + h;
                const double least = fmin(y[1], fmin(y[2], y[3]));
                assert_near(c.position_dip[at], (y[0] + y[4]) / 2 - least, 1e-5);
                assert_true(isnan(c.half_dose[at]));
            }
    free(shift.values);
    free(to.values);
    free(pair.values);
}

/* Brute force: cases just below and at the found multiple stand on the two sides of the flip. */
static void bisection_finds_the_flip_that_single_runs_see(void **state)
{
    (void)state;
    char text[1024];
    int64_t sample = -1, l = 0, h = 0;
    double found = NAN;
    run_suite(HEAD "  - {name: n, kind: high_norm, positions: overlay, direction: mean_key, "
                   "multiple: [0.25, 32], control: false, breakdown_search: true}\n");
    ats_result_variable dose = read_variable("breakdown_search"),
                        flag = read_variable("breakdown_search_censored");
    for (int64_t s = 0; s < dose.extent[0] && sample < 0; s++)
        for (int64_t i = 0; i < dose.extent[1] * dose.extent[2] && sample < 0; i++) {
            const int64_t at = s * dose.extent[1] * dose.extent[2] + i;
            if (flag.values[at] != 0) continue;
            sample = s;
            l = i / dose.extent[2];
            h = i % dose.extent[2];
            found = dose.values[at];
        }
    free(dose.values);
    free(flag.values);
    assert_true(sample >= 0);
    tear_down(NULL);
    snprintf(text, sizeof text,
             HEAD "  - {name: n, kind: high_norm, positions: overlay, direction: mean_key, "
                  "multiple: [%.9g, %.9g], control: false}\n",
             found / 1.011, found * 1.0001);
    run_suite(text);
    ats_result_variable margin = read_variable("margin");
    const int64_t gold = target_span();
    assert_true(cell(&margin, 2 * sample, l, h, gold) >= 0);
    assert_true(cell(&margin, 2 * sample + 1, l, h, gold) < 0);
    free(margin.values);
}

static void a_suite_without_doses_has_no_curves(void **state)
{
    (void)state;
    run_suite(HEAD "  - {name: n, kind: normalise, to: unit}\n");
    assert_int_equal(curves().n, 0);
    assert_false(ats_result_has(f.file, "half_dose"));
    assert_false(ats_result_has(f.file, "interaction"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(curves_say_what_the_cells_say, tear_down),
        cmocka_unit_test_teardown(overlays_interact_in_closed_form, tear_down),
        cmocka_unit_test_teardown(a_move_of_the_target_is_a_position_curve, tear_down),
        cmocka_unit_test_teardown(bisection_finds_the_flip_that_single_runs_see, tear_down),
        cmocka_unit_test_teardown(a_suite_without_doses_has_no_curves, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <math.h>

#include "engine/gates.h"
#include "support/check.h"

enum { SAMPLES = 2, VARIANTS = 2, LAYERS = 2, HEADS = 2, CASES = SAMPLES * VARIANTS };
enum { MANY = 300 };

typedef struct fixture {
    ats_arena arena;
    ats_suite suite;
    ats_plan plan;
    ats_outcome outcome;
    ats_perturbation perturbation;
    ats_family family;
    ats_variant variants[VARIANTS];
    ats_gate gates[MANY];
    ats_table tables[MANY + 1];
    ats_case cases[CASES];
    float values[CASES * LAYERS * HEADS];
} fixture;

static int set_up(void **state)
{
    static fixture f;
    f = (fixture){.suite = {.path = "suite.yaml"}};
    f.family = (ats_family){.kind = "temperature"};
    f.perturbation = (ats_perturbation){.name = "p", .family = &f.family};
    for (int v = 0; v < VARIANTS; v++) f.variants[v] = (ats_variant){.id = "p/1", .base_id = "p/1"};
    for (int i = 0; i < CASES * LAYERS * HEADS; i++) f.values[i] = (float)i;
    for (int g = 0; g < MANY; g++) {
        f.gates[g] = (ats_gate){.name = "g",
                                .metric = "tv",
                                .min = NAN,
                                .max = NAN,
                                .max_drop = NAN,
                                .equivalence = NAN};
        f.tables[1 + g] = (ats_table){.values = f.values};
    }
    f.suite.n_perturbations = 1;
    f.suite.perturbations = &f.perturbation;
    f.suite.n_variants = VARIANTS;
    f.suite.variants = f.variants;
    f.suite.gates = f.gates;
    f.suite.n_gates = 1;
    f.plan.suite = &f.suite;
    f.plan.selection.n_samples = SAMPLES;
    f.plan.shape.n_layers = LAYERS;
    f.plan.shape.n_heads = HEADS;
    f.outcome.cases = f.cases;
    f.outcome.n_cases = CASES;
    f.outcome.tables = (ats_tables){MANY + 1, f.tables};
    ats_arena_init(&f.arena, false);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    ats_arena_fini(&f->arena);
    return 0;
}

static ats_verdict judged(fixture *f)
{
    ats_verdict verdict;
    ats_err err;
    assert_ok(ats_gates_judge(&f->arena, &f->plan, &f->outcome, &verdict, &err), &err);
    return verdict;
}

static void the_mean_goes_over_everything(void **state)
{
    fixture *f = *state;
    f->gates[0].min = 7.4;
    f->gates[0].max = 7.6;
    const ats_verdict v = judged(f);
    assert_near(v.gates[0].value, 7.5, 0);
    assert_true(v.gates[0].passed);
    assert_int_equal(v.code, ATS_OK);
    assert_int_equal(v.gates[0].n_cases, CASES);
}

static void reductions_keep_the_sample_as_the_unit(void **state)
{
    fixture *f = *state;
    f->gates[0].min = 0;
    f->gates[0].reduce = ATS_REDUCE_MIN;
    assert_near(judged(f).gates[0].value, 0, 0);
    f->gates[0].reduce = ATS_REDUCE_MAX;
    assert_near(judged(f).gates[0].value, 15, 0);
    f->gates[0].reduce = ATS_REDUCE_MEDIAN;
    assert_near(judged(f).gates[0].value, 7.5, 0);
    /* one skipped case in sample 0 does not make sample 1 count twice */
    f->gates[0].reduce = ATS_REDUCE_MEAN;
    f->cases[1].status = ATS_CASE_SKIPPED;
    assert_near(judged(f).gates[0].value, 0.5 * (1.5 + 11.5), 0);
    assert_int_equal(judged(f).gates[0].n_skipped, 1);
    assert_true(judged(f).gates[0].passed);
}

/* RC-24: what is undefined or missing never passes. */
static void undefined_never_passes(void **state)
{
    fixture *f = *state;
    f->gates[0].min = -1000;
    f->values[3] = NAN; /* one cell: left out of the mean */
    assert_true(judged(f).gates[0].passed);
    for (int i = 0; i < LAYERS * HEADS; i++) f->values[i] = NAN; /* a whole case */
    ats_verdict v = judged(f);
    assert_false(v.gates[0].passed);
    assert_int_equal(v.code, ATS_E_GATE);
    assert_says(v.gates[0].sentence, "FAILED", "1 of 4 cases are undefined");
    for (int c = 0; c < CASES; c++) f->cases[c].status = ATS_CASE_SKIPPED;
    v = judged(f);
    assert_int_equal(v.code, ATS_E_GATE);
    assert_says(v.gates[0].sentence, "no case gave a defined number", "4 of 4 cases skipped");
}

static void failed_cases_fail_the_gate_or_are_inconclusive(void **state)
{
    fixture *f = *state;
    f->cases[2].status = ATS_CASE_FAILED;
    f->outcome.n_failed = 1;
    assert_int_equal(judged(f).code, ATS_E_INCONCLUSIVE); /* the gate has neither min nor max */
    f->gates[0].min = -1000;
    const ats_verdict v = judged(f);
    assert_int_equal(v.code, ATS_E_GATE);
    assert_says(v.gates[0].sentence, "1 of 4 cases failed");
}

static void gates_for_compare_are_not_judged(void **state)
{
    fixture *f = *state;
    f->gates[0].max_drop = 0.1;
    const ats_verdict v = judged(f);
    assert_int_equal(v.n_judged, 0);
    assert_int_equal(v.code, ATS_OK);
}

/* RC-25 a: exit status 1 for any number of failed gates, never a count. */
static void exit_status_is_never_a_count(void **state)
{
    fixture *f = *state;
    static const int64_t counts[] = {0, 1, 255, 256, 257, MANY};
    f->suite.n_gates = MANY;
    for (int i = 0; i < 6; i++) {
        for (int64_t g = 0; g < MANY; g++) f->gates[g].min = g < counts[i] ? 1000 : -1000;
        const ats_verdict v = judged(f);
        assert_int_equal(v.n_failed, counts[i]);
        assert_int_equal(ats_code_exit(v.code), counts[i] > 0 ? 1 : 0);
    }
    assert_int_equal(ats_code_exit(ats_verdict_code(0, 1)), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_mean_goes_over_everything),
        TEST(reductions_keep_the_sample_as_the_unit),
        TEST(undefined_never_passes),
        TEST(failed_cases_fail_the_gate_or_are_inconclusive),
        TEST(gates_for_compare_are_not_judged),
        TEST(exit_status_is_never_a_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

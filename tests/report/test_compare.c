/* compare on results with planted differences: pairing, claims, findings, refusals, exact mode. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "report/compare.h"
#include "report/planted.h"
#include "support/check.h"

static ats_err err;

static ats_compare_gate gate_of(const char *metric, const char *span)
{
    return (ats_compare_gate){.name = "holds",
                              .metric = metric,
                              .span = span,
                              .max_drop = 0.1,
                              .max_rise = NAN,
                              .equivalence = NAN,
                              .n_variants = 2,
                              .variants = planted_variants};
}

/* Both files and the comparison; code is what ats_compare says. */
static ats_code compare(const planted *base, const planted *cand, const ats_compare_options *how,
                        ats_comparison **out)
{
    assert_ok(planted_write(planted_base, base, &err), &err);
    assert_ok(planted_write(planted_cand, cand, &err), &err);
    ats_compare_options options = *how;
    options.base = planted_base;
    options.candidate = planted_cand;
    options.resamples = 2000;
    *out = NULL;
    return ats_compare(&options, out, &err);
}

static void a_planted_drop_is_found(void **state)
{
    (void)state;
    planted base = planted_standard(), cand = base;
    ats_compare_gate gate = gate_of("log_mass_shift", "gold");
    const ats_compare_options how = {.n_gates = 1, .gates = &gate};
    ats_comparison *c;
    base.value = cand.value = planted_one_head;
    cand.shift = -0.6;
    cand.capture_hash = "bb";
    gate.max_drop = 0.09; /* the gate's mean over 6 cells falls by 0.1 */
    assert_ok(compare(&base, &cand, &how, &c), &err);
    const ats_compare_row *row = &c->rows[0];
    assert_near(row->numbers.difference, -0.1, 1e-7);
    assert_int_equal(row->numbers.n, 8);
    assert_int_equal(row->numbers.test, ATS_TEST_SIGN_FLIP);
    assert_near(row->numbers.p, 2.0 / 256, 1e-12);
    assert_int_equal(row->claim, ATS_CLAIM_REGRESSED);
    assert_int_equal(c->code, ATS_E_GATE);
    assert_string_equal(c->verdict, "regressed");
    assert_says(row->sentence, "gate 'holds' regressed", "log_mass_shift[gold]", "max_drop 0.09");
    /* every perturbation and the base route dropped there and nowhere else */
    assert_int_equal(c->n_what, 3);
    for (int64_t i = 0; i < 3; i++) {
        assert_int_equal(c->layers[c->worst[i].l], 9);
        assert_int_equal(c->heads[c->worst[i].h], 1);
        assert_near(c->worst[i].numbers.difference, -0.6, 1e-6);
        assert_true(c->worst[i].q <= 0.05);
        assert_says(c->worst[i].explain, "attnstress explain", planted_cand, "--layer 9 --head 1");
    }
    for (int64_t i = 3; i < c->n_worst; i++) assert_true(c->worst[i].numbers.difference > -1e-6);
    ats_comparison_free(c);
    gate.max_drop = 0.2; /* beyond chance, but not beyond the limit: within it everywhere */
    assert_ok(compare(&base, &cand, &how, &c), &err);
    assert_int_equal(c->rows[0].claim, ATS_CLAIM_UNCHANGED);
    assert_int_equal(c->code, ATS_OK);
    ats_comparison_free(c);
    gate.equivalence = 0.01; /* significant, within max_drop, not the same: nothing is claimed */
    assert_ok(compare(&base, &cand, &how, &c), &err);
    assert_int_equal(c->rows[0].claim, ATS_CLAIM_INCONCLUSIVE);
    assert_int_equal(c->code, ATS_E_INCONCLUSIVE);
    ats_comparison_free(c);
    cand.shift = 0.6;
    assert_ok(compare(&base, &cand, &how, &c), &err);
    assert_int_equal(c->rows[0].claim, ATS_CLAIM_IMPROVED);
    assert_int_equal(c->code, ATS_OK);
    assert_string_equal(c->verdict, "improved");
    ats_comparison_free(c);
}

static void both_details_give_one_verdict(void **state)
{
    (void)state;
    const ats_compare_gate gate = gate_of("log_mass_shift", "gold");
    const ats_compare_options how = {.n_gates = 1, .gates = &gate};
    ats_comparison *c[2];
    for (int detail = 0; detail < 2; detail++) {
        planted base = planted_standard(), cand = base;
        cand.capture_hash = "bb";
        cand.shift = -0.15;
        base.detail_head = cand.detail_head = detail != 0;
        assert_ok(compare(&base, &cand, &how, &c[detail]), &err);
    }
    assert_near(c[0]->rows[0].numbers.difference, -0.15, 1e-6);
    assert_near(c[0]->rows[0].numbers.difference, c[1]->rows[0].numbers.difference, 1e-6);
    assert_near(c[0]->rows[0].numbers.base, c[1]->rows[0].numbers.base, 1e-6);
    assert_int_equal(c[0]->rows[0].claim, c[1]->rows[0].claim);
    ats_comparison_free(c[0]);
    ats_comparison_free(c[1]);
}

static double by_sample(const planted *p, int64_t s, int64_t v, int64_t l, int64_t h, int64_t probe)
{
    (void)v;
    (void)l;
    (void)h;
    (void)probe;
    return p->values[s];
}

/* Two documents of four samples each: n is 2, whatever their samples say. */
static void clusters_are_the_n(void **state)
{
    (void)state;
    static const double a[8] = {0, 0, 0, 0, 0, 0, 0, 0}, b[8] = {1, 2, 3, 4, -1, -1, -1, -1};
    planted base = planted_standard(), cand = base;
    const ats_compare_gate gate = gate_of("log_mass_shift", "gold");
    const ats_compare_options how = {.n_gates = 1, .gates = &gate};
    ats_comparison *c;
    for (int i = 0; i < 8; i++) base.clusters[i] = cand.clusters[i] = i < 4 ? "one" : "two";
    base.value = cand.value = by_sample;
    base.values = a;
    cand.values = b;
    cand.capture_hash = "bb";
    assert_ok(compare(&base, &cand, &how, &c), &err);
    assert_int_equal(c->n_clusters, 2);
    assert_int_equal(c->rows[0].numbers.n, 2);
    assert_near(c->rows[0].values[0], 2.5, 1e-7);
    assert_near(c->rows[0].values[1], -1, 1e-7);
    assert_near(c->rows[0].numbers.difference, 0.75, 1e-7);
    assert_int_equal(c->rows[0].claim, ATS_CLAIM_INCONCLUSIVE);
    assert_says(c->rows[0].sentence, "2 clusters can show nothing at 0.05 over 1 gate, 6 could");
    ats_comparison_free(c);
    for (int i = 0; i < 8; i++) base.clusters[i] = cand.clusters[i] = "one";
    assert_ok(compare(&base, &cand, &how, &c), &err);
    assert_int_equal(c->rows[0].numbers.n, 1);
    assert_true(isnan(c->rows[0].numbers.interval.low));
    assert_int_equal(c->rows[0].claim, ATS_CLAIM_INCONCLUSIVE);
    assert_says(c->rows[0].sentence, "one cluster has no interval");
    assert_int_equal(c->code, ATS_E_INCONCLUSIVE);
    ats_comparison_free(c);
}

static void no_difference_anywhere_is_unchanged(void **state)
{
    (void)state;
    planted base = planted_standard(), cand = base;
    const ats_compare_gate gate = gate_of("log_mass_shift", "gold");
    const ats_compare_options how = {.n_gates = 1, .gates = &gate}, none = {.n_gates = 0};
    ats_comparison *c;
    cand.capture_hash = "bb";
    assert_ok(compare(&base, &cand, &how, &c), &err);
    assert_near(c->rows[0].numbers.p, 1, 0);
    assert_int_equal(c->rows[0].claim, ATS_CLAIM_UNCHANGED);
    assert_string_equal(c->verdict, "unchanged");
    assert_int_equal(c->n_worst, 0);
    ats_comparison_free(c);
    assert_ok(compare(&base, &cand, &none, &c), &err);
    assert_int_equal(c->code, ATS_E_INCONCLUSIVE);
    assert_says(c->sentence, "nothing was judged");
    ats_comparison_free(c);
}

static double a_gap(const planted *p, int64_t s, int64_t v, int64_t l, int64_t h, int64_t probe)
{
    if (s == 3 && v == 1 && l == 0 && h == 2 && probe == 1) return p->shift;
    return -1 + 0.1 * planted_noise(s, v, l, h);
}

static void gaps_on_one_side_are_findings(void **state)
{
    (void)state;
    planted base = planted_standard(), cand = base;
    const ats_compare_gate gate = gate_of("log_mass_shift", "gold");
    static const char *const named[] = {"s3:near/4"}, *const wrong[] = {"s2*"};
    ats_compare_options how = {.n_gates = 1, .gates = &gate};
    ats_comparison *c;
    base.value = cand.value = a_gap;
    base.shift = -1;
    cand.capture_hash = "bb";
    const double bad[] = {(double)NAN, (double)-INFINITY, (double)INFINITY};
    for (int i = 0; i < 3; i++) {
        cand.shift = bad[i];
        assert_ok(compare(&base, &cand, &how, &c), &err);
        assert_int_equal(c->code, ATS_E_GATE);
        assert_string_equal(c->verdict, "failed");
        assert_int_equal(c->of_kind[ATS_FINDING_UNDEFINED], 1);
        assert_string_equal(c->findings[0].sample, "s3");
        assert_string_equal(c->findings[0].variant, "near/4");
        assert_says(c->findings[0].text, "log_mass_shift", "layer 4 head 2 probe 1");
        ats_comparison_free(c);
    }
    how.allow[ATS_FINDING_UNDEFINED] = wrong;
    how.n_allow[ATS_FINDING_UNDEFINED] = 1;
    assert_ok(compare(&base, &cand, &how, &c), &err);
    assert_int_equal(c->code, ATS_E_GATE);
    ats_comparison_free(c);
    how.allow[ATS_FINDING_UNDEFINED] = named;
    assert_ok(compare(&base, &cand, &how, &c), &err);
    assert_int_equal(c->code, ATS_OK);
    assert_true(c->findings[0].allowed);
    ats_comparison_free(c);
    base.shift = (double)NAN; /* undefined on both sides: equal, counted, no finding */
    cand.shift = (double)NAN;
    how.n_allow[ATS_FINDING_UNDEFINED] = 0;
    assert_ok(compare(&base, &cand, &how, &c), &err);
    assert_int_equal(c->n_findings, 0);
    assert_true(c->n_undefined_both >= 1);
    assert_int_equal(c->code, ATS_OK);
    ats_comparison_free(c);
}

static void samples_and_cases_of_one_side_are_findings(void **state)
{
    (void)state;
    planted base = planted_standard(), cand = base;
    const ats_compare_gate gate = gate_of("log_mass_shift", "gold");
    static const char *const missing[] = {"s7"}, *const extra[] = {"n?w"};
    ats_compare_options how = {.n_gates = 1, .gates = &gate};
    ats_comparison *c;
    cand.capture_hash = "bb";
    cand.ids[7] = "new";
    cand.skipped = 2 * PLANTED_VARIANTS + 1;
    assert_ok(compare(&base, &cand, &how, &c), &err);
    assert_int_equal(c->n_samples, 7);
    assert_int_equal(c->of_kind[ATS_FINDING_MISSING], 2);
    assert_int_equal(c->of_kind[ATS_FINDING_EXTRA], 1);
    assert_string_equal(c->verdict, "failed");
    assert_int_equal(c->code, ATS_E_GATE);
    ats_comparison_free(c);
    how.allow[ATS_FINDING_MISSING] = missing;
    how.n_allow[ATS_FINDING_MISSING] = 1;
    how.allow[ATS_FINDING_EXTRA] = extra;
    how.n_allow[ATS_FINDING_EXTRA] = 1;
    assert_ok(compare(&base, &cand, &how, &c), &err);
    assert_int_equal(c->n_refused, 1); /* the case that was skipped */
    assert_says(c->findings[c->n_stored - 1].text, "ran in the baseline, was skipped");
    ats_comparison_free(c);
    cand.skipped = -1;
    assert_ok(compare(&base, &cand, &how, &c), &err);
    assert_int_equal(c->code, ATS_OK);
    ats_comparison_free(c);
    for (int i = 0; i < 8; i++) cand.ids[i] = i % 2 ? "x" : "y"; /* ambiguous */
    assert_int_equal(compare(&base, &cand, &how, &c), ATS_E_INPUT);
    assert_says(err.text, "two samples are called");
    cand = planted_standard();
    cand.n_samples = 1;
    cand.ids[0] = "other";
    assert_int_equal(compare(&base, &cand, &how, &c), ATS_E_INPUT);
    assert_says(err.text, "no sample in common");
}

static void what_is_not_comparable_is_refused_with_a_list(void **state)
{
    (void)state;
    const ats_compare_options how = {.n_gates = 0};
    ats_comparison *c;
    const planted base = planted_standard();
    const struct {
        planted cand;
        const char *says[2];
    } cases[] = {
        {{.suite_hash = "11"}, {"suite hash: baseline 00ff, candidate 11"}},
        {{.target_name = "stale"}, {"target: baseline gold, candidate stale"}},
        {{.tokens = "abc", .other_sample = 5}, {"sample s5, tokens: baseline standard"}},
        {{.spans = "gold 3-4", .other_sample = 0}, {"sample s0, spans", "candidate gold 3-4"}},
        {{.probes = "9@9(x)", .other_sample = 1}, {"sample s1, probes"}},
        {{.n_layers = 3}, {"layers: baseline 4,9, candidate 4,9,11"}},
        {{.n_heads = 2}, {"heads: baseline 0,1,2, candidate 0,1"}},
        {{.n_probes = 3}, {"probes: baseline 2, candidate 3"}},
        {{.detail_head = true}, {"detail: baseline probe, candidate head"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        planted cand = planted_standard();
        const planted *x = &cases[i].cand;
        if (x->n_layers > 0) cand.n_layers = x->n_layers;
        if (x->n_heads > 0) cand.n_heads = x->n_heads;
        if (x->n_probes > 0) cand.n_probes = x->n_probes;
        cand.suite_hash = x->suite_hash;
        cand.target_name = x->target_name;
        cand.tokens = x->tokens;
        cand.spans = x->spans;
        cand.probes = x->probes;
        cand.other_sample = x->other_sample;
        cand.detail_head = x->detail_head;
        assert_int_equal(compare(&base, &cand, &how, &c), ATS_E_INPUT);
        assert_says(err.text, "cannot be compared", cases[i].says[0]);
        if (cases[i].says[1] != NULL) assert_says(err.text, cases[i].says[1]);
    }
}

static void gates_that_cannot_be_answered_are_errors(void **state)
{
    (void)state;
    planted base = planted_standard(), cand = base;
    static const char *const unknown[] = {"near/64"};
    ats_comparison *c;
    ats_compare_gate gates[6];
    for (int i = 0; i < 6; i++) gates[i] = gate_of("log_mass_shift", "gold");
    gates[0].metric = "log_mass_shfit";
    gates[1].span = "silver";
    gates[2].metric = "entropy"; /* known, but not kept in these results */
    gates[2].span = NULL;
    gates[3].variants = unknown;
    gates[3].n_variants = 1;
    gates[4].n_variants = 0;
    gates[5].metric = "topk_weight";
    gates[5].file = "s.yaml";
    gates[5].line = 7;
    gates[5].column = 5;
    const char *const says[] = {"no metric log_mass_shfit",
                                "no sample of the results has a span "
                                "'silver'",
                                "metrics.keep",
                                "near/64",
                                "judges no case",
                                "s.yaml:7:5"};
    cand.capture_hash = "bb";
    for (int i = 0; i < 6; i++) {
        const ats_compare_options how = {.n_gates = 1, .gates = &gates[i]};
        assert_int_equal(compare(&base, &cand, &how, &c), ATS_E_SUITE);
        assert_says(err.text, "gate 'holds'", says[i]);
    }
}

static double one_cell(const planted *p, int64_t s, int64_t v, int64_t l, int64_t h, int64_t probe)
{
    return -1 + (s == 6 && v == 3 && l == 1 && h == 2 && probe == 1 ? p->shift : 0);
}

static void equal_captures_are_compared_exactly(void **state)
{
    (void)state;
    planted base = planted_standard(), cand = base;
    const ats_compare_gate gate = gate_of("log_mass_shift", "gold");
    ats_compare_options how = {.n_gates = 1, .gates = &gate, .noise_floor = -1};
    ats_comparison *c;
    base.value = cand.value = one_cell;
    assert_ok(compare(&base, &cand, &how, &c), &err);
    assert_true(c->exact);
    assert_string_equal(c->verdict, "equal");
    assert_int_equal(c->code, ATS_OK);
    assert_true(isnan(c->rows[0].numbers.p));
    assert_int_equal(c->rows[0].claim, ATS_CLAIM_UNCHANGED);
    ats_comparison_free(c);
    cand.shift = 1e-5; /* one cell of one variable, far from every gate */
    assert_ok(compare(&base, &cand, &how, &c), &err);
    assert_string_equal(c->verdict, "differs");
    assert_int_equal(c->code, ATS_E_GATE);
    assert_int_equal(c->n_differences, 4); /* the shift, tv, mass, retention */
    assert_says(c->differences[0].place, "case 27", "layer 9", "head 2", "probe 1");
    ats_comparison_free(c);
    cand.build = "def"; /* another build: the floor of fp32 */
    assert_ok(compare(&base, &cand, &how, &c), &err);
    assert_string_equal(c->verdict, "equal");
    ats_comparison_free(c);
    cand.shift = (double)NAN;
    assert_ok(compare(&base, &cand, &how, &c), &err);
    assert_int_equal(c->code, ATS_E_GATE);
    ats_comparison_free(c);
}

static double by_dose(const planted *p, int64_t s, int64_t v, int64_t l, int64_t h, int64_t probe)
{
    (void)probe;
    const double dose = v == 0 ? 1 : 4;
    return p->shift * log2(2 * dose) + 0.001 * planted_noise(s, v, l, h);
}

/* shift = -0.3 log2(2 dose): log 1/2 at dose 2^(log(2)/0.3 - 1) = 2.48; at -0.2 past the grid. */
static void dose_curves_move(void **state)
{
    (void)state;
    planted base = planted_standard(), cand = base;
    const ats_compare_options how = {.n_gates = 0};
    ats_comparison *c;
    base.value = cand.value = by_dose;
    base.shift = -0.2;
    cand.shift = -0.3;
    cand.capture_hash = "bb";
    assert_ok(compare(&base, &cand, &how, &c), &err);
    assert_int_equal(c->n_curves, 1);
    assert_string_equal(c->curves[0].perturbation, "near");
    assert_int_equal(c->curves[0].n, 2);
    assert_near(c->curves[0].points[0].numbers.difference, -0.1, 0.001);
    assert_near(c->curves[0].points[1].numbers.difference, -0.3, 0.001);
    assert_true(isnan(c->curves[0].half_base));
    assert_near(c->curves[0].half_candidate, pow(2, log(2) / 0.3 - 1), 0.02);
    ats_comparison_free(c);
}

static void damaged_files_are_refused(void **state)
{
    (void)state;
    planted base = planted_standard();
    const ats_compare_options how = {.base = planted_base, .candidate = planted_cand};
    ats_comparison *c = NULL;
    assert_ok(planted_write(planted_base, &base, &err), &err);
    assert_ok(planted_write(planted_cand, &base, &err), &err);
    for (int step = 0; step < 8; step++) {
        assert_int_equal(truncate(planted_cand, 40000 >> (2 * step)), 0);
        assert_int_not_equal(ats_compare(&how, &c, &err), ATS_OK);
        assert_says(err.text, planted_cand);
    }
    unlink(planted_cand);
    assert_int_not_equal(ats_compare(&how, &c, &err), ATS_OK);
    assert_says(err.text, "candidate", planted_cand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_planted_drop_is_found),
        cmocka_unit_test(both_details_give_one_verdict),
        cmocka_unit_test(clusters_are_the_n),
        cmocka_unit_test(no_difference_anywhere_is_unchanged),
        cmocka_unit_test(gaps_on_one_side_are_findings),
        cmocka_unit_test(samples_and_cases_of_one_side_are_findings),
        cmocka_unit_test(what_is_not_comparable_is_refused_with_a_list),
        cmocka_unit_test(gates_that_cannot_be_answered_are_errors),
        cmocka_unit_test(equal_captures_are_compared_exactly),
        cmocka_unit_test(dose_curves_move),
        cmocka_unit_test(damaged_files_are_refused),
    };
    return cmocka_run_group_tests(tests, planted_make_folder, planted_remove_folder);
}

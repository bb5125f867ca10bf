#include "suite/fixture.h"

#define GATED                                                                                      \
    "suite: t\nperturbations:\n"                                                                   \
    "  - {name: near, kind: distractors, positions: [overlay, shift], count: [1, 8]}\n"            \
    "  - {name: warm, kind: temperature, tau: [2, 4]}\n"                                           \
    "  - {name: norms, kind: normalise, to: unit}\n"                                               \
    "  - {name: old, kind: superseded, positions: overlay, versions: 1}\n"                         \
    "gates:\n"

static int64_t count_matches(const char *where)
{
    char text[2048];
    snprintf(text, sizeof text, GATED "  - {name: g, metric: tv, max: 1, where: %s}\n", where);
    ats_suite *s = must_load(text);
    int64_t count = 0;
    for (int64_t i = 0; i < s->n_variants; i++)
        count += ats_gate_matches(s, &s->gates[0], &s->variants[i]);
    ats_suite_free(s);
    return count;
}

static void a_filter_meets_what_all_its_clauses_meet(void **state)
{
    (void)state;
    assert_int_equal(count_matches("{perturbation: near}"), 8);
    assert_int_equal(count_matches("{perturbation: near, arm: treatment}"), 4);
    assert_int_equal(count_matches("{count: 8}"), 4);
    assert_int_equal(count_matches("{count: [1, 8.0], positions: shift, arm: control}"), 2);
    assert_int_equal(count_matches("{kind: [temperature, normalise]}"), 3);
    assert_int_equal(count_matches("{tau: 2.00}"), 1);
    assert_int_equal(count_matches("{replicate: 0, perturbation: warm}"), 2);
    assert_int_equal(count_matches("{payload: donor}"), 8); /* a default is a value too */
    assert_int_equal(count_matches("{to: unit}"), 1);
}

static void refused(const char *gate, const char *a, const char *b)
{
    char text[2048];
    ats_err err;
    snprintf(text, sizeof text, GATED "  - %s\n", gate);
    must_refuse(text, NULL, &err);
    assert_says(err.text, "s.yaml:8:", a, b);
}

static void a_gate_that_judges_nothing_is_an_error(void **state)
{
    (void)state;
    refused("{name: g, metric: tv, max: 1, where: {count: 3}}", "judges no case", "'count'");
    refused("{name: g, metric: tv, max: 1, where: {count: 8, tau: 2}}", "judges no case",
            "together");
    refused("{name: g, metric: tv, max: 1, where: {cuont: 8}}", "unknown key 'cuont' in where",
            "did you mean 'count'?");
    refused("{name: g, metric: tv, max: 1, where: {width: 8}}", "unknown key 'width'", "in where");
    refused("{name: g, metric: tv, max: 1, where: {perturbation: naer}}", "'naer' is not one of",
            "did you mean 'near'?");
    refused("{name: g, metric: tv, max: 1, where: {arm: both}}", "treatment or control", "'both'");
    refused("{name: g, metric: tv, max: 1, where: {tau: hot}}", "'hot' is not a number", "tau");
    refused("{name: g, metric: tv, max: 1, where: {}}", "a mapping of clauses is wanted", "where");
    refused("{name: g, metric: tv}", "demands nothing", "max_drop");
    refused("{name: g, metric: tv, min: 2, max: 1}", "can never pass", "min is above max");
    refused("{name: g, metric: tv, max_drop: -1}", "-1 is below the least value 0", "max_drop");
}

static void metrics_and_their_axes_are_checked(void **state)
{
    (void)state;
    refused("{name: g, metric: log_mas_shift, span: gold, min: 0}", "no metric 'log_mas_shift'",
            "did you mean 'log_mass_shift'?");
    refused("{name: g, metric: log_mass_shift, min: 0}", "a value for every span", "'span:'");
    refused("{name: g, metric: tv, span: gold, min: 0}", "tv has no span axis", "take 'span' away");
    refused("{name: g, metric: delta_norm, min: 0}", "a value for every part", "'part:'");
    refused("{name: g, metric: delta_norm, part: reruote, min: 0}", "not one of removal",
            "did you mean 'reroute'?");
    refused("{name: g, metric: topk_weight, min: 0}", "a list in every cell", "topk_weight");
    ats_suite *s =
        must_load(GATED "  - {name: g, metric: base_mass, span: gold, min: 0, reduce: median}\n"
                        "  - {name: h, metric: delta_share, part: reroute, max: 1}\n");
    assert_int_equal(s->n_gates, 2);
    assert_int_equal(s->gates[0].reduce, ATS_REDUCE_MEDIAN);
    assert_string_equal(s->gates[1].part, "reroute");
    assert_int_equal(s->gates[1].n_where, 0);
    ats_suite_free(s);
}

static void names_and_kept_metrics_are_checked(void **state)
{
    (void)state;
    ats_err err;
    must_refuse(GATED "  - {name: g, metric: tv, max: 1}\n  - {name: g, metric: js, max: 1}\n",
                NULL, &err);
    assert_says(err.text, "s.yaml:9:5", "gate 'g' is there twice: lines 8 and 9");
    must_refuse(GATED "  - {name: g, metric: tv, max: 1}\nmetrics: {keep: [js, entorpy]}\n", NULL,
                &err);
    assert_says(err.text, "tv is not among the metrics that are kept", "did you mean 'entropy'?");
}

static ats_better better_of(const char *gate)
{
    char text[2048];
    snprintf(text, sizeof text, GATED "  - %s\nspans: {target: gold}\n", gate);
    ats_suite *s = must_load(text);
    const ats_better better = s->gates[0].better;
    ats_suite_free(s);
    return better;
}

/* A limit on the way to the better alone would let every loss pass. */
static void a_gate_knows_which_way_is_worse(void **state)
{
    (void)state;
    assert_int_equal(better_of("{name: g, metric: tv, max_rise: 1}"), ATS_BETTER_LESS);
    assert_int_equal(better_of("{name: g, metric: tv, max_rise: 1, max_drop: 1}"), ATS_BETTER_LESS);
    assert_int_equal(better_of("{name: g, metric: base_mass, span: gold, max_drop: 1}"),
                     ATS_BETTER_MORE);
    assert_int_equal(better_of("{name: g, metric: base_rank, span: gold, max_rise: 1}"),
                     ATS_BETTER_LESS);
    assert_int_equal(better_of("{name: g, metric: mass, span: inserted, max_rise: 1}"),
                     ATS_BETTER_LESS);
    assert_int_equal(better_of("{name: g, metric: mass, span: sink, max_rise: 1}"),
                     ATS_BETTER_NEITHER);
    assert_int_equal(better_of("{name: g, metric: entropy, max_drop: 1}"), ATS_BETTER_NEITHER);
    assert_int_equal(better_of("{name: g, metric: tv, max_drop: 1, better: more}"),
                     ATS_BETTER_MORE);
    refused("{name: g, metric: tv, max_drop: 1}", "would pass every loss", "max_rise");
    refused("{name: g, metric: output_cosine, max_rise: 1}", "more of output_cosine is better",
            "write max_drop, or 'better: less'");
    refused("{name: g, metric: tv, max_rise: 1, better: more}", "would pass every loss",
            "max_drop");
    refused("{name: g, metric: tv, max_rise: 1, better: mroe}", "did you mean 'more'?", "better");
}

/* A diagnosis costs as much as many variants: nobody gets it who did not ask for it. */
static void sharpness_is_asked_for(void **state)
{
    (void)state;
    const char *gate = "{name: g, metric: base_sharpness_norm, max: 9}";
    const ats_metric *norm = ats_metric_find("sharpness_norm");
    refused("{name: g, metric: sharpness_norm, max: 9}", "of the base alone",
            "'base_sharpness_norm'");
    refused(gate, "sharpness_norm is written with", "sharpness: true");
    refused("{name: g, metric: base_sharpness_label, max: 3}", "sharpness_label is a code",
            "diffuse");
    ats_suite *s = must_load(GATED "  - {name: g, metric: base_sharpness_norm, max: 9}\n"
                                   "metrics: {sharpness: true, keep: [tv]}\n");
    assert_true(ats_suite_keeps(s, norm));
    assert_false(ats_suite_keeps(s, ats_metric_find("js")));
    ats_suite_free(s);
    static const struct {
        const char *metrics;
        bool kept;
    } all[] = {{"{}", false},
               {"{keep: [tv]}", false},
               {"{contributions: off}", false},
               {"{keep: [tv, sharpness_norm]}", true},
               {"{sharpness: true}", true},
               {"{contributions: off, sharpness: true}", true}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[600];
        snprintf(text, sizeof text, GATED "  - {name: g, metric: tv, max: 9}\nmetrics: %s\n",
                 all[i].metrics);
        s = must_load(text);
        assert_true(ats_suite_keeps(s, norm) == all[i].kept);
        ats_suite_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_meets_what_all_its_clauses_meet),
        cmocka_unit_test(a_gate_that_judges_nothing_is_an_error),
        cmocka_unit_test(metrics_and_their_axes_are_checked),
        cmocka_unit_test(names_and_kept_metrics_are_checked),
        cmocka_unit_test(a_gate_knows_which_way_is_worse),
        cmocka_unit_test(sharpness_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "suite/suite.h"

#include "suite/fixture.h"

static const char *const nightly =
    "suite: nightly\n"
    "version: 1\n"
    "seed: 20261129\n"
    "captures: [captures/*.h5]\n"
    "select:\n"
    "  samples: all\n"
    "  layers: all\n"
    "  heads: all\n"
    "  probes: last\n"
    "attention: {temperature: 1.0, backend: auto, precision: exact}\n"
    "spans: {target: gold}\n"
    "perturbations:\n"
    "  - name: near-duplicates\n"
    "    kind: distractors\n"
    "    positions: [overlay, shift]\n"
    "    source: {similar: {cosine: [0.5, 0.8, 0.95], norm_ratio: 1.0}}\n"
    "    payload: donor\n"
    "    placement: {depth: [0.1, 0.5, 0.9]}\n"
    "    count: [1, 2, 4, 8, 16, 32]\n"
    "    replicates: 4\n"
    "    exclude: [{positions: shift, count: 32}]\n"
    "metrics: {keep: all, top_k: 8, contributions: spans, vectors: false, residual: auto}\n"
    "output: {detail: probe, compression: zstd, level: 3}\n"
    "gates:\n"
    "  - name: gold route survives 8 near duplicates\n"
    "    metric: log_mass_shift\n"
    "    span: gold\n"
    "    where: {perturbation: near-duplicates, count: 8, arm: treatment}\n"
    "    reduce: mean\n"
    "    min: -1.5\n"
    "    max_drop: 0.1\n"
    "    equivalence: 0.02\n";

/* The example of the suite file's description. */
static void the_described_suite_loads(void **state)
{
    (void)state;
    ats_suite *s = must_load(nightly);
    assert_string_equal(s->name, "nightly");
    assert_int_equal(s->seed, 20261129);
    assert_string_equal(s->captures.items[0], "captures/*.h5");
    assert_true(s->select.all_samples && s->select.layers.all && s->select.heads.all);
    assert_int_equal(s->select.probes, ATS_PROBES_LAST);
    assert_near(s->temperature, 1, 0);
    assert_string_equal(s->target, "gold");
    assert_string_equal(s->span_axis, "name");
    assert_string_equal(s->detail, "probe");
    assert_true(s->keep_all);
    assert_int_equal(s->top_k, 8);
    /* (2 positions x 3 cosines x 3 depths x 6 counts - 9 excluded) x 4 replicates x 2 arms */
    assert_int_equal(s->n_variants, (2 * 3 * 3 * 6 - 9) * 4 * 2);
    assert_int_equal(s->n_gates, 1);
    assert_near(s->gates[0].min, -1.5, 0);
    assert_near(s->gates[0].max_drop, 0.1, 0);
    assert_true(s->gates[0].max != s->gates[0].max);
    assert_int_equal(s->gates[0].place.line, 25);
    ats_suite_free(s);
}

static void defaults_are_those_of_the_tables(void **state)
{
    (void)state;
    ats_suite *s = must_load(WARM);
    assert_int_equal(s->seed, 0);
    assert_int_equal(s->captures.count, 0);
    assert_string_equal(s->backend, "auto");
    assert_string_equal(s->precision, "exact");
    assert_string_equal(s->residual, "auto");
    assert_string_equal(s->compression, "zstd");
    assert_int_equal(s->level, 3);
    assert_null(s->detail);
    assert_false(s->allow_past_max || s->vectors);
    ats_suite_free(s);
}

static void a_selection_takes_lists_ranges_and_words(void **state)
{
    (void)state;
    ats_suite *s =
        must_load(WARM "select: {samples: [s0*, x], layers: [0, 4-6, -1], heads: {by: mass, "
                       "span: gold, min: 0.05}, probes: {role: question}}\n");
    assert_int_equal(s->select.samples.count, 2);
    const int64_t layers[] = {0, 4, 5, 6, -1};
    assert_int_equal(s->select.layers.count, 5);
    assert_memory_equal(s->select.layers.items, layers, sizeof layers);
    assert_string_equal(s->select.heads_by_span, "gold");
    assert_near(s->select.heads_min_mass, 0.05, 0);
    assert_int_equal(s->select.probes, ATS_PROBES_ROLE);
    assert_string_equal(s->select.probe_role, "question");
    ats_suite_free(s);
    s = must_load(WARM "select: {layers: {every: 2}, heads: 4-5, probes: [0, -1]}\n");
    assert_true(s->select.layers.all);
    assert_int_equal(s->select.layers.every, 2);
    assert_int_equal(s->select.heads.count, 2);
    assert_int_equal(s->select.probes, ATS_PROBES_INDEX);
    assert_int_equal(s->select.probe_index.items[1], -1);
    ats_suite_free(s);
}

/* RC-23: text stays text. */
static void texts_stay_texts(void **state)
{
    (void)state;
    ats_suite *s = must_load("suite: no\nspans: {target: 010}\nperturbations:\n"
                             "  - {name: on, kind: payload_swap, other: [NO, y]}\n");
    assert_string_equal(s->name, "no");
    assert_string_equal(s->target, "010");
    assert_string_equal(s->variants[0].id, "on/other=NO#0");
    ats_suite_free(s);
}

/* The resolved text is the same suite. */
static void the_resolved_suite_reads_back(void **state)
{
    (void)state;
    ats_suite *s = must_load(nightly), *again = must_load(s->resolved);
    assert_string_equal(s->hash, again->hash);
    assert_string_equal(s->resolved, again->resolved);
    assert_int_equal(s->n_variants, again->n_variants);
    for (int64_t i = 0; i < s->n_variants; i++)
        assert_string_equal(s->variants[i].id, again->variants[i].id);
    assert_says(s->resolved, "# defaults: basis=real, free_zone=0", "backend: auto");
    ats_suite_free(again);
    ats_suite_free(s);
}

static void the_hash_is_of_what_is_computed(void **state)
{
    (void)state;
    ats_suite *s = must_load(WARM);
    const char *const same[] = {"captures=[other.h5]", "attention.backend=reference",
                                "output.level=9", "output.detail=head", "version=1"};
    const char *const different[] = {"seed=1",
                                     "perturbations.warm.tau=2",
                                     "suite=u",
                                     "attention.temperature=2",
                                     "metrics.top_k=4",
                                     "select.layers=[1]",
                                     "spans.target=other"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        ats_suite *t = must_load_set(WARM, same[i]);
        assert_string_equal(t->hash, s->hash);
        ats_suite_free(t);
    }
    for (size_t i = 0; i < sizeof different / sizeof *different; i++) {
        ats_suite *t = must_load_set(WARM, different[i]);
        assert_string_not_equal(t->hash, s->hash);
        ats_suite_free(t);
    }
    assert_int_equal(strlen(s->hash), 32);
    ats_suite_free(s);
    /* The look of the text is not the identity. */
    ats_suite *a = must_load("# note\nseed: 7\nsuite: 't'\nselect: {layers: all}\n"
                             "perturbations: [{kind: temperature, tau: 2}]\n");
    ats_suite *b =
        must_load("suite: t\nperturbations:\n- kind: temperature\n  tau: 2\nseed: 0x7\n");
    assert_string_equal(a->hash, b->hash);
    ats_suite_free(a);
    ats_suite_free(b);
}

static void every_error_of_a_file_is_told_at_once(void **state)
{
    (void)state;
    ats_err err;
    must_refuse("suite: t\nsede: 1\nselect: {layres: all, probes: frist}\n"
                "attention: {temperature: hot, backend: gpu}\n"
                "metrics: {top_k: 1e1, vectors: yes}\n"
                "perturbations:\n"
                "  - {kind: mask_window, patern: slide, windw: 3}\n"
                "  - {kind: distractor, count: 3}\n"
                "  - {kind: distractors, count: 3}\n"
                "gates:\n"
                "  - {metric: tv, max: 010}\n",
                NULL, &err);
    assert_says(err.text,
                "s.yaml:2:1: error: unknown key 'sede' in the suite; did you mean 'seed'?",
                "'layres'", "did you mean 'layers'?", "'frist' is neither last nor all",
                "'hot' is not a number", "'gpu' is not one of", "write", "write true",
                "did you mean 'pattern'?", "did you mean 'width'?", "did you mean 'distractors'?",
                "lacks the key 'positions'", "a gate lacks the key 'name'", "write 10 or 0o10");
}

static void a_missing_file_is_told_by_name(void **state)
{
    (void)state;
    ats_suite *suite = NULL;
    ats_err err;
    assert_int_equal(ats_suite_load("no/such.yaml", NULL, 0, &suite, &err), ATS_E_INPUT);
    assert_says(err.text, "no/such.yaml", "cannot be opened");
    ats_suite_free(NULL);
}

static void contributions_can_be_left_out(void **state)
{
    (void)state;
    ats_suite *s = must_load(WARM "metrics: {contributions: off}\n");
    assert_false(s->keep_all);
    assert_true(s->keep.count > 10);
    for (int64_t i = 0; i < s->keep.count; i++)
        assert_null(strstr(s->keep.items[i], "contribution"));
    ats_suite_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_described_suite_loads),
        cmocka_unit_test(defaults_are_those_of_the_tables),
        cmocka_unit_test(a_selection_takes_lists_ranges_and_words),
        cmocka_unit_test(texts_stay_texts),
        cmocka_unit_test(the_resolved_suite_reads_back),
        cmocka_unit_test(the_hash_is_of_what_is_computed),
        cmocka_unit_test(every_error_of_a_file_is_told_at_once),
        cmocka_unit_test(a_missing_file_is_told_by_name),
        cmocka_unit_test(contributions_can_be_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

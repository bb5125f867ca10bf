/* explain: the printed numbers are those a calculator gives on planted truth, and they agree with
 * what the run stored. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/synth.h"
#include "cli/explain_print.h"
#include "engine/run.h"
#include "support/check.h"

static char directory[64], capture_path[96], suite_path[96], result_path[96];

static const char suite_text[] = "suite: tiny\n"
                                 "version: 1\n"
                                 "seed: 7\n"
                                 "captures: [c.h5]\n"
                                 "select: {samples: all, layers: all, heads: all, probes: all}\n"
                                 "spans: {target: gold}\n"
                                 "perturbations:\n"
                                 "  - name: dup\n"
                                 "    kind: duplicates\n"
                                 "    positions: overlay\n"
                                 "    copies: 1\n"
                                 "    control: false\n"
                                 "  - name: hide\n"
                                 "    kind: mask_window\n"
                                 "    pattern: around\n"
                                 "    span: gold\n"
                                 "    width: 3\n"
                                 "    control: false\n"
                                 "  - name: hot\n"
                                 "    kind: temperature\n"
                                 "    tau: 2\n";

/* A capture whose gold holds 0.4, without RoPE: a copied row keeps its logit. */
static void run_suite(void)
{
    ats_synth_options o = ats_synth_defaults();
    ats_suite *suite = NULL;
    ats_plan *plan = NULL;
    ats_outcome outcome = {.n_cases = 0};
    ats_err err = {.code = ATS_OK};
    o.n_keys = 300;
    o.d_qk = 32;
    o.d_v = 16;
    o.n_probes = 2;
    o.dtype = ATS_F32;
    assert_ok(ats_synth_write(&o, capture_path, NULL, &err), &err);
    FILE *f = fopen(suite_path, "w");
    assert_non_null(f);
    fputs(suite_text, f);
    fclose(f);
    assert_ok(ats_suite_load(suite_path, NULL, 0, &suite, &err), &err);
    assert_ok(ats_plan_make(suite, NULL, &plan, &err), &err);
    assert_ok(ats_run(plan, result_path, &outcome, &err), &err);
    ats_outcome_fini(&outcome);
    ats_plan_free(plan);
    ats_suite_free(suite);
}

static int set_up(void **state)
{
    (void)state;
    strcpy(directory, "explain-XXXXXX");
    if (mkdtemp(directory) == NULL) return -1;
    snprintf(capture_path, sizeof capture_path, "%s/c.h5", directory);
    snprintf(suite_path, sizeof suite_path, "%s/s.yaml", directory);
    snprintf(result_path, sizeof result_path, "%s/r.h5", directory);
    run_suite();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(capture_path);
    unlink(suite_path);
    unlink(result_path);
    return rmdir(directory);
}

static ats_explain_options cell(const char *case_id)
{
    return (ats_explain_options){
        .result = result_path, .case_id = case_id, .layer = 1, .head = 2, .probe = -1, .top = 5};
}

static ats_explanation explain(const char *case_id)
{
    const ats_explain_options options = cell(case_id);
    ats_explanation e = {.target = -1};
    ats_err err = {.code = ATS_OK};
    assert_ok(ats_explain_run(&options, &e, &err), &err);
    return e;
}

static char *text_of(const ats_explanation *e, bool json)
{
    char *text = NULL;
    size_t size = 0;
    ats_err err = {.code = ATS_OK};
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    if (json)
        assert_ok(ats_explain_json(stream, e, false, &err), &err);
    else
        ats_explain_text(stream, e);
    fclose(stream);
    return text;
}

/* One exact copy of a span of mass 0.4: everything old shrinks by 1 / 1.4, the pair holds
 * 2 * 0.4 / 1.4. */
static void prints_a_duplicate_by_hand(void **state)
{
    (void)state;
    ats_explanation e = explain("0");
    char *text = text_of(&e, false);
    assert_near(e.lse - e.lse_base, log(1.4), 1e-6);
    assert_near(e.spans[e.target].own_logit_shift, 0, 1e-9);
    assert_int_equal(e.n_inserted, 8);
    assert_int_equal(e.n_top, 5);
    assert_int_equal(e.n_differ, 0);
    assert_says(text, "sample synth-000, variant dup/overlay/", "layer 1, head 2, probe 1",
                "300 rows become 308", "keep [0, ", "rows [0, 8)");
    assert_says(text, "lse_shift = L' - L", "= +0.336472 nats",
                "competition  -(L' - L)                = -0.336472",
                "log 0.285714 - log 0.400000 = -0.336472", "retention = exp(-0.336472) = 0.714286");
    assert_says(text, "tv 0.285714, intrusion 0.285714, removal 0.000000", "dilution",
                "\" 4711\" gold", "inserted rows", "overlay.tv", "mass[gold]",
                "all 58 numbers compared agree");
    free(text);
    ats_explain_fini(&e);
}

static void shares_and_parts_sum_up(void **state)
{
    (void)state;
    static const char *const cases[] = {"0", "1", "2", "5"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ats_explanation e = explain(cases[i]);
        double share = 0, mass = 0;
        for (int64_t p = 0; p < ATS_N_PARTS; p++) share += e.parts[p].share;
        assert_near(share, e.output_cosine * e.output_norm / e.output_norm_base - 1, 1e-6);
        assert_near(e.parts_residual, 0, 1e-6);
        for (int64_t s = 0; s < e.n_spans; s++) {
            const ats_explain_span *span = &e.spans[s];
            if (strcmp(span->name, "recent") != 0 && strcmp(span->name, "question") != 0)
                mass += span->variant.mass;
            if (span->variant.mass > 0 && span->base.mass > 0)
                assert_near(span->log_mass_shift, span->own_logit_shift + e.lse_base - e.lse, 1e-9);
        }
        assert_true(mass <= 1 + 1e-9);
        assert_int_equal(e.n_differ, 0);
        for (int64_t l = 0; l < e.n_laws; l++) assert_true(ats_law_holds(&e.laws[l]));
        ats_explain_fini(&e);
    }
}

/* Laws are chosen by what the script does. */
static void states_the_laws_of_each_edit(void **state)
{
    (void)state;
    static const struct {
        const char *id, *script, *law;
    } expected[] = {{"1", "hide [", "mask.tv"}, {"2", "temperature", "temperature.ranking"}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        ats_explanation e = explain(expected[i].id);
        char *text = text_of(&e, false);
        assert_says(text, expected[i].script, expected[i].law);
        free(text);
        ats_explain_fini(&e);
    }
}

static void finds_a_case_by_name(void **state)
{
    (void)state;
    ats_explanation by_number = explain("3"), by_name = {.target = -1};
    char id[256];
    snprintf(id, sizeof id, "%s:%s", by_number.sample, by_number.variant);
    by_name = explain(id);
    assert_string_equal(by_number.sample, "synth-001");
    assert_int_equal(by_name.case_index, 3);
    assert_true(by_name.lse == by_number.lse);
    ats_explain_fini(&by_number);
    ats_explain_fini(&by_name);
}

static void writes_json(void **state)
{
    (void)state;
    ats_explanation e = explain("0");
    char *text = text_of(&e, true);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    assert_near(json_real_value(json_object_get(root, "lse")), e.lse, 1e-12);
    const json_t *gold = json_array_get(json_object_get(root, "spans"), (size_t)e.target);
    assert_string_equal(json_string_value(json_object_get(gold, "span")), "gold");
    assert_near(json_real_value(json_object_get(json_object_get(gold, "variant"), "mass")),
                0.4 / 1.4, 1e-6);
    assert_int_equal(json_array_size(json_object_get(root, "delta")), 5);
    assert_int_equal(json_array_size(json_object_get(root, "stored")), 58);
    json_decref(root);
    free(text);
    ats_explain_fini(&e);
}

static void refused(ats_explain_options options, ats_code code, const char *a, const char *b)
{
    ats_explanation e = {.target = -1};
    ats_err err = {.code = ATS_OK};
    assert_int_equal(ats_explain_run(&options, &e, &err), code);
    assert_says(err.text, a, b);
}

static void says_what_is_wrong(void **state)
{
    (void)state;
    ats_explain_options o = cell("99");
    refused(o, ATS_E_USAGE, "--case 99", "0 to 5");
    o = cell("nobody");
    refused(o, ATS_E_USAGE, "--case nobody", "synth-000:dup/overlay/");
    o = cell("synth-001:dup");
    refused(o, ATS_E_USAGE, "sample synth-001 has no variant", "synth-001:dup/overlay/");
    o = cell("0");
    o.layer = 7;
    refused(o, ATS_E_USAGE, "no layer 7", "0, 1");
    o = cell("0");
    o.probe = 2;
    refused(o, ATS_E_USAGE, "--probe 2", "0 to 1");
}

/* The capture moved away, another one offered, the right one given. */
static void asks_for_the_capture(void **state)
{
    (void)state;
    char moved[96], other[96];
    ats_synth_options synth = ats_synth_defaults();
    ats_err err = {.code = ATS_OK};
    ats_explain_options o = cell("0");
    ats_explanation e = {.target = -1};
    snprintf(moved, sizeof moved, "%s/moved.h5", directory);
    snprintf(other, sizeof other, "%s/other.h5", directory);
    assert_int_equal(rename(capture_path, moved), 0);
    refused(o, ATS_E_INPUT, "c.h5", "--capture FILE");
    synth.n_keys = 300;
    assert_ok(ats_synth_write(&synth, other, NULL, &err), &err);
    o.capture = other;
    refused(o, ATS_E_INPUT, "is not a capture that", "--capture FILE");
    o.capture = moved;
    assert_ok(ats_explain_run(&o, &e, &err), &err);
    assert_near(e.spans[e.target].base.mass, 0.4, 1e-6);
    ats_explain_fini(&e);
    assert_int_equal(rename(moved, capture_path), 0);
    unlink(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_a_duplicate_by_hand),
        cmocka_unit_test(shares_and_parts_sum_up),
        cmocka_unit_test(states_the_laws_of_each_edit),
        cmocka_unit_test(finds_a_case_by_name),
        cmocka_unit_test(writes_json),
        cmocka_unit_test(says_what_is_wrong),
        cmocka_unit_test(asks_for_the_capture),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

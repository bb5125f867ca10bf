#include <math.h>

#include "perturb/variant.h"

static tiny small, one_wide;

static int setup(void **state)
{
    (void)state;
    tiny_options options = tiny_defaults();
    tiny_make(&small, &options);
    options.d_qk = 1;
    options.layout = ATS_ROPE_NONE;
    options.max_position = 205;
    tiny_make(&one_wide, &options);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tiny_free(&small);
    tiny_free(&one_wide);
    return 0;
}

static void begin(variant *v, const char *kind, ats_position_mode mode, const char *dose,
                  double number)
{
    variant_begin(v, &small, kind, mode);
    if (dose != NULL) variant_number(v, dose, number);
}

static void layers_that_cannot_move_keys_say_why(void **state)
{
    (void)state;
    for (int fault = 0; fault < 3; fault++) {
        ats_layer layer = small.layer;
        variant v;
        if (fault == 0) layer.rope_dynamic = true;
        if (fault == 1) layer.positions = ATS_POSITIONS_ABSOLUTE;
        if (fault == 2) layer.contract.rope = (ats_rope){.layout = ATS_ROPE_NONE};
        static const char *const reasons[] = {"depend on the sequence length", "absolute",
                                              "no inv_freq"};
        for (ats_position_mode mode = ATS_MODE_OVERLAY; mode <= ATS_MODE_MOVE; mode++) {
            begin(&v, "duplicates", mode, "copies", 1);
            v.build.layer = &layer;
            v.build.attention = NULL;
            assert_int_equal(variant_try(&v), ATS_E_UNSUPPORTED);
            assert_says(v.err.text, "layer 5:", "duplicates", reasons[fault]);
            variant_free(&v);
        }
        /* What moves nothing is still allowed. */
        begin(&v, "temperature", ATS_MODE_NONE, "tau", 2);
        v.build.layer = &layer;
        variant_build(&v);
        variant_free(&v);
    }
}

static void moves_past_max_position_need_permission(void **state)
{
    (void)state;
    variant v;
    for (int allow = 0; allow < 2; allow++) {
        variant_begin(&v, &one_wide, "distractors", ATS_MODE_SHIFT);
        variant_number(&v, "count", 10);
        v.build.allow_past_max = allow == 1;
        if (allow) {
            variant_build(&v);
        } else {
            assert_int_equal(variant_try(&v), ATS_E_SUITE);
            assert_says(v.err.text, "max_position 205", "allow_past_max", "sample s00", "layer 5");
        }
        variant_free(&v);
    }
}

/* Refused before places for the rows are made: a slip must not fill the memory. */
static void counts_beyond_any_context_are_refused_at_once(void **state)
{
    (void)state;
    for (ats_position_mode mode = ATS_MODE_OVERLAY; mode <= ATS_MODE_MOVE; mode++) {
        variant v;
        begin(&v, "distractors", mode, "count", 1e9);
        v.build.allow_past_max = true;
        assert_int_equal(variant_try(&v), ATS_E_SUITE);
        assert_says(v.err.text, "distractors would insert 1000000000 rows", "4194304 at most");
        variant_free(&v);
        begin(&v, "duplicates", mode, "copies", 1e9);
        v.build.allow_past_max = true;
        assert_int_equal(variant_try(&v), ATS_E_SUITE);
        assert_says(v.err.text, "duplicates would insert", "4194304 at most");
        variant_free(&v);
    }
}

static void numbers_that_belong_to_a_word_are_asked_for(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *param, *word, *part;
    } cases[] = {
        {"distractors", "source", "similar", "`source: {similar: {cosine: ...}}`"},
        {"distractors", "source", "targeted", "`source: {targeted: {margin: ...}}`"},
        {"duplicates", "placement", "depth", "`placement: {depth: 0.5}`"},
        {"key_replace", "source", "similar", "cosine"},
        {"query_rotate", "rotation", "angle", "degrees"},
        {"mask_window", "pattern", "slide", "needs `width`"},
        {"mask_window", "pattern", "random", "needs `keep`"},
        {"mask_window", "pattern", "every", "needs `block`"},
        {"noise", "round", "none", "one of the two"},
        {"superseded", "annotated", "place_stale", "needs `to`"},
        {"superseded", "annotated", "swap", "positions: move"},
        {"high_norm", "direction", "keep", "positions: replace"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bool modes = ats_family_find(cases[i].kind)->has_positions;
        variant v;
        variant_begin(&v, &small, cases[i].kind, modes ? ATS_MODE_SHIFT : ATS_MODE_NONE);
        variant_word(&v, cases[i].param, cases[i].word);
        assert_int_equal(v.build.family->check(v.params, v.build.mode, &v.err), ATS_E_SUITE);
        assert_says(v.err.text, cases[i].kind, cases[i].part);
        variant_free(&v);
    }
    variant v;
    begin(&v, "noise", ATS_MODE_NONE, "sigma", 0.1);
    variant_word(&v, "round", "fp8");
    assert_int_equal(variant_try(&v), ATS_E_SUITE);
    assert_says(v.err.text, "not both");
    variant_free(&v);
}

static void too_many_rows_are_counted(void **state)
{
    (void)state;
    variant v;
    begin(&v, "distractors", ATS_MODE_REPLACE, "count", 1000);
    v.build.attention = NULL;
    assert_int_equal(variant_try(&v), ATS_E_SUITE);
    assert_says(v.err.text, "1000 filler rows", "there are 162", "test/variant#0", "s00");
    variant_free(&v);
    begin(&v, "distractors", ATS_MODE_REPLACE, "count", 60);
    variant_word(&v, "placement", "before");
    assert_int_equal(variant_try(&v), ATS_E_SUITE);
    assert_says(v.err.text, "placement before", "60 filler rows", "there are 50");
    variant_free(&v);
    begin(&v, "distractors", ATS_MODE_OVERLAY, "count", 1000);
    v.build.attention = NULL;
    assert_int_equal(variant_try(&v), ATS_E_SUITE);
    assert_says(v.err.text, "needs 1000 donor rows", "the donor pool has 470");
    variant_free(&v);
}

static void a_sample_without_the_span_is_skipped(void **state)
{
    (void)state;
    static const char *const kinds[] = {"distractors", "duplicates",   "superseded",
                                        "high_norm",   "payload_swap", "key_replace"};
    for (int i = 0; i < 6; i++) {
        const bool modes = ats_family_find(kinds[i])->has_positions;
        variant v;
        variant_begin(&v, &small, kinds[i], modes ? ATS_MODE_OVERLAY : ATS_MODE_NONE);
        if (i == 0) variant_number(&v, "count", 1);
        if (i == 1) variant_number(&v, "copies", 1);
        if (i == 3) variant_number(&v, "multiple", 1);
        v.build.target = "silver";
        assert_ok(variant_try(&v), &v.err);
        assert_true(v.built.skipped);
        assert_says(v.built.reason, "s00", "'silver'");
        variant_free(&v);
    }
    variant v;
    begin(&v, "distractors", ATS_MODE_OVERLAY, "count", 1);
    variant_word(&v, "span", "question");
    assert_ok(variant_try(&v), &v.err);
    assert_true(v.built.skipped);
    assert_says(v.built.reason, "'question' ends at row 200", "first probe's row 197");
    variant_free(&v);
    /* A role is as good as a name. */
    begin(&v, "distractors", ATS_MODE_OVERLAY, "count", 1);
    variant_word(&v, "span", "distractor");
    variant_build(&v);
    variant_free(&v);
}

static void a_margin_past_the_soft_cap_is_refused(void **state)
{
    (void)state;
    ats_layer layer = small.layer;
    layer.contract.softcap = 5;
    variant v;
    begin(&v, "distractors", ATS_MODE_OVERLAY, "count", 1);
    variant_word(&v, "source", "targeted");
    variant_number(&v, "margin", 20);
    v.build.layer = &layer;
    assert_int_equal(variant_try(&v), ATS_E_SUITE);
    assert_says(v.err.text, "soft cap 5", "smaller margin", "layer 5");
    variant_free(&v);
}

static void head_size_one_has_no_orthogonal_direction(void **state)
{
    (void)state;
    variant v;
    variant_begin(&v, &one_wide, "distractors", ATS_MODE_OVERLAY);
    variant_number(&v, "count", 2);
    variant_word(&v, "source", "similar");
    variant_number(&v, "cosine", 0.5);
    assert_int_equal(variant_try(&v), ATS_E_SUITE);
    assert_says(v.err.text, "no direction orthogonal", "head size 1");
    variant_number(&v, "cosine", -1);
    variant_build(&v);
    assert_near(v.built.realised.cosine, -1, 1e-6);
    variant_free(&v);
}

static void overlapping_spans_are_not_exchanged(void **state)
{
    (void)state;
    variant v;
    begin(&v, "payload_swap", ATS_MODE_NONE, NULL, 0);
    variant_word(&v, "other", "gold");
    assert_int_equal(variant_try(&v), ATS_E_SUITE);
    assert_says(v.err.text, "overlap", "[60, 66)");
    variant_free(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_that_cannot_move_keys_say_why),
        cmocka_unit_test(moves_past_max_position_need_permission),
        cmocka_unit_test(counts_beyond_any_context_are_refused_at_once),
        cmocka_unit_test(numbers_that_belong_to_a_word_are_asked_for),
        cmocka_unit_test(too_many_rows_are_counted),
        cmocka_unit_test(a_sample_without_the_span_is_skipped),
        cmocka_unit_test(a_margin_past_the_soft_cap_is_refused),
        cmocka_unit_test(head_size_one_has_no_orthogonal_direction),
        cmocka_unit_test(overlapping_spans_are_not_exchanged),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

#include <math.h>

#include "perturb/script.h"
#include "perturb/variant.h"

static tiny small;

static int setup(void **state)
{
    (void)state;
    const tiny_options options = tiny_defaults();
    tiny_make(&small, &options);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tiny_free(&small);
    return 0;
}

static void begin(variant *v, const char *what, double to)
{
    const bool hide = what[0] == 'h';
    variant_begin(v, &small, "superseded", hide ? ATS_MODE_OVERLAY : ATS_MODE_MOVE);
    variant_word(v, "annotated", what);
    if (!isnan(to)) variant_number(v, "to", to);
    variant_build(v);
}

static void expect(variant *v, const char *want)
{
    const char *text = NULL;
    assert_ok(ats_edit_print(&v->arena, &v->built.edit, 0, &text, &v->err), &v->err);
    assert_string_equal(text, want);
    assert_true(isnan(v->built.dose));
    variant_free(v);
}

/* Positions after the edit are the old ones in another order. */
static void check_permutation(const variant *v)
{
    uint8_t seen[200] = {0};
    for (int64_t i = 0; i < v->built.edit.n_segments; i++) {
        const ats_segment *s = &v->built.edit.segments[i];
        for (int64_t r = s->start; r < s->stop; r++) seen[r + s->delta]++;
    }
    for (int64_t i = 0; i < 200; i++) assert_int_equal(seen[i], 1);
}

static void swapped_spans_trade_places(void **state)
{
    (void)state;
    variant v;
    begin(&v, "swap", NAN);
    check_permutation(&v);
    /* stale [40, 46) ends where current [120, 128) ended. */
    expect(&v, "keep [0, 40)\nkeep [40, 46) moved by +82\nkeep [46, 120) moved by +2\n"
               "keep [120, 128) moved by -80\nkeep [128, 200)\n");
}

static void a_placed_span_closes_its_gap(void **state)
{
    (void)state;
    variant v;
    begin(&v, "place_stale", 0.75);
    check_permutation(&v);
    expect(&v, "keep [0, 40)\nkeep [40, 46) moved by +102\nkeep [46, 148) moved by -6\n"
               "keep [148, 200)\n");
    begin(&v, "place_current", 0.1);
    check_permutation(&v);
    expect(&v, "keep [0, 21)\nkeep [21, 120) moved by +8\nkeep [120, 128) moved by -99\n"
               "keep [128, 200)\n");
}

static void hidden_spans_are_hidden(void **state)
{
    (void)state;
    variant v;
    begin(&v, "hide_stale", NAN);
    expect(&v, "keep [0, 40)\nhide [40, 46)\nkeep [46, 200)\n");
    begin(&v, "hide_current", NAN);
    expect(&v, "keep [0, 120)\nhide [120, 128)\nkeep [128, 200)\n");
}

static void twins_do_the_same_to_filler(void **state)
{
    (void)state;
    static const char *const what[] = {"swap", "place_stale", "hide_current"};
    for (int i = 0; i < 3; i++) {
        variant v;
        variant_begin(&v, &small, "superseded", i == 2 ? ATS_MODE_OVERLAY : ATS_MODE_MOVE);
        variant_word(&v, "annotated", what[i]);
        variant_number(&v, "to", 0.9);
        v.build.arm = ATS_ARM_CONTROL;
        variant_build(&v);
        if (i < 2) check_permutation(&v);
        for (int64_t s = 0; i == 2 && s < v.built.edit.n_segments; s++) {
            const ats_segment *segment = &v.built.edit.segments[s];
            if (segment->kind != ATS_SEG_HIDE) continue;
            assert_int_equal(segment->stop - segment->start, 8);
            for (int64_t n = 0; n < v.build.sample->n_spans; n++)
                assert_true(segment->stop <= v.build.sample->spans[n].start ||
                            segment->start >= v.build.sample->spans[n].stop);
        }
        variant_free(&v);
    }
}

static void a_missing_span_skips_the_sample(void **state)
{
    (void)state;
    variant v;
    variant_begin(&v, &small, "superseded", ATS_MODE_MOVE);
    variant_word(&v, "annotated", "swap");
    variant_word(&v, "stale", "older");
    assert_ok(variant_try(&v), &v.err);
    assert_true(v.built.skipped);
    assert_says(v.built.reason, "'older'");
    variant_free(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(swapped_spans_trade_places),
        cmocka_unit_test(a_placed_span_closes_its_gap),
        cmocka_unit_test(hidden_spans_are_hidden),
        cmocka_unit_test(twins_do_the_same_to_filler),
        cmocka_unit_test(a_missing_span_skips_the_sample),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

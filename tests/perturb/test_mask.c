#include <math.h>
#include <string.h>

#include "perturb/script.h"
#include "perturb/variant.h"

static tiny small, windowed;

static int setup(void **state)
{
    (void)state;
    tiny_options options = tiny_defaults();
    tiny_make(&small, &options);
    options.sink = true;
    tiny_make(&windowed, &options);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tiny_free(&small);
    tiny_free(&windowed);
    return 0;
}

static void begin(variant *v, const char *pattern, double width)
{
    variant_begin(v, &small, "mask_window", ATS_MODE_NONE);
    variant_word(v, "pattern", pattern);
    if (!isnan(width)) variant_number(v, "width", width);
}

static void expect(variant *v, const char *want, double dose)
{
    const char *text = NULL;
    variant_build(v);
    assert_ok(ats_edit_print(&v->arena, &v->built.edit, 0, &text, &v->err), &v->err);
    assert_string_equal(text, want);
    assert_near(v->built.dose, dose, 0);
    variant_free(v);
}

static void patterns_hide_what_they_say(void **state)
{
    (void)state;
    variant v;
    begin(&v, "around", 2);
    expect(&v, "keep [0, 58)\nhide [58, 68)\nkeep [68, 200)\n", 2);
    begin(&v, "around", NAN);
    expect(&v, "keep [0, 60)\nhide [60, 66)\nkeep [66, 200)\n", 0);
    begin(&v, "outside", 1);
    expect(&v, "hide [0, 59)\nkeep [59, 67)\nhide [67, 197)\nkeep [197, 200)\n", 1);
    begin(&v, "sink", NAN);
    expect(&v, "hide [0, 4)\nkeep [4, 200)\n", 4);
    begin(&v, "recent", NAN);
    expect(&v, "keep [0, 133)\nhide [133, 197)\nkeep [197, 200)\n", 64);
    begin(&v, "every", NAN);
    variant_number(&v, "block", 20);
    variant_number(&v, "stride", 100);
    variant_number(&v, "offset", 90);
    expect(&v, "keep [0, 90)\nhide [90, 110)\nkeep [110, 190)\nhide [190, 197)\nkeep [197, 200)\n",
           20);
}

static void a_window_slides_by_depth_in_strides(void **state)
{
    (void)state;
    static const double at[] = {0, 0.49, 1};
    static const char *const want[] = {"hide [0, 32)\nkeep [32, 200)\n",
                                       "keep [0, 80)\nhide [80, 112)\nkeep [112, 200)\n",
                                       "keep [0, 160)\nhide [160, 192)\nkeep [192, 200)\n"};
    for (int i = 0; i < 3; i++) {
        variant v;
        begin(&v, "slide", 32);
        variant_number(&v, "stride", 16);
        variant_number(&v, "at", at[i]);
        expect(&v, want[i], 32);
    }
    variant v;
    begin(&v, "slide", 198);
    assert_int_equal(variant_try(&v), ATS_E_SUITE);
    assert_says(v.err.text, "198 rows", "197 rows before the first probe");
    variant_free(&v);
}

static int64_t hidden(const ats_edit *edit)
{
    int64_t count = 0;
    for (int64_t i = 0; i < edit->n_segments; i++)
        if (edit->segments[i].kind == ATS_SEG_HIDE)
            count += edit->segments[i].stop - edit->segments[i].start;
    return count;
}

static void a_random_mask_keeps_its_share(void **state)
{
    (void)state;
    for (int arm = 0; arm < 2; arm++) {
        variant v;
        begin(&v, "random", NAN);
        variant_number(&v, "keep", 0.75);
        v.build.arm = arm == 0 ? ATS_ARM_TREATMENT : ATS_ARM_CONTROL;
        variant_build(&v);
        assert_int_equal(hidden(&v.built.edit), 49);
        assert_near(v.built.dose, 0.75, 0);
        variant_free(&v);
    }
}

static void the_twin_hides_as_many_rows_elsewhere(void **state)
{
    (void)state;
    static const char *const patterns[] = {"slide", "around", "outside", "sink", "recent"};
    for (int i = 0; i < 5; i++) {
        const char *text[2] = {NULL, NULL};
        variant v[2];
        for (int arm = 0; arm < 2; arm++) {
            begin(&v[arm], patterns[i], 6);
            v[arm].build.arm = arm == 0 ? ATS_ARM_TREATMENT : ATS_ARM_CONTROL;
            variant_build(&v[arm]);
            assert_ok(ats_edit_print(&v[arm].arena, &v[arm].built.edit, 0, &text[arm], &v[arm].err),
                      &v[arm].err);
        }
        assert_int_equal(hidden(&v[0].built.edit), hidden(&v[1].built.edit));
        assert_string_not_equal(text[0], text[1]);
        variant_free(&v[0]);
        variant_free(&v[1]);
    }
}

/* A probe without a row of its own can be left with nothing to attend to. */
static void a_mask_that_leaves_no_key_is_refused_without_sinks(void **state)
{
    (void)state;
    const tiny *worlds[] = {&small, &windowed};
    for (int w = 0; w < 2; w++) {
        const ats_probe probe = {.index = -1, .position = 150, .role = "question"};
        ats_sample sample = worlds[w]->samples[0];
        sample.probes = &probe;
        sample.n_probes = 1;
        variant v;
        variant_begin(&v, worlds[w], "mask_window", ATS_MODE_NONE);
        variant_word(&v, "pattern", "random");
        variant_number(&v, "keep", 0);
        v.build.sample = &sample;
        v.build.attention = NULL;
        if (w == 1) {
            variant_build(&v);
            assert_int_equal(hidden(&v.built.edit), 151);
        } else {
            assert_int_equal(variant_try(&v), ATS_E_SUITE);
            assert_says(v.err.text, "probe 0", "position 150", "no key", "no sinks", "s00");
        }
        variant_free(&v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_hide_what_they_say),
        cmocka_unit_test(a_window_slides_by_depth_in_strides),
        cmocka_unit_test(a_random_mask_keeps_its_share),
        cmocka_unit_test(the_twin_hides_as_many_rows_elsewhere),
        cmocka_unit_test(a_mask_that_leaves_no_key_is_refused_without_sinks),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

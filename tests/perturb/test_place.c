#include <math.h>
#include <string.h>

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

/* The script of `count` distractors, without tensors. */
static void place(variant *v, ats_position_mode mode, const char *placement, double depth,
                  double count, double free_zone)
{
    variant_begin(v, &small, "distractors", mode);
    v->build.attention = NULL;
    variant_word(v, "placement", placement);
    if (!isnan(depth)) variant_number(v, "depth", depth);
    variant_number(v, "count", count);
    variant_number(v, "free_zone", free_zone);
    variant_build(v);
}

static void expect(variant *v, const char *want)
{
    const char *text = NULL;
    assert_ok(ats_edit_print(&v->arena, &v->built.edit, 0, &text, &v->err), &v->err);
    assert_string_equal(text, want);
    variant_free(v);
}

static void overlay_ends_at_the_position_before_the_insertion_point(void **state)
{
    (void)state;
    variant v;
    place(&v, ATS_MODE_OVERLAY, "after", NAN, 3, 0);
    expect(&v, "keep [0, 66)\nrows [0, 3) at positions 63..65\nkeep [66, 200)\n");
    place(&v, ATS_MODE_OVERLAY, "before", NAN, 3, 5);
    expect(&v, "keep [0, 55)\nrows [0, 3) at positions 52..54\nkeep [55, 200)\n");
    place(&v, ATS_MODE_OVERLAY, "around", NAN, 3, 0);
    expect(&v, "keep [0, 60)\nrows [0, 2) at positions 58..59\nkeep [60, 66)\n"
               "rows [2, 3) at positions 65..65\nkeep [66, 200)\n");
}

static void overlay_never_goes_below_position_zero(void **state)
{
    (void)state;
    variant v;
    place(&v, ATS_MODE_OVERLAY, "depth", 0, 4, 0);
    for (int64_t i = 0; i < 4; i++) assert_int_equal(v.built.edit.side.position[i], 0);
    expect(&v, "keep [0, 1)\nrows [0, 4) at positions 0..0\nkeep [1, 200)\n");
}

static void depth_splits_no_span_and_stays_before_the_first_probe(void **state)
{
    (void)state;
    variant v;
    /* 1 + 0.315 * 196 = 63 would split gold [60, 66). */
    place(&v, ATS_MODE_OVERLAY, "depth", 0.315, 1, 0);
    expect(&v, "keep [0, 60)\nrows [0, 1) at positions 59..59\nkeep [60, 200)\n");
    /* The first probe stands in the question span: the point goes to the span's start. */
    place(&v, ATS_MODE_OVERLAY, "depth", 1, 1, 0);
    expect(&v, "keep [0, 192)\nrows [0, 1) at positions 191..191\nkeep [192, 200)\n");
}

static void only_evaluated_probes_limit_the_place(void **state)
{
    (void)state;
    const int64_t last[] = {2};
    variant v;
    variant_begin(&v, &small, "mask_window", ATS_MODE_NONE);
    variant_word(&v, "pattern", "recent");
    variant_number(&v, "width", 10);
    variant_build(&v);
    expect(&v, "keep [0, 187)\nhide [187, 197)\nkeep [197, 200)\n");
    variant_begin(&v, &small, "mask_window", ATS_MODE_NONE);
    variant_word(&v, "pattern", "recent");
    variant_number(&v, "width", 10);
    v.build.n_probes = 1;
    v.build.probes = last;
    variant_build(&v);
    expect(&v, "keep [0, 189)\nhide [189, 199)\nkeep [199, 200)\n");
}

static void shift_moves_what_follows_and_the_probes(void **state)
{
    (void)state;
    variant v;
    place(&v, ATS_MODE_SHIFT, "after", NAN, 3, 0);
    expect(&v, "keep [0, 66)\nrows [0, 3) at positions 66..68\nkeep [66, 200) moved by +3\n"
               "probes moved by +3\n");
    place(&v, ATS_MODE_SHIFT, "around", NAN, 3, 0);
    expect(&v, "keep [0, 60)\nrows [0, 2) at positions 60..61\nkeep [60, 66) moved by +2\n"
               "rows [2, 3) at positions 68..68\nkeep [66, 200) moved by +3\n"
               "probes moved by +3\n");
}

static void move_is_shift_without_rows(void **state)
{
    (void)state;
    variant v;
    place(&v, ATS_MODE_MOVE, "around", NAN, 3, 0);
    assert_int_equal(v.built.edit.side.count, 0);
    expect(&v, "keep [0, 60)\nkeep [60, 66) moved by +2\nkeep [66, 200) moved by +3\n"
               "probes moved by +3\n");
}

static void replace_overwrites_filler_alone(void **state)
{
    (void)state;
    variant v;
    /* 24 filler rows stand between gold and near [90, 96): 26 reach past it. */
    place(&v, ATS_MODE_REPLACE, "after", NAN, 26, 0);
    expect(&v, "keep [0, 66)\nrows [0, 24) at positions 66..89\nhide [66, 90)\nkeep [90, 96)\n"
               "rows [24, 26) at positions 96..97\nhide [96, 98)\nkeep [98, 200)\n");
    place(&v, ATS_MODE_REPLACE, "before", NAN, 2, 1);
    expect(&v, "keep [0, 57)\nrows [0, 2) at positions 57..58\nhide [57, 59)\nkeep [59, 200)\n");
    place(&v, ATS_MODE_REPLACE, "depth", 0, 2, 0);
    expect(&v, "keep [0, 4)\nrows [0, 2) at positions 4..5\nhide [4, 6)\nkeep [6, 200)\n");
}

static void random_places_are_inside_and_apart_from_spans(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        variant v;
        place(&v, round == 0 ? ATS_MODE_OVERLAY : ATS_MODE_REPLACE, "random", NAN, 40, 4);
        int64_t next = 0, rows = 0;
        for (int64_t i = 0; i < v.built.edit.n_segments; i++) {
            const ats_segment *s = &v.built.edit.segments[i];
            if (s->kind == ATS_SEG_ROWS) {
                rows += s->stop;
                assert_true(next >= 1 && next <= 197);
                assert_true(next <= 56 || next >= 70);
                assert_true(next <= 40 || next >= 46);
                assert_true(next <= 120 || next >= 128);
            } else {
                next = s->stop;
            }
        }
        assert_int_equal(rows, 40);
        variant_free(&v);
    }
}

static void superseded_versions_stand_on_the_asked_side(void **state)
{
    (void)state;
    variant v;
    variant_begin(&v, &small, "superseded", ATS_MODE_OVERLAY);
    variant_number(&v, "versions", 2);
    variant_number(&v, "gap", 3);
    variant_build(&v);
    expect(&v, "keep [0, 54)\nrows [0, 6) at positions 48..53\nkeep [54, 57)\n"
               "rows [6, 12) at positions 51..56\nkeep [57, 200)\n");
    variant_begin(&v, &small, "superseded", ATS_MODE_SHIFT);
    variant_number(&v, "versions", 2);
    variant_word(&v, "order", "new_first");
    variant_word(&v, "arrangement", "interleaved");
    variant_build(&v);
    expect(&v, "keep [0, 66)\nrows [0, 12) at positions 66..77\nkeep [66, 200) moved by +12\n"
               "probes moved by +12\n");
    variant_begin(&v, &small, "superseded", ATS_MODE_REPLACE);
    variant_number(&v, "versions", 2);
    variant_number(&v, "gap", 1);
    variant_build(&v);
    expect(&v, "keep [0, 46)\nrows [0, 6) at positions 46..51\nhide [46, 52)\nkeep [52, 53)\n"
               "rows [6, 12) at positions 53..58\nhide [53, 59)\nkeep [59, 200)\n");
}

static void copies_in_overlay_share_the_positions_of_the_original(void **state)
{
    (void)state;
    variant v;
    variant_begin(&v, &small, "duplicates", ATS_MODE_OVERLAY);
    variant_number(&v, "copies", 2);
    variant_build(&v);
    expect(&v, "keep [0, 66)\nrows [0, 6) at positions 60..65\nrows [6, 12) at positions 60..65\n"
               "keep [66, 200)\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlay_ends_at_the_position_before_the_insertion_point),
        cmocka_unit_test(overlay_never_goes_below_position_zero),
        cmocka_unit_test(depth_splits_no_span_and_stays_before_the_first_probe),
        cmocka_unit_test(only_evaluated_probes_limit_the_place),
        cmocka_unit_test(shift_moves_what_follows_and_the_probes),
        cmocka_unit_test(move_is_shift_without_rows),
        cmocka_unit_test(replace_overwrites_filler_alone),
        cmocka_unit_test(random_places_are_inside_and_apart_from_spans),
        cmocka_unit_test(superseded_versions_stand_on_the_asked_side),
        cmocka_unit_test(copies_in_overlay_share_the_positions_of_the_original),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* Two edits as one, against scripts written by hand. */
#include <string.h>

#include "perturb/combine.h"
#include "perturb/script.h"
#include "perturb/variant.h"

static tiny world;

static int setup(void **state)
{
    (void)state;
    tiny_options options = tiny_defaults();
    options.layout = ATS_ROPE_HALF;
    tiny_make(&world, &options);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tiny_free(&world);
    return 0;
}

static void distractors(variant *v, ats_position_mode mode, double count, double depth)
{
    variant_begin(v, &world, "distractors", mode);
    variant_number(v, "count", count);
    variant_word(v, "placement", "depth");
    variant_number(v, "depth", depth);
    variant_build(v);
}

static ats_edit join(variant *a, variant *b)
{
    ats_edit out;
    assert_ok(ats_edits_combine(&a->build, &a->built.edit, &b->built.edit, &out, &a->err), &a->err);
    return out;
}

static const char *print(variant *v, const ats_edit *edit)
{
    const char *text = NULL;
    assert_ok(ats_edit_print(&v->arena, edit, 0, &text, &v->err), &v->err);
    return text;
}

/* Rows of the first that stand behind the second's insertion point move with it, keys rotated. */
static void inserted_rows_move_with_their_place(void **state)
{
    (void)state;
    variant a, b;
    distractors(&a, ATS_MODE_SHIFT, 2, 0.8);
    distractors(&b, ATS_MODE_SHIFT, 5, 0.2);
    const ats_edit edit = join(&a, &b);
    assert_int_equal(edit.query_delta, 7);
    assert_int_equal(edit.side.count, 7);
    for (int64_t j = 0; j < 2; j++)
        assert_int_equal(edit.side.position[j], a.built.edit.side.position[j] + 5);
    for (int64_t j = 0; j < 5; j++)
        assert_int_equal(edit.side.position[2 + j], b.built.edit.side.position[j]);
    const int64_t d = world.layer.d_qk;
    double key[64];
    for (int64_t j = 0; j < 2; j++) {
        for (int64_t i = 0; i < d; i++) key[i] = (double)a.built.edit.side.k[j * d + i];
        tiny_rotate(&world.layer.contract.rope, 5, key);
        for (int64_t i = 0; i < d; i++) assert_near((double)edit.side.k[j * d + i], key[i], 1e-5);
    }
    assert_ok(ats_edit_validate(&a.arena, &edit, &world.samples[0], &world.layer, false, &a.err),
              &a.err);
    variant_free(&a);
    variant_free(&b);
}

/* A replaced row that the other part hides has no use any more: its side row goes. */
static void hidden_rows_need_no_side_row(void **state)
{
    (void)state;
    variant noise, mask;
    variant_begin(&noise, &world, "noise", ATS_MODE_NONE);
    variant_number(&noise, "sigma", 0.1);
    variant_build(&noise);
    variant_begin(&mask, &world, "mask_window", ATS_MODE_NONE);
    variant_word(&mask, "pattern", "around");
    variant_build(&mask);
    const ats_edit edit = join(&noise, &mask), other = join(&mask, &noise);
    assert_int_equal(edit.side.count, 194);
    assert_string_equal(print(&noise, &edit), print(&noise, &other));
    const int64_t d = world.layer.d_qk;
    assert_memory_equal(edit.side.k + 60 * d, noise.built.edit.side.k + 66 * d,
                        (size_t)d * sizeof(float));
    assert_ok(
        ats_edit_validate(&noise.arena, &edit, &world.samples[0], &world.layer, false, &noise.err),
        &noise.err);
    variant_free(&noise);
    variant_free(&mask);
}

static void a_row_replaced_twice_is_refused(void **state)
{
    (void)state;
    variant a, b;
    ats_edit out;
    for (int i = 0; i < 2; i++) {
        variant_begin(i ? &b : &a, &world, "noise", ATS_MODE_NONE);
        variant_number(i ? &b : &a, "sigma", 0.1);
        variant_build(i ? &b : &a);
    }
    assert_int_equal(ats_edits_combine(&a.build, &a.built.edit, &b.built.edit, &out, &a.err),
                     ATS_E_SUITE);
    assert_says(a.err.text, "row 0", "combine");
    variant_free(&a);
    variant_free(&b);
}

static void temperatures_multiply(void **state)
{
    (void)state;
    variant a, b;
    variant_begin(&a, &world, "temperature", ATS_MODE_NONE);
    variant_number(&a, "tau", 2);
    variant_build(&a);
    distractors(&b, ATS_MODE_OVERLAY, 3, 0.5);
    const ats_edit edit = join(&a, &b);
    assert_near(edit.temperature, 2, 0);
    assert_int_equal(edit.side.count, 3);
    variant_free(&a);
    variant_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inserted_rows_move_with_their_place),
        cmocka_unit_test(hidden_rows_need_no_side_row),
        cmocka_unit_test(a_row_replaced_twice_is_refused),
        cmocka_unit_test(temperatures_multiply),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

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

typedef struct recipe {
    const char *kind, *dose;
    double number;
    const char *word, *value;
} recipe;

static const recipe recipes[] = {
    {"distractors", "count", 5, "source", "donor"},
    {"distractors", "count", 5, "source", "similar"},
    {"distractors", "count", 5, "source", "targeted"},
    {"distractors", "count", 5, "payload", "zero"},
    {"distractors", "count", 5, "placement", "random"},
    {"duplicates", "copies", 2, "payload", "same"},
    {"duplicates", "copies", 2, "payload", "donor"},
    {"superseded", "versions", 2, "arrangement", "interleaved"},
    {"superseded", "versions", 2, "arrangement", "blocked"},
};
enum { N_RECIPES = sizeof recipes / sizeof *recipes };

static void cook(variant *v, const recipe *r, ats_position_mode mode, ats_arm arm)
{
    variant_begin(v, &small, r->kind, mode);
    variant_number(v, r->dose, r->number);
    variant_word(v, r->word, r->value);
    if (strcmp(r->value, "similar") == 0) variant_number(v, "cosine", 0.9);
    if (strcmp(r->value, "targeted") == 0) variant_number(v, "margin", 1);
    v->build.arm = arm;
    variant_build(v);
}

static double norm(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

static void same_script(variant *a, variant *b)
{
    const char *text[2] = {NULL, NULL};
    assert_ok(ats_edit_print(&a->arena, &a->built.edit, 0, &text[0], &a->err), &a->err);
    assert_ok(ats_edit_print(&b->arena, &b->built.edit, 0, &text[1], &b->err), &b->err);
    assert_string_equal(text[0], text[1]);
    const int64_t n = a->built.edit.side.count;
    assert_int_equal(n, b->built.edit.side.count);
    if (n > 0)
        assert_memory_equal(a->built.edit.side.position, b->built.edit.side.position,
                            (size_t)n * sizeof(int64_t));
}

static void twins_have_the_same_count_places_and_norms(void **state)
{
    (void)state;
    for (int r = 0; r < N_RECIPES; r++)
        for (ats_position_mode mode = ATS_MODE_OVERLAY; mode <= ATS_MODE_MOVE; mode++) {
            variant a, b;
            cook(&a, &recipes[r], mode, ATS_ARM_TREATMENT);
            cook(&b, &recipes[r], mode, ATS_ARM_CONTROL);
            same_script(&a, &b);
            const ats_side *x = &a.built.edit.side, *y = &b.built.edit.side;
            for (int64_t j = 0; j < x->count; j++) {
                const double key = norm(x->k + j * 16, 16), value = norm(x->v + j * 12, 12);
                assert_near(norm(y->k + j * 16, 16), key, 1e-5 * key);
                assert_near(norm(y->v + j * 12, 12), value, 1e-5 * value);
                assert_memory_not_equal(x->k + j * 16, y->k + j * 16, 16 * sizeof(float));
            }
            variant_free(&a);
            variant_free(&b);
        }
}

static void the_superseded_twin_has_keys_orthogonal_to_the_target(void **state)
{
    (void)state;
    variant v, w;
    cook(&v, &recipes[8], ATS_MODE_OVERLAY, ATS_ARM_CONTROL);
    cook(&w, &recipes[8], ATS_MODE_OVERLAY, ATS_ARM_TREATMENT);
    assert_near(v.built.realised.cosine, 0, 1e-6);
    assert_near(w.built.realised.cosine, 0.9, 1e-6);
    assert_memory_equal(v.built.edit.side.v, w.built.edit.side.v, 12 * 12 * sizeof(float));
    variant_free(&v);
    variant_free(&w);
}

static void the_duplicates_twin_copies_one_block_outside_every_span(void **state)
{
    (void)state;
    variant v;
    cook(&v, &recipes[5], ATS_MODE_SHIFT, ATS_ARM_CONTROL);
    const float *k = small.attention[0].k, *value = small.attention[0].v;
    int64_t found = -1;
    for (int64_t start = 0; start + 6 <= 200; start++) {
        bool all = true;
        for (int64_t j = 0; j < 6 && all; j++) {
            const float *side = v.built.edit.side.v + j * 12, *row = value + (start + j) * 12;
            const double ratio = norm(side, 12) / norm(row, 12);
            for (int i = 0; i < 12; i++)
                all = all && fabs((double)side[i] - ratio * (double)row[i]) < 1e-5;
        }
        if (all) found = start;
    }
    assert_true(found >= 4);
    assert_true(found + 6 <= 40 || found >= 46);
    assert_true(found + 6 <= 60 || found >= 66);
    /* Its keys are the block's, moved and at the target's norms. */
    const int64_t position = v.built.edit.side.position[0];
    double want[16];
    tiny_row(ATS_F32, k, 200, 16, 0, found, want);
    tiny_rotate(&small.layer.contract.rope, (double)(position - found), want);
    const double ratio = norm(v.built.edit.side.k, 16) / norm(k + found * 16, 16);
    for (int i = 0; i < 16; i++) assert_near((double)v.built.edit.side.k[i], ratio * want[i], 1e-5);
    variant_free(&v);
}

static void the_high_norm_twin_has_the_same_direction_at_the_median_norm(void **state)
{
    (void)state;
    static const char *const directions[] = {"keep", "orthogonal", "mean_key", "sink_like"};
    for (int d = 0; d < 4; d++) {
        variant v[2];
        for (int arm = 0; arm < 2; arm++) {
            variant_begin(&v[arm], &small, "high_norm", ATS_MODE_OVERLAY);
            variant_word(&v[arm], "direction", directions[d]);
            variant_number(&v[arm], "multiple", 3);
            variant_number(&v[arm], "quantile", 0.5);
            variant_number(&v[arm], "count", 4);
            v[arm].build.arm = arm == 0 ? ATS_ARM_TREATMENT : ATS_ARM_CONTROL;
            variant_build(&v[arm]);
        }
        same_script(&v[0], &v[1]);
        for (int64_t i = 0; i < 4 * 16; i++)
            assert_near((double)v[0].built.edit.side.k[i], 3 * (double)v[1].built.edit.side.k[i],
                        1e-5);
        variant_free(&v[0]);
        variant_free(&v[1]);
    }
}

/* The keys of one build, as a fingerprint. */
static void keys(const char *id, uint64_t seed, int64_t head, int64_t layer, ats_arm arm,
                 float *out)
{
    variant v;
    variant_begin(&v, &small, "distractors", ATS_MODE_OVERLAY);
    variant_number(&v, "count", 4);
    variant_word(&v, "placement", "random");
    ats_layer copy = small.layer;
    copy.index = layer;
    v.build.layer = &copy;
    v.build.variant_id = id;
    v.build.seed = seed;
    v.build.kv_head = head;
    v.build.arm = arm;
    variant_build(&v);
    memcpy(out, v.built.edit.side.k, 64 * sizeof *out);
    variant_free(&v);
}

static void streams_depend_on_names_and_not_on_order(void **state)
{
    (void)state;
    float first[64], other[64], again[64];
    keys("a#0", 7, 0, 5, ATS_ARM_TREATMENT, first);
    keys("a#1", 7, 0, 5, ATS_ARM_TREATMENT, other);
    assert_memory_not_equal(first, other, sizeof first);
    keys("a#0", 8, 0, 5, ATS_ARM_TREATMENT, other);
    assert_memory_not_equal(first, other, sizeof first);
    keys("a#0", 7, 1, 5, ATS_ARM_TREATMENT, other);
    assert_memory_not_equal(first, other, sizeof first);
    keys("a#0", 7, 0, 6, ATS_ARM_TREATMENT, other);
    assert_memory_not_equal(first, other, sizeof first);
    keys("a#0", 7, 0, 5, ATS_ARM_CONTROL, other);
    assert_memory_not_equal(first, other, sizeof first);
    keys("a#0", 7, 0, 5, ATS_ARM_TREATMENT, again);
    assert_memory_equal(first, again, sizeof first);
}

static void random_places_are_shared_by_arms_heads_and_layers(void **state)
{
    (void)state;
    variant v[4];
    ats_layer copy = small.layer;
    copy.index = 11;
    for (int i = 0; i < 4; i++) {
        variant_begin(&v[i], &small, "distractors", ATS_MODE_SHIFT);
        variant_number(&v[i], "count", 10);
        variant_word(&v[i], "placement", "random");
        if (i == 1) v[i].build.arm = ATS_ARM_CONTROL;
        if (i == 2) v[i].build.kv_head = 1;
        if (i == 3) v[i].build.layer = &copy;
        variant_build(&v[i]);
        if (i > 0) same_script(&v[0], &v[i]);
    }
    for (int i = 0; i < 4; i++) variant_free(&v[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twins_have_the_same_count_places_and_norms),
        cmocka_unit_test(the_superseded_twin_has_keys_orthogonal_to_the_target),
        cmocka_unit_test(the_duplicates_twin_copies_one_block_outside_every_span),
        cmocka_unit_test(the_high_norm_twin_has_the_same_direction_at_the_median_norm),
        cmocka_unit_test(streams_depend_on_names_and_not_on_order),
        cmocka_unit_test(random_places_are_shared_by_arms_heads_and_layers),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

#include <string.h>

#include "engine/select.h"
#include "support/check.h"

enum { SAMPLES = 4, LAYERS = 3 };

typedef struct fixture {
    ats_arena arena;
    ats_suite suite;
    ats_capture capture;
    ats_capture *captures[2];
    ats_layer layers[LAYERS];
    ats_sample samples[SAMPLES];
    ats_probe probes[3];
} fixture;

static int set_up(void **state)
{
    static fixture f;
    f = (fixture){.suite = {.path = "suite.yaml"}};
    f.probes[0] = (ats_probe){.role = "question"};
    f.probes[1] = (ats_probe){.role = "question"};
    f.probes[2] = (ats_probe){.role = "answer"};
    static const char *const ids[SAMPLES] = {"a0", "a0+1", "a1", "b0"};
    for (int s = 0; s < SAMPLES; s++)
        f.samples[s] = (ats_sample){.id = ids[s], .n_probes = 3, .probes = f.probes};
    f.samples[1].variant_of = "a0";
    f.samples[3].n_probes = 2;
    for (int l = 0; l < LAYERS; l++)
        f.layers[l] =
            (ats_layer){.index = 4 + 3 * l, .n_q_heads = 4, .n_kv_heads = 2, .d_qk = 8, .d_v = 8};
    f.layers[2].n_q_heads = 2;
    f.capture = (ats_capture){.path = "a.h5",
                              .n_layers = LAYERS,
                              .layers = f.layers,
                              .n_samples = SAMPLES,
                              .samples = f.samples};
    f.captures[0] = &f.capture;
    f.suite.select =
        (ats_select){.all_samples = true, .layers = {.all = true}, .heads = {.all = true}};
    f.suite.select.probes = ATS_PROBES_LAST;
    ats_arena_init(&f.arena, false);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    ats_arena_fini(&f->arena);
    return 0;
}

static ats_selection made(fixture *f)
{
    ats_selection selection;
    ats_err err;
    assert_ok(ats_select_make(&f->arena, &f->suite, f->captures, 1, &selection, &err), &err);
    return selection;
}

static void says(fixture *f, ats_code code, const char *word, const char *advice)
{
    ats_selection selection;
    ats_err err = {.code = ATS_OK};
    assert_int_equal(ats_select_make(&f->arena, &f->suite, f->captures, 1, &selection, &err), code);
    assert_says(err.text, word, advice);
}

static void everything_by_default(void **state)
{
    const ats_selection s = made(*state);
    assert_int_equal(s.n_samples, 4);
    assert_int_equal(s.n_layers, 3);
    assert_int_equal(s.n_heads, 4);
    assert_int_equal(s.n_probes, 1);
    assert_int_equal(s.samples[0].probes[0], 2);
    assert_int_equal(s.samples[3].probes[0], 1);
    assert_int_equal(s.head_on[2 * 4 + 1], 1);
    assert_int_equal(s.head_on[2 * 4 + 2], 0); /* the layer has two heads */
}

static void donors_are_other_texts(void **state)
{
    const ats_selection s = made(*state);
    assert_int_equal(s.samples[0].donor, 2); /* not its own variant */
    assert_int_equal(s.samples[1].donor, 2); /* nor what it is a variant of */
    assert_int_equal(s.samples[2].donor, 3);
    assert_int_equal(s.samples[3].donor, 0);
    fixture *f = *state;
    f->samples[0].cluster = f->samples[2].cluster = "a";
    assert_int_equal(made(f).samples[0].donor, 3); /* not of the same document */
    f->samples[3].cluster = "a";
    assert_int_equal(made(f).samples[0].donor, 2); /* unless there is no other */
}

static void globs_choose_samples(void **state)
{
    fixture *f = *state;
    static const char *const globs[] = {"a?", "b*"};
    f->suite.select.all_samples = false;
    f->suite.select.samples = (ats_strings){2, globs};
    const ats_selection s = made(f);
    assert_int_equal(s.n_samples, 3);
    assert_string_equal(s.samples[1].sample->id, "a1");
}

static void unknown_samples_are_an_error(void **state)
{
    fixture *f = *state;
    static const char *const globs[] = {"a*", "zz"};
    f->suite.select.all_samples = false;
    f->suite.select.samples = (ats_strings){2, globs};
    says(f, ATS_E_SUITE, "no sample matches 'zz'", "a0, a0+1, a1, b0");
}

static void probes_by_role_leave_samples_out(void **state)
{
    fixture *f = *state;
    f->suite.select.probes = ATS_PROBES_ROLE;
    f->suite.select.probe_role = "answer";
    const ats_selection s = made(f);
    assert_int_equal(s.n_samples, 3);
    assert_int_equal(s.n_left_out, 1);
    assert_string_equal(s.left_out[0], "b0");
    f->suite.select.probe_role = "gold";
    says(f, ATS_E_SUITE, "'gold'", "question, answer");
}

static void the_probe_axis_is_the_longest_list(void **state)
{
    fixture *f = *state;
    static const int64_t indices[] = {0, -1, 2};
    f->suite.select.probes = ATS_PROBES_INDEX;
    f->suite.select.probe_index = (ats_select_ints){.count = 3, .items = indices};
    const ats_selection s = made(f);
    assert_int_equal(s.n_probes, 2);
    assert_int_equal(s.samples[3].n_probes, 2);
    assert_int_equal(s.samples[0].probes[1], 2);
}

static void layers_by_number_and_from_the_end(void **state)
{
    fixture *f = *state;
    static const int64_t numbers[] = {4, -1}, none[] = {5};
    f->suite.select.layers = (ats_select_ints){.count = 2, .items = numbers};
    const ats_selection s = made(f);
    assert_int_equal(s.n_layers, 2);
    assert_int_equal(s.layers[0], 0);
    assert_int_equal(s.layers[1], 2);
    f->suite.select.layers = (ats_select_ints){.all = true, .every = 2};
    assert_int_equal(made(f).n_layers, 2);
    f->suite.select.layers = (ats_select_ints){.count = 1, .items = none};
    says(f, ATS_E_SUITE, "select.layers", "4, 7, 10");
}

static void groups_share_a_key_head(void **state)
{
    fixture *f = *state;
    static const int64_t heads[] = {1, 2, 3};
    f->suite.select.heads = (ats_select_ints){.count = 3, .items = heads};
    const ats_selection s = made(f);
    ats_group *groups = NULL;
    int64_t n = 0;
    ats_err err;
    assert_ok(ats_select_groups(&f->arena, &s, 0, &groups, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_int_equal(groups[0].n_heads, 1);
    assert_int_equal(groups[1].kv_head, 1);
    assert_int_equal(groups[1].heads[1], 3);
    assert_int_equal(groups[1].place[1], 2);
    assert_ok(ats_select_groups(&f->arena, &s, 2, &groups, &n, &err), &err);
    assert_int_equal(n, 1); /* two query heads, two key heads; head 1 alone was chosen */
    assert_int_equal(groups[0].kv_head, 1);
}

static void captures_must_have_the_same_layers_and_other_ids(void **state)
{
    fixture *f = *state;
    ats_selection selection;
    ats_err err;
    ats_capture other = f->capture;
    ats_sample renamed = f->samples[0];
    other.path = "b.h5";
    f->captures[1] = &other;
    assert_int_equal(ats_select_make(&f->arena, &f->suite, f->captures, 2, &selection, &err),
                     ATS_E_INPUT);
    assert_says(err.text, "a0", "a.h5", "b.h5");
    renamed.id = "c0";
    other.samples = &renamed;
    other.n_samples = 1;
    assert_ok(ats_select_make(&f->arena, &f->suite, f->captures, 2, &selection, &err), &err);
    assert_int_equal(selection.n_samples, 5);
    assert_int_equal(selection.samples[4].donor, -1);
    other.n_layers = 2;
    assert_int_equal(ats_select_make(&f->arena, &f->suite, f->captures, 2, &selection, &err),
                     ATS_E_INPUT);
    assert_says(err.text, "different layers");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(everything_by_default),
        TEST(donors_are_other_texts),
        TEST(globs_choose_samples),
        TEST(unknown_samples_are_an_error),
        TEST(probes_by_role_leave_samples_out),
        TEST(the_probe_axis_is_the_longest_list),
        TEST(layers_by_number_and_from_the_end),
        TEST(groups_share_a_key_head),
        TEST(captures_must_have_the_same_layers_and_other_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

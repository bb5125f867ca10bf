#include "conformance/conformance.h"

#include <stdio.h>
#include <string.h>

#include "base/parallel.h"

const ats_backend *conformance_backend, *conformance_reference;

ats_bar_path conformance_path(void)
{
    return strcmp(conformance_backend->name, "reference") == 0 ? ATS_BAR_DOUBLE : ATS_BAR_FP32;
}

/* Keys of 16 bits go through matrix units on a device, those of bfloat16 on a cpu that has them. */
static ats_bar_path path_of(const problem_spec *spec)
{
    const char *name = conformance_backend->name;
    const bool device = strcmp(name, "cuda") == 0 || strcmp(name, "cublas") == 0;
    const bool tiles = strcmp(conformance_backend->detail(), "amx") == 0;
    const bool matrix = (device && spec->dtype != ATS_F32) || (tiles && spec->dtype == ATS_BF16);
    return matrix ? ATS_BAR_SPLIT16 : conformance_path();
}

void conformance_check(report *r, const problem_spec *spec, int64_t n_edits)
{
    char text[256];
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_problem problem;
    ats_edit *edits;
    stats_set got, want;
    r->context = problem_spec_text(spec, text, sizeof text);
    r->path = path_of(spec);
    problem_make(&arena, spec, &problem);
    assert_int_equal(ATS_NEW0(&arena, n_edits, &edits, NULL), ATS_OK);
    edits_make(&arena, &problem, spec->seed, n_edits, edits);
    evaluate_all(&arena, conformance_backend, &problem, edits, n_edits, &got);
    evaluate_all(&arena, conformance_reference, &problem, edits, n_edits, &want);
    compare_sets(r, &problem, edits, &got, &want);
    ats_arena_fini(&arena);
}

static void test_random_problems(void **state)
{
    (void)state;
    report r = {.path = conformance_path()};
    /* The reference against itself only shows that it repeats: a few seeds do. */
    const uint64_t seeds = conformance_path() == ATS_BAR_DOUBLE ? 4 : 16;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        problem_spec spec;
        problem_spec_draw(seed, &spec);
        conformance_check(&r, &spec, EDIT_KINDS + 3);
    }
    report_finish(&r, "random problems");
}

static void test_head_sizes_and_types(void **state)
{
    static const int64_t WIDTHS[][2] = {{1, 1},     {5, 3},     {64, 64},  {80, 80},
                                        {128, 128}, {192, 128}, {256, 256}};
    static const int64_t GROUPS[] = {1, 4, 7, 8};
    static const int64_t KEYS[] = {1, 31, 33, 65, 257};
    (void)state;
    report r = {.path = conformance_path()};
    for (uint64_t i = 0; i < 14; i++) {
        const problem_spec spec = {.seed = 100 + i,
                                   .d_qk = WIDTHS[i % 7][0],
                                   .d_v = WIDTHS[i % 7][1],
                                   .dtype = (ats_dtype)(i % 3),
                                   .group = GROUPS[i % 4],
                                   .n_probes = 2,
                                   .n_keys = KEYS[i % 5],
                                   .rope = (ats_rope_layout)(i / 2 % 3),
                                   .sink = i % 2 == 1,
                                   .gaps = i % 4 == 0};
        conformance_check(&r, &spec, EDIT_KINDS);
    }
    report_finish(&r, "head sizes and types");
}

/* Compares variant `a` of one set with variant `b` of another, bit by bit. */
static void same_bits(const ats_problem *problem, const ats_stats *x, const ats_stats *y,
                      const char *when, const problem_spec *spec)
{
    char text[256];
    const char *field = stats_difference(problem, x, y);
    if (field != NULL)
        fail_msg("%s: other bits in %s %s", problem_spec_text(spec, text, sizeof text), field,
                 when);
}

static void check_bits(const problem_spec *spec)
{
    enum { COUNT = EDIT_KINDS + 2 };
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_problem problem;
    ats_edit edits[COUNT], reversed[COUNT];
    stats_set first, other;
    problem_make(&arena, spec, &problem);
    edits_make(&arena, &problem, spec->seed, COUNT, edits);
    for (int i = 0; i < COUNT; i++) reversed[i] = edits[COUNT - 1 - i];
    ats_set_threads(1);
    evaluate_all(&arena, conformance_backend, &problem, edits, COUNT, &first);
    for (int threads = 1; threads <= 3; threads++) {
        ats_set_threads(threads);
        evaluate_all(&arena, conformance_backend, &problem, edits, COUNT, &other);
        same_bits(&problem, &first.base, &other.base, "of the base when repeated", spec);
        for (int i = 0; i < COUNT; i++)
            same_bits(&problem, &first.variants[i], &other.variants[i], "when repeated", spec);
    }
    evaluate_all(&arena, conformance_backend, &problem, reversed, COUNT, &other);
    for (int i = 0; i < COUNT; i++)
        same_bits(&problem, &first.variants[i], &other.variants[COUNT - 1 - i], "in another order",
                  spec);
    for (int i = 0; i < COUNT; i++) {
        evaluate_all(&arena, conformance_backend, &problem, &edits[i], 1, &other);
        same_bits(&problem, &first.base, &other.base, "of the base with one variant", spec);
        same_bits(&problem, &first.variants[i], &other.variants[0], "without the others", spec);
    }
    ats_set_threads(0);
    ats_arena_fini(&arena);
}

static ats_code nobody(void *ctx, int64_t variant, int worker, const ats_stats *base,
                       const ats_stats *stats, ats_err *err)
{
    (void)ctx, (void)variant, (void)worker, (void)base, (void)stats, (void)err;
    fail_msg("statistics of an evaluation that does not fit");
    return ATS_OK;
}

/* RC-16: repeats, thread counts and batch mates leave every bit alone. */
static void test_same_bits(void **state)
{
    (void)state;
    for (uint64_t seed = 201; seed <= 206; seed++) {
        problem_spec spec;
        problem_spec_draw(seed, &spec);
        if (spec.n_keys == 1000) spec.n_keys = 333;
        check_bits(&spec);
    }
}

/* Less memory splits rows into blocks and changes no bit; too little is refused with the number. */
static void test_memory(void **state)
{
    (void)state;
    enum { COUNT = EDIT_KINDS + 1 };
    for (uint64_t seed = 301; seed <= 303; seed++) {
        problem_spec spec;
        ats_problem problem;
        ats_edit edits[COUNT];
        stats_set whole, parts;
        ats_arena arena;
        ats_arena_init(&arena, false);
        problem_spec_draw(seed, &spec);
        spec.n_probes = 9 + (int64_t)seed % 4;
        spec.group = 4;
        spec.keep = seed % 2 == 0;
        problem_make(&arena, &spec, &problem);
        edits_make(&arena, &problem, spec.seed, COUNT, edits);
        evaluate_all(&arena, conformance_backend, &problem, edits, COUNT, &whole);
        const size_t all = conformance_backend->workspace_bytes(&problem, COUNT);
        problem.memory = 1;
        const size_t least = conformance_backend->workspace_bytes(&problem, COUNT);
        if (least < all) {
            ats_err err = {.code = ATS_OK};
            assert_int_equal(
                conformance_backend->evaluate(&problem, edits, COUNT, nobody, NULL, &err),
                ATS_E_MEMORY);
            assert_says(err.text, "GiB", "--memory");
        }
        for (size_t room = least; room <= all; room += all / 3 + 1) {
            problem.memory = (int64_t)room;
            assert_true(conformance_backend->workspace_bytes(&problem, COUNT) <= room);
            evaluate_all(&arena, conformance_backend, &problem, edits, COUNT, &parts);
            same_bits(&problem, &whole.base, &parts.base, "of the base in less memory", &spec);
            for (int i = 0; i < COUNT; i++)
                same_bits(&problem, &whole.variants[i], &parts.variants[i], "in less memory",
                          &spec);
        }
        ats_arena_fini(&arena);
    }
}

/* For the test runner: this machine cannot run what was asked for. */
enum { SKIPPED = 77 };

int main(int argc, char **argv)
{
    ats_err err = {.code = ATS_OK};
    if (argc != 2) {
        fprintf(stderr, "usage: test_conformance BACKEND\n");
        return 3;
    }
    ats_code rc = ats_backend_find("reference", &conformance_reference, &err);
    if (rc == ATS_OK) rc = ats_backend_find(argv[1], &conformance_backend, &err);
    if (rc != ATS_OK) {
        fprintf(stderr, "%s\n", err.text);
        return rc == ATS_E_DEVICE || rc == ATS_E_UNSUPPORTED ? SKIPPED : 3;
    }
    fprintf(stderr, "%s: %s\n", argv[1], conformance_backend->detail());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_problems),
        cmocka_unit_test(test_head_sizes_and_types),
        cmocka_unit_test(test_window_edges),
        cmocka_unit_test(test_chunk_edges),
        cmocka_unit_test(test_passes_apart),
        cmocka_unit_test(test_row_counts),
        cmocka_unit_test(test_equal_scores_exact),
        cmocka_unit_test(test_rising_logits),
        cmocka_unit_test(test_rows_without_a_key),
        cmocka_unit_test(test_no_keys_at_all),
        cmocka_unit_test(test_visible_nan_is_refused),
        cmocka_unit_test(test_hidden_nan_is_not_read),
        cmocka_unit_test(test_bad_contract_is_refused),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests_name(argv[1], tests, NULL, NULL) == 0 ? 0 : 1;
}

/* The GPU backends on the emulated device: what the shared conformance suite does not reach, such
 * as long pieces, streamed keys, lack of memory, a lost device. Run with the name of a backend;
 * with "kernels", "warpgroups" or "lists" after it, only what a fault in their text must break. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parallel.h"
#include "lists.h"
#include "support/check.h"
#include "support/compare.h"
#include "support/problems.h"

static const ats_backend *device, *reference;

static ats_bar_path path_of(const problem_spec *spec)
{
    return spec->dtype == ATS_F32 ? ATS_BAR_FP32 : ATS_BAR_SPLIT16;
}

static void check_spec(const problem_spec *spec, int64_t n_edits)
{
    char text[256];
    ats_arena arena;
    ats_problem problem;
    ats_edit edits[EDIT_KINDS];
    stats_set got, want;
    report r = {.path = path_of(spec), .context = problem_spec_text(spec, text, sizeof text)};
    ats_arena_init(&arena, false);
    problem_make(&arena, spec, &problem);
    edits_make(&arena, &problem, spec->seed, n_edits, edits);
    evaluate_all(&arena, device, &problem, edits, n_edits, &got);
    evaluate_all(&arena, reference, &problem, edits, n_edits, &want);
    compare_sets(&r, &problem, edits, &got, &want);
    report_finish(&r, "device");
    ats_arena_fini(&arena);
}

/* Rows that see less than their neighbours eight rows further, a piece that only late rows of a
 * block see, and pieces that none does. */
static void check_rows(void)
{
    const problem_spec spec = {.seed = 9,
                               .n_keys = 400,
                               .d_qk = 64,
                               .d_v = 64,
                               .group = 4,
                               .n_probes = 20,
                               .dtype = ATS_BF16,
                               .spread = 3};
    ats_arena arena;
    ats_problem problem;
    stats_set got, want;
    int64_t *q_pos = NULL;
    report r = {.path = ATS_BAR_SPLIT16, .context = "rows"};
    ats_arena_init(&arena, false);
    problem_make(&arena, &spec, &problem);
    assert_int_equal(ATS_NEW(&arena, problem.n_rows, &q_pos, NULL), ATS_OK);
    for (int64_t i = 0; i < problem.n_rows; i++) {
        const int64_t eight = i / 8;
        q_pos[i] = eight == 8 ? 299 : 60 + 24 * eight - (eight % 2 == 1 ? 80 : 0);
    }
    problem.q_pos = q_pos;
    evaluate_all(&arena, device, &problem, NULL, 0, &got);
    evaluate_all(&arena, reference, &problem, NULL, 0, &want);
    compare_sets(&r, &problem, NULL, &got, &want);
    report_finish(&r, "rows");
    ats_arena_fini(&arena);
}

/* Every tile path of the kernels: ragged and full pieces, one and several tiles, one and several
 * warps and blocks of rows, one and two halves of the queries. */
static void test_kernels(void **state)
{
    (void)state;
    static const problem_spec SPECS[] = {
        {.seed = 1,
         .n_keys = 150,
         .d_qk = 64,
         .d_v = 64,
         .group = 4,
         .n_probes = 9,
         .dtype = ATS_BF16,
         .rope = ATS_ROPE_HALF,
         .spread = 3},
        {.seed = 2,
         .n_keys = 190,
         .d_qk = 48,
         .d_v = 256,
         .group = 3,
         .n_probes = 7,
         .dtype = ATS_F16,
         .rope = ATS_ROPE_HALF,
         .spread = 3,
         .window = 60},
        {.seed = 3,
         .n_keys = 100,
         .d_qk = 40,
         .d_v = 24,
         .group = 5,
         .n_probes = 8,
         .dtype = ATS_F32,
         .rope = ATS_ROPE_INTERLEAVED,
         .spread = 3},
    };
    for (size_t i = 0; i < sizeof SPECS / sizeof *SPECS; i++) check_spec(&SPECS[i], EDIT_SWAP_BOTH);
    /* Four tiles of keys, so that a stage is used again, and two warps to do it too early. */
    check_spec(&(problem_spec){.seed = 4,
                               .n_keys = 16400,
                               .d_qk = 16,
                               .d_v = 256,
                               .group = 4,
                               .n_probes = 5,
                               .dtype = ATS_BF16,
                               .spread = 3},
               0);
    check_rows();
}

/* Halves of the keys at distances of their own: the view of a block changes while it stays, and its
 * stages go round. */
static void check_views(void)
{
    enum { KEYS = 2000 };
    static const ats_segment SEGMENTS[] = {
        {.kind = ATS_SEG_KEEP, .start = 0, .stop = 1000, .delta = 0},
        {.kind = ATS_SEG_KEEP, .start = 1000, .stop = 1980, .delta = 3},
        {.kind = ATS_SEG_KEEP, .start = 1980, .stop = KEYS, .delta = 7},
    };
    const problem_spec spec = {.seed = 8,
                               .n_keys = KEYS,
                               .d_qk = 64,
                               .d_v = 64,
                               .group = 4,
                               .n_probes = 16,
                               .dtype = ATS_BF16,
                               .rope = ATS_ROPE_HALF,
                               .spread = 3};
    ats_arena arena;
    ats_problem problem;
    stats_set got, want;
    report r = {.path = ATS_BAR_SPLIT16, .context = "views"};
    ats_arena_init(&arena, false);
    problem_make(&arena, &spec, &problem);
    ats_edit edit[EDIT_IDENTITY + 1];
    edits_make(&arena, &problem, spec.seed, 1, edit);
    edit->segments = SEGMENTS;
    edit->n_segments = sizeof SEGMENTS / sizeof *SEGMENTS;
    edit->query_delta = 7;
    evaluate_all(&arena, device, &problem, edit, 1, &got);
    evaluate_all(&arena, reference, &problem, edit, 1, &want);
    compare_sets(&r, &problem, edit, &got, &want);
    report_finish(&r, "views");
    ats_arena_fini(&arena);
}

/* Shapes that the rungs of warpgroups take: full and padded rows, one and two halves of queries. */
static void test_warpgroups(void **state)
{
    (void)state;
    check_spec(&(problem_spec){.seed = 5,
                               .n_keys = 150,
                               .d_qk = 128,
                               .d_v = 64,
                               .group = 8,
                               .n_probes = 9,
                               .dtype = ATS_BF16,
                               .rope = ATS_ROPE_HALF,
                               .spread = 3,
                               .softcap = 20},
               EDIT_HIDE + 1);
    check_spec(&(problem_spec){.seed = 6,
                               .n_keys = 100,
                               .d_qk = 192,
                               .d_v = 128,
                               .group = 8,
                               .n_probes = 17,
                               .dtype = ATS_F16,
                               .rope = ATS_ROPE_INTERLEAVED,
                               .spread = 3,
                               .window = 70},
               EDIT_SHIFT + 1);
    /* Four tiles of keys in a piece, so that a stage is used again; heads that fill no column. */
    check_spec(&(problem_spec){.seed = 7,
                               .n_keys = 65600,
                               .d_qk = 80,
                               .d_v = 72,
                               .group = 2,
                               .n_probes = 1,
                               .dtype = ATS_BF16,
                               .spread = 2,
                               .window = 300},
               0);
    check_views();
    check_rows();
}

/* Pieces of 128 and 256 keys. */
static void test_long_pieces(void **state)
{
    (void)state;
    check_spec(&(problem_spec){.seed = 11,
                               .n_keys = 16500,
                               .d_qk = 16,
                               .d_v = 16,
                               .group = 1,
                               .n_probes = 3,
                               .dtype = ATS_BF16,
                               .rope = ATS_ROPE_HALF,
                               .spread = 2},
               2);
    check_spec(&(problem_spec){.seed = 12,
                               .n_keys = 65700,
                               .d_qk = 16,
                               .d_v = 8,
                               .group = 1,
                               .n_probes = 2,
                               .dtype = ATS_F16,
                               .spread = 2,
                               .window = 30000},
               2);
}

/* More rows than a block of eight warps, so that results of several tiles of rows come apart. */
static void test_many_rows(void **state)
{
    (void)state;
    check_spec(&(problem_spec){.seed = 21,
                               .n_keys = 70,
                               .d_qk = 32,
                               .d_v = 32,
                               .group = 8,
                               .n_probes = 19,
                               .dtype = ATS_BF16,
                               .rope = ATS_ROPE_HALF,
                               .bias = true},
               EDIT_SWAP_KEY + 1);
}

/* Rows of binary16 queries far from 1, where halves of 16 bits overflow or vanish. */
static void test_scales(void **state)
{
    (void)state;
    static const float SIZES[] = {1e-6F, 3e4F};
    for (int i = 0; i < 2; i++)
        for (int type = ATS_F16; type <= ATS_BF16; type++) {
            ats_arena arena;
            ats_problem p;
            ats_edit edits[EDIT_SHIFT + 1];
            stats_set got, want;
            float *q = NULL;
            const problem_spec spec = {.seed = 31,
                                       .n_keys = 80,
                                       .d_qk = 16,
                                       .d_v = 8,
                                       .group = 2,
                                       .n_probes = 2,
                                       .dtype = (ats_dtype)type,
                                       .rope = ATS_ROPE_HALF};
            report r = {.path = ATS_BAR_SPLIT16, .context = "scaled queries"};
            ats_arena_init(&arena, false);
            problem_make(&arena, &spec, &p);
            assert_int_equal(ATS_NEW(&arena, p.n_rows * p.d_qk, &q, NULL), ATS_OK);
            for (int64_t j = 0; j < p.n_rows * p.d_qk; j++) q[j] = p.q[j] * SIZES[i];
            p.q = q;
            p.contract.scale /= (double)SIZES[i];
            edits_make(&arena, &p, spec.seed, EDIT_SHIFT + 1, edits);
            evaluate_all(&arena, device, &p, edits, EDIT_SHIFT + 1, &got);
            evaluate_all(&arena, reference, &p, edits, EDIT_SHIFT + 1, &want);
            compare_sets(&r, &p, edits, &got, &want);
            report_finish(&r, "scaled queries");
            ats_arena_fini(&arena);
        }
}

static problem_spec streamed(int64_t n_keys)
{
    return (problem_spec){.seed = 41,
                          .n_keys = n_keys,
                          .d_qk = 32,
                          .d_v = 32,
                          .group = 2,
                          .n_probes = 2,
                          .dtype = ATS_BF16,
                          .rope = ATS_ROPE_HALF,
                          .bias = true};
}

/* What an evaluation writes on stderr. */
static void evaluate_loudly(ats_arena *arena, const ats_problem *problem, const ats_edit *edits,
                            stats_set *out, char *text, size_t size)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    const int saved = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    evaluate_all(arena, device, problem, edits, EDIT_KINDS, out);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

/* With the setting the device says `words`, and every bit is that of a run without. The setting
 * comes first: memory that is there already would be used again. */
static void same_results(int64_t n_keys, const char *name, const char *value, const char *words)
{
    ats_arena arena;
    ats_problem problem;
    ats_edit edits[EDIT_KINDS];
    stats_set whole, parts;
    char text[4096];
    const problem_spec spec = streamed(n_keys);
    ats_arena_init(&arena, false);
    problem_make(&arena, &spec, &problem);
    edits_make(&arena, &problem, spec.seed, EDIT_KINDS, edits);
    setenv(name, value, 1);
    evaluate_loudly(&arena, &problem, edits, &parts, text, sizeof text);
    unsetenv(name);
    assert_says(text, words);
    evaluate_loudly(&arena, &problem, edits, &whole, text, sizeof text);
    assert_null(strstr(text, "streamed"));
    assert_null(stats_difference(&problem, &whole.base, &parts.base));
    for (int i = 0; i < EDIT_KINDS; i++)
        assert_null(stats_difference(&problem, &whole.variants[i], &parts.variants[i]));
    ats_arena_fini(&arena);
}

static void test_keys_are_streamed(void **state)
{
    (void)state;
    same_results(1500, "CUEMU_AVAILABLE", "1000", "does not fit");
}

static void test_smaller_chunks_after_out_of_memory(void **state)
{
    (void)state;
    same_results(3000, "CUEMU_REFUSE", "1", "ran out of memory");
}

static ats_code ignore(void *ctx, int64_t variant, int worker, const ats_stats *base,
                       const ats_stats *stats, ats_err *err)
{
    (void)ctx;
    (void)variant;
    (void)worker;
    (void)base;
    (void)stats;
    (void)err;
    return ATS_OK;
}

static ats_code evaluate_with(const char *name, const char *value, ats_err *err)
{
    ats_arena arena;
    ats_problem problem;
    ats_edit edits[EDIT_KINDS];
    ats_arena_init(&arena, false);
    const problem_spec spec = streamed(5000);
    problem_make(&arena, &spec, &problem);
    edits_make(&arena, &problem, spec.seed, EDIT_KINDS, edits);
    setenv(name, value, 1);
    const ats_code rc = device->evaluate(&problem, edits, EDIT_KINDS, ignore, NULL, err);
    unsetenv(name);
    ats_arena_fini(&arena);
    return rc;
}

static void test_no_memory_at_all(void **state)
{
    (void)state;
    ats_err err = {.code = ATS_OK};
    assert_int_equal(evaluate_with("CUEMU_REFUSE", "2", &err), ATS_E_MEMORY);
    assert_says(err.text, "cudaMalloc", "cudaErrorMemoryAllocation", "--backend cpu");
    assert_int_equal(ats_code_exit(ATS_E_MEMORY), 4);
}

static void test_heads_too_wide(void **state)
{
    (void)state;
    if (strcmp(device->name, "cuda") != 0) skip();
    ats_arena arena;
    ats_problem problem;
    ats_err err = {.code = ATS_OK};
    const problem_spec spec = {
        .seed = 51, .n_keys = 3, .d_qk = 264, .d_v = 16, .group = 1, .n_probes = 1};
    ats_arena_init(&arena, false);
    problem_make(&arena, &spec, &problem);
    assert_int_equal(device->supports(&problem, &err), ATS_E_UNSUPPORTED);
    assert_says(err.text, "at most 256", "have 264", "--backend cpu");
    ats_arena_fini(&arena);
}

/* Last: the device stays lost. */
static void test_lost_device(void **state)
{
    (void)state;
    ats_err err = {.code = ATS_OK};
    assert_int_equal(evaluate_with("CUEMU_LOSE_AFTER", "5", &err), ATS_E_DEVICE);
    assert_says(err.text, "cudaErrorLaunchFailure", "nvidia-smi", "--backend cpu");
    assert_int_equal(ats_code_exit(ATS_E_DEVICE), 4);
}

int main(int argc, char **argv)
{
    ats_err err = {.code = ATS_OK};
    if (argc < 2 || ats_backend_find("reference", &reference, &err) != ATS_OK ||
        ats_backend_find(argv[1], &device, &err) != ATS_OK) {
        fprintf(stderr, "usage: test_device BACKEND [kernels]; %s\n", err.text);
        return 3;
    }
    ats_set_threads(2);
    const struct CMUnitTest kernels[] = {cmocka_unit_test(test_kernels),
                                         cmocka_unit_test(test_lists)};
    const struct CMUnitTest warpgroups[] = {cmocka_unit_test(test_warpgroups)};
    const struct CMUnitTest lists[] = {cmocka_unit_test(test_lists)};
    const struct CMUnitTest brief[] = {cmocka_unit_test(test_many_rows)};
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_keys_are_streamed), /* the first two before anything larger */
        cmocka_unit_test(test_smaller_chunks_after_out_of_memory),
        cmocka_unit_test(test_no_memory_at_all),
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_warpgroups),
        cmocka_unit_test(test_long_pieces),
        cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_heads_too_wide),
        cmocka_unit_test(test_lost_device),
    };
    const char *part = argc > 2 ? argv[2] : "";
    if (strcmp(part, "short") == 0)
        return cmocka_run_group_tests_name("short", brief, NULL, NULL) == 0 ? 0 : 1;
    if (strcmp(part, "lists") == 0)
        return cmocka_run_group_tests_name("lists", lists, NULL, NULL) == 0 ? 0 : 1;
    if (strcmp(part, "warpgroups") == 0)
        return cmocka_run_group_tests_name("warpgroups", warpgroups, NULL, NULL) == 0 ? 0 : 1;
    const int failed = argc > 2 ? cmocka_run_group_tests_name("kernels", kernels, NULL, NULL)
                                : cmocka_run_group_tests_name(argv[1], all, NULL, NULL);
    return failed == 0 ? 0 : 1;
}

#include <stdio.h>

#include "golden/load_fixture.h"
#include "support/check.h"
#include "support/compare.h"

static const char *const FIXTURES[] = {"plain",       "swap_nope", "window_gaps", "chunk_bf16",
                                       "softcap_f16", "sink",      "alibi_heads", "bidirectional",
                                       "masks",       "width_1",   "one_key",     "queries"};

/* The fixtures hold no near ties, so the lists must agree key by key. */
static void same_list(report *r, const ats_problem *p, int64_t variant, const char *field,
                      const int64_t *got, const int64_t *want)
{
    for (int64_t i = 0; i < p->n_rows * p->top_k; i++)
        report_count(r, field, variant, i / p->top_k, got[i], want[i], want[i]);
}

static void same_lists(report *r, const ats_problem *p, int64_t variant, const ats_stats *got,
                       const ats_stats *want)
{
    same_list(r, p, variant, "top_index", got->route.top_index, want->route.top_index);
    same_list(r, p, variant, "topc_index", got->route.topc_index, want->route.topc_index);
}

static void run(const char *backend_name, ats_bar_path path)
{
    ats_err err = {.code = ATS_OK};
    const ats_backend *backend;
    assert_ok(ats_backend_find(backend_name, &backend, &err), &err);
    report r = {.path = path};
    for (size_t i = 0; i < sizeof FIXTURES / sizeof *FIXTURES; i++) {
        char name[512];
        ats_arena arena;
        ats_arena_init(&arena, false);
        fixture f;
        stats_set got;
        snprintf(name, sizeof name, "%s/tests/golden/fixtures/%s.json", ATS_SOURCE_DIR,
                 FIXTURES[i]);
        r.context = FIXTURES[i];
        fixture_load(&arena, name, &f);
        evaluate_all(&arena, backend, &f.problem, f.edits, f.expected.n_variants, &got);
        compare_sets(&r, &f.problem, f.edits, &got, &f.expected);
        same_lists(&r, &f.problem, -1, &got.base, &f.expected.base);
        for (int64_t v = 0; v < got.n_variants; v++)
            same_lists(&r, &f.problem, v, &got.variants[v], &f.expected.variants[v]);
        ats_arena_fini(&arena);
    }
    report_finish(&r, backend_name);
}

static void test_reference(void **state)
{
    (void)state;
    run("reference", ATS_BAR_DOUBLE);
}

static void test_cpu(void **state)
{
    (void)state;
    run("cpu", ATS_BAR_FP32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

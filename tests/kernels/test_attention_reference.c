#include <math.h>

#include "kernels/bars.h"
#include "kernels/reference.h"
#include "support/check.h"
#include "support/evaluate.h"
#include "support/problems.h"

static const problem_spec SPEC = {.seed = 7,
                                  .n_keys = 40,
                                  .d_qk = 8,
                                  .d_v = 4,
                                  .group = 2,
                                  .n_probes = 2,
                                  .rope = ATS_ROPE_HALF,
                                  .dtype = ATS_BF16,
                                  .sink = true};

/* The row that `explain` prints is the row that the statistics sum up. */
static void test_row_agrees_with_statistics(void **state)
{
    (void)state;
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_err err = {.code = ATS_OK};
    ats_problem p;
    ats_edit edit;
    stats_set set;
    problem_make(&arena, &SPEC, &p);
    edit_make(&arena, &p, 3, EDIT_SHIFT, &edit);
    evaluate_all(&arena, &ats_backend_reference, &p, &edit, 1, &set);
    const int64_t length = ats_reference_length(&p, &edit), inserted = edit.side.count;
    assert_int_equal(length, p.n_keys + inserted);
    assert_int_equal(ats_reference_length(&p, NULL), p.n_keys);
    int64_t key[128], position[128];
    double logit[128], weight[128], lse;
    assert_true(length <= 128);
    for (int64_t row = 0; row < p.n_rows; row++) {
        assert_ok(ats_reference_row(&p, &edit, row, key, position, logit, weight, &lse, &err),
                  &err);
        double sum = set.variants[0].route.null_weight[row], heaviest = 0;
        int64_t top = -1, legal = 0;
        for (int64_t t = 0; t < length; t++) {
            sum += weight[t];
            legal += isfinite(logit[t]);
            if (weight[t] > heaviest) {
                heaviest = weight[t];
                top = key[t];
            }
            if (t > 0 && position[t] < position[t - 1])
                fail_msg("positions fall at row %d", (int)t);
        }
        const ats_route_stats *route = &set.variants[0].route;
        const ats_bars bars = ats_bars_of(ATS_BAR_DOUBLE, 20, 0);
        assert_near(lse, route->lse[row], 0);
        assert_near(sum, 1, bars.mass);
        assert_near(heaviest, route->max_weight[row], 0);
        assert_int_equal(top, route->top_index[row * p.top_k]);
        assert_int_equal(legal, route->legal_keys[row]);
    }
    ats_arena_fini(&arena);
}

static void test_row_faults(void **state)
{
    (void)state;
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_err err = {.code = ATS_OK};
    ats_problem p;
    problem_make(&arena, &SPEC, &p);
    double lse;
    assert_int_equal(ats_reference_row(&p, NULL, 4, NULL, NULL, NULL, NULL, &lse, &err),
                     ATS_E_INTERNAL);
    assert_says(err.text, "row 4");
    p.contract.temperature = -1;
    assert_int_equal(ats_reference_row(&p, NULL, 0, NULL, NULL, NULL, NULL, &lse, &err),
                     ATS_E_INPUT);
    assert_says(err.text, "temperature");
    ats_arena_fini(&arena);
}

static void test_large_problems_are_refused(void **state)
{
    (void)state;
    ats_err err = {.code = ATS_OK};
    const ats_problem p = {.contract = {.scale = 1, .temperature = 1},
                           .n_keys = (int64_t)1 << 20,
                           .d_qk = 128,
                           .d_v = 128,
                           .n_rows = 257,
                           .n_probes = 257,
                           .top_k = 8};
    assert_int_equal(ats_backend_reference.supports(&p, &err), ATS_E_UNSUPPORTED);
    assert_says(err.text, "reference", "257", "1048576", "use cpu");
    assert_true(ats_backend_reference.workspace_bytes(&p, 10) > (size_t)1 << 20);
}

static ats_code refuse(void *ctx, int64_t variant, int worker, const ats_stats *base,
                       const ats_stats *stats, ats_err *err)
{
    (void)worker;
    (void)base;
    (void)stats;
    return variant == *(const int64_t *)ctx ? ats_fail(err, ATS_E_IO, "the disk is full") : ATS_OK;
}

/* What the caller reports from emit comes back unchanged, from the base as from a variant. */
static void test_emit_failure_is_returned(void **state)
{
    (void)state;
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_problem p;
    ats_edit edits[3];
    problem_make(&arena, &SPEC, &p);
    edits_make(&arena, &p, 1, 3, edits);
    for (int64_t failing = -1; failing < 3; failing++) {
        ats_err err = {.code = ATS_OK};
        assert_int_equal(ats_backend_reference.evaluate(&p, edits, 3, refuse, &failing, &err),
                         ATS_E_IO);
        assert_says(err.text, "the disk is full");
    }
    ats_arena_fini(&arena);
}

/* A sharp route keeps the digits of its small entropy: 1 - w of 1e-14 and less. */
static void test_entropy_of_a_sharp_route(void **state)
{
    (void)state;
    static const float Q = 1, K[] = {0, 40}, V[] = {0, 0};
    static const int64_t POSITIONS[] = {0, 0};
    ats_arena arena;
    ats_arena_init(&arena, false);
    const ats_problem p = {.contract = {.scale = 1, .temperature = 1},
                           .n_keys = 2,
                           .d_qk = 1,
                           .d_v = 1,
                           .k = K,
                           .v = V,
                           .key_pos = POSITIONS,
                           .n_rows = 1,
                           .n_probes = 1,
                           .q = &Q,
                           .q_pos = POSITIONS,
                           .top_k = 1};
    stats_set set;
    evaluate_all(&arena, &ats_backend_reference, &p, NULL, 0, &set);
    const double small =
        exp(-40.0); /* H = w (40 + log1p w) + log1p(w) / (1 + w), to first order 41 w */
    assert_near(set.base.route.entropy[0], 41 * small, 1e-12 * small);
    ats_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row_agrees_with_statistics),
        cmocka_unit_test(test_row_faults),
        cmocka_unit_test(test_large_problems_are_refused),
        cmocka_unit_test(test_emit_failure_is_returned),
        cmocka_unit_test(test_entropy_of_a_sharp_route),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What `bench` measures is what it says: the plain pass gives the output and log-sum-exp of the
 * real one, edits are valid and alternate, verdicts follow the bars. Times are never tested. */
#include "support/check.h"

#include <math.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/plain.h"
#include "kernels/bars.h"

typedef struct kept {
    const ats_problem *problem;
    double *lse;
    float *output;
} kept;

static ats_code keep(void *ctx, int64_t variant, int worker, const ats_stats *base,
                     const ats_stats *stats, ats_err *err)
{
    const kept *k = ctx;
    (void)worker;
    (void)stats;
    (void)err;
    if (variant >= 0) return ATS_OK;
    memcpy(k->lse, base->route.lse, (size_t)k->problem->n_rows * sizeof *k->lse);
    memcpy(k->output, base->route.output,
           (size_t)(k->problem->n_rows * k->problem->d_v) * sizeof *k->output);
    return ATS_OK;
}

static void plain_pass_agrees(void **state)
{
    (void)state;
    const ats_bench_shape shapes[] = {{700, 2, 40, 32, ATS_BF16}, {300, 1, 3, 16, ATS_F32}};
    for (int i = 0; i < 2; i++) {
        ats_arena arena;
        ats_arena_init(&arena, false);
        ats_err err = {.code = ATS_OK};
        ats_problem p;
        ats_bench_plain plain;
        const ats_backend *reference = NULL;
        assert_ok(ats_bench_problem(&arena, &shapes[i], &p, &err), &err);
        assert_ok(ats_bench_plain_new(&arena, &p, &plain, &err), &err);
        assert_ok(ats_bench_plain_run(&plain, &err), &err);
        kept k = {.problem = &p};
        assert_ok(ATS_NEW(&arena, p.n_rows, &k.lse, &err), &err);
        assert_ok(ATS_NEW(&arena, p.n_rows * p.d_v, &k.output, &err), &err);
        assert_ok(ats_backend_find("reference", &reference, &err), &err);
        assert_ok(reference->evaluate(&p, NULL, 0, keep, &k, &err), &err);
        for (int64_t row = 0; row < p.n_rows; row++) {
            double q = 0, largest = 0, error = 0, size = 0;
            for (int64_t j = 0; j < p.d_qk; j++)
                q += (double)p.q[row * p.d_qk + j] * (double)p.q[row * p.d_qk + j];
            for (int64_t key = 0; key < p.n_keys; key++) {
                double sum = 0;
                for (int64_t j = 0; j < p.d_qk; j++) {
                    const double x = (double)ats_load(p.k_dtype, p.k, key * p.d_qk + j);
                    sum += x * x;
                }
                largest = sum > largest ? sum : largest;
            }
            const double bound = ats_bar_bound(p.contract.scale, sqrt(q), sqrt(largest), 0, 0, 1);
            const ats_bars bars = ats_bars_of(ATS_BAR_FP32, bound, 1);
            assert_true(fabs(plain.lse[row] - k.lse[row]) <= bars.lse);
            for (int64_t j = 0; j < p.d_v; j++) {
                const double have = (double)plain.output[row * plain.width + j];
                const double want = (double)k.output[row * p.d_v + j];
                error += (have - want) * (have - want);
                size += want * want;
            }
            assert_true(sqrt(error) <= 4 * bars.output * sqrt(size));
        }
        ats_arena_fini(&arena);
    }
}

static void edits_alternate(void **state)
{
    (void)state;
    enum { COUNT = 9, ROWS = 16 };
    const ats_bench_shape shape = {500, 1, 2, 16, ATS_F16};
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_err err = {.code = ATS_OK};
    ats_problem p;
    ats_edit edits[COUNT];
    assert_ok(ats_bench_problem(&arena, &shape, &p, &err), &err);
    assert_ok(ats_problem_check(&p, &err), &err);
    assert_ok(ats_bench_edits(&arena, &p, COUNT, ROWS, edits, &err), &err);
    for (int i = 0; i < COUNT; i++) {
        assert_ok(ats_edit_check(&p, &edits[i], &err), &err);
        assert_int_equal(edits[i].side.count, i % 2 == 0 ? ROWS : 0);
        const ats_segment *middle = &edits[i].segments[1];
        assert_int_equal(middle->kind, i % 2 == 0 ? ATS_SEG_ROWS : ATS_SEG_HIDE);
        assert_int_equal(middle->stop - middle->start, ROWS);
    }
    ats_arena_fini(&arena);
}

static void verdicts_follow_the_bars(void **state)
{
    (void)state;
    ats_bench_row row = {.must = 70, .goal = 90, .value = 69.9};
    assert_string_equal(ats_bench_verdict(&row), "missed");
    row.value = 70;
    assert_string_equal(ats_bench_verdict(&row), "must");
    row.value = 90;
    assert_string_equal(ats_bench_verdict(&row), "goal");
    row = (ats_bench_row){.must = 15, .goal = 3, .value = 15.1, .at_most = true};
    assert_string_equal(ats_bench_verdict(&row), "missed");
    row.value = 15;
    assert_string_equal(ats_bench_verdict(&row), "must");
    row.value = -1;
    assert_string_equal(ats_bench_verdict(&row), "goal");
    row.must = (double)NAN;
    assert_string_equal(ats_bench_verdict(&row), "");
}

static ats_code count(void *ctx, ats_err *err)
{
    (void)err;
    ++*(int *)ctx;
    return ATS_OK;
}

static ats_code refuse(void *ctx, ats_err *err)
{
    (void)ctx;
    return ats_fail(err, ATS_E_INPUT, "no");
}

static void things_take_turns(void **state)
{
    (void)state;
    ats_bench bench;
    ats_err err = {.code = ATS_OK};
    int a = 0, b = 0;
    ats_bench_init(&bench, true);
    bench.seconds = 0;
    ats_bench_timed things[] = {{count, &a, 0}, {count, &b, 0}};
    assert_ok(ats_bench_time(&bench, things, 2, &err), &err);
    assert_int_equal(a, 3);
    assert_int_equal(b, 3);
    assert_true(things[0].best >= 0 && things[0].best < 1);
    things[1].run = refuse;
    assert_int_equal(ats_bench_time(&bench, things, 2, &err), ATS_E_INPUT);
    ats_bench_fini(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_pass_agrees),
        cmocka_unit_test(edits_alternate),
        cmocka_unit_test(verdicts_follow_the_bars),
        cmocka_unit_test(things_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

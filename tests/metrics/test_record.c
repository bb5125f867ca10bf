/* The recorder puts every number where the result file expects it. */
#include <math.h>
#include <string.h>

#include "metrics/record.h"
#include "metrics/tiny.h"
#include "kernels/reference.h"
#include "support/check.h"

static const double bar = 1e-6;

/* Two heads of two probes; the second head's first probe stands before every key. */
static const float logits[] = {0, 1, 2, 0.5F}, values[] = {1, 0, 0, 1, 1, 1, -1, 0};
static const float q[] = {1, 0.5F, 1, 2};
static const int64_t q_pos[] = {100, 100, -5, 100};
static const int64_t axis_heads[] = {2, 0}; /* of three */
static const float w_o[] = {1, 0, 2, 0, 3, 0}, readouts[] = {0, 1, 0, 1, 0, 1};
static const float *const w_o_heads[] = {w_o, w_o};
enum { CASES = 3, HEADS = 3, PROBES = 4, SPANS = TINY_REGIONS + 1, MODEL = 3 };

typedef struct job {
    const ats_problem *problem;
    ats_recorder *recorder;
    const ats_stats *base;
} job;

static ats_code emit(void *ctx, int64_t variant, int worker, const ats_stats *base,
                     const ats_stats *stats, ats_err *err)
{
    (void)worker;
    const job *j = ctx;
    const ats_record_place place = {.case_index = variant < 0 ? -1 : variant + 1,
                                    .head = axis_heads,
                                    .w_o = w_o_heads,
                                    .d_model = MODEL,
                                    .readouts = readouts};
    return ats_record(j->recorder, &place, j->problem, base, stats, err);
}

static void record(ats_arena *arena, bool detail_head, ats_recorder *recorder)
{
    static ats_problem problem;
    ats_edit edit;
    ats_err err = {.code = ATS_OK};
    int64_t n = 0;
    const ats_metric *const *all = ats_metrics(&n);
    const float in = 1;
    const ats_record_shape shape = {.n_cases = CASES,
                                    .n_heads = HEADS,
                                    .n_probes = PROBES,
                                    .n_spans = SPANS,
                                    .n_top = TINY_TOP,
                                    .n_readouts = 2,
                                    .d_v = 2,
                                    .target_span = TINY_GOLD,
                                    .detail_head = detail_head};
    tiny_problem(logits, values, 4, &problem);
    problem.n_rows = 4;
    problem.n_probes = 2;
    problem.q = q;
    problem.q_pos = q_pos;
    tiny_edit(arena, &problem, 0, 0, &in, values, 1, &edit);
    assert_ok(ats_recorder_new(arena, &shape, all, n, recorder, &err), &err);
    job j = {.problem = &problem, .recorder = recorder};
    assert_ok(ats_backend_reference.evaluate(&problem, &edit, 1, emit, &j, &err), &err);
}

static int64_t metric_index(const char *name)
{
    int64_t n = 0;
    const ats_metric *const *all = ats_metrics(&n);
    for (int64_t i = 0; i < n; i++)
        if (strcmp(all[i]->name, name) == 0) return i;
    fail_msg("no metric %s", name);
    return -1;
}

static double at(const ats_recorder *r, const char *name, int64_t cell, int64_t x)
{
    const int64_t m = metric_index(name), width = ats_metric_width(r->metrics[m], &r->shape);
    if (r->metrics[m]->integer) return r->integers[m][cell * width + x];
    return (double)r->values[m][cell * width + x];
}

static double log_mass_shift(double query)
{
    double before = 0;
    for (int i = 0; i < 4; i++) before += exp(query * (double)logits[i]);
    return log(before) - log(before + exp(query));
}

static void test_cells_of_probes(void **state)
{
    (void)state;
    ats_arena arena = {.blocks = NULL};
    ats_recorder r;
    record(&arena, false, &r);
    const int64_t first = (1 * HEADS + 2) * PROBES, second = (1 * HEADS + 0) * PROBES;
    assert_near(at(&r, "log_mass_shift", first, TINY_GOLD), log_mass_shift(1), bar);
    assert_near(at(&r, "log_mass_shift", first + 1, TINY_GOLD), log_mass_shift(0.5), bar);
    assert_near(at(&r, "log_mass_shift", second + 1, TINY_GOLD), log_mass_shift(2), bar);
    assert_true(isnan(at(&r, "log_mass_shift", second, TINY_GOLD)));
    assert_true(isnan(at(&r, "lse", first + 2, 0)));
    assert_true(isnan(at(&r, "mass", first, TINY_ABSENT)));
    assert_near(at(&r, "mass", first, SPANS - 1), exp(1) / (1 + 2 * exp(1) + exp(2) + exp(0.5)),
                bar);
    assert_near(at(&r, "top_key", first, 0), 2, 0);
    assert_near(at(&r, "top_key", second, 0), ATS_INTEGER_UNDEFINED, 0);
    assert_near(at(&r, "topk_index", first, 2), -2, 0);
    assert_near(at(&r, "topk_index", second, 0), -1, 0);
    /* own_logit_shift + competition_shift in float32 */
    for (int64_t s = 0; s < TINY_REGIONS; s++) {
        if (s == TINY_ABSENT) continue;
        assert_near(at(&r, "log_mass_shift", first, s),
                    at(&r, "own_logit_shift", first, s) + at(&r, "competition_shift", first, 0),
                    2e-7);
    }
    assert_int_equal(r.undefined[0], 0);
    assert_int_equal(r.undefined[1], 1);
    assert_true(isnan(at(&r, "tv", (0 * HEADS + 2) * PROBES, 0))); /* no such case */
    assert_null(r.worst_probe);
    ats_arena_fini(&arena);
}

static void test_base_residual_and_readouts(void **state)
{
    (void)state;
    ats_arena arena = {.blocks = NULL};
    ats_recorder r;
    record(&arena, false, &r);
    const double z = 1 + exp(1) + exp(2) + exp(0.5), w = exp(1) / z;
    const int64_t m = metric_index("mass"), n = metric_index("contribution_norm_resid");
    assert_near((double)r.base_values[m][2 * PROBES * SPANS + TINY_GOLD], w, bar);
    assert_near((double)r.base_values[m][2 * PROBES * SPANS + SPANS - 1], 0, 0);
    assert_near((double)r.base_values[n][2 * PROBES * SPANS + TINY_GOLD], 3 * w, bar);
    /* gold's value is (0, 1): w * 3 along model axis 1, nothing along axes 0 and 2 */
    const float *along = r.base_values[metric_index("readout")] + 2 * PROBES * 2 * SPANS;
    assert_near((double)along[TINY_GOLD], 3 * w, bar);
    assert_near((double)along[SPANS + TINY_GOLD], 0, bar);
    /* sink's value is (1, 0): (1 + 2) along the second readout */
    assert_near((double)along[SPANS + TINY_SINK], 3 / z, bar);
    assert_null(r.base_values[metric_index("tv")]);
    ats_arena_fini(&arena);
}

static void test_head_detail_averages_defined_probes(void **state)
{
    (void)state;
    ats_arena arena = {.blocks = NULL}, other = {.blocks = NULL};
    ats_recorder r, full;
    record(&arena, true, &r);
    record(&other, false, &full);
    const int64_t first = 1 * HEADS + 2, second = 1 * HEADS + 0;
    const int64_t cells = (1 * HEADS + 2) * PROBES;
    assert_near(at(&r, "log_mass_shift", first, TINY_GOLD),
                (log_mass_shift(1) + log_mass_shift(0.5)) / 2, bar);
    assert_near(at(&r, "mass", first, TINY_GOLD),
                sqrt(at(&full, "mass", cells, TINY_GOLD) * at(&full, "mass", cells + 1, TINY_GOLD)),
                bar);
    assert_near(at(&r, "tv", first, 0),
                (at(&full, "tv", cells, 0) + at(&full, "tv", cells + 1, 0)) / 2, bar);
    assert_near(at(&r, "tv", second, 0), 1 - exp(log_mass_shift(2)), bar);
    const int64_t worst = log_mass_shift(1) < log_mass_shift(0.5) ? 0 : 1;
    assert_int_equal(r.worst_probe[first], worst);
    assert_near((double)r.worst_value[first], log_mass_shift(worst == 0 ? 1 : 0.5), bar);
    assert_near(at(&r, "topk_weight", first, 0), at(&full, "topk_weight", cells + worst, 0), bar);
    assert_int_equal(r.worst_probe[second], 1);
    assert_int_equal(r.worst_probe[1 * HEADS + 1], -1);
    assert_int_equal(r.undefined[1], 1);
    ats_arena_fini(&arena);
    ats_arena_fini(&other);
}

static void test_clear_and_order(void **state)
{
    (void)state;
    ats_arena arena = {.blocks = NULL};
    ats_recorder r;
    record(&arena, false, &r);
    ats_recorder_clear(&r);
    assert_true(isnan(at(&r, "tv", (1 * HEADS + 2) * PROBES, 0)));
    assert_near(at(&r, "top_key", (1 * HEADS + 2) * PROBES, 0), ATS_INTEGER_UNDEFINED, 0);
    assert_int_equal(r.undefined[1], 0);
    /* a head's W_O is folded with its base: a variant before it is refused */
    ats_err err = {.code = ATS_OK};
    ats_problem problem;
    ats_route_stats route = {.lse = NULL};
    double tv = 0;
    tiny_problem(logits, values, 4, &problem);
    const ats_stats base = {.route = route}, variant = {.route = route, .pair = {.tv = &tv}};
    const ats_record_place place = {
        .case_index = 1, .head = axis_heads, .w_o = w_o_heads, .d_model = MODEL};
    assert_int_equal(ats_record(&r, &place, &problem, &base, &variant, &err), ATS_E_INTERNAL);
    assert_says(err.text, "before its base");
    ats_arena_fini(&arena);
}

static void test_counting_allocates_nothing(void **state)
{
    (void)state;
    int64_t n = 0;
    const ats_metric *const *all = ats_metrics(&n);
    const ats_record_shape shape = {
        .n_cases = 100, .n_heads = 8, .n_probes = 4, .n_spans = 9, .n_top = 8, .d_v = 64};
    ats_arena count, real = {.blocks = NULL};
    ats_recorder r;
    ats_err err;
    ats_arena_init(&count, true);
    const ats_code rc = ats_recorder_new(&count, &shape, all, n, &r, &err);
    assert_ok(rc, &err);
    assert_ok(ats_recorder_new(&real, &shape, all, n, &r, &err), &err);
    assert_true(count.used == real.used);
    ats_arena_fini(&real);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells_of_probes),
        cmocka_unit_test(test_base_residual_and_readouts),
        cmocka_unit_test(test_head_detail_averages_defined_probes),
        cmocka_unit_test(test_clear_and_order),
        cmocka_unit_test(test_counting_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

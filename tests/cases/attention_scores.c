#include <math.h>

#include "base/half.h"
#include "cases/attention.h"

/* RC-03 a: raw products beyond half precision's range. */
void test_huge_half_precision_scores(void **state)
{
    (void)state;
    enum { D = 128 };
    static float q[D];
    static uint16_t k[2 * D];
    for (int j = 0; j < D; j++) {
        q[j] = 256;
        k[j] = ats_f32_to_f16(256);
        k[D + j] = ats_f32_to_f16(j == 0 ? 255.875F : 256);
    }
    static const double ZEROS[2] = {0};
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_problem p;
    stats_set set;
    scores_problem(&arena, 2, ZEROS, NULL, &p);
    p.d_qk = D;
    p.q = q;
    p.k = k;
    p.k_dtype = ATS_F16;
    p.contract.scale = 1 / sqrt((double)D);
    scores_run(&arena, &p, NULL, 0, &set);
    const ats_route_stats *route = &set.base.route;
    if (cases_exact()) {
        assert_near(weight_of(&p, route, 0, 0), 0.944192780794, 1e-9);
        assert_near(weight_of(&p, route, 0, 1), 0.055807219206, 1e-9);
    } else {
        /* fp32 logits of 741455 are 1/16 apart; the case allows 2e-3 where the difference is exact.
         */
        assert_near(weight_of(&p, route, 0, 0) + weight_of(&p, route, 0, 1), 1,
                    ats_bars_of(ATS_BAR_FP32, 741455, 0).mass);
        assert_near(route->max_weight[0], 0.944192780794, 5e-2);
    }
    assert_lse(route->lse[0], 741455.257614);
    assert_int_equal(route->top_index[0], 0);
    ats_arena_fini(&arena);
}

static void check_two(const double *scores, const double *weights, double lse)
{
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_problem p;
    stats_set set;
    scores_problem(&arena, 2, scores, NULL, &p);
    scores_run(&arena, &p, NULL, 0, &set);
    for (int64_t i = 0; i < 2; i++)
        assert_weight(weight_of(&p, &set.base.route, 0, i), weights[i], fabs(scores[0]));
    assert_lse(set.base.route.lse[0], lse);
    ats_arena_fini(&arena);
}

/* RC-03 b, c, d */
void test_scores_far_from_zero(void **state)
{
    (void)state;
    const double b[] = {-100000, -100001}, c[] = {88.8, 89.8}, d[] = {-60000, -60000 - log(2.0)};
    check_two(b, (const double[]){0.731058578630, 0.268941421370}, -99999.686738312);
    check_two(c, (const double[]){0.268941421370, 0.731058578630}, 90.113261687518);
    check_two(d, (const double[]){2.0 / 3, 1.0 / 3}, -59999.594534892);
}

/* RC-08 */
void test_cap_comes_before_the_mask(void **state)
{
    (void)state;
    static const double SCORES[] = {0.5, 3.0}, VALUES[] = {10, 20};
    static const uint8_t FIRST[] = {1, 0};
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_problem p;
    stats_set set;
    scores_problem(&arena, 2, SCORES, VALUES, &p);
    p.contract.softcap = 1;
    scores_run(&arena, &p, NULL, 0, &set);
    assert_weight(weight_of(&p, &set.base.route, 0, 0), 0.369832001306, 3);
    assert_weight(weight_of(&p, &set.base.route, 0, 1), 0.630167998694, 3);
    assert_lse(set.base.route.lse[0], 1.456823584239);
    p.keep = FIRST;
    for (int cap = 1; cap <= 50; cap += 49) {
        p.contract.softcap = cap;
        scores_run(&arena, &p, NULL, 0, &set);
        assert_near(set.base.route.max_weight[0], 1, 0);
        assert_near(weight_of(&p, &set.base.route, 0, 1), 0, 0);
        assert_near((double)set.base.route.output[0], 10, 0);
        if (cap == 1) assert_lse(set.base.route.lse[0], 0.462117157260);
    }
    ats_err err = {.code = ATS_OK};
    p.contract.softcap = -1;
    assert_int_equal(cases_backend->supports(&p, &err), ATS_E_INPUT);
    assert_says(err.text, "softcap", "-1");
    ats_arena_fini(&arena);
}

static void check_sink(const double *scores, float sink, double w0, double w1, double null,
                       double lse, double lse_keys)
{
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_problem p;
    stats_set set;
    scores_problem(&arena, 2, scores, NULL, &p);
    p.sink = &sink;
    scores_run(&arena, &p, NULL, 0, &set);
    const ats_route_stats *route = &set.base.route;
    const double largest = isfinite(sink) ? fabs((double)sink) + 2 : 2;
    assert_weight(weight_of(&p, route, 0, 0), w0, largest);
    assert_weight(weight_of(&p, route, 0, 1), w1, largest);
    assert_weight(route->null_weight[0], null, largest);
    assert_lse(route->lse[0], lse);
    assert_lse(route->lse_keys[0], lse_keys);
    const double total =
        weight_of(&p, route, 0, 0) + weight_of(&p, route, 0, 1) + route->null_weight[0];
    assert_near(total, 1, cases_exact() ? 1e-12 : 2e-6);
    ats_arena_fini(&arena);
}

/* RC-09 a, b, d, e */
void test_sink_shares(void **state)
{
    (void)state;
    static const double ZEROS[] = {0, 0}, RISING[] = {1, 2};
    check_sink(ZEROS, 0, 1.0 / 3, 1.0 / 3, 1.0 / 3, 1.098612288668, 0.693147180560);
    check_sink(ZEROS, 100, 3.72007597602e-44, 3.72007597602e-44, 1, 100, 0.693147180560);
    check_sink(ZEROS, -INFINITY, 0.5, 0.5, 0, 0.693147180560, 0.693147180560);
    check_sink(RISING, 0, 0.244728471055, 0.665240955775, 0.090030573170, 2.407605964444,
               2.313261687518);
}

/* RC-09 c: no keys, and two hidden ones. */
void test_sink_without_keys(void **state)
{
    (void)state;
    static const double ZEROS[] = {0, 0};
    static const uint8_t NONE[] = {0, 0};
    static const float SINK = 0.5F;
    for (int hidden = 0; hidden < 2; hidden++) {
        ats_arena arena;
        ats_arena_init(&arena, false);
        ats_problem p;
        stats_set set;
        scores_problem(&arena, 2, ZEROS, NULL, &p);
        p.sink = &SINK;
        p.keep = NONE;
        p.top_k = 2;
        if (!hidden) p.n_keys = p.n_regions = 0;
        scores_run(&arena, &p, NULL, 0, &set);
        const ats_route_stats *route = &set.base.route;
        assert_near(route->lse[0], 0.5, 0);
        assert_near(route->lse_keys[0], -(double)INFINITY, 0);
        assert_near(route->null_weight[0], 1, 0);
        assert_near(route->entropy[0], 0, 0);
        assert_near(route->max_weight[0], 0, 0);
        assert_near((double)route->output[0], 0, 0);
        assert_int_equal(route->top_index[0], -1);
        for (int64_t i = 0; i < p.n_regions; i++) assert_near(weight_of(&p, route, 0, i), 0, 0);
        ats_arena_fini(&arena);
    }
}

/* RC-09 f: one sink per query head, not one for all. */
void test_sink_per_head(void **state)
{
    (void)state;
    static const double ZEROS[] = {0, 0};
    static const float SINKS[] = {0, 100};
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_problem p;
    stats_set set;
    scores_problem(&arena, 2, ZEROS, NULL, &p);
    scores_rows(&arena, &p, 2);
    p.n_probes = 1;
    p.sink = SINKS;
    scores_run(&arena, &p, NULL, 0, &set);
    assert_weight(set.base.route.null_weight[0], 1.0 / 3, 1);
    assert_weight(set.base.route.null_weight[1], 1, 100);
    assert_lse(set.base.route.lse[0], 1.098612288668);
    assert_lse(set.base.route.lse[1], 100);
    ats_arena_fini(&arena);
}

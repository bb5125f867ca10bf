#include <float.h>
#include <math.h>

#include "base/half.h"
#include "cases/attention.h"

/* RC-01 a */
void test_row_without_visible_key(void **state)
{
    (void)state;
    static const float X[] = {1, 0, 0, 1, 1, 1}, V[] = {1, 2, 3, 4, 5, 6};
    static const uint8_t KEEP[] = {1, 1, 0, 0, 0, 0, 1, 1, 1};
    static const int64_t POSITIONS[] = {0, 1, 2};
    static const ats_range RANGES[] = {{0, 1}, {1, 2}, {2, 3}};
    const ats_region regions[] = {{1, RANGES}, {1, RANGES + 1}, {1, RANGES + 2}};
    const ats_problem p = {.contract = {.scale = 1, .temperature = 1},
                           .n_keys = 3,
                           .d_qk = 2,
                           .d_v = 2,
                           .k = X,
                           .v = V,
                           .key_pos = POSITIONS,
                           .n_rows = 3,
                           .n_probes = 3,
                           .q = X,
                           .q_pos = POSITIONS,
                           .keep = KEEP,
                           .n_regions = 3,
                           .regions = regions,
                           .top_k = 3};
    static const double WEIGHTS[] = {0.731058578630, 0.268941421370, 0, 0, 0, 0, 0.211941557617,
                                     0.211941557617, 0.576116884766};
    static const double OUT[] = {1.537882842740, 2.537882842740, 0, 0,
                                 3.728350654297, 4.728350654297};
    static const double LSE[] = {1.313261687518, 0, 2.551444713932};
    static const double ENTROPY[] = {0.582203108888, 0, 0.975327829166};
    ats_arena arena;
    ats_arena_init(&arena, false);
    stats_set set;
    scores_run(&arena, &p, NULL, 0, &set);
    const ats_route_stats *route = &set.base.route;
    for (int64_t row = 0; row < 3; row += 2) {
        assert_lse(route->lse[row], LSE[row]);
        assert_lse(route->entropy[row], ENTROPY[row]);
        for (int64_t i = 0; i < 3; i++)
            assert_weight(weight_of(&p, route, row, i), WEIGHTS[3 * row + i], 2);
        for (int64_t i = 0; i < 2; i++)
            assert_value((double)route->output[2 * row + i], OUT[2 * row + i], 2);
    }
    assert_near(route->lse[1], -(double)INFINITY, 0);
    assert_int_equal(route->legal_keys[1], 0);
    assert_true(isnan(route->entropy[1]) && isnan(route->max_weight[1]));
    assert_true(isnan(route->output[2]) && isnan(route->output[3]));
    ats_arena_fini(&arena);
}

/* RC-01 b */
void test_garbage_behind_a_mask(void **state)
{
    (void)state;
    static const double SCORES[] = {1, 0, 2};
    static const uint8_t KEEP[] = {1, 0, 1};
    for (int infinite = 0; infinite < 2; infinite++) {
        ats_arena arena;
        ats_arena_init(&arena, false);
        ats_problem p;
        const double garbage = infinite ? (double)INFINITY : (double)NAN;
        const double values[] = {10, garbage, 30};
        scores_problem(&arena, 3, SCORES, values, &p);
        const float *clean = p.k;
        float k[3 * SCORE_WIDTH];
        for (int i = 0; i < 3 * SCORE_WIDTH; i++) k[i] = i / 3 == 1 ? (float)garbage : clean[i];
        p.k = k;
        p.keep = KEEP;
        stats_set set;
        scores_run(&arena, &p, NULL, 0, &set);
        const ats_route_stats *route = &set.base.route;
        assert_weight(weight_of(&p, route, 0, 0), 0.268941421370, 2);
        assert_weight(weight_of(&p, route, 0, 1), 0, 2);
        assert_weight(weight_of(&p, route, 0, 2), 0.731058578630, 2);
        assert_lse(route->lse[0], 2.313261687518);
        assert_value((double)route->output[0], 24.621171572600, 2);
        ats_arena_fini(&arena);
    }
}

/* Two planes summed in double and stored as the nearest finite float. */
static float both_planes(double m) { return (float)fmax(-(double)FLT_MAX, m + m); }

/* Every key carries both planes. In bf16 and fp32 that hides every key: an empty row, never NaN
 * that passes for a number. In fp16 the scores survive in the reference; at -131008 a float has
 * seven bits left below the point, and the bars of A = 131008 say so. */
static void check_all_masked_twice(const ats_route_stats *route, bool scores_survive)
{
    static const double WANT[] = {0.231475216501, 3.5e-10, 0.768524783149};
    assert_int_equal(route->legal_keys[0], scores_survive ? 3 : 0);
    if (!scores_survive) {
        assert_near(route->lse[0], -(double)INFINITY, 0);
        assert_true(isnan(route->max_weight[0]) && isnan(route->output[0]));
        return;
    }
    const double bar = cases_exact() ? 1e-9 : ats_bars_of(ATS_BAR_FP32, 131008, 0).mass;
    for (int64_t i = 0; i < 3; i++) {
        const int64_t key = route->top_index[i];
        assert_true(key >= 0 && key < 3);
        assert_near(route->top_weight[i], WANT[key], bar);
    }
}

/* RC-02 */
void test_two_lowest_masks(void **state)
{
    (void)state;
    static const double SCORES[] = {0.3, -20.0, 1.5};
    const double lowest[] = {-65504, (double)ats_bf16_to_f32(0xFF7F), -(double)FLT_MAX};
    for (int type = 0; type < 3; type++) {
        ats_arena arena;
        ats_arena_init(&arena, false);
        ats_problem p;
        stats_set one, all;
        const float m = both_planes(lowest[type]);
        const float some[] = {0, m, 0}, every[] = {m, m, m};
        const float *planes[] = {some};
        scores_problem(&arena, 3, SCORES, NULL, &p);
        p.bias = planes;
        scores_run(&arena, &p, NULL, 0, &one);
        assert_weight(weight_of(&p, &one.base.route, 0, 0), 0.231475216501, 20);
        assert_near(weight_of(&p, &one.base.route, 0, 1), 0, 0);
        assert_weight(weight_of(&p, &one.base.route, 0, 2), 0.768524783499, 20);
        assert_lse(one.base.route.lse[0], 1.763282467338);
        planes[0] = every;
        scores_run(&arena, &p, NULL, 0, &all);
        check_all_masked_twice(&all.base.route, type == 0);
        ats_arena_fini(&arena);
    }
}

static void check_row(const stats_set *set, int64_t row, int64_t keys, double output)
{
    assert_int_equal(set->base.route.legal_keys[row], keys);
    assert_lse(set->base.route.lse[row], log((double)keys));
    assert_value((double)set->base.route.output[row], output, 0);
}

/* RC-05: positions say where the queries stand; both alignments are data. */
void test_causal_alignment(void **state)
{
    (void)state;
    static const double ZEROS[6] = {0};
    static const int64_t TAIL[] = {3, 4}, HEAD[] = {0, 1};
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_problem p;
    stats_set set;
    scores_problem(&arena, 5, ZEROS, NULL, &p);
    scores_rows(&arena, &p, 2);
    p.contract.causal = true;
    p.q_pos = TAIL;
    scores_run(&arena, &p, NULL, 0, &set);
    check_row(&set, 0, 4, 1.5);
    check_row(&set, 1, 5, 2);
    p.q_pos = HEAD;
    scores_run(&arena, &p, NULL, 0, &set);
    check_row(&set, 0, 1, 0);
    check_row(&set, 1, 2, 0.5);
    scores_problem(&arena, 4, ZEROS, NULL, &p);
    p.contract.causal = true;
    scores_run(&arena, &p, NULL, 0, &set);
    check_row(&set, 0, 4, 1.5);
    ats_arena_fini(&arena);
}

/* RC-06 */
void test_window_counts_the_query(void **state)
{
    (void)state;
    static const double ZEROS[6] = {0};
    static const int64_t WINDOWS[] = {1, 3, 6, 100, 0}, POSITIONS[] = {0, 1, 2, 3, 4, 5};
    for (int w = 0; w < 5; w++) {
        ats_arena arena;
        ats_arena_init(&arena, false);
        ats_problem p;
        stats_set set;
        scores_problem(&arena, 6, ZEROS, NULL, &p);
        scores_rows(&arena, &p, 6);
        p.q_pos = POSITIONS;
        p.contract.causal = true;
        p.contract.window = WINDOWS[w];
        scores_run(&arena, &p, NULL, 0, &set);
        for (int64_t row = 0; row < 6; row++) {
            const int64_t width = WINDOWS[w] > 0 && WINDOWS[w] < 6 ? WINDOWS[w] : 6;
            const int64_t keys = row + 1 < width ? row + 1 : width;
            check_row(&set, row, keys, (double)row - (double)(keys - 1) / 2);
        }
        ats_arena_fini(&arena);
    }
    ats_problem p;
    ats_err err = {.code = ATS_OK};
    ats_arena arena;
    ats_arena_init(&arena, false);
    scores_problem(&arena, 6, ZEROS, NULL, &p);
    p.contract.window = -1;
    assert_int_equal(cases_backend->supports(&p, &err), ATS_E_INPUT);
    assert_says(err.text, "window", "-1");
    ats_arena_fini(&arena);
}

/* RC-07 b: a problem is one key head; every query head of its group reads that head. */
void test_key_head_serves_its_group(void **state)
{
    (void)state;
    static const double SCORE[] = {0};
    for (int g = 0; g < 4; g++) {
        ats_arena arena;
        ats_arena_init(&arena, false);
        ats_problem p;
        stats_set set;
        const double value[] = {10.0 * (g + 1)};
        scores_problem(&arena, 1, SCORE, value, &p);
        scores_rows(&arena, &p, 7);
        p.n_probes = 1;
        scores_run(&arena, &p, NULL, 0, &set);
        for (int64_t head = 0; head < 7; head++)
            assert_value((double)set.base.route.output[head], value[0], 0);
        ats_arena_fini(&arena);
    }
}

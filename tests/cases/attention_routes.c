#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/parallel.h"
#include "cases/attention.h"

/* RC-10: parts are merged in natural logs; the merge is exact to the last digits. */
void test_natural_log_and_merge(void **state)
{
    (void)state;
    static const double ZEROS[4] = {0}, VALUES[] = {1, 1, 1, 5};
    static const ats_range RANGES[] = {{0, 3}, {3, 4}};
    const ats_region parts[] = {{1, RANGES}, {1, RANGES + 1}};
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_problem p;
    stats_set set;
    scores_problem(&arena, 4, ZEROS, VALUES, &p);
    p.regions = parts;
    p.n_regions = 2;
    scores_run(&arena, &p, NULL, 0, &set);
    const ats_route_stats *route = &set.base.route;
    assert_lse(route->lse[0], 1.386294361120);
    assert_lse(route->region_lse[0], 1.098612288668);
    assert_lse(route->region_lse[1], 0);
    const double merged = log(exp(route->region_lse[0]) + exp(route->region_lse[1]));
    assert_near(merged, route->lse[0], cases_exact() ? 1e-12 : ats_bars_of(ATS_BAR_FP32, 0, 0).lse);
    assert_weight(exp(route->region_lse[0] - merged), 0.75, 0);
    assert_value((double)route->region_output[0] + (double)route->region_output[1], 2, 0);
    assert_value((double)route->output[0], 2, 0);
    ats_arena_fini(&arena);
}

/* RC-13 a */
void test_row_lengths(void **state)
{
    (void)state;
    static const int64_t COUNTS[] = {1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257};
    static const double ZEROS[257] = {0};
    for (int c = 0; c < 11; c++) {
        const int64_t n = COUNTS[c];
        ats_arena arena;
        ats_arena_init(&arena, false);
        ats_problem p;
        stats_set set;
        scores_problem(&arena, n, ZEROS, NULL, &p);
        scores_run(&arena, &p, NULL, 0, &set);
        assert_lse(set.base.route.lse[0], log((double)n));
        assert_lse(set.base.route.entropy[0], log((double)n));
        assert_weight(set.base.route.max_weight[0], 1 / (double)n, 0);
        for (int64_t i = 0; i < n; i++)
            assert_weight(weight_of(&p, &set.base.route, 0, i), 1 / (double)n, 0);
        assert_value((double)set.base.route.output[0], ((double)n - 1) / 2, 0);
        if (n == 1) assert_false(signbit(set.base.route.entropy[0]));
        ats_arena_fini(&arena);
    }
}

/* RC-13 b: width 5, values of width 3; the scale is the stored one, not a padded width's. */
void test_odd_widths(void **state)
{
    (void)state;
    static const float Q[] = {1, -1, 2, 0, 0.5F};
    static const float K[] = {1, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 1, 0, 1, 0};
    static const float V[] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    static const double WANT[] = {0.259418442422, 0.634520475431, 0.106061082147}, ZEROS[3] = {0};
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_problem p;
    stats_set set;
    scores_problem(&arena, 3, ZEROS, NULL, &p);
    p.d_qk = 5;
    p.d_v = 3;
    p.q = Q;
    p.k = K;
    p.v = V;
    p.contract.scale = 1 / sqrt(5.0);
    scores_run(&arena, &p, NULL, 0, &set);
    assert_lse(set.base.route.lse[0], 1.796526508666);
    for (int64_t i = 0; i < 3; i++) {
        assert_weight(weight_of(&p, &set.base.route, 0, i), WANT[i], 2);
        assert_value((double)set.base.route.output[i], WANT[i], 2);
    }
    ats_arena_fini(&arena);
}

/* RC-13 c, d: 4096 equal scores in 16-bit storage, and weights that bfloat16 would tie. */
void test_low_precision_sums(void **state)
{
    (void)state;
    enum { N = 4096 };
    static const double ZEROS[N] = {0};
    static const uint16_t WORDS[N * SCORE_WIDTH] = {0};
    for (int type = 0; type < 2; type++) {
        ats_arena arena;
        ats_arena_init(&arena, false);
        ats_problem p;
        stats_set set;
        scores_problem(&arena, N, ZEROS, NULL, &p);
        p.k = p.v = WORDS;
        p.k_dtype = p.v_dtype = type == 0 ? ATS_F16 : ATS_BF16;
        p.n_regions = 1;
        p.top_k = 1;
        scores_run(&arena, &p, NULL, 0, &set);
        assert_lse(set.base.route.lse[0], 8.317766166719);
        assert_weight(set.base.route.max_weight[0], 0.000244140625, 0);
        assert_near(set.base.route.sum_w2[0] * N, 1, 2 * ats_bars_of(ATS_BAR_FP32, 0, 0).mass);
        ats_arena_fini(&arena);
    }
    static const double CLOSE[] = {0, -0.001};
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_problem p;
    stats_set set;
    scores_problem(&arena, 2, CLOSE, NULL, &p);
    scores_run(&arena, &p, NULL, 0, &set);
    assert_weight(weight_of(&p, &set.base.route, 0, 0), 0.500249999979, 0);
    assert_weight(weight_of(&p, &set.base.route, 0, 1), 0.499750000021, 0);
    assert_int_equal(set.base.route.top_index[0], 0);
    ats_arena_fini(&arena);
}

/* RC-14: entropies where some weights are exactly 0. */
void test_entropy_of_zero_weights(void **state)
{
    (void)state;
    static const double ZEROS[4] = {0}, WANT[] = {0, 0.693147180560, 0, 1.386294361120};
    static const uint8_t KEEP[] = {1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 1, 1, 1, 1};
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_problem p;
    stats_set set;
    scores_problem(&arena, 4, ZEROS, NULL, &p);
    scores_rows(&arena, &p, 4);
    p.keep = KEEP;
    scores_run(&arena, &p, NULL, 0, &set);
    for (int64_t row = 0; row < 4; row++) {
        assert_lse(set.base.route.entropy[row], WANT[row]);
        assert_false(signbit(set.base.route.entropy[row]));
    }
    ats_arena_fini(&arena);
}

static ats_edit script(const ats_segment *segments, int64_t count)
{
    return (ats_edit){.n_segments = count, .segments = segments, .temperature = 1};
}

/* RC-14: P = [0.3, 0.3, 0.4] against Q = [0.5, 0.5, 0], and two routes that share nothing. */
void test_divergence_of_zero_weights(void **state)
{
    (void)state;
    const double scores[] = {log(0.3), log(0.3), log(0.4)};
    static const float ROW[SCORE_WIDTH] = {0}, VALUE = 1;
    static const int64_t POSITION = 2;
    static const ats_segment HIDE_LAST[] = {{.kind = ATS_SEG_KEEP, .stop = 2},
                                            {.kind = ATS_SEG_HIDE, .start = 2, .stop = 3}};
    static const ats_segment REPLACE_ALL[] = {{.kind = ATS_SEG_HIDE, .stop = 3},
                                              {.kind = ATS_SEG_ROWS, .stop = 1}};
    ats_edit edits[] = {script(HIDE_LAST, 2), script(REPLACE_ALL, 2)};
    edits[1].side = (ats_side){.count = 1, .k = ROW, .v = &VALUE, .position = &POSITION};
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_problem p;
    stats_set set;
    scores_problem(&arena, 3, scores, NULL, &p);
    scores_run(&arena, &p, edits, 2, &set);
    const ats_pair_stats *hidden = &set.variants[0].pair, *other = &set.variants[1].pair;
    assert_weight(hidden->js[0], 0.236452797660, 1.3);
    assert_weight(hidden->tv[0], 0.4, 1.3);
    assert_weight(hidden->removal[0], 0.4, 1.3);
    assert_near(hidden->intrusion[0], 0, 0);
    assert_near(other->js[0], 1, 1e-6);
    assert_near(other->tv[0], 1, 1e-6);
    assert_near(other->hellinger[0], 1, 1e-6);
    assert_true(isnan(other->reroute_tv[0]) && isnan(other->reroute_js[0]));
    assert_near(other->survivors[0], 0, 0);
    assert_int_equal(other->overlap_k_survivors[0], 0);
    ats_arena_fini(&arena);
}

/* RC-15 a, b */
void test_top_k_ties(void **state)
{
    (void)state;
    static const double SCORES[] = {1, 2, 5, 4, 5};
    static const double WANT[] = {0.007518790275, 0.020438190978, 0.410512039526, 0.151018939695,
                                  0.410512039526};
    static const int64_t ORDER[] = {2, 4, 3, 1, 0, -1, -1, -1}, HIDDEN[] = {4, 3, 1, 0, -1};
    static const int64_t LENGTHS[] = {1, 2, 3, 4, 5, 8};
    static const ats_segment HIDE[] = {{.kind = ATS_SEG_KEEP, .stop = 2},
                                       {.kind = ATS_SEG_HIDE, .start = 2, .stop = 3},
                                       {.kind = ATS_SEG_KEEP, .start = 3, .stop = 5}};
    const ats_edit edit = script(HIDE, 3);
    for (int l = 0; l < 6; l++) {
        const int64_t k = LENGTHS[l];
        ats_arena arena;
        ats_arena_init(&arena, false);
        ats_problem p;
        stats_set set;
        scores_problem(&arena, 5, SCORES, NULL, &p);
        p.top_k = k;
        for (int repeat = 0; repeat < 10; repeat++) {
            scores_run(&arena, &p, &edit, 1, &set);
            assert_memory_equal(set.base.route.top_index, ORDER, (size_t)k * sizeof *ORDER);
            for (int64_t i = 0; i < k && i < 5; i++)
                assert_int_equal(set.variants[0].route.top_index[i], HIDDEN[i]);
        }
        for (int64_t i = 0; i < k; i++) {
            const double weight = set.base.route.top_weight[i];
            if (i < 5) assert_weight(weight, WANT[ORDER[i]], 5);
            if (i >= 5) assert_true(isnan(weight));
        }
        ats_arena_fini(&arena);
    }
}

/* RC-15 c: the appended copy gets the same bits and counts beside its original. */
void test_appended_copy(void **state)
{
    (void)state;
    static const double SCORES[] = {2, 0, 0};
    static const float COPY[SCORE_WIDTH] = {2, 0, 0}, VALUE = 0;
    static const int64_t POSITION = 2;
    static const ats_segment APPEND[] = {{.kind = ATS_SEG_KEEP, .stop = 3},
                                         {.kind = ATS_SEG_ROWS, .stop = 1}};
    ats_edit edit = script(APPEND, 2);
    edit.side = (ats_side){.count = 1, .k = COPY, .v = &VALUE, .position = &POSITION};
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_problem p;
    stats_set set;
    scores_problem(&arena, 3, SCORES, NULL, &p);
    scores_run(&arena, &p, &edit, 1, &set);
    const ats_stats *variant = &set.variants[0];
    assert_weight(weight_of(&p, &set.base.route, 0, 0), 0.786986042162, 2);
    assert_weight(weight_of(&p, &variant->route, 0, 0), 0.440398538989, 2);
    assert_weight(weight_of(&p, &variant->route, 0, 1), 0.059601461011, 2);
    assert_int_equal(variant->route.top_index[0], 0);
    assert_int_equal(variant->route.top_index[1], -2);
    assert_memory_equal(&variant->route.top_weight[0], &variant->route.top_weight[1],
                        sizeof(double));
    assert_weight(variant->pair.intrusion[0], 0.440398538989, 2);
    assert_weight(variant->pair.intrusion[0] + weight_of(&p, &variant->route, 0, 0), 0.880797077978,
                  2);
    ats_arena_fini(&arena);
}

enum { LONG = 1000 };

/* The generator of the case: scores and values from one linear congruential sequence. */
static void long_row(double *scores, double *values)
{
    uint64_t x = 1;
    for (int i = 0; i < 2 * LONG; i++) {
        x = (1103515245 * x + 12345) % ((uint64_t)1 << 31);
        if (i < LONG) scores[i] = 8 * (double)x / 0x1p31 - 4;
        if (i >= LONG) values[i - LONG] = 2 * (double)x / 0x1p31 - 1;
    }
}

static void long_problem(ats_arena *arena, int64_t rows, stats_set *set)
{
    static double scores[LONG], values[LONG];
    static ats_problem p;
    long_row(scores, values);
    scores_problem(arena, LONG, scores, values, &p);
    p.n_regions = 1;
    p.top_k = 4;
    scores_rows(arena, &p, rows);
    /* Other rows are other queries: the first must not notice. */
    float *q = NULL;
    assert_int_equal(ATS_NEW(arena, rows * SCORE_WIDTH, &q, NULL), ATS_OK);
    for (int64_t i = 0; i < rows * SCORE_WIDTH; i++) q[i] = 1 + 0.01F * (float)(i / SCORE_WIDTH);
    p.q = q;
    scores_run(arena, &p, NULL, 0, set);
}

/* RC-16 */
void test_batch_mates_and_threads(void **state)
{
    (void)state;
    static const int64_t ROWS[] = {1, 1, 2, 7, 64};
    static const int THREADS[] = {1, 2, 8};
    ats_arena arena;
    ats_arena_init(&arena, false);
    stats_set first, other;
    long_problem(&arena, 1, &first);
    const ats_route_stats *a = &first.base.route;
    assert_lse(a->lse[0], 8.833359472487);
    assert_lse(a->entropy[0], 5.854826604966);
    assert_near((double)a->output[0], -0.023682312611, cases_exact() ? 1e-8 : 1e-6);
    assert_int_equal(a->top_index[0], 957);
    assert_weight(a->top_weight[0], 0.007889566733, 4);
    for (int i = 0; i < 5; i++)
        for (int t = 0; t < 3; t++) {
            ats_set_threads(THREADS[t]);
            long_problem(&arena, ROWS[i], &other);
            const ats_route_stats *b = &other.base.route;
            assert_memory_equal(a->lse, b->lse, sizeof *a->lse);
            assert_memory_equal(a->entropy, b->entropy, sizeof *a->entropy);
            assert_memory_equal(a->output, b->output, sizeof *a->output);
            assert_memory_equal(a->top_weight, b->top_weight, 4 * sizeof *a->top_weight);
            assert_memory_equal(a->top_index, b->top_index, 4 * sizeof *a->top_index);
        }
    ats_set_threads(0);
    ats_arena_fini(&arena);
}

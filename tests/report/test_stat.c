/* Statistics against scipy and statsmodels (fixtures/stat_values.h says how they were made), and
 * against their own definitions where those are short. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/fixtures/stat_values.h"
#include "report/stat.h"
#include "support/check.h"

#define COUNT(array) ((int64_t)(sizeof(array) / sizeof *(array)))

static ats_arena arena;
static ats_err err;

static int set_up(void **state)
{
    (void)state;
    ats_arena_init(&arena, false);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ats_arena_fini(&arena);
    return 0;
}

static void quantiles(void **state)
{
    (void)state;
    for (int64_t i = 0; i < COUNT(NORMAL_P); i++) {
        assert_near(ats_stat_normal_quantile(NORMAL_P[i]), NORMAL_Z[i],
                    1e-14 * (1 + fabs(NORMAL_Z[i])));
        assert_near(ats_stat_normal_cdf(NORMAL_Z[i]), NORMAL_P[i], 1e-11 * NORMAL_P[i]);
    }
    for (int64_t i = 0; i < COUNT(T_P); i++) {
        assert_near(ats_stat_t_quantile(T_P[i], (int64_t)T_FREEDOM[i]), T_VALUE[i],
                    1e-11 * (1 + fabs(T_VALUE[i])));
        assert_near(ats_stat_t_cdf(T_VALUE[i], (int64_t)T_FREEDOM[i]), T_P[i], 1e-12);
    }
    assert_near(ats_stat_normal_quantile(0), (double)-INFINITY, 0);
    assert_near(ats_stat_normal_quantile(1), (double)INFINITY, 0);
    assert_true(isnan(ats_stat_normal_quantile((double)NAN)));
}

static void check_rank(const double *d, int64_t n, const double *want, int64_t n_want)
{
    ats_stat_wilcoxon w;
    assert_ok(ats_stat_signed_rank_by(&arena, d, n, ATS_TEST_WILCOXON_NORMAL, &w, &err), &err);
    assert_near(w.rank_sum, want[0], 0);
    assert_near(w.p, want[1], 1e-12);
    if (n_want < 3) return;
    assert_ok(ats_stat_signed_rank_by(&arena, d, n, ATS_TEST_WILCOXON_EXACT, &w, &err), &err);
    assert_near(w.p, want[2], 1e-12);
}

static void signed_rank(void **state)
{
    (void)state;
    ats_stat_wilcoxon w;
    check_rank(RANK_PLAIN, COUNT(RANK_PLAIN), RANK_PLAIN_IS, COUNT(RANK_PLAIN_IS));
    check_rank(RANK_TIED, COUNT(RANK_TIED), RANK_TIED_IS, COUNT(RANK_TIED_IS));
    check_rank(RANK_LONG, COUNT(RANK_LONG), RANK_LONG_IS, COUNT(RANK_LONG_IS));
    check_rank(RANK_MANY, COUNT(RANK_MANY), RANK_MANY_IS, COUNT(RANK_MANY_IS));
    assert_ok(ats_stat_signed_rank(&arena, RANK_TIED, COUNT(RANK_TIED), &w, &err), &err);
    assert_int_equal(w.test, ATS_TEST_WILCOXON_EXACT);
    assert_int_equal(w.n_zero, 2);
    assert_ok(ats_stat_signed_rank(&arena, RANK_MANY, COUNT(RANK_MANY), &w, &err), &err);
    assert_int_equal(w.test, ATS_TEST_WILCOXON_NORMAL);
    static const double zeros[7] = {0};
    assert_ok(ats_stat_signed_rank(&arena, zeros, 7, &w, &err), &err);
    assert_near(w.p, 1, 0);
    assert_int_equal(w.n_zero, 7);
}

static void check_flips(const double *d, int64_t n, const double *want)
{
    const ats_stat_flips flips = ats_stat_sign_flip(d, n);
    assert_near(flips.two_sided, want[0], 1e-12);
    assert_near(flips.lower, want[1], 1e-12);
    assert_near(flips.upper, want[2], 1e-12);
}

static void sign_flip(void **state)
{
    (void)state;
    check_flips(FLIP_1, 1, FLIP_1_IS);
    check_flips(FLIP_2, 2, FLIP_2_IS);
    check_flips(FLIP_5, 5, FLIP_5_IS);
    check_flips(FLIP_11, 11, FLIP_11_IS);
    check_flips(FLIP_16, 16, FLIP_16_IS);
    const double same[6] = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1}; /* two of 64 choices */
    assert_near(ats_stat_sign_flip(same, 6).two_sided, 2.0 / 64, 1e-15);
    assert_near(ats_stat_sign_flip(same, 6).upper, 1.0 / 64, 1e-15);
    const double zeros[5] = {0};
    assert_near(ats_stat_sign_flip(zeros, 5).two_sided, 1, 0);
    assert_true(isnan(ats_stat_sign_flip(zeros, 0).two_sided));
}

static void many_tests(void **state)
{
    (void)state;
    double got[8], holed[3], p[3] = {0.02, (double)NAN, 0.03};
    assert_ok(ats_stat_holm(&arena, ADJUST_P, 8, got, &err), &err);
    assert_near_array(got, ADJUST_HOLM, 8, 1e-15);
    assert_ok(ats_stat_benjamini_hochberg(&arena, ADJUST_P, 8, got, &err), &err);
    assert_near_array(got, ADJUST_BH, 8, 1e-15);
    assert_ok(ats_stat_holm(&arena, p, 3, holed, &err), &err);
    assert_near(holed[0], 0.04, 1e-15);
    assert_true(isnan(holed[1]));
    assert_near(holed[2], 0.04, 1e-15);
}

/* Given scipy's resampled means, scipy's interval to rounding. */
static void bca_step(void **state)
{
    (void)state;
    const int64_t n = COUNT(BCA_D), n_values = COUNT(BCA_VALUES);
    double values[COUNT(BCA_VALUES)], jackknife[COUNT(BCA_D)], mean = 0, low, high;
    for (int64_t i = 0; i < n; i++) mean += BCA_D[i] / (double)n;
    for (int64_t i = 0; i < n; i++) jackknife[i] = (mean * (double)n - BCA_D[i]) / (double)(n - 1);
    memcpy(values, BCA_VALUES, sizeof values);
    ats_stat_bca_of(mean, values, n_values, jackknife, n, ats_stat_normal_quantile(0.975), &low,
                    &high);
    assert_near(low, BCA_FEW_IS[0], 1e-12);
    assert_near(high, BCA_FEW_IS[1], 1e-12);
    const double wide = sqrt((double)n / (double)(n - 1)) * ats_stat_t_quantile(0.975, n - 1);
    ats_stat_bca_of(mean, values, n_values, jackknife, n, wide, &low, &high);
    assert_near(low, BCA_FEW_IS[2], 1e-12);
    assert_near(high, BCA_FEW_IS[3], 1e-12);
}

/* With resamples of our own: within the Monte-Carlo error of 10,000 (the standard error of a 2.5 %
 * quantile is about 0.7 % of the width; four of them). */
static void bca_of_means(void **state)
{
    (void)state;
    ats_stat_bootstrap bootstrap;
    assert_ok(ats_stat_bootstrap_make(&arena, 7, COUNT(BCA_D), 10000, &bootstrap, &err), &err);
    const ats_stat_interval i = ats_stat_bca(&bootstrap, BCA_D, 0.05);
    const double bar = 0.03 * (BCA_MANY_IS[1] - BCA_MANY_IS[0]);
    assert_near(i.plain_low, BCA_MANY_IS[0], bar);
    assert_near(i.plain_high, BCA_MANY_IS[1], bar);
    assert_near(i.low, BCA_MANY_IS[2], bar);
    assert_near(i.high, BCA_MANY_IS[3], bar);
    ats_stat_bootstrap again, other;
    assert_ok(ats_stat_bootstrap_make(&arena, 7, COUNT(BCA_D), 10000, &again, &err), &err);
    const ats_stat_interval same = ats_stat_bca(&again, BCA_D, 0.05);
    assert_memory_equal(&i, &same, sizeof i);
    assert_ok(ats_stat_bootstrap_make(&arena, 8, COUNT(BCA_D), 10000, &other, &err), &err);
    assert_true(ats_stat_bca(&other, BCA_D, 0.05).low != i.low);
}

static void resamples_draw_every_cluster_alike(void **state)
{
    (void)state;
    ats_stat_bootstrap bootstrap;
    assert_ok(ats_stat_bootstrap_make(&arena, 1, 5, 10000, &bootstrap, &err), &err);
    double total[5] = {0};
    for (int64_t r = 0; r < 10000; r++) {
        double row = 0;
        for (int64_t i = 0; i < 5; i++) {
            total[i] += (double)bootstrap.counts[r * 5 + i];
            row += (double)bootstrap.counts[r * 5 + i];
        }
        assert_near(row, 5, 0);
    }
    /* a cluster's draws are binomial(50000, 1/5): four standard deviations are 358 */
    for (int64_t i = 0; i < 5; i++) assert_near(total[i], 10000, 358);
}

static void degenerate_intervals(void **state)
{
    (void)state;
    ats_stat_bootstrap bootstrap;
    const double one[1] = {0.5}, same[4] = {0.25, 0.25, 0.25, 0.25}, two[2] = {1, 3};
    assert_ok(ats_stat_bootstrap_make(&arena, 7, 1, 100, &bootstrap, &err), &err);
    assert_true(isnan(ats_stat_bca(&bootstrap, one, 0.05).low));
    assert_ok(ats_stat_bootstrap_make(&arena, 7, 4, 100, &bootstrap, &err), &err);
    assert_near(ats_stat_bca(&bootstrap, same, 0.05).low, 0.25, 0);
    assert_near(ats_stat_bca(&bootstrap, same, 0.05).high, 0.25, 0);
    assert_ok(ats_stat_bootstrap_make(&arena, 7, 2, 1000, &bootstrap, &err), &err);
    assert_near(ats_stat_bca(&bootstrap, two, 0.05).low, 1, 1e-12);
    assert_near(ats_stat_bca(&bootstrap, two, 0.05).high, 3, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles),
        cmocka_unit_test(signed_rank),
        cmocka_unit_test(sign_flip),
        cmocka_unit_test(many_tests),
        cmocka_unit_test(bca_step),
        cmocka_unit_test(bca_of_means),
        cmocka_unit_test(resamples_draw_every_cluster_alike),
        cmocka_unit_test(degenerate_intervals),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

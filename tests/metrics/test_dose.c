/* Dose curves against values worked out by hand and by brute force. */
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "metrics/dose.h"
#include "metrics/threshold.h"
#include "support/check.h"

static ats_dose_point law_point(double dose, double r, double control_r)
{
    return (ats_dose_point){.dose = dose,
                            .log_retention = -log1p(dose * r),
                            .law = -log1p(dose * r),
                            .log_odds = log(dose * r),
                            .rows = dose,
                            .margin = NAN,
                            .control_log_retention = -log1p(dose * control_r),
                            .control_log_odds = log(dose * control_r),
                            .control_rows = dose};
}

/* In overlay with one r the half dose is 1 / r whatever the grid. */
static void the_law_gives_its_half_dose_on_any_grid(void **state)
{
    (void)state;
    for (int seed = 0; seed < 200; seed++) {
        ats_rng rng = ats_rng_stream(99, "s", "v", seed, 0, "dose");
        const double r = exp(-4 * ats_rng_unit(&rng)), control = r * ats_rng_unit(&rng);
        ats_dose_point points[12];
        double work[48], dose = (0.05 + 0.05 * ats_rng_unit(&rng)) / r;
        for (int i = 0; i < 12; i++) {
            points[(i * 5) % 12] = law_point(dose, r, control);
            dose *= 1.5 + 2 * ats_rng_unit(&rng);
        }
        const ats_dose_summary s = ats_dose_summarise(points, 12, 1, work);
        assert_int_equal(s.half_dose_censored, ATS_CENSORED_NOT);
        assert_near(s.half_dose * r, 1, 1e-9);
        assert_near(s.row_tolerance * r, 1, 1e-9);
        assert_near(s.competition_strength, log(r / control), 1e-9);
        assert_near(s.excess, 0, 1e-15);
        assert_int_equal(s.doses, 12);
    }
}

static void a_grid_that_never_crosses_is_censored(void **state)
{
    (void)state;
    ats_dose_point points[3];
    double work[12];
    for (int i = 0; i < 3; i++) points[i] = law_point(pow(2, i), 0.01, 0.001);
    ats_dose_summary s = ats_dose_summarise(points, 3, 1, work);
    assert_int_equal(s.half_dose_censored, ATS_CENSORED_RIGHT);
    assert_near(s.half_dose, 4, 0);
    for (int i = 0; i < 3; i++) points[i] = law_point(pow(2, i), 10, 10);
    s = ats_dose_summarise(points, 3, 1, work);
    assert_int_equal(s.half_dose_censored, ATS_CENSORED_LEFT);
    assert_near(s.half_dose, 1, 0);
    s = ats_dose_summarise(points, 0, 1, work);
    assert_true(isnan(s.half_dose) && isnan(s.competition_strength) && isnan(s.breakdown_dose));
}

/* Pools 0.9, (0.3 0.5 -> 0.4), 0.1: the crossing lies between doses 1 and 2. */
static void a_bump_is_pooled_before_the_crossing_is_read(void **state)
{
    (void)state;
    const double dose[] = {1, 2, 4, 8}, value[] = {0.9, 0.3, 0.5, 0.1};
    ats_censoring censored;
    const double x0 = log(0.9 / 0.1), x1 = log(0.4 / 0.6);
    const double want = exp(log(2) * x0 / (x0 - x1));
    assert_near(ats_dose_crossing(dose, value, 4, 0.5, &censored), want, 1e-12);
    assert_int_equal(censored, ATS_CENSORED_NOT);
}

/* Antitonic regression by definition: the falling sequence of least squares, searched by coordinate
 * descent on random data, crosses where the product says. */
static void pooling_is_least_squares(void **state)
{
    (void)state;
    for (int seed = 0; seed < 50; seed++) {
        ats_rng rng = ats_rng_stream(5, "s", "v", seed, 0, "pool");
        double y[6], dose[6];
        for (int i = 0; i < 6; i++) {
            y[i] = 0.05 + 0.9 * ats_rng_unit(&rng);
            dose[i] = i;
        }
        /* Dykstra's alternating projections on the half-spaces x[i] >= x[i + 1]. */
        double p[5] = {0}, z[6];
        for (int i = 0; i < 6; i++) z[i] = y[i];
        for (int sweep = 0; sweep < 3000; sweep++)
            for (int i = 0; i < 5; i++) {
                const double a = z[i] - p[i], b = z[i + 1] + p[i];
                const double shift = a < b ? (b - a) / 2 : 0;
                z[i] = a + shift;
                z[i + 1] = b - shift;
                p[i] = shift;
            }
        ats_censoring censored;
        const double got = ats_dose_crossing(dose, y, 6, 0.5, &censored);
        double want = 5;
        int flag = z[0] < 0.5 ? ATS_CENSORED_LEFT : ATS_CENSORED_RIGHT;
        if (flag == ATS_CENSORED_LEFT) want = 0;
        for (int i = 1; i < 6 && flag == ATS_CENSORED_RIGHT; i++)
            if (z[i] < 0.5) {
                const double l0 = log(z[i - 1] / (1 - z[i - 1])), l1 = log(z[i] / (1 - z[i]));
                want = i - 1 + l0 / (l0 - l1);
                flag = ATS_CENSORED_NOT;
            }
        assert_int_equal(censored, flag);
        assert_near(got, want, 1e-6);
    }
}

static void breakdown_is_the_first_dose_below_zero(void **state)
{
    (void)state;
    ats_dose_point points[3];
    double work[12];
    const double margin[] = {2, 0.5, -0.25};
    for (int i = 0; i < 3; i++) {
        points[i] = law_point(pow(3, i), 0.1, 0.1);
        points[i].margin = margin[i];
    }
    ats_dose_summary s = ats_dose_summarise(points, 3, 3, work);
    assert_near(s.breakdown_dose, 9, 0);
    assert_int_equal(s.breakdown_dose_censored, ATS_CENSORED_NOT);
    s = ats_dose_summarise(points, 2, 3, work);
    assert_near(s.breakdown_dose, 3, 0);
    assert_int_equal(s.breakdown_dose_censored, ATS_CENSORED_RIGHT);
    s = ats_dose_summarise(points, 2, -0.1, work);
    assert_near(s.breakdown_dose, 0, 0);
    assert_int_equal(s.breakdown_dose_censored, ATS_CENSORED_LEFT);
}

/* Two replicates at dose 2: odds are averaged, logs of retention are averaged. */
static void replicates_are_pooled(void **state)
{
    (void)state;
    ats_dose_point points[2] = {law_point(2, 1, 1), law_point(2, 3, 1)};
    double work[8];
    points[0].log_retention = -1;
    points[1].log_retention = -3;
    const ats_dose_summary s = ats_dose_summarise(points, 2, 1, work);
    assert_int_equal(s.doses, 1);
    assert_near(s.row_tolerance, 1 / 2.0, 1e-12);
    assert_near(s.competition_strength, log(2), 1e-12);
    assert_near(s.excess, exp(-2) - exp(-(log(3) + log(7)) / 2), 1e-12);
}

/* Freireich's remission times under 6-MP: 21 patients, median 23 weeks, 95 % interval from 16 on
 * (log-log: 13 to open), the classical example. */
static void kaplan_meier_is_the_textbooks(void **state)
{
    (void)state;
    const double value[] = {6,  6,  6,  6,  7,  9,  10, 10, 11, 13, 16,
                            17, 19, 20, 22, 23, 25, 32, 32, 34, 35};
    const int8_t censored[] = {0, 0, 0, 1, 0, 1, 0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1};
    int64_t work[21];
    const ats_dose_median m = ats_dose_kaplan_meier(value, censored, 21, work);
    assert_near(m.median, 23, 0);
    assert_int_equal(m.censored, ATS_CENSORED_NOT);
    assert_near(m.low, 13, 0);
    assert_true(isinf(m.high));
    assert_int_equal(m.n_right, 12);
}

static void a_median_is_never_the_mean_of_what_was_reached(void **state)
{
    (void)state;
    const double value[] = {16, 16, 16, 3, NAN};
    const int8_t right[] = {1, 1, 1, 0, 0}, left[] = {-1, -1, -1, 0, 0};
    const double low[] = {1, 1, 1, 3, NAN};
    int64_t work[5];
    ats_dose_median m = ats_dose_kaplan_meier(value, right, 5, work);
    assert_near(m.median, 16, 0);
    assert_int_equal(m.censored, ATS_CENSORED_RIGHT);
    assert_int_equal(m.n_undefined, 1);
    m = ats_dose_kaplan_meier(low, left, 5, work);
    assert_near(m.median, 1, 0);
    assert_int_equal(m.censored, ATS_CENSORED_LEFT);
    assert_near(m.low, 0, 0);
    m = ats_dose_kaplan_meier(value + 4, right, 1, work);
    assert_true(isnan(m.median));
}

/* Brute force: insert rows one by one until the old mass is halved. */
static void tolerance_is_where_brute_force_halves(void **state)
{
    (void)state;
    for (int seed = 0; seed < 50; seed++) {
        ats_rng rng = ats_rng_stream(17, "s", "v", seed, 0, "tolerance");
        const double lse = 3 + 2 * ats_rng_normal(&rng), z = lse - 1 - 4 * ats_rng_unit(&rng);
        const double tolerance = ats_threshold_tolerance(0.5, lse, z);
        int64_t n = 0;
        double sum = exp(lse);
        while (exp(lse) / sum > 0.5) {
            sum += exp(z);
            n++;
        }
        assert_true((double)n >= tolerance - 1e-6 && (double)n < tolerance + 1 + 1e-6);
    }
}

/* Brute force: the norm is raised in small steps until the key holds half of the softmax. */
static void capture_is_where_brute_force_captures(void **state)
{
    (void)state;
    for (int seed = 0; seed < 60; seed++) {
        ats_rng rng = ats_rng_stream(23, "s", "v", seed, 0, "capture");
        const double cap = seed % 3 == 0 ? 0 : 4 + 6 * ats_rng_unit(&rng);
        const double tau = 0.5 + ats_rng_unit(&rng), x = 0.2 + 2 * ats_rng_unit(&rng);
        double others = 0;
        for (int i = 0; i < 40; i++) others += exp(1.5 * ats_rng_normal(&rng));
        const double z = (cap > 0 ? cap * tanh(x / cap) : x) / tau;
        const double got = ats_threshold_capture(0.5, cap, tau, z, log(others + exp(z)));
        double low = 0, high = 1e4;
        for (int step = 0; step < 200; step++) {
            const double m = (low + high) / 2;
            const double logit = (cap > 0 ? cap * tanh(m * x / cap) : m * x) / tau;
            *(exp(logit) >= others ? &high : &low) = m;
        }
        if (high > 9e3)
            assert_true(isinf(got));
        else
            assert_near(got / high, 1, 1e-9);
    }
    assert_true(isinf(ats_threshold_capture(0.5, 0, 1, -0.5, 3)));
    assert_true(isinf(ats_threshold_capture(0.5, 2, 1, 1, 5)));
    assert_near(ats_threshold_capture(0.5, 0, 1, 0.5, log(exp(0.5) + 0.25)), 0, 0);
}

typedef struct flip {
    double at;
    int64_t calls;
} flip;

static ats_code holds(void *ctx, double dose, bool *out, ats_err *err)
{
    flip *f = ctx;
    (void)err;
    f->calls++;
    *out = dose < f->at;
    return ATS_OK;
}

static void bisection_finds_every_integer_flip(void **state)
{
    (void)state;
    ats_err err = {.code = ATS_OK};
    ats_breakdown b;
    for (int64_t at = 2; at <= 100; at++) {
        flip f = {.at = (double)at};
        assert_ok(ats_breakdown_search(1, 100, true, 0, holds, &f, &b, &err), &err);
        assert_near(b.dose, (double)at, 0);
        assert_near(b.held, (double)(at - 1), 0);
        assert_int_equal(b.censored, 0);
        assert_int_equal(b.searched, f.calls);
        assert_true(f.calls <= 9);
    }
    flip never = {.at = INFINITY}, always = {.at = 0};
    assert_ok(ats_breakdown_search(1, 64, true, 0, holds, &never, &b, &err), &err);
    assert_int_equal(b.censored, 1);
    assert_near(b.dose, 64, 0);
    assert_ok(ats_breakdown_search(1, 64, true, 0, holds, &always, &b, &err), &err);
    assert_int_equal(b.censored, -1);
    flip real = {.at = 0.3217};
    assert_ok(ats_breakdown_search(1e-3, 10, false, 1e-4, holds, &real, &b, &err), &err);
    assert_true(b.held < 0.3217 && b.dose >= 0.3217 && b.dose / b.held <= 1.0001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_law_gives_its_half_dose_on_any_grid),
        cmocka_unit_test(a_grid_that_never_crosses_is_censored),
        cmocka_unit_test(a_bump_is_pooled_before_the_crossing_is_read),
        cmocka_unit_test(pooling_is_least_squares),
        cmocka_unit_test(breakdown_is_the_first_dose_below_zero),
        cmocka_unit_test(replicates_are_pooled),
        cmocka_unit_test(kaplan_meier_is_the_textbooks),
        cmocka_unit_test(a_median_is_never_the_mean_of_what_was_reached),
        cmocka_unit_test(tolerance_is_where_brute_force_halves),
        cmocka_unit_test(capture_is_where_brute_force_captures),
        cmocka_unit_test(bisection_finds_every_integer_flip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <math.h>

#include "metrics/association.h"
#include "support/check.h"

static ats_association of(int64_t n, const double *x, const double *y)
{
    ats_arena arena = {.blocks = NULL};
    ats_err err = {.text = ""};
    ats_association out = {.n = -1};
    assert_int_equal(ats_associate(&arena, n, x, y, &out, &err), ATS_OK);
    ats_arena_fini(&arena);
    return out;
}

/* numpy: corrcoef of the mean ranks, and polyfit, of
 * x = [1, 2, 2, 5, 9], y = [0.5, 3, 1, 4, 3]. */
static void test_ties_share_their_rank(void **state)
{
    (void)state;
    const double x[] = {1, 2, 2, 5, 9}, y[] = {0.5, 3, 1, 4, 3};
    const ats_association a = of(5, x, y);
    assert_int_equal(a.n, 5);
    assert_near(a.rank_correlation, 0.7631578947368421, 1e-14);
    assert_near(a.slope, 0.2757009345794392, 1e-14);
    assert_near(a.mean_x, 3.8, 1e-14);
    assert_near(a.mean_error, (0.5 + 1 + 1 + 1 + 6) / 5, 1e-14);
}

static void test_what_is_no_number_stays_out(void **state)
{
    (void)state;
    const double x[] = {1, (double)NAN, 2, 3, 4}, y[] = {2, 5, 4, 6, -(double)INFINITY};
    const ats_association a = of(5, x, y);
    assert_int_equal(a.n, 3);
    assert_near(a.slope, 2, 1e-14);
    assert_near(a.rank_correlation, 1, 1e-14);
}

static void test_nothing_to_say(void **state)
{
    (void)state;
    const double x[] = {1, 1, 1}, y[] = {1, 2, 3};
    const ats_association a = of(3, x, y), none = of(0, x, y), two = of(2, y, x);
    assert_true(isnan(a.slope));
    assert_true(isnan(a.rank_correlation));
    assert_int_equal(none.n, 0);
    assert_true(isnan(none.mean_error));
    assert_true(isnan(two.rank_correlation));
    assert_near(two.slope, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ties_share_their_rank),
        cmocka_unit_test(test_what_is_no_number_stays_out),
        cmocka_unit_test(test_nothing_to_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

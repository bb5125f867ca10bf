/* Which keys a position may see. RC-05 and RC-06: alignment by position, window width. */
#include "support/check.h"

#include "base/contract.h"

static int64_t visible(const ats_contract *contract, int64_t pos_q, int64_t n)
{
    int64_t count = 0;
    for (int64_t k = 0; k < n; k++) count += ats_legal_position(contract, pos_q, k);
    return count;
}

static void window_counts_the_own_position(void **state)
{
    (void)state;
    static const int64_t three[6] = {1, 2, 3, 3, 3, 3};
    ats_contract c = {.causal = true, .window = 3};
    for (int64_t q = 0; q < 6; q++) assert_int_equal(visible(&c, q, 6), three[q]);
    c.window = 1;
    for (int64_t q = 0; q < 6; q++) assert_int_equal(visible(&c, q, 6), 1);
    c.window = 100;
    for (int64_t q = 0; q < 6; q++) assert_int_equal(visible(&c, q, 6), q + 1);
}

static void both_directions(void **state)
{
    (void)state;
    const ats_contract c = {.causal = false, .window = 2};
    assert_int_equal(visible(&c, 3, 8), 3);
    assert_int_equal(visible(&c, 0, 8), 2);
    assert_true(ats_legal_position(&c, 3, 4));
    assert_false(ats_legal_position(&c, 3, 5));
}

static void queries_at_the_tail_see_the_cache(void **state)
{
    (void)state;
    const ats_contract c = {.causal = true};
    assert_int_equal(visible(&c, 3, 5), 4);
    assert_int_equal(visible(&c, 4, 5), 5);
}

static void chunks_by_floor(void **state)
{
    (void)state;
    const ats_contract c = {.causal = true, .chunk = 4};
    assert_int_equal(visible(&c, 7, 12), 4);
    assert_int_equal(visible(&c, 8, 12), 1);
    assert_false(ats_legal_position(&c, 0, -1));
    assert_true(ats_legal_position(&c, -1, -4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(window_counts_the_own_position),
        cmocka_unit_test(both_directions),
        cmocka_unit_test(queries_at_the_tail_see_the_cache),
        cmocka_unit_test(chunks_by_floor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

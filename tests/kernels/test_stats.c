#include "kernels/stats.h"

#include <math.h>
#include <string.h>

#include "support/check.h"

static const ats_problem PROBLEM = {
    .n_rows = 3, .n_probes = 3, .n_keys = 5, .d_qk = 2, .d_v = 4, .n_regions = 2, .top_k = 3};

static bool blank(const ats_stats_array *array, int64_t i)
{
    switch (array->type) {
    case ATS_ARRAY_F64:
        return isnan(((double *)*array->place)[i]);
    case ATS_ARRAY_F32:
        return isnan(((float *)*array->place)[i]);
    case ATS_ARRAY_I64:
        return ((int64_t *)*array->place)[i] == array->blank;
    }
    return false;
}

static void test_new_is_blank(void **state)
{
    (void)state;
    for (int pair = 0; pair < 2; pair++) {
        ats_arena arena;
        ats_arena_init(&arena, false);
        ats_err err = {.code = ATS_OK};
        ats_stats stats;
        ats_stats_array arrays[ATS_STATS_ARRAYS];
        assert_ok(ats_stats_new(&arena, &PROBLEM, pair == 1, &stats, &err), &err);
        const int64_t count = ats_stats_list(&PROBLEM, &stats, pair == 1, arrays);
        assert_int_equal(count, pair == 1 ? 36 : 19);
        for (int64_t i = 0; i < count; i++)
            for (int64_t j = 0; j < PROBLEM.n_rows * arrays[i].per_row; j++)
                assert_true(blank(&arrays[i], j));
        assert_true((stats.pair.tv != NULL) == (pair == 1));
        assert_int_equal(stats.route.top_index[0], -1);
        assert_int_equal(stats.route.legal_keys[0], 0);
        ats_arena_fini(&arena);
    }
}

/* The list names every field of the structures: their sizes are the number of pointers. */
static void test_list_is_complete(void **state)
{
    (void)state;
    assert_int_equal(sizeof(ats_route_stats) / sizeof(void *), 19);
    assert_int_equal(sizeof(ats_pair_stats) / sizeof(void *), 17);
    ats_stats stats;
    ats_stats_array arrays[ATS_STATS_ARRAYS];
    const int64_t count = ats_stats_list(&PROBLEM, &stats, true, arrays);
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < i; j++) {
            assert_string_not_equal(arrays[i].name, arrays[j].name);
            assert_true(arrays[i].place != arrays[j].place);
        }
}

static void test_count_only_measures(void **state)
{
    (void)state;
    ats_arena count, real;
    ats_err err = {.code = ATS_OK};
    ats_stats stats;
    ats_arena_init(&count, true);
    ats_arena_init(&real, false);
    assert_ok(ats_stats_new(&count, &PROBLEM, true, &stats, &err), &err);
    assert_ok(ats_stats_new(&real, &PROBLEM, true, &stats, &err), &err);
    assert_int_equal(count.used, real.used);
    ats_arena_fini(&count);
    ats_arena_fini(&real);
}

static void test_copy(void **state)
{
    (void)state;
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_err err = {.code = ATS_OK};
    ats_stats a, b;
    assert_ok(ats_stats_new(&arena, &PROBLEM, true, &a, &err), &err);
    assert_ok(ats_stats_new(&arena, &PROBLEM, true, &b, &err), &err);
    for (int64_t i = 0; i < PROBLEM.n_rows; i++) {
        a.route.lse[i] = (double)i;
        a.pair.tv[i] = 10 + (double)i;
        a.route.legal_keys[i] = i;
    }
    a.route.output[3 * 4 - 1] = 7;
    ats_stats_copy(&PROBLEM, &a, &b);
    assert_near_array(b.route.lse, a.route.lse, 3, 0);
    assert_near_array(b.pair.tv, a.pair.tv, 3, 0);
    assert_int_equal(b.route.legal_keys[2], 2);
    assert_near((double)b.route.output[11], 7, 0);
    ats_stats_clear_numbers(&PROBLEM, &b); /* value sums stay */
    assert_true(isnan(b.route.lse[2]) && isnan(b.pair.tv[2]) && b.route.legal_keys[2] == 0);
    assert_near((double)b.route.output[11], 7, 0);
    b.route.output[7] = 5;
    ats_stats_clear_sums(&PROBLEM, &b, 2);
    assert_true(isnan(b.route.output[11]) && isnan(b.route.output[8]));
    assert_near((double)b.route.output[7], 5, 0);
    ats_stats_copy(&PROBLEM, &a, &b);
    ats_stats_clear(&PROBLEM, &b);
    assert_true(isnan(b.route.lse[0]) && isnan(b.pair.tv[0]) && isnan(b.route.output[11]));
    ats_arena_fini(&arena);
}

static void test_overflow_is_an_error(void **state)
{
    (void)state;
    ats_arena arena;
    ats_arena_init(&arena, true);
    ats_err err = {.code = ATS_OK};
    ats_stats stats;
    ats_problem huge = PROBLEM;
    huge.n_rows = INT64_MAX / 2;
    assert_int_equal(ats_stats_new(&arena, &huge, true, &stats, &err), ATS_E_MEMORY);
    assert_says(err.text, "memory");
    ats_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_is_blank),         cmocka_unit_test(test_list_is_complete),
        cmocka_unit_test(test_count_only_measures),  cmocka_unit_test(test_copy),
        cmocka_unit_test(test_overflow_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

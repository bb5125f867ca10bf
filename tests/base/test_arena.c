/* Arena: alignment, reset, counting, refusal of sizes that overflow. */
#include "support/check.h"

#include <string.h>

#include "base/arena.h"

static void memory_is_aligned_and_kept_apart(void **state)
{
    (void)state;
    ats_arena arena = {.blocks = NULL};
    ats_err err;
    unsigned char *pieces[200];
    for (int i = 0; i < 200; i++) {
        assert_ok(ATS_NEW(&arena, 1 + 97 * i, &pieces[i], &err), &err);
        assert_int_equal((uintptr_t)pieces[i] % 64, 0);
        memset(pieces[i], i, (size_t)(1 + 97 * i));
    }
    for (int i = 0; i < 200; i++)
        for (int j = 0; j < 1 + 97 * i; j++) assert_int_equal(pieces[i][j], i);
    ats_arena_fini(&arena);
    assert_int_equal(arena.used, 0);
}

static void reset_reuses_and_remembers_the_peak(void **state)
{
    (void)state;
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_err err;
    double *a = NULL;
    for (int round = 0; round < 50; round++) {
        assert_ok(ATS_NEW0(&arena, 1000 * (1 + round % 7), &a, &err), &err);
        assert_true(a[999] == 0.0);
        a[999] = 1;
        ats_arena_reset(&arena);
        assert_int_equal(arena.used, 0);
    }
    assert_true(arena.peak >= 7000 * sizeof(double));
    ats_arena_fini(&arena);
}

static void counting_allocates_nothing(void **state)
{
    (void)state;
    ats_arena count, real;
    ats_arena_init(&count, true);
    ats_arena_init(&real, false);
    ats_err err;
    float *a = NULL, *b = NULL;
    assert_ok(ATS_NEW(&count, (int64_t)1 << 40, &a, &err), &err);
    assert_null(a);
    assert_true(count.used >= (size_t)1 << 42);
    ats_arena_reset(&count);
    assert_ok(ATS_NEW(&count, 12345, &a, &err), &err);
    assert_ok(ATS_NEW(&real, 12345, &b, &err), &err);
    assert_int_equal(count.used, real.used);
    ats_arena_fini(&count);
    ats_arena_fini(&real);
}

static void overflow_is_an_error(void **state)
{
    (void)state;
    ats_arena arena = {.blocks = NULL};
    ats_err err;
    double *a = NULL;
    assert_int_equal(ATS_NEW(&arena, INT64_MAX / 2, &a, &err), ATS_E_MEMORY);
    assert_null(a);
    ats_arena_fini(&arena);
}

static void texts(void **state)
{
    (void)state;
    ats_arena arena = {.blocks = NULL};
    ats_err err;
    const char *a = NULL, *b = NULL;
    assert_ok(ats_arena_strdup(&arena, "gold", &a, &err), &err);
    assert_ok(ats_arena_printf(&arena, &b, &err, "%s-%d", a, 12), &err);
    assert_string_equal(b, "gold-12");
    ats_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_aligned_and_kept_apart),
        cmocka_unit_test(reset_reuses_and_remembers_the_peak),
        cmocka_unit_test(counting_allocates_nothing),
        cmocka_unit_test(overflow_is_an_error),
        cmocka_unit_test(texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

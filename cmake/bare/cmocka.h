/* The part of cmocka that the kernels' tests use, for kernels-only builds on machines without it. */
#ifndef ATS_BARE_CMOCKA_H
#define ATS_BARE_CMOCKA_H

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
};

enum { BARE_FAILED = 1, BARE_SKIPPED = 2 };

extern jmp_buf bare_end;

static inline void bare_fail(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    longjmp(bare_end, BARE_FAILED);
}

#define cmocka_unit_test(f) {#f, f}
#define assert_true(c) ((c) ? (void)0 : bare_fail(#c, __FILE__, __LINE__))
#define assert_false(c) assert_true(!(c))
#define assert_null(p) assert_true((p) == NULL)
#define assert_non_null(p) assert_true((p) != NULL)
#define assert_ptr_equal(a, b) assert_true((a) == (b))
#define assert_int_equal(a, b) assert_true((long long)(a) == (long long)(b))
#define assert_int_not_equal(a, b) assert_true((long long)(a) != (long long)(b))
#define assert_in_range(x, a, b) assert_true((x) >= (a) && (x) <= (b))
#define assert_string_equal(a, b) assert_true(strcmp((a), (b)) == 0)
#define assert_string_not_equal(a, b) assert_true(strcmp((a), (b)) != 0)
#define assert_memory_equal(a, b, n) assert_true(memcmp((a), (b), (n)) == 0)
#define fail_msg(...) (fprintf(stderr, __VA_ARGS__), bare_fail("", __FILE__, __LINE__))
#define _fail(file, line) bare_fail("", file, line)
#define _assert_true(c, text, file, line) ((c) ? (void)0 : bare_fail(text, file, line))
#define print_error(...) fprintf(stderr, __VA_ARGS__)
#define print_message(...) printf(__VA_ARGS__)
#define skip() longjmp(bare_end, BARE_SKIPPED)

int bare_run(const char *group, const struct CMUnitTest *tests, size_t count);
#define cmocka_run_group_tests_name(name, tests, up, down) \
    bare_run(name, tests, sizeof(tests) / sizeof *(tests))
#define cmocka_run_group_tests(tests, up, down) \
    bare_run(#tests, tests, sizeof(tests) / sizeof *(tests))

#endif

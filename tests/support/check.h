/* Assertions for numbers: NaN never passes, the worst index and both values are named. */
#ifndef ATS_TESTS_SUPPORT_CHECK_H
#define ATS_TESTS_SUPPORT_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/status.h"

/* |got - want| <= bar; a NaN on either side fails, equal infinities pass. */
void check_near(double got, double want, double bar, const char *what, const char *file, int line);
void check_near_array(const double *got, const double *want, int64_t n, double bar,
                      const char *what, const char *file, int line);
void check_ok(ats_code code, const ats_err *err, const char *file, int line);
/* The error text must hold every one of the NULL-terminated parts. */
void check_text(const char *text, const char *const *parts, const char *file, int line);

#define assert_near(got, want, bar) check_near((got), (want), (bar), #got, __FILE__, __LINE__)
#define assert_near_array(got, want, n, bar)                                           \
    check_near_array((got), (want), (n), (bar), #got, __FILE__, __LINE__)
#define assert_ok(code, err) check_ok((code), (err), __FILE__, __LINE__)
#define assert_says(text, ...)                                                         \
    check_text((text), (const char *const[]){__VA_ARGS__, NULL}, __FILE__, __LINE__)

#endif

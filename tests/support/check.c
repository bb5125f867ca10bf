#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void check_near(double got, double want, double bar, const char *what, const char *file, int line)
{
    if (got == want) return;
    const double difference = fabs(got - want);
    if (difference <= bar) return;
    fprintf(stderr, "%s:%d: %s is %.17g, should be %.17g; difference %.3g, bar %.3g\n", file, line,
            what, got, want, difference, bar);
    _assert_true(0, what, file, line);
}

void check_near_array(const double *got, const double *want, int64_t n, double bar,
                      const char *what, const char *file, int line)
{
    int64_t worst = -1;
    double largest = -1;
    for (int64_t i = 0; i < n; i++) {
        if (got[i] == want[i]) continue;
        double difference = fabs(got[i] - want[i]);
        if (isnan(difference)) difference = INFINITY;
        if (difference > largest) {
            largest = difference;
            worst = i;
        }
    }
    if (worst < 0 || largest <= bar) return;
    fprintf(stderr, "%s:%d: %s[%lld] is %.17g, should be %.17g; difference %.3g, bar %.3g\n", file,
            line, what, (long long)worst, got[worst], want[worst], largest, bar);
    _assert_true(0, what, file, line);
}

void check_ok(ats_code code, const ats_err *err, const char *file, int line)
{
    if (code == ATS_OK) return;
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, ats_code_name(code), err ? err->text : "");
    _assert_true(0, "ATS_OK", file, line);
}

void check_text(const char *text, const char *const *parts, const char *file, int line)
{
    for (; *parts != NULL; parts++)
        if (strstr(text, *parts) == NULL) {
            fprintf(stderr, "%s:%d: the text lacks \"%s\":\n%s\n", file, line, *parts, text);
            _assert_true(0, *parts, file, line);
        }
}

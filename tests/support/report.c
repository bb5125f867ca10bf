#include <math.h>
#include <stdio.h>

#include "support/check.h"
#include "support/compare.h"

static report_line *line_of(report *r, const char *field)
{
    for (int i = 0; i < r->count; i++)
        if (r->lines[i].field == field) return &r->lines[i];
    assert_true(r->count < REPORT_FIELDS);
    r->lines[r->count] = (report_line){.field = field};
    return &r->lines[r->count++];
}

static void note(report *r, const char *field, double ratio, bool good)
{
    report_line *line = line_of(r, field);
    line->compared++;
    if (!(ratio <= line->worst)) line->worst = ratio;
    if (!good) r->failures++;
}

void report_near(report *r, const char *field, int64_t variant, int64_t row, double got,
                 double want, double bar)
{
    const bool both_nan = isnan(got) && isnan(want);
    if (both_nan || got == want) {
        note(r, field, 0, true);
        return;
    }
    const double difference = fabs(got - want);
    const bool good = difference <= bar;
    note(r, field, difference / bar, good);
    if (!good && r->failures <= REPORT_SHOWN)
        fprintf(stderr,
                "%s: variant %lld row %lld: %s is %.17g, should be %.17g, off by %.3g, bar %.3g\n",
                r->context, (long long)variant, (long long)row, field, got, want, difference, bar);
}

void report_vector(report *r, const char *field, int64_t variant, int64_t row, const float *got,
                   const float *want, int64_t n, double bar)
{
    double square = 0;
    for (int64_t j = 0; j < n; j++) {
        if (isnan(got[j]) && isnan(want[j])) continue;
        const double difference = (double)got[j] - (double)want[j];
        square += difference * difference;
    }
    report_near(r, field, variant, row, sqrt(square), 0, bar);
}

void report_count(report *r, const char *field, int64_t variant, int64_t row, int64_t got,
                  int64_t low, int64_t high)
{
    const bool good = low <= got && got <= high;
    note(r, field, good ? 0 : (double)INFINITY, good);
    if (!good && r->failures <= REPORT_SHOWN)
        fprintf(stderr, "%s: variant %lld row %lld: %s is %lld, should be in [%lld, %lld]\n",
                r->context, (long long)variant, (long long)row, field, (long long)got,
                (long long)low, (long long)high);
}

void report_finish(const report *r, const char *title)
{
    fprintf(stderr, "%s: worst difference over bar\n", title);
    for (int i = 0; i < r->count; i++)
        fprintf(stderr, "  %-20s %8.4f  of %lld\n", r->lines[i].field, r->lines[i].worst,
                (long long)r->lines[i].compared);
    if (r->failures > 0) fail_msg("%d comparisons are over their bar", r->failures);
}

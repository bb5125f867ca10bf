/* Compares a backend's statistics with the reference's, field by field, against bars.h.
 * Every comparison is written "not (difference <= bar)", so NaN never passes. */
#ifndef ATS_TESTS_SUPPORT_COMPARE_H
#define ATS_TESTS_SUPPORT_COMPARE_H

#include "kernels/bars.h"
#include "support/evaluate.h"

enum { REPORT_FIELDS = 64, REPORT_SHOWN = 12 };

typedef struct report_line {
    const char *field;
    double worst; /* residual / bar */
    int64_t compared;
} report_line;

typedef struct report {
    ats_bar_path path;
    const char *context; /* printed with every failure */
    report_line lines[REPORT_FIELDS];
    int count, failures;
} report;

/* One comparison; row and variant are for the message. */
void report_near(report *r, const char *field, int64_t variant, int64_t row, double got,
                 double want, double bar);
/* |got - want|_2 <= bar over n floats. */
void report_vector(report *r, const char *field, int64_t variant, int64_t row, const float *got,
                   const float *want, int64_t n, double bar);
void report_count(report *r, const char *field, int64_t variant, int64_t row, int64_t got,
                  int64_t low, int64_t high);
/* The table of worst residuals over bars, on stderr; fails (cmocka) when anything was over. */
void report_finish(const report *r, const char *title);

/* Everything the two sets hold. Both must come from the same problem and edits. */
void compare_sets(report *r, const ats_problem *problem, const ats_edit *edits,
                  const stats_set *got, const stats_set *want);

#endif

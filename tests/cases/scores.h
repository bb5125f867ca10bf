/* Problems given by their scores: every key is a score split exactly into three floats, the query
 * is (1, 1, 1) and the scale 1, so that a double score reaches the backend without rounding. Each
 * key is a region of its own, through which its weight is read. */
#ifndef ATS_TESTS_CASES_SCORES_H
#define ATS_TESTS_CASES_SCORES_H

#include "support/check.h"
#include "support/compare.h"

enum { SCORE_WIDTH = 3 };

extern const ats_backend *cases_backend;
bool cases_exact(void); /* the reference runs: double arithmetic */

/* n keys at positions 0.., one row, bidirectional, values [n, 1] (NULL: 0, 1, 2, ...). */
void scores_problem(ats_arena *arena, int64_t n, const double *scores, const double *values,
                    ats_problem *out);
/* The same row `rows` times, each its own probe at position n - 1. */
void scores_rows(ats_arena *arena, ats_problem *problem, int64_t rows);

/* The base alone, or with edits. */
void scores_run(ats_arena *arena, const ats_problem *problem, const ats_edit *edits, int64_t count,
                stats_set *out);

/* exp(region_lse - lse) of the key's own region. */
double weight_of(const ats_problem *problem, const ats_route_stats *route, int64_t row,
                 int64_t key);

/* Bars of the cases: 1e-9 relative for the reference; |dp| 1e-6 and |dLSE| max(1e-5, |LSE| / 2^22)
 * for single precision, wider where a score's own rounding (A of bars.h) is larger. */
void check_weight(double got, double want, double largest_score, const char *file, int line);
void check_lse(double got, double want, const char *file, int line);
void check_value(double got, double want, double largest_score, const char *file, int line);
#define assert_weight(got, want, largest) check_weight((got), (want), (largest), __FILE__, __LINE__)
#define assert_lse(got, want) check_lse((got), (want), __FILE__, __LINE__)
#define assert_value(got, want, largest) check_value((got), (want), (largest), __FILE__, __LINE__)

#endif

#include <math.h>
#include <stdlib.h>

#include "report/stat.h"

typedef struct entry {
    double p;
    int64_t at;
} entry;

static int by_p(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->p != y->p) return x->p < y->p ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* The defined p values in ascending order; adjusted is NaN everywhere. */
static ats_code sorted(ats_arena *arena, const double *p, int64_t n, double *adjusted, entry **out,
                       int64_t *count, ats_err *err)
{
    entry *entries = NULL;
    ats_code rc = ATS_NEW(arena, n, &entries, err);
    if (rc != ATS_OK) return rc;
    *count = 0;
    for (int64_t i = 0; i < n; i++) {
        adjusted[i] = NAN;
        if (!isnan(p[i])) entries[(*count)++] = (entry){p[i], i};
    }
    qsort(entries, (size_t)*count, sizeof *entries, by_p);
    *out = entries;
    return ATS_OK;
}

/* max over j <= i of (m - j) p(j), at most 1 */
ats_code ats_stat_holm(ats_arena *arena, const double *p, int64_t n, double *adjusted, ats_err *err)
{
    entry *entries = NULL;
    int64_t count = 0;
    ats_code rc = sorted(arena, p, n, adjusted, &entries, &count, err);
    double most = 0;
    for (int64_t i = 0; rc == ATS_OK && i < count; i++) {
        most = fmax(most, fmin(1, (double)(count - i) * entries[i].p));
        adjusted[entries[i].at] = most;
    }
    return rc;
}

/* min over j >= i of m p(j) / j, at most 1 */
ats_code ats_stat_benjamini_hochberg(ats_arena *arena, const double *p, int64_t n, double *adjusted,
                                     ats_err *err)
{
    entry *entries = NULL;
    int64_t count = 0;
    ats_code rc = sorted(arena, p, n, adjusted, &entries, &count, err);
    double least = 1;
    for (int64_t i = count - 1; rc == ATS_OK && i >= 0; i--) {
        least = fmin(least, (double)count * entries[i].p / (double)(i + 1));
        adjusted[entries[i].at] = least;
    }
    return rc;
}

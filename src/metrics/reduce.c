#include "metrics/reduce.h"

#include <math.h>
#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double ats_reduce(ats_reduction how, double *values, int64_t n)
{
    int64_t kept = 0;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(values[i])) continue;
        sum += values[i];
        values[kept++] = values[i];
    }
    if (kept == 0) return (double)NAN;
    if (how == ATS_REDUCE_MEAN) return sum / (double)kept;
    qsort(values, (size_t)kept, sizeof *values, compare_doubles);
    if (how == ATS_REDUCE_MIN) return values[0];
    if (how == ATS_REDUCE_MAX) return values[kept - 1];
    return kept % 2 == 1 ? values[kept / 2] : 0.5 * (values[kept / 2 - 1] + values[kept / 2]);
}

#include "metrics/association.h"

#include <math.h>
#include <stdlib.h>

typedef struct ranked {
    double value;
    int64_t place;
} ranked;

static int by_value(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* ranks[i]: place of x[i] in ascending order, from 1; equal numbers share their mean place. */
static void rank_all(int64_t n, const double *x, ranked *sorted, double *ranks)
{
    for (int64_t i = 0; i < n; i++) sorted[i] = (ranked){x[i], i};
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    for (int64_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && sorted[j].value == sorted[i].value; j++) continue;
        for (int64_t k = i; k < j; k++) ranks[sorted[k].place] = (double)(i + j + 1) / 2;
    }
}

typedef struct moments {
    double mean_x, mean_y, xx, yy, xy; /* sums of squares and products about the means */
} moments;

static moments moments_of(int64_t n, const double *x, const double *y)
{
    moments m = {0};
    for (int64_t i = 0; i < n; i++) {
        m.mean_x += x[i] / (double)n;
        m.mean_y += y[i] / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        const double a = x[i] - m.mean_x, b = y[i] - m.mean_y;
        m.xx += a * a;
        m.yy += b * b;
        m.xy += a * b;
    }
    return m;
}

ats_code ats_associate(ats_arena *arena, int64_t n, const double *x, const double *y,
                       ats_association *out, ats_err *err)
{
    double *pairs = NULL, *ranks = NULL;
    ranked *sorted = NULL;
    int64_t kept = 0;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, 2 * n, &pairs, err));
    ATS_TRY(ATS_NEW(arena, 2 * n, &ranks, err));
    ATS_TRY(ATS_NEW(arena, n, &sorted, err));
    double *a = pairs, *b = pairs + n, error = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(x[i]) || !isfinite(y[i])) continue;
        a[kept] = x[i];
        b[kept++] = y[i];
        error += fabs(y[i] - x[i]);
    }
    ats_association result = {.n = kept,
                              .rank_correlation = NAN,
                              .slope = NAN,
                              .mean_x = NAN,
                              .mean_y = NAN,
                              .mean_error = NAN};
    if (kept > 0) {
        const moments m = moments_of(kept, a, b);
        rank_all(kept, a, sorted, ranks);
        rank_all(kept, b, sorted, ranks + n);
        const moments r = moments_of(kept, ranks, ranks + n);
        result.mean_x = m.mean_x;
        result.mean_y = m.mean_y;
        result.mean_error = error / (double)kept;
        if (m.xx > 0) result.slope = m.xy / m.xx;
        if (kept > 2 && r.xx > 0 && r.yy > 0) result.rank_correlation = r.xy / sqrt(r.xx * r.yy);
    }
    *out = result;
out:
    return rc;
}

#include "metrics/position.h"

#include <math.h>

/* Distinct depths ascending into x, mean values into y. */
static int64_t gather(const double *depth, const double *value, int64_t n, double *x, double *y)
{
    int64_t kept = 0;
    double last = -(double)INFINITY;
    for (;;) {
        double next = (double)INFINITY, sum = 0;
        int64_t count = 0;
        for (int64_t i = 0; i < n; i++)
            if (!isnan(value[i]) && depth[i] > last && depth[i] < next) next = depth[i];
        if (isinf(next)) return kept;
        for (int64_t i = 0; i < n; i++) {
            if (depth[i] != next || isnan(value[i])) continue;
            sum += value[i];
            count++;
        }
        x[kept] = last = next;
        y[kept++] = sum / (double)count;
    }
}

ats_position_curve ats_position_summarise(const double *depth, const double *value, int64_t n,
                                          double *work)
{
    ats_position_curve out = {NAN, NAN, NAN};
    double *x = work, *y = work + n;
    const int64_t kept = gather(depth, value, n, x, y);
    if (kept >= 2) out.slope = y[kept - 1] - y[0];
    if (kept < 3) return out;
    int64_t lowest = 1;
    for (int64_t i = 2; i + 1 < kept; i++)
        if (y[i] < y[lowest]) lowest = i;
    out.lowest = x[lowest];
    out.dip = (y[0] + y[kept - 1]) / 2 - y[lowest];
    return out;
}

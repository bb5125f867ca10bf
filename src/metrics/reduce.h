/* One number from several that may be undefined: how gates fold heads, layers and cases.
 * Pure function of its arguments; values are reordered. */
#ifndef ATS_METRICS_REDUCE_H
#define ATS_METRICS_REDUCE_H

#include <stdint.h>

typedef enum ats_reduction {
    ATS_REDUCE_MEAN,
    ATS_REDUCE_MEDIAN,
    ATS_REDUCE_MIN,
    ATS_REDUCE_MAX
} ats_reduction;

/* NaN entries of values [n] are left out; nothing left: NaN. */
double ats_reduce(ats_reduction how, double *values, int64_t n);

#endif

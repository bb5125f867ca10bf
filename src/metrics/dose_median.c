#include <math.h>
#include <stdlib.h>

#include "metrics/dose.h"

/* 97.5 % quantile of the standard normal. */
static const double z975 = 1.959963984540054;

/* At one value events come before those censored to the right. */
static bool before(const double *value, const int8_t *censored, int64_t i, int64_t j)
{
    if (value[i] != value[j]) return value[i] < value[j];
    return censored[i] != ATS_CENSORED_RIGHT && censored[j] == ATS_CENSORED_RIGHT;
}

static void sift(const double *value, const int8_t *censored, int64_t *at, int64_t i, int64_t n)
{
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(value, censored, at[child], at[child + 1])) child++;
        if (!before(value, censored, at[i], at[child])) return;
        const int64_t swap = at[i];
        at[i] = at[child];
        at[child] = swap;
    }
}

/* Places of the defined values, by value: heapsort, as a comparison may have many cells. */
static int64_t sort(const double *value, const int8_t *censored, int64_t n, int64_t *at)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (!isnan(value[i])) at[kept++] = i;
    for (int64_t i = kept / 2; i-- > 0;) sift(value, censored, at, i, kept);
    for (int64_t end = kept; end-- > 1;) {
        const int64_t swap = at[0];
        at[0] = at[end];
        at[end] = swap;
        sift(value, censored, at, 0, end);
    }
    return kept;
}

/* Limits of a survival probability S: S^exp(-+ z se / log S), the log-log interval. At S = 0 the
 * variance is unknown and the upper limit stays open. */
static void limits(double survival, double greenwood, double *low, double *high)
{
    *low = 0;
    *high = 1;
    if (survival <= 0) return;
    const double width = z975 * sqrt(greenwood) / fabs(log(survival));
    *low = pow(survival, exp(width));
    *high = pow(survival, exp(-width));
}

ats_dose_median ats_dose_kaplan_meier(const double *value, const int8_t *censored, int64_t n,
                                      int64_t *work)
{
    ats_dose_median out = {.median = NAN, .low = 0, .high = INFINITY};
    const int64_t kept = sort(value, censored, n, work);
    double survival = 1, greenwood = 0;
    bool has_low = false;
    out.n = kept;
    out.n_undefined = n - kept;
    for (int64_t i = 0, stop; i < kept; i = stop) {
        const double here = value[work[i]], at_risk = (double)(kept - i);
        double events = 0, lowest, highest;
        bool any_left = false;
        for (stop = i; stop < kept && value[work[stop]] == here; stop++) {
            const int8_t flag = censored[work[stop]];
            out.n_right += flag == ATS_CENSORED_RIGHT;
            events += flag != ATS_CENSORED_RIGHT;
            out.n_left += flag == ATS_CENSORED_LEFT;
            any_left |= flag == ATS_CENSORED_LEFT;
        }
        if (events == 0) continue;
        survival *= 1 - events / at_risk;
        if (at_risk > events) greenwood += events / (at_risk * (at_risk - events));
        limits(survival, greenwood, &lowest, &highest);
        if (lowest <= 0.5 && !has_low) {
            has_low = true;
            out.low = any_left ? 0 : here;
        }
        if (highest <= 0.5 && isinf(out.high)) out.high = here;
        if (isnan(out.median) && survival <= 0.5 + 1e-12) {
            out.median = here;
            out.censored = any_left ? ATS_CENSORED_LEFT : ATS_CENSORED_NOT;
        }
    }
    if (isnan(out.median) && kept > 0) {
        out.median = value[work[kept - 1]];
        out.censored = ATS_CENSORED_RIGHT;
    }
    return out;
}

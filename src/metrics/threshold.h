/* Thresholds in closed form, and a deterministic search where there is none.
 * Pure functions; logits and log-sum-exps in nats. */
#ifndef ATS_METRICS_THRESHOLD_H
#define ATS_METRICS_THRESHOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* Rows of mean exp(mean_logit) that leave an old span `keep` of its mass:
 * 1 / (1 + n exp(mean_logit - lse)) = keep. keep in (0, 1). */
double ats_threshold_tolerance(double keep, double lse, double mean_logit);

/* Multiple of a key's norm at which it holds `share` of the route. logit: its own, after cap and
 * temperature; -inf: no key. softcap 0: none. INFINITY: no multiple does it; 0: it does at norm 0.
 */
double ats_threshold_capture(double share, double softcap, double temperature, double logit,
                             double lse);

/* Does the route still hold at this dose? */
typedef ats_code (*ats_dose_holds_fn)(void *ctx, double dose, bool *holds, ats_err *err);

typedef struct ats_breakdown {
    double dose;      /* smallest dose found where it does not hold; the bound when censored */
    double held;      /* largest dose below it where it was seen to hold; NaN: none */
    int censored;     /* -1: broken at `low` already, 1: holds at `high`, 0: bracketed */
    int64_t searched; /* evaluations */
} ats_breakdown;

/* Bisection between low and high, both > 0 for a real dose, which is halved in its logarithm until
 * high / low <= 1 + tolerance; an integer dose until the two are neighbours. The same evaluations
 * in the same order every time. Where the answer is not monotone it finds one flip. */
ATS_MUST_CHECK ats_code ats_breakdown_search(double low, double high, bool integer,
                                             double tolerance, ats_dose_holds_fn holds, void *ctx,
                                             ats_breakdown *out, ats_err *err);

#endif

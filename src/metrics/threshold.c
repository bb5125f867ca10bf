#include "metrics/threshold.h"

#include <math.h>

double ats_threshold_tolerance(double keep, double lse, double mean_logit)
{
    return (1 / keep - 1) * exp(lse - mean_logit);
}

/* z* with exp(z*) = share / (1 - share) (exp L - exp z): the rest of the route stays as it is. */
static double wanted_logit(double share, double logit, double lse)
{
    const double weight = exp(logit - lse);
    return lse + log1p(-weight) + log(share / (1 - share));
}

double ats_threshold_capture(double share, double softcap, double temperature, double logit,
                             double lse)
{
    if (isnan(lse) || isnan(logit)) return (double)NAN;
    const double capped = logit * temperature;
    if (!(capped > 0)) return (double)INFINITY;
    const double raw = softcap > 0 ? softcap * atanh(capped / softcap) : capped;
    const double wanted = wanted_logit(share, logit, lse) * temperature;
    if (wanted <= 0) return 0;
    if (softcap <= 0) return wanted / raw;
    return wanted < softcap ? softcap * atanh(wanted / softcap) / raw : (double)INFINITY;
}

static double between(double low, double high, bool integer)
{
    return integer ? floor(low + (high - low) / 2) : sqrt(low * high);
}

static bool close_enough(double low, double high, bool integer, double tolerance)
{
    return integer ? high - low <= 1 : high <= low * (1 + tolerance);
}

ats_code ats_breakdown_search(double low, double high, bool integer, double tolerance,
                              ats_dose_holds_fn holds, void *ctx, ats_breakdown *out, ats_err *err)
{
    ats_breakdown found = {.dose = low, .held = NAN, .censored = -1, .searched = 1};
    bool yes = false;
    ats_code rc;
    ATS_TRY(holds(ctx, low, &yes, err));
    if (!yes) goto done;
    found.held = low;
    found.dose = high;
    if (high > low) {
        ATS_TRY(holds(ctx, high, &yes, err));
        found.searched++;
    }
    found.censored = yes;
    if (yes) {
        found.held = high;
        goto done;
    }
    while (!close_enough(found.held, found.dose, integer, tolerance)) {
        const double middle = between(found.held, found.dose, integer);
        ATS_TRY(holds(ctx, middle, &yes, err));
        found.searched++;
        *(yes ? &found.held : &found.dose) = middle;
    }
done:
    *out = found;
    rc = ATS_OK;
out:
    return rc;
}

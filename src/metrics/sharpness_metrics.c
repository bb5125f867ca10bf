/* What makes the base's route sharp: a row's diagnosis (metrics/diagnose.h) as metrics. */
#include "metrics/cell.h"
#include "metrics/table.h"

static double share(const ats_cell *c, ats_cause cause)
{
    if (c->diagnoses == NULL || c->diagnoses[c->row].label == ATS_CAUSE_UNDEFINED)
        return (double)NAN;
    return c->diagnoses[c->row].share[cause];
}

static double alignment(const ats_cell *c) { return share(c, ATS_CAUSE_ALIGNMENT); }
static double norm(const ats_cell *c) { return share(c, ATS_CAUSE_NORM); }
static double scale(const ats_cell *c) { return share(c, ATS_CAUSE_SCALE); }
static double temperature(const ats_cell *c) { return share(c, ATS_CAUSE_TEMPERATURE); }
static double mask_or_sink(const ats_cell *c) { return share(c, ATS_CAUSE_MASK_OR_SINK); }

static double label(const ats_cell *c)
{
    if (c->diagnoses == NULL || c->diagnoses[c->row].label == ATS_CAUSE_UNDEFINED) return -1;
    return (double)c->diagnoses[c->row].label;
}

#define SHARE(cause, words, how)                                                                   \
    const ats_metric ats_metric_sharpness_##cause = {                                              \
        .name = "sharpness_" #cause,                                                               \
        .needs = ATS_NEEDS_DIAGNOSIS,                                                              \
        .unit = "nats",                                                                            \
        .long_name = "entropy that comes back without " words,                                     \
        .definition = "Shapley value, over the 32 ways of switching causes off, of the "           \
                      "entropy gained by " how "; not below 0; docs/concepts.md",                  \
        .base_only = true,                                                                         \
        .value = cause,                                                                            \
    }

SHARE(alignment, "alignment",
      "giving keys whose cosine with the query no rotation of it reaches the median cosine");
SHARE(norm, "long keys", "giving every key but sinks the median norm");
SHARE(scale, "a scale of 1", "restoring 1/sqrt(d) where the scale is 1");
SHARE(temperature, "the gain beyond 1/sqrt(d)",
      "dividing out the gain of long queries, scale and temperature by which independent keys' "
      "logits would spread beyond a standard deviation of 2");
SHARE(mask_or_sink, "masks and sinks",
      "showing every causal key and taking sinks and the null route away");

const ats_metric ats_metric_sharpness_label = {
    .name = "sharpness_label",
    .needs = ATS_NEEDS_DIAGNOSIS,
    .unit = "1",
    .long_name = "why the route is sharp",
    .definition = "the cause of the largest share where it is 2.5 times the next or more, else 5 "
                  "(mixed); 6 (diffuse) where the shares sum to less than 1 nat; -1: no legal key",
    .base_only = true,
    .integer = true,
    .fill = -1,
    .flag_meanings = "alignment norm scale temperature mask_or_sink mixed diffuse",
    .value = label,
};

/* The list of metrics, in the order of docs/metrics.md. Adding one: a descriptor in
 * a *_metrics.c file, and a line here. Private to metrics/. */
#ifndef ATS_METRICS_TABLE_H
#define ATS_METRICS_TABLE_H

#include "metrics/metric.h"

#define ATS_ROUTE_METRICS(X)                                                                       \
    X(lse)                                                                                         \
    X(lse_keys)                                                                                    \
    X(lse_shift)                                                                                   \
    X(competition_shift)                                                                           \
    X(mass)                                                                                        \
    X(log_mass_shift)                                                                              \
    X(own_logit_shift)                                                                             \
    X(retention)                                                                                   \
    X(rank)                                                                                        \
    X(margin)                                                                                      \
    X(intrusion)                                                                                   \
    X(removal)                                                                                     \
    X(tv)                                                                                          \
    X(js)                                                                                          \
    X(hellinger)                                                                                   \
    X(reroute_tv)                                                                                  \
    X(reroute_js)                                                                                  \
    X(entropy)                                                                                     \
    X(effective_keys)                                                                              \
    X(effective_keys_n2)                                                                           \
    X(max_weight)                                                                                  \
    X(top_key)                                                                                     \
    X(topk_index)                                                                                  \
    X(topk_weight)                                                                                 \
    X(topk_overlap)                                                                                \
    X(topk_overlap_survivors)                                                                      \
    X(null_mass)                                                                                   \
    X(sink_mass)                                                                                   \
    X(legal_keys)

#define ATS_PAYLOAD_METRICS(X)                                                                     \
    X(output_cosine)                                                                               \
    X(output_change)                                                                               \
    X(output_norm_ratio)                                                                           \
    X(output_norm)                                                                                 \
    X(delta_norm)                                                                                  \
    X(delta_share)                                                                                 \
    X(contribution_norm)                                                                           \
    X(contribution_share)                                                                          \
    X(contribution_change)                                                                         \
    X(cancellation)                                                                                \
    X(topk_contribution_index)                                                                     \
    X(topk_contribution_weight)                                                                    \
    X(topk_contribution_norm)                                                                      \
    X(output_change_resid)                                                                         \
    X(output_norm_resid)                                                                           \
    X(delta_norm_resid)                                                                            \
    X(contribution_norm_resid)                                                                     \
    X(contribution_change_resid)                                                                   \
    X(readout)                                                                                     \
    X(readout_change)                                                                              \
    X(contribution)

#define ATS_THRESHOLD_METRICS(X)                                                                   \
    X(inserted_log_odds)                                                                           \
    X(law_log_mass_shift)                                                                          \
    X(distractor_tolerance)                                                                        \
    X(norm_capture_multiple)                                                                       \
    X(contribution_overlap)

#define ATS_SHARPNESS_METRICS(X)                                                                   \
    X(sharpness_alignment)                                                                         \
    X(sharpness_norm)                                                                              \
    X(sharpness_scale)                                                                             \
    X(sharpness_temperature)                                                                       \
    X(sharpness_mask_or_sink)                                                                      \
    X(sharpness_label)

#define ATS_METRIC_DECLARE(name) extern const ats_metric ats_metric_##name;
ATS_ROUTE_METRICS(ATS_METRIC_DECLARE)
ATS_PAYLOAD_METRICS(ATS_METRIC_DECLARE)
ATS_THRESHOLD_METRICS(ATS_METRIC_DECLARE)
ATS_SHARPNESS_METRICS(ATS_METRIC_DECLARE)
#undef ATS_METRIC_DECLARE

#endif

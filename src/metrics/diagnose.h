/* Why is a route sharp? One row of a problem, taken apart by counterfactuals.
 *
 * Five causes can be switched off one by one (docs/concepts.md): the alignment of outlying keys,
 * their norms, a scale without 1/sqrt(d), a gain beyond that (a low temperature), and what only few
 * keys take part in (masks) or what sinks hold. The entropy gained is divided among them by the
 * Shapley value over all 32 combinations, so that neither of two sufficient causes hides the other.
 * Ownership: nothing is kept; scratch comes from the arena. Any thread with its own arena. */
#ifndef ATS_METRICS_DIAGNOSE_H
#define ATS_METRICS_DIAGNOSE_H

#include "base/arena.h"
#include "kernels/backend.h"

typedef enum ats_cause {
    ATS_CAUSE_ALIGNMENT,
    ATS_CAUSE_NORM,
    ATS_CAUSE_SCALE,
    ATS_CAUSE_TEMPERATURE,
    ATS_CAUSE_MASK_OR_SINK,
    ATS_N_CAUSES,
    ATS_CAUSE_MIXED = ATS_N_CAUSES, /* no cause leads the next by ATS_DIAGNOSE_LEAD */
    ATS_CAUSE_DIFFUSE,              /* less than ATS_DIAGNOSE_LEAST nats to explain */
    ATS_CAUSE_UNDEFINED,            /* no legal key */
    ATS_N_LABELS
} ats_cause;

#define ATS_DIAGNOSE_LEAD 2.5
#define ATS_DIAGNOSE_LEAST 1.0
#define ATS_DIAGNOSE_SPREAD                                                                        \
    2.0 /* standard deviation of logits, nats, that is no low temperature                          \
         */
enum { ATS_DIAGNOSE_ROTATIONS = 8, ATS_DIAGNOSE_SINK_ROWS = 4 };

typedef struct ats_diagnosis {
    int64_t legal_keys, top_key;               /* -1: none */
    double max_weight, entropy, entropy_limit; /* nats; log of the keys that could be seen */
    double logit_mean, logit_variance;         /* over legal keys, nats */
    double predicted_variance;                 /* of independent q and k: scale^2 d var q var k */
    double query_norm, key_norm[5];            /* quantiles 0, 1/4, 1/2, 3/4, 1 over legal keys */
    double top_cosine, top_norm_ratio;         /* of the heaviest key; norm over the median */
    double saturation;                         /* sum w (1 - w) / tau, how far it is from frozen */
    double unit, equal_norm, tau2, tau4, unscaled; /* entropy of the route under each, nats */
    double rotated;             /* mean entropy over rotations of the query inside rotary pairs */
    double top_stays;           /* share of the rotations after which the same key stays on top */
    double share[ATS_N_CAUSES]; /* nats of entropy that each cause explains, >= 0 */
    double explained;           /* their sum */
    ats_cause label;
} ats_diagnosis;

/* Which random rotations a row gets: the same three give the same ones. */
typedef struct ats_diagnose_draw {
    uint64_t seed;
    const char *name; /* of the sample */
    int64_t number;   /* of the row in it, whatever else is selected */
} ats_diagnose_draw;

/* sinks: [n_keys] 1 for rows that hold attention by habit (the first rows, rows of role sink), or
 * NULL: the first ATS_DIAGNOSE_SINK_ROWS. */
ATS_MUST_CHECK ats_code ats_diagnose_row(const ats_problem *problem, int64_t row,
                                         const uint8_t *sinks, const ats_diagnose_draw *draw,
                                         ats_arena *arena, ats_diagnosis *out, ats_err *err);
/* The label of a set of shares. */
ats_cause ats_diagnose_label(const double *share);
/* The label of a head whose rows have these (count by label): that of more than half of the defined
 * rows, else mixed; undefined without any. */
ats_cause ats_diagnose_vote(const int64_t labels[ATS_N_LABELS]);
const char *ats_cause_name(ats_cause cause); /* "mask_or_sink" */

#endif

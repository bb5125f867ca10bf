/* Dose curves of a run: which cases are points of one curve, and the numbers of every curve.
 *
 * A group is a family with all parameters but its dose fixed, in one position mode; a curve is a
 * group on one sample: curve = sample * n_groups + group. Replicates are points of one curve; the
 * control twin of a case is the control of its point.
 * Ownership: everything lives in the arena given. */
#ifndef ATS_ENGINE_CURVE_H
#define ATS_ENGINE_CURVE_H

#include "engine/tensors.h"
#include "metrics/dose.h"
#include "report/results.h"
#include "suite/suite.h"

struct ats_plan;
struct ats_outcome;

typedef struct ats_curve_group {
    int64_t perturbation; /* index in the suite */
    ats_position_mode mode;
    const char *id;        /* a variant's id without dose and replicate */
    const char *dose_name; /* parameter on the dose axis */
    bool depth;            /* which is a depth of the context: a position curve */
    int64_t n_variants;
    const int64_t *variants; /* [n_variants] treatment arms, ascending */
} ats_curve_group;

typedef struct ats_curve_groups {
    int64_t count;
    const ats_curve_group *items;
    const int64_t *of_variant; /* [suite->n_variants] group, also of a control; -1: none */
    const int64_t *twin;       /* [suite->n_variants] the other arm of a variant; -1: none */
    const int64_t *dose_param; /* [suite->n_perturbations] index of the dose parameter, -1: none */
} ats_curve_groups;

/* Every curve of a run: [count, n_layers, n_heads]. */
typedef struct ats_curves {
    int64_t count, n_layers, n_heads;
    ats_dose_summary *cells;
    const double *doses, *dose_min, *dose_max; /* [count] */
} ats_curves;

ATS_MUST_CHECK ats_code ats_curve_groups_make(ats_arena *arena, const ats_suite *suite,
                                              ats_curve_groups *out, ats_err *err);
/* From the tables of a finished run. */
ATS_MUST_CHECK ats_code ats_curves_make(ats_arena *arena, const struct ats_plan *plan,
                                        const struct ats_outcome *outcome, ats_curves *out,
                                        ats_err *err);
/* Coordinates and variables into the result; nothing without curves. */
ATS_MUST_CHECK ats_code ats_curves_write(ats_arena *arena, const struct ats_plan *plan,
                                         const ats_curves *curves, ats_results *results,
                                         ats_err *err);

/* `breakdown_search: true`: the flip of every curve by bisection. [n_curves, n_layers, n_heads]. */
typedef struct ats_breakdowns {
    int64_t count; /* 0: not asked for */
    double *dose;
    int8_t *censored; /* as ats_censoring */
} ats_breakdowns;
ATS_MUST_CHECK ats_code ats_breakdowns_make(ats_arena *arena, const struct ats_plan *plan,
                                            ats_tensors *tensors, ats_breakdowns *out,
                                            ats_err *err);
ATS_MUST_CHECK ats_code ats_breakdowns_write(ats_arena *arena, const ats_breakdowns *found,
                                             ats_results *results, ats_err *err);

/* "half dose 23.8 count [16, 40], strength +6.75 at overlay/cosine=0.95": the perturbation's curve
 * that breaks first at this layer and head (indices), its half dose as the Kaplan-Meier median over
 * samples with a 95 % interval; NULL: it has none. */
ATS_MUST_CHECK ats_code ats_curve_phrase(ats_arena *arena, const struct ats_plan *plan,
                                         const ats_curves *curves, int64_t perturbation, int64_t l,
                                         int64_t h, const char **out, ats_err *err);
/* Combinations: `interaction` and the cases of their parts; nothing without combinations. */
ATS_MUST_CHECK ats_code ats_interactions_write(ats_arena *arena, const struct ats_plan *plan,
                                               const struct ats_outcome *outcome,
                                               ats_results *results, ats_err *err);

#endif

/* One unit of verify: a sample, a layer and a key head, with the edits made for it.
 * Private to engine/verify*.c. Ownership: a unit's memory is its arena, reset after each unit;
 * checks live in the report's arena. */
#ifndef ATS_ENGINE_VERIFY_UNIT_H
#define ATS_ENGINE_VERIFY_UNIT_H

#include "engine/problem.h"
#include "engine/verify.h"
#include "metrics/laws.h"
#include "perturb/family.h"

enum { ATS_VERIFY_EDITS = 7, ATS_VERIFY_CHECKS = 192 };

typedef struct ats_verify_edit {
    const char *label; /* "overlay" */
    ats_law_kind kind;
    ats_edit edit;
    int64_t duplicated; /* region whose rows were copied once, exactly; -1: none */
} ats_verify_edit;

/* What is kept of a route for comparison with another evaluation of it. */
typedef struct ats_verify_route {
    const double *lse, *entropy; /* [rows] */
    const double *region_lse;    /* [rows, regions] */
    const float *output;         /* [rows, d_v] */
    const double *tv, *js;       /* [rows] or NULL */
} ats_verify_route;

typedef struct ats_verify_unit {
    ats_arena *arena;
    ats_verify_report *report;
    const ats_capture *capture;
    const ats_sample *sample;
    const ats_layer *layer;
    const ats_attention *attention;
    int64_t kv_head;
    ats_pick pick;
    const ats_span_axis *axis;
    ats_problem problem;
    ats_law_bars bars; /* filled by the first emission */
    int64_t n_edits;   /* 0: parity only */
    ats_verify_edit edits[ATS_VERIFY_EDITS];
    ats_verify_route routes[ATS_VERIFY_EDITS + 1]; /* [0]: the base */
    ats_law (*laws)[ATS_LAWS_MAX + 1];             /* [n_edits + 1] */
    int64_t n_laws[ATS_VERIFY_EDITS + 1];
} ats_verify_unit;

/* Adds comparisons to the check of that name; where is the row of the unit's problem, -1: none. */
ATS_MUST_CHECK ats_code ats_verify_add(ats_verify_unit *unit, const char *name,
                                       const char *statement, const ats_law *law, ats_err *err);
/* Notes that checks called label.* do not apply here, unless they were made elsewhere. */
ATS_MUST_CHECK ats_code ats_verify_not_applicable(ats_verify_unit *unit, const char *label,
                                                  const char *reason, ats_err *err);
/* Counts and sorts out the statuses. */
void ats_verify_close(ats_verify_report *report);

/* One comparison of a law: residual against bound at a row. */
void ats_verify_compare(ats_law *law, int64_t row, double residual, double bound);

/* Makes the unit's edits; what does not apply is noted in the report. */
ATS_MUST_CHECK ats_code ats_verify_edits(ats_verify_unit *unit, const char *target, ats_err *err);

/* Copies what later comparisons need. */
ATS_MUST_CHECK ats_code ats_verify_keep(ats_verify_unit *unit, const ats_stats *stats,
                                        ats_verify_route *out, ats_err *err);
/* out and lse of the capture against the base route. */
ATS_MUST_CHECK ats_code ats_verify_parity(ats_verify_unit *unit, const ats_route_stats *base,
                                          ats_err *err);
/* The reference backend on the same problem and edits, against the routes that were kept. */
ATS_MUST_CHECK ats_code ats_verify_agreement(ats_verify_unit *unit, ats_err *err);
/* Keys permuted with their values; a constant added to every logit. */
ATS_MUST_CHECK ats_code ats_verify_relations(ats_verify_unit *unit,
                                             const struct ats_backend *backend, ats_err *err);

#endif

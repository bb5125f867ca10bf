/* The metric table: every variable of a result file, one line each.
 *
 * A metric has a name, a shape class, a unit, a definition and a function from statistics to a
 * number. Undefined is NaN, counted by the recorder, never 0. docs/metrics.md is generated from it.
 */
#ifndef ATS_METRICS_METRIC_H
#define ATS_METRICS_METRIC_H

#include "base/arena.h"
#include "kernels/backend.h"
#include "metrics/diagnose.h"

typedef enum ats_metric_shape {
    ATS_SHAPE_SCALAR,  /* [head, probe] */
    ATS_SHAPE_SPAN,    /* [head, probe, span] */
    ATS_SHAPE_PART,    /* [head, probe, part] */
    ATS_SHAPE_TOP,     /* [head, probe, k] */
    ATS_SHAPE_READOUT, /* [head, probe, readout_direction, span] */
    ATS_SHAPE_VECTOR   /* [head, probe, span, d_v] only with `vectors: true` */
} ats_metric_shape;

typedef enum ats_metric_needs {
    ATS_NEEDS_NOTHING,
    ATS_NEEDS_W_O,
    ATS_NEEDS_READOUT,
    ATS_NEEDS_DIAGNOSIS /* as dear as many variants: written where the suite asks for it alone */
} ats_metric_needs;

/* Which way is better, for verdicts about two checkpoints. Of a metric with a span axis it is said
 * of the target; ats_metric_better has the other spans. */
typedef enum ats_better { ATS_BETTER_NEITHER, ATS_BETTER_MORE, ATS_BETTER_LESS } ats_better;

/* What one cell is computed from. Regions: the first n_spans are the `span` axis. */
typedef struct ats_cell {
    const ats_problem *problem;
    const ats_route_stats *base;
    const ats_route_stats *route; /* the variant; for a base twin the base itself */
    const ats_pair_stats *pair;   /* NULL for a base twin */
    int64_t row;                  /* problem row */
    int64_t span;                 /* index into regions, or ATS_SPAN_INSERTED */
    int64_t part;                 /* part or k, by shape */
    const float *w_o;             /* [d_v, d_model] of this row's head, or NULL */
    int64_t d_model;
    const float *readout; /* [d_model] this readout's direction, or NULL */
    /* The same two folded to the head's value space, so that a residual-stream norm costs d_v^2 and
     * not d_v d_model (metrics/fold.h); NULL: computed from w_o and readout each time. */
    const double *gram;             /* [d_v, d_v] W_O W_O^T */
    const double *readout_row;      /* [d_v] W_O r */
    const ats_diagnosis *diagnoses; /* [n_rows] of the base, or NULL */
} ats_cell;

#define ATS_SPAN_INSERTED (-1)
/* Regions after the named spans, in this order: sink, recent, rest. */
enum { ATS_REGIONS_UNNAMED = 3 };

/* What an undefined cell of an integer metric holds where -1 already has a meaning
 * (netCDF's default fill value of int). */
#define ATS_INTEGER_UNDEFINED (-2147483647)

typedef struct ats_metric {
    const char *name; /* of the variant's variable; a base twin is "base_" + name */
    ats_metric_shape shape;
    ats_metric_needs needs;
    const char *unit;
    const char *long_name;
    const char *definition; /* formula, in words and symbols of metrics.md */
    bool has_base;          /* also written for the base */
    bool base_only;
    bool integer; /* stored as int32/int64, -1 pads (top_index and the like); else float32 */
    double (*value)(const ats_cell *cell);
    int32_t fill; /* integer: undefined and padding, -1 or ATS_INTEGER_UNDEFINED */
    ats_better better;
    bool log_mean;             /* a mass: averaged over probes in its logarithm */
    const char *flag_meanings; /* integer codes 0, 1, ...: a word for each; NULL: no codes */
} ats_metric;

const ats_metric *const *ats_metrics(int64_t *count);
const ats_metric *ats_metric_find(const char *name); /* NULL: none */
const char *ats_better_name(ats_better better);      /* "more", "less", "neither" */
/* On one span (NULL: it has none): the metric's word on the target, less on `inserted`, neither on
 * other spans. */
ats_better ats_metric_better(const ats_metric *metric, const char *span, const char *target);
/* docs/metrics.md as text in the arena, written from the table. */
ATS_MUST_CHECK ats_code ats_metrics_markdown(ats_arena *arena, const char **out, ats_err *err);

#endif

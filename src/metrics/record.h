/* The recorder: statistics of one sample and layer, variant by variant, into the float32 arrays
 * that the result file takes.
 *
 * One recorder holds all cases of one (sample, layer): values[metric][case][head][probe][x]. Cells
 * are written by (case, head, probe), so concurrent calls for different cases are safe.
 * Ownership: arrays live in the arena given to ats_recorder_new; reset reuses them. */
#ifndef ATS_METRICS_RECORD_H
#define ATS_METRICS_RECORD_H

#include "base/arena.h"
#include "metrics/metric.h"

typedef struct ats_record_shape {
    int64_t n_cases, n_heads, n_probes; /* axes of the result file; cells never recorded stay NaN */
    int64_t n_spans;                    /* regions, then ATS_SPAN_INSERTED as the last one */
    int64_t n_top, n_readouts, d_v;
    int64_t target_span; /* span whose log_mass_shift picks the worst probe; -1: none */
    bool detail_head;    /* reduce over probes: mean, masses as exp of mean log, worst probe kept */
} ats_record_shape;

typedef struct ats_recorder {
    ats_record_shape shape;
    int64_t n_metrics;
    const ats_metric *const *metrics;
    float **values;      /* [n_metrics]: NULL for integer metrics and base_only ones */
    int32_t **integers;  /* [n_metrics] */
    float **base_values; /* [n_metrics]: NULL without a base twin */
    int32_t **base_integers;
    int32_t *worst_probe; /* [case, head] with detail_head */
    int64_t *undefined;   /* [n_cases]: cells whose route is undefined (no legal key, no sink) */
    float *worst_value;   /* [case, head] with detail_head: log_mass_shift of the target there */
    double *gram;         /* [head, d_v, d_v] W_O W_O^T, room for the widest layer; NULL: unused */
    double *readout_rows; /* [head, readout, d_v] W_O r, likewise */
    int8_t *folded;       /* [head]: those two are filled */
} ats_recorder;

/* Numbers of one cell: 1, n_spans, n_parts, n_top, n_readouts * n_spans, n_spans * d_v. */
int64_t ats_metric_width(const ats_metric *metric, const ats_record_shape *shape);
ATS_MUST_CHECK ats_code ats_recorder_new(ats_arena *arena, const ats_record_shape *shape,
                                         const ats_metric *const *metrics, int64_t n_metrics,
                                         ats_recorder *out, ats_err *err);
void ats_recorder_clear(ats_recorder *recorder); /* everything undefined again */
/* A reading of detail_head: values[metric][case][head][x], the mean over probes that are defined
 * (of the logarithm for masses); lists and integers are those of the worst probe, the one with the
 * lowest log_mass_shift of the target span (in the base: the lowest mass; no target: the first). */

typedef struct ats_record_place {
    int64_t case_index;      /* -1: the base */
    const int64_t *head;     /* [heads of the problem] index on the head axis */
    const float *const *w_o; /* [heads of the problem] [d_v, d_model], or NULL */
    int64_t d_model;
    const float *readouts;          /* [n_readouts, d_model] or NULL */
    const ats_diagnosis *diagnoses; /* [rows of the problem], for the base; NULL: not made */
} ats_record_place;

/* All rows of one variant (or the base: stats == base). A head's base comes before its variants:
 * it is then that the head's W_O is folded. */
ATS_MUST_CHECK ats_code ats_record(ats_recorder *recorder, const ats_record_place *place,
                                   const ats_problem *problem, const ats_stats *base,
                                   const ats_stats *stats, ats_err *err);

#endif

/* The plan of a run: everything is validated and counted before any attention is computed.
 *
 * Captures are opened, the selection is made, and every variant's layout is built for every
 * sample and layer. What cannot run on a sample is a skipped case with a reason; what cannot
 * run at all is an error with its place in the suite.
 * Ownership: a plan owns its captures and arena; the suite stays with the caller. */
#ifndef ATS_ENGINE_PLAN_H
#define ATS_ENGINE_PLAN_H

#include "engine/curve.h"
#include "engine/select.h"
#include "kernels/share.h"
#include "report/results.h"

typedef struct ats_plan_options {
    const char *const *captures; /* globs that replace the suite's; NULL: the suite's */
    int64_t n_captures;
    const char *backend; /* NULL: the suite's */
    int64_t memory;      /* bytes; 0: 80 % of what machine and control group leave */
    const char *scratch; /* folder of what memory does not hold; NULL: ats_scratch_folder() */
} ats_plan_options;

/* sample x variant */
typedef struct ats_plan_case {
    int64_t rows;       /* side rows of one key head (largest over layers) */
    double dose;        /* NaN: none */
    const char *reason; /* why skipped in every layer; NULL: it runs */
} ats_plan_case;

/* An estimate in seconds at ats_threads(): within a factor of about two, of elapsed time on an idle
 * machine. start: the process, opening and planning; write: measuring, recording and joining too.
 */
typedef struct ats_plan_time {
    double start, read, build, evaluate, write;
} ats_plan_time;

typedef struct ats_plan {
    ats_arena arena;
    const ats_suite *suite;
    const ats_backend *backend;
    int64_t n_captures;
    ats_capture **captures;
    ats_selection selection;
    ats_span_axis axis;
    int64_t target_span; /* on the axis; -1: none */
    int64_t n_metrics;
    const ats_metric **metrics;
    bool diagnoses; /* a metric needs every base row's diagnosis */
    int64_t n_cases, n_skipped;
    const ats_plan_case *cases;      /* [n_samples, n_variants] */
    ats_curve_groups curves;         /* shape.n_curves = n_samples * curves.count */
    ats_results_shape shape;         /* detail_head as decided, probe detail when undecided */
    bool detail_undecided;           /* over the limit and the suite does not say */
    int64_t bytes_probe, bytes_head; /* uncompressed result at either detail */
    int64_t rows;                    /* side rows of all cases, layers and key heads */
    int64_t distinct_shifts;         /* query moves other than 0, largest number in one sample */
    int64_t batch;  /* variants evaluated together: bounds memory, changes no bit */
    int64_t memory; /* bytes the run may use; 0: unknown, no limit */
    bool memory_given, memory_of_group; /* by the caller; by a control group */
    bool by_head;            /* tensors of one key head at a time: a layer does not fit */
    bool streams;            /* not even keys and values of one key head fit: through a file */
    bool read_ahead;         /* the next layer is read while one is evaluated */
    ats_stream stream;       /* if so: its folder, bytes in memory of a sample's head */
    int64_t scratch_bytes;   /* of the file, at most; with the donor's */
    int64_t workspace_bytes; /* of the backend, at most */
    int64_t workspace_limit; /* what it may use; 0: no limit */
    int64_t tensor_cache;    /* bytes of tensors kept beyond those in use */
    int64_t peak_bytes;      /* of everything */
    ats_share_sum share;     /* over samples, layers and key heads */
    double effort;           /* of building beyond side rows (perturb/family.h) */
    ats_plan_time time;
    double seconds;           /* its sum */
    int64_t part, part_count; /* one sample of a run of part_count; 0: the whole run */
} ats_plan;

ATS_MUST_CHECK ats_code ats_plan_make(const ats_suite *suite, const ats_plan_options *options,
                                      ats_plan **out, ats_err *err);
void ats_plan_free(ats_plan *plan);

/* A chosen layer (an index of the selection); its description is the same in every capture. */
const ats_layer *ats_plan_layer(const ats_plan *plan, int64_t layer);
/* The plan of one sample alone, as a view: it owns nothing and lives no longer than the whole. */
ats_plan ats_plan_sample(const ats_plan *plan, int64_t sample);
/* Its work, in multiplies: the same on every machine. */
double ats_plan_sample_work(const ats_plan *plan, int64_t sample);

/* The build context of a variant on a chosen sample and layer (indices of the selection);
 * donors: as many as ats_plan_donors gives. attention NULL: layout only. */
ats_build ats_plan_build(const ats_plan *plan, int64_t sample, int64_t layer, int64_t variant,
                         const ats_donor *donors, int64_t n_donors, ats_arena *arena);

/* Opens the files that globs name; several files must hold one checkpoint. */
ATS_MUST_CHECK ats_code ats_plan_open(const ats_suite *suite, const ats_plan_options *options,
                                      ats_arena *arena, ats_capture ***out, int64_t *count,
                                      ats_err *err);

#endif

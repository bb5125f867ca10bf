/* State of one run, shared by its files. Internal to the engine. */
#ifndef ATS_ENGINE_RUN_PRIVATE_H
#define ATS_ENGINE_RUN_PRIVATE_H

#include "engine/run.h"
#include "engine/tensors.h"
#include "metrics/record.h"
#include "perturb/cache.h"

/* What is known of a case so far; sums are added in a fixed order by one thread. */
typedef struct case_state {
    ats_case_status status;
    bool ran;
    char message[320];
    int64_t rows, undefined;
    double dose;
    double cosine, norm_ratio, logit; /* sums */
    int64_t n_cosine, n_norm_ratio, n_logit;
} case_state;

/* One key head's evaluation of one batch of variants. */
typedef struct evaluation {
    const ats_plan *plan;
    ats_recorder *recorder;
    int64_t sample, layer; /* indices of the selection */
    int64_t first, count;  /* variants [first, first + count) */
    const ats_group *group;
    const ats_problem *problem;
    ats_donor donors[2];
    int64_t n_donors;
    ats_arena *arenas;       /* [ats_threads()] of the edits */
    ats_build_cache *caches; /* [ats_threads()] */
    ats_built *built;        /* [count] */
    ats_err **failed;        /* [count] NULL: built */
    ats_edit *edits;         /* [n_edits] those that run */
    int64_t *edit_of;        /* [n_edits] batch index of an edit */
    int64_t n_edits;
    const float *const *w_o;        /* [group->n_heads] or NULL */
    const ats_diagnosis *diagnoses; /* [problem->n_rows] with the first batch, else NULL */
    double *measured;               /* [ats_threads()] seconds spent in the recorder */
} evaluation;

/* Builds the edits of a batch in parallel; failures are kept beside them. */
ATS_MUST_CHECK ats_code ats_run_build(evaluation *work, case_state *cases, ats_arena *arena,
                                      ats_err *err);
/* Adds what the batch's edits can share to sum. */
ATS_MUST_CHECK ats_code ats_run_share(const evaluation *work, ats_arena *arena, ats_share_sum *sum,
                                      ats_err *err);
/* Evaluates and records; a variant that fails alone is marked in cases and left out. */
ATS_MUST_CHECK ats_code ats_run_evaluate(evaluation *work, case_state *cases, ats_err *err);

/* What the parts of one run share. */
typedef struct ats_run_progress {
    ats_tensors tensors; /* kept for later donors */
    pthread_mutex_t io;  /* held while HDF5 is used */
    int64_t done, total; /* cases x layers: of earlier parts, of all */
    ats_run_account account;
} ats_run_progress;
void ats_run_progress_fini(ats_run_progress *progress);

/* Runs a plan into one file, without judging it. failure: the first that failed whole samples. */
ATS_MUST_CHECK ats_code ats_run_part(const ats_plan *plan, const char *path,
                                     ats_run_progress *progress, ats_outcome *out, ats_err *failure,
                                     ats_err *err);

void ats_case_fail(case_state *state, const char *message);

/* Coordinates and root attributes known before the work, and those known after it. */
typedef struct ats_coordinates {
    int64_t count;
    ats_coordinate *items;
} ats_coordinates;
ATS_MUST_CHECK ats_code ats_coordinates_before(const ats_plan *plan, ats_arena *arena,
                                               ats_coordinates *out, ats_err *err);
ATS_MUST_CHECK ats_code ats_coordinates_after(const ats_plan *plan, const ats_case *cases,
                                              ats_arena *arena, ats_coordinates *out, ats_err *err);
ATS_MUST_CHECK ats_code ats_attributes_make(const ats_plan *plan, ats_arena *arena,
                                            ats_attribute **out, int64_t *count, ats_err *err);

#endif

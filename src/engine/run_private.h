/* State of one run, shared by its files. Internal to the engine. */
#ifndef ATS_ENGINE_RUN_PRIVATE_H
#define ATS_ENGINE_RUN_PRIVATE_H

#include "engine/behind.h"
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

typedef struct ats_part_run ats_part_run;

/* Numbers of one batch on their way into the file. */
typedef struct ats_written {
    ats_recorder recorder;
    ats_block *blocks; /* [2 * n_metrics + 3] */
    int64_t number;    /* job that writes them; -1: none yet */
    ats_part_run *part;
    int64_t sample, layer, first, count;
} ats_written;

/* What the parts of one run share: memory that is used again, and threads. */
enum { ATS_RUN_RECORDERS = 2 }; /* one is filled while the other is written */
typedef struct ats_run_common {
    const ats_plan *plan;
    ats_tensors tensors; /* kept for later donors */
    pthread_mutex_t io;  /* held while HDF5 is used */
    ats_behind *behind;  /* what is written */
    ats_arena arena;
    ats_arena group;         /* one key head of one batch */
    ats_arena *workers;      /* [ats_threads()] edits of one key head */
    ats_build_cache *caches; /* [ats_threads()] */
    double *measured;        /* [ats_threads()] seconds of this part */
    ats_written written[ATS_RUN_RECORDERS];
    int turn;            /* the recorder that is being filled */
    int64_t done, total; /* cases x layers: of earlier parts, of all */
    ats_run_account account;
} ats_run_common;
/* `io` is initialised by the caller. */
ATS_MUST_CHECK ats_code ats_run_common_init(ats_run_common *common, const ats_plan *plan,
                                            ats_err *err);
void ats_run_common_fini(ats_run_common *common); /* accepts one whose init failed */

/* One part: a plan into one file, without judging it. */
struct ats_part_run {
    ats_plan plan;
    const char *path;
    ats_run_common *common;
    ats_outcome outcome;
    ats_arena arena;   /* whole part */
    case_state *cases; /* [n_samples, n_variants] */
    ats_breakdowns breakdowns;
    ats_results *results; /* of the jobs behind, as is `writing` */
    ats_arena writing;
    ats_err first_failure;
    int64_t done; /* cases x layers of this part */
    int64_t last; /* number of the latest job */
    double start;
    bool noted; /* in the account */
};
/* Evaluates everything; what it writes may still be on its way. plan is copied, path kept. */
ATS_MUST_CHECK ats_code ats_part_run_begin(const ats_plan *plan, const char *path,
                                           ats_run_common *common, ats_part_run **out,
                                           ats_err *err);
/* Waits for the sealed file. failure: the first that failed whole samples. */
ATS_MUST_CHECK ats_code ats_part_run_end(ats_part_run *part, ats_outcome *out, ats_err *failure,
                                         ats_err *err);
void ats_part_run_free(ats_part_run *part); /* gives up what is not sealed; NULL is fine */

/* Jobs behind: the part's file with all that is known before the work; a batch, from the recorder
 * whose turn it is; the rest, sealed and named. */
ATS_MUST_CHECK ats_code ats_write_open(ats_part_run *part, ats_err *err);
ATS_MUST_CHECK ats_code ats_write_batch(ats_part_run *part, const evaluation *work, ats_err *err);
ATS_MUST_CHECK ats_code ats_write_end(ats_part_run *part, ats_err *err);
void ats_write_abort(ats_part_run *part);

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

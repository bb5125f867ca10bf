/* The run: read, build edits, evaluate, measure, write, sample by sample and layer by layer.
 *
 * A case that fails is recorded (status, message) and the run goes on. Every sample is a part of
 * its own (report/part.h) that survives a crash; the result is joined from the parts, so it does
 * not depend on what happened on the way. Memory is bounded by the plan's batch. Ownership: the
 * outcome's texts live in its arena; release with ats_outcome_fini. */
#ifndef ATS_ENGINE_RUN_H
#define ATS_ENGINE_RUN_H

#include "engine/collect.h"
#include "engine/shard.h"

typedef enum ats_case_status { ATS_CASE_OK, ATS_CASE_SKIPPED, ATS_CASE_FAILED } ats_case_status;

typedef struct ats_case {
    ats_case_status status;
    const char *message; /* why skipped or failed, or "" */
    int64_t rows;        /* side rows of one key head */
    double dose;
    double cosine, norm_ratio, logit; /* means over layers, key heads and rows; NaN: none */
    int64_t undefined;                /* cells whose route has no legal key and no sink */
} ats_case;

typedef struct ats_outcome {
    ats_arena arena;
    int64_t n_cases;
    ats_case *cases;   /* [n_samples, n_variants] */
    ats_tables tables; /* probe means of the gates' variables and the target */
    ats_curves curves; /* count 0: the suite has no doses, or no target */
    int64_t n_ok, n_skipped, n_failed, n_undefined;
    ats_account account; /* what the backend did */
    ats_share_sum share; /* what its batches shared */
    /* Seconds. measure is processor time / threads; write: nothing else went on; behind: was
     * written while the next was evaluated, waiting for it included in write too. */
    double read, build, evaluate, measure, write, behind, total;
    bool whole;             /* all samples: a shard's outcome has no cases and tables */
    bool finished_before;   /* nothing was computed: the result was there */
    int64_t n_mine, n_kept; /* samples of this process; those that were there already */
} ats_outcome;

/* What this process did, counted while it does it: also known of a run that failed or was
 * interrupted. */
typedef struct ats_run_account {
    double read, build, evaluate, measure, write, join; /* seconds; measure: CPU time / threads */
    int64_t n_mine, n_kept, n_made;    /* samples: of this process, there already, computed */
    int64_t n_ok, n_skipped, n_failed; /* cases of the samples computed */
} ats_run_account;

typedef struct ats_run_options {
    const char *path;
    ats_shard shard;          /* count 0: every sample, and the joined result */
    bool force;               /* replace the result and the parts of another run */
    double grace;             /* seconds that a sample in flight has to end after a signal */
    const char *job;          /* ats_shard_job; NULL: none */
    ats_run_account *account; /* filled whatever happens; NULL: not wanted */
} ats_run_options;

/* Computes what is missing, keeps what is there; ATS_E_INTERRUPTED and errors of the disk leave the
 * parts for the next time. Every case failed: the first error. */
ATS_MUST_CHECK ats_code ats_run_with(const ats_plan *plan, const ats_run_options *options,
                                     ats_outcome *out, ats_err *err);

/* The same with no option but the path. */
ATS_MUST_CHECK ats_code ats_run(const ats_plan *plan, const char *path, ats_outcome *out,
                                ats_err *err);
void ats_outcome_fini(ats_outcome *outcome);

#endif

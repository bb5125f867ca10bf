/* Work that one thread does behind the run, in the order in which it was given: what a run writes,
 * while it evaluates on.
 *
 * After a job has failed none is begun any more, and its error is what the calls return.
 * Ownership: a job's context stays the caller's and valid until the job has ended. */
#ifndef ATS_ENGINE_BEHIND_H
#define ATS_ENGINE_BEHIND_H

#include <stdint.h>

#include "base/status.h"

typedef ats_code (*ats_behind_fn)(void *ctx, ats_err *err);
typedef struct ats_behind ats_behind;

ATS_MUST_CHECK ats_code ats_behind_new(ats_behind **out, ats_err *err);
/* Appends a job; where no thread can be started, does it at once. *number: for ats_behind_wait. */
ATS_MUST_CHECK ats_code ats_behind_do(ats_behind *behind, ats_behind_fn job, void *ctx,
                                      int64_t *number, ats_err *err);
/* Waits until that job has ended or will never begin; the error, if it or one before it failed. */
ATS_MUST_CHECK ats_code ats_behind_wait(ats_behind *behind, int64_t number, ats_err *err);
/* Waits for everything, whether it failed or not. */
void ats_behind_settle(ats_behind *behind);
/* Seconds that jobs took so far, those in which a caller waited for them included. */
double ats_behind_seconds(ats_behind *behind);
void ats_behind_free(ats_behind *behind); /* settles; NULL is fine */

#endif

/* Threads: a thin layer over OpenMP with a partition fixed by the problem.
 *
 * Work items are handed to threads in any order; each item writes only its own results,
 * so results never depend on the thread count. */
#ifndef ATS_BASE_PARALLEL_H
#define ATS_BASE_PARALLEL_H

#include <stdint.h>

#include "base/status.h"

int ats_threads(void);          /* threads in use: set by ats_set_threads, else the affinity mask */
void ats_set_threads(int count); /* 0: the default */
/* At most so many for what the calling thread starts; 0: no limit. */
void ats_limit_threads(int count);

/* item(ctx, index, worker, err): worker in [0, ats_threads()). The error of the lowest failing
 * index is returned, whatever the order; after a failure remaining items may be skipped. */
typedef ats_code (*ats_item_fn)(void *ctx, int64_t index, int worker, ats_err *err);
ATS_MUST_CHECK ats_code ats_parallel_for(int64_t count, ats_item_fn item, void *ctx, ats_err *err);
/* The same on at most so many threads: worker in [0, threads). */
ATS_MUST_CHECK ats_code ats_parallel_some(int threads, int64_t count, ats_item_fn item, void *ctx,
                                          ats_err *err);

#endif

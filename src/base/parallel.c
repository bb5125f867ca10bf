#include "base/parallel.h"

#include <omp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int threads_wanted;
static _Thread_local int threads_limit; /* 0: none */

int ats_threads(void)
{
    int count = threads_wanted > 0 ? threads_wanted : omp_get_max_threads();
    if (threads_limit > 0 && count > threads_limit) count = threads_limit;
    return count > 0 ? count : 1;
}

void ats_limit_threads(int count) { threads_limit = count; }

void ats_set_threads(int count) { threads_wanted = count; }

/* Two threads on one core take twice the time of a run, so each worker stays on a core of its own
 * when there is a thread for every core the process may use. The calling thread is left alone: what
 * it starts later inherits its mask. A wish: where it fails, or OpenMP was told its own places, the
 * system decides. */
static void bind_worker(void)
{
    static _Thread_local bool done;
    cpu_set_t allowed, one;
    const int thread = omp_get_thread_num();
    if (done || thread == 0) return;
    done = true;
    if (getenv("OMP_PROC_BIND") != NULL || getenv("OMP_PLACES") != NULL ||
        getenv("GOMP_CPU_AFFINITY") != NULL)
        return;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    if (CPU_COUNT(&allowed) != omp_get_num_threads()) return;
    int left = thread;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || left-- > 0) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        (void)sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

ats_code ats_parallel_for(int64_t count, ats_item_fn item, void *ctx, ats_err *err)
{
    return ats_parallel_some(ats_threads(), count, item, ctx, err);
}

ats_code ats_parallel_some(int threads, int64_t count, ats_item_fn item, void *ctx, ats_err *err)
{
    int64_t failed = count;
    ats_err first = {.code = ATS_OK};
    /* A failure at index i skips later items only, so the lowest failing index always runs. */
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t i = 0; i < count; i++) {
        int64_t limit;
        bind_worker();
#pragma omp atomic read
        limit = failed;
        if (i > limit) continue;
        ats_err mine = {.code = ATS_OK};
        ats_code rc = item(ctx, i, omp_get_thread_num(), &mine);
        if (rc == ATS_OK) continue;
#pragma omp critical(ats_parallel_failure)
        if (i < failed) {
#pragma omp atomic write
            failed = i;
            first = mine;
            first.code = rc;
        }
    }
    if (first.code == ATS_OK) return ATS_OK;
    if (err != NULL) *err = first;
    return first.code;
}

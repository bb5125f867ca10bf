#include "base/parallel.h"

#include <omp.h>
#include <string.h>

static int threads_wanted;

int ats_threads(void)
{
    if (threads_wanted > 0) return threads_wanted;
    int count = omp_get_max_threads();
    return count > 0 ? count : 1;
}

void ats_set_threads(int count) { threads_wanted = count; }

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

#include "engine/behind.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/parallel.h"
#include "h5/file.h"

enum { MOST = 8 }; /* jobs that wait at a time */

typedef struct job {
    ats_behind_fn run;
    void *ctx;
} job;

struct ats_behind {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool started, ending;
    job jobs[MOST];       /* number n is in jobs[n % MOST] */
    int64_t given, ended; /* numbers of jobs so far */
    double seconds;
    ats_err failure; /* of job number `failed`, the first that did */
    int64_t failed;
};

ats_code ats_behind_new(ats_behind **out, ats_err *err)
{
    ats_behind *behind = calloc(1, sizeof *behind);
    if (behind == NULL) return ats_fail(err, ATS_E_MEMORY, "out of memory for a thread");
    pthread_mutex_init(&behind->lock, NULL);
    pthread_cond_init(&behind->changed, NULL);
    *out = behind;
    return ATS_OK;
}

/* With the lock held; gives it back meanwhile. */
static void run_next(ats_behind *behind)
{
    const job next = behind->jobs[behind->ended % MOST];
    ats_err mine = {.code = ATS_OK};
    const bool begin = behind->failure.code == ATS_OK;
    const double start = ats_clock();
    pthread_mutex_unlock(&behind->lock);
    const ats_code rc = begin ? next.run(next.ctx, &mine) : ATS_OK;
    pthread_mutex_lock(&behind->lock);
    if (rc != ATS_OK) {
        behind->failure = mine;
        behind->failure.code = rc;
        behind->failed = behind->ended;
    }
    behind->seconds += ats_clock() - start;
    behind->ended++;
    pthread_cond_broadcast(&behind->changed);
}

/* A quarter of the threads: what is behind must keep up, not hold the evaluation back. */
static void *work(void *ctx)
{
    ats_behind *behind = ctx;
    const int threads = ats_threads() / 4;
    ats_limit_threads(threads > 0 ? threads : 1);
    ats_h5_quiet();
    pthread_mutex_lock(&behind->lock);
    for (;;) {
        while (behind->ended == behind->given && !behind->ending)
            pthread_cond_wait(&behind->changed, &behind->lock);
        if (behind->ended == behind->given) break;
        run_next(behind);
    }
    pthread_mutex_unlock(&behind->lock);
    return NULL;
}

/* Of the jobs up to this one. */
static ats_code failure_of(const ats_behind *behind, int64_t number, ats_err *err)
{
    if (behind->failure.code == ATS_OK || behind->failed > number) return ATS_OK;
    *err = behind->failure;
    return behind->failure.code;
}

ats_code ats_behind_do(ats_behind *behind, ats_behind_fn run, void *ctx, int64_t *number,
                       ats_err *err)
{
    pthread_mutex_lock(&behind->lock);
    if (!behind->started)
        behind->started = pthread_create(&behind->thread, NULL, work, behind) == 0;
    while (behind->given - behind->ended == MOST)
        pthread_cond_wait(&behind->changed, &behind->lock);
    behind->jobs[behind->given % MOST] = (job){run, ctx};
    *number = behind->given++;
    if (behind->started)
        pthread_cond_broadcast(&behind->changed);
    else
        run_next(behind);
    const ats_code rc = failure_of(behind, behind->given, err);
    pthread_mutex_unlock(&behind->lock);
    return rc;
}

ats_code ats_behind_wait(ats_behind *behind, int64_t number, ats_err *err)
{
    pthread_mutex_lock(&behind->lock);
    while (behind->ended <= number) pthread_cond_wait(&behind->changed, &behind->lock);
    const ats_code rc = failure_of(behind, number, err);
    pthread_mutex_unlock(&behind->lock);
    return rc;
}

void ats_behind_settle(ats_behind *behind)
{
    pthread_mutex_lock(&behind->lock);
    while (behind->ended < behind->given) pthread_cond_wait(&behind->changed, &behind->lock);
    pthread_mutex_unlock(&behind->lock);
}

double ats_behind_seconds(ats_behind *behind)
{
    pthread_mutex_lock(&behind->lock);
    const double seconds = behind->seconds;
    pthread_mutex_unlock(&behind->lock);
    return seconds;
}

void ats_behind_free(ats_behind *behind)
{
    if (behind == NULL) return;
    ats_behind_settle(behind);
    if (behind->started) {
        pthread_mutex_lock(&behind->lock);
        behind->ending = true;
        pthread_cond_broadcast(&behind->changed);
        pthread_mutex_unlock(&behind->lock);
        pthread_join(behind->thread, NULL);
    }
    pthread_cond_destroy(&behind->changed);
    pthread_mutex_destroy(&behind->lock);
    free(behind);
}

/* Work behind the run: order, waiting, what a failure stops. */
#include "engine/behind.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/parallel.h"
#include "support/check.h"

typedef struct diary {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool open; /* jobs may go on */
    int entries[64], n;
    int threads;
} diary;

typedef struct entry {
    diary *in;
    int number;
    ats_code rc;
} entry;

static ats_code write_entry(void *ctx, ats_err *err)
{
    entry *e = ctx;
    pthread_mutex_lock(&e->in->lock);
    while (!e->in->open) pthread_cond_wait(&e->in->opened, &e->in->lock);
    e->in->entries[e->in->n++] = e->number;
    e->in->threads = ats_threads();
    pthread_mutex_unlock(&e->in->lock);
    return e->rc == ATS_OK ? ATS_OK : ats_fail(err, e->rc, "entry %d failed", e->number);
}

static void open_diary(diary *d)
{
    pthread_mutex_lock(&d->lock);
    d->open = true;
    pthread_cond_broadcast(&d->opened);
    pthread_mutex_unlock(&d->lock);
}

static void jobs_are_done_in_order(void **state)
{
    (void)state;
    diary d = {.lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER, .open = true};
    entry entries[40];
    ats_behind *behind = NULL;
    ats_err err;
    int64_t number = -1;
    ats_set_threads(8);
    assert_int_equal(ats_behind_new(&behind, &err), ATS_OK);
    for (int i = 0; i < 40; i++) {
        entries[i] = (entry){.in = &d, .number = i};
        assert_int_equal(ats_behind_do(behind, write_entry, &entries[i], &number, &err), ATS_OK);
        assert_int_equal(number, i);
    }
    assert_int_equal(ats_behind_wait(behind, number, &err), ATS_OK);
    assert_int_equal(d.n, 40);
    for (int i = 0; i < 40; i++) assert_int_equal(d.entries[i], i);
    assert_int_equal(d.threads, 2); /* a quarter; the caller keeps its own number */
    assert_int_equal(ats_threads(), 8);
    assert_true(ats_behind_seconds(behind) >= 0);
    ats_behind_free(behind);
    ats_set_threads(0);
}

/* Given, and not begun: the caller goes on meanwhile. */
static void the_caller_goes_on(void **state)
{
    (void)state;
    diary d = {.lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER};
    entry first = {.in = &d, .number = 1}, second = {.in = &d, .number = 2};
    ats_behind *behind = NULL;
    ats_err err;
    int64_t number = -1;
    assert_int_equal(ats_behind_new(&behind, &err), ATS_OK);
    assert_int_equal(ats_behind_do(behind, write_entry, &first, &number, &err), ATS_OK);
    assert_int_equal(ats_behind_do(behind, write_entry, &second, &number, &err), ATS_OK);
    assert_int_equal(d.n, 0);
    open_diary(&d);
    ats_behind_settle(behind);
    assert_int_equal(d.n, 2);
    ats_behind_free(behind);
}

static void a_failure_stops_what_follows(void **state)
{
    (void)state;
    diary d = {.lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER};
    entry entries[4];
    int64_t numbers[4];
    ats_behind *behind = NULL;
    ats_err err;
    assert_int_equal(ats_behind_new(&behind, &err), ATS_OK);
    for (int i = 0; i < 4; i++) {
        entries[i] = (entry){.in = &d, .number = i, .rc = i == 1 ? ATS_E_IO : ATS_OK};
        assert_int_equal(ats_behind_do(behind, write_entry, &entries[i], &numbers[i], &err),
                         ATS_OK);
    }
    open_diary(&d);
    assert_int_equal(ats_behind_wait(behind, numbers[0], &err), ATS_OK);
    for (int i = 1; i < 4; i++) {
        err = (ats_err){.code = ATS_OK};
        assert_int_equal(ats_behind_wait(behind, numbers[i], &err), ATS_E_IO);
        assert_string_equal(err.text, "entry 1 failed");
    }
    assert_int_equal(ats_behind_wait(behind, numbers[0], &err), ATS_OK); /* still */
    assert_int_equal(ats_behind_do(behind, write_entry, &entries[0], &numbers[0], &err), ATS_E_IO);
    ats_behind_settle(behind);
    assert_int_equal(d.n, 2);
    ats_behind_free(behind);
    ats_behind_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_are_done_in_order),
        cmocka_unit_test(the_caller_goes_on),
        cmocka_unit_test(a_failure_stops_what_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

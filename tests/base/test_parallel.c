/* Work items: all run once, the lowest failing index wins at any thread count. */
#include "support/check.h"

#include <sched.h>
#include <string.h>

#include "base/parallel.h"

typedef struct work {
    int64_t hits[500];
    int64_t bad[2];
    int worst_worker;
} work;

static ats_code item(void *ctx, int64_t index, int worker, ats_err *err)
{
    work *w = ctx;
    w->hits[index]++;
    if (worker < 0 || worker >= ats_threads()) w->worst_worker = worker;
    if (index == w->bad[0] || index == w->bad[1])
        return ats_fail(err, ATS_E_INPUT, "item %lld", (long long)index);
    return ATS_OK;
}

static void every_item_once(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 5; threads++) {
        ats_set_threads(threads);
        work w = {.bad = {-1, -1}, .worst_worker = 0};
        ats_err err;
        assert_ok(ats_parallel_for(500, item, &w, &err), &err);
        for (int i = 0; i < 500; i++) assert_int_equal(w.hits[i], 1);
        assert_int_equal(w.worst_worker, 0);
    }
    ats_set_threads(0);
    assert_true(ats_threads() >= 1);
}

static void lowest_failure_is_reported(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        ats_set_threads(threads);
        work w = {.bad = {37, 41}};
        ats_err err;
        assert_int_equal(ats_parallel_for(500, item, &w, &err), ATS_E_INPUT);
        assert_string_equal(err.text, "item 37");
        for (int i = 0; i < 37; i++) assert_int_equal(w.hits[i], 1);
    }
    ats_set_threads(0);
}

/* Workers are bound to cores; the caller, and what it starts later, is not. */
static void caller_keeps_its_cores(void **state)
{
    (void)state;
    cpu_set_t before, after;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    const int cores = CPU_COUNT(&before);
    for (int threads = 1; threads <= cores + 1; threads++) {
        ats_set_threads(threads);
        work w = {.bad = {-1, -1}};
        ats_err err;
        assert_ok(ats_parallel_for(500, item, &w, &err), &err);
        assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
        assert_true(CPU_EQUAL(&before, &after));
    }
    ats_set_threads(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_once),
        cmocka_unit_test(lowest_failure_is_reported),
        cmocka_unit_test(caller_keeps_its_cores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which shard this is, from words and from schedulers' variables; how work is dealt out. */
#include <stdlib.h>
#include <string.h>

#include "engine/shard.h"
#include "support/check.h"

static const char *const *given; /* name, value, ..., NULL */

static char *look(const char *name)
{
    for (const char *const *at = given; *at != NULL; at += 2)
        if (strcmp(at[0], name) == 0) return (char *)(uintptr_t)at[1];
    return NULL;
}

static void expect(const char *text, int64_t count, int64_t index, int64_t of)
{
    ats_shard shard = {.count = 0};
    ats_err err = {.code = ATS_OK};
    assert_ok(ats_shard_parse(text, count, look, &shard, &err), &err);
    assert_int_equal(shard.index, index);
    assert_int_equal(shard.count, of);
}

static void refuse(const char *text, int64_t count, const char *words)
{
    ats_shard shard = {.count = 0};
    ats_err err = {.code = ATS_OK};
    assert_int_equal(ats_shard_parse(text, count, look, &shard, &err), ATS_E_USAGE);
    assert_says(err.text, words);
}

static const char *const nothing[] = {NULL};

static void pairs_count_from_one(void **state)
{
    (void)state;
    given = nothing;
    expect("1/1", 0, 0, 1);
    expect("2/8", 0, 1, 8);
    expect("8/8", 8, 7, 8);
    refuse("0/8", 0, "count from 1/8");
    refuse("9/8", 0, "count from 1/8");
    refuse("2/8", 4, "--shards 4");
    static const char *const bad[] = {"",    "2",    "2/",   "/2",   "a/b",
                                      "1/0", "-1/2", "1/2x", "1 /2", "1/99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) refuse(bad[i], 0, "--shard");
}

static void auto_asks_the_scheduler(void **state)
{
    (void)state;
    static const char *const array[] = {"SLURM_ARRAY_TASK_ID",
                                        "14",
                                        "SLURM_ARRAY_TASK_MIN",
                                        "10",
                                        "SLURM_ARRAY_TASK_MAX",
                                        "18",
                                        "SLURM_ARRAY_TASK_STEP",
                                        "4",
                                        "SLURM_PROCID",
                                        "0",
                                        "SLURM_NTASKS",
                                        "1",
                                        NULL};
    static const char *const gaps[] = {"SLURM_ARRAY_TASK_ID",
                                       "5",
                                       "SLURM_ARRAY_TASK_MIN",
                                       "1",
                                       "SLURM_ARRAY_TASK_MAX",
                                       "7",
                                       "SLURM_ARRAY_TASK_COUNT",
                                       "3",
                                       NULL};
    static const char *const rank[] = {"SLURM_PROCID", "3", "SLURM_NTASKS", "4", NULL};
    static const char *const mpi[] = {"OMPI_COMM_WORLD_RANK",
                                      "1",
                                      "OMPI_COMM_WORLD_SIZE",
                                      "2",
                                      "SLURM_PROCID",
                                      "0",
                                      "SLURM_NTASKS",
                                      "1",
                                      NULL};
    static const char *const indexed[] = {"JOB_COMPLETION_INDEX", "2", NULL};
    static const char *const broken[] = {"SLURM_PROCID", "x", "SLURM_NTASKS", "4", NULL};
    given = array;
    expect("auto", 0, 1, 3);
    refuse("auto", 4, "SLURM_ARRAY_TASK_ID gives 3");
    given = gaps;
    refuse("auto", 0, "gaps");
    given = rank;
    expect("auto", 0, 3, 4);
    given = mpi;
    expect("auto", 0, 1, 2);
    given = indexed;
    expect("auto", 5, 2, 5);
    refuse("auto", 0, "--shards N");
    refuse("auto", 2, "there are 2 shards");
    given = broken;
    refuse("auto", 0, "SLURM_PROCID is \"x\"");
    given = nothing;
    refuse("auto", 0, "none of");
}

static void work_is_dealt_evenly_and_once(void **state)
{
    (void)state;
    static const double cost[] = {1, 9, 2, 8, 3, 7, 4, 6, 5, 5};
    enum { N = sizeof cost / sizeof cost[0] };
    ats_arena arena = {.blocks = NULL};
    ats_err err = {.code = ATS_OK};
    for (int64_t count = 1; count <= 12; count++) {
        int64_t shard_of[N];
        double load[12] = {0}, least = 1e9, most = 0;
        assert_ok(ats_shard_deal(cost, N, count, &arena, shard_of, &err), &err);
        for (int i = 0; i < N; i++) {
            assert_in_range(shard_of[i], 0, count - 1);
            load[shard_of[i]] += cost[i];
        }
        for (int64_t s = 0; s < count; s++) {
            if (load[s] < least) least = load[s];
            if (load[s] > most) most = load[s];
        }
        /* greedy dealing is never further apart than its dearest piece */
        assert_true(most - least <= 9);
        if (count == 2) assert_true(most - least <= 2);
    }
    ats_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_count_from_one),
        cmocka_unit_test(auto_asks_the_scheduler),
        cmocka_unit_test(work_is_dealt_evenly_and_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

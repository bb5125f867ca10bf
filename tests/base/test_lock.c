/* Locks against two writers: living, dead and silent holders. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"
#include "support/check.h"

static char folder[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/attnstress-lock-XXXXXX");
    assert_non_null(mkdtemp(folder));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ats_lock_sweep(folder);
    assert_int_equal(rmdir(folder), 0);
    return 0;
}

static void write_lock(const char *name, const char *text)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void the_second_is_told_who_the_first_is(void **state)
{
    (void)state;
    ats_lock first, second;
    ats_err err = {.code = ATS_OK};
    char pid[32], who[2048];
    assert_ok(ats_lock_take(folder, "run.lock", NULL, "runs suite s", "", &first, &err), &err);
    assert_int_equal(ats_lock_take(folder, "run.lock", NULL, "runs suite s", "", &second, &err),
                     ATS_E_LOCK);
    snprintf(pid, sizeof pid, "process %ld", (long)getpid());
    assert_says(err.text, pid, "this machine", "runs suite s", "run.lock");
    ats_lock_drop(&second); /* was not taken: does nothing */
    assert_true(ats_lock_held(folder, who, sizeof who));
    ats_lock_drop(&first);
    assert_false(ats_lock_held(folder, who, sizeof who));
    assert_ok(ats_lock_take(folder, "run.lock", NULL, "runs suite s", "", &second, &err), &err);
    ats_lock_drop(&second);
}

static void shards_of_one_split_are_friends(void **state)
{
    (void)state;
    ats_lock one, two, other;
    ats_err err = {.code = ATS_OK};
    assert_ok(ats_lock_take(folder, "shard-1-of-2.lock", "-of-2.lock", "1", "", &one, &err), &err);
    assert_ok(ats_lock_take(folder, "shard-2-of-2.lock", "-of-2.lock", "2", "", &two, &err), &err);
    assert_int_equal(
        ats_lock_take(folder, "shard-2-of-2.lock", "-of-2.lock", "2", "", &other, &err),
        ATS_E_LOCK);
    assert_int_equal(
        ats_lock_take(folder, "shard-3-of-3.lock", "-of-3.lock", "3", "", &other, &err),
        ATS_E_LOCK);
    assert_int_equal(ats_lock_take(folder, "run.lock", NULL, "all", "", &other, &err), ATS_E_LOCK);
    ats_lock_drop(&one);
    ats_lock_drop(&two);
}

static void a_dead_holder_is_taken_over(void **state)
{
    (void)state;
    ats_lock lock;
    ats_err err = {.code = ATS_OK};
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        static ats_lock held;
        _exit(ats_lock_take(folder, "run.lock", NULL, "dies", "", &held, &err) != ATS_OK);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_ok(ats_lock_take(folder, "run.lock", NULL, "lives", "", &lock, &err), &err);
    ats_lock_drop(&lock);
}

static void a_process_number_given_again_is_another_process(void **state)
{
    (void)state;
    ats_lock lock;
    ats_err err = {.code = ATS_OK};
    char text[1024], *at;
    assert_ok(ats_lock_take(folder, "run.lock", NULL, "me", "", &lock, &err), &err);
    memcpy(text, lock.text, sizeof text);
    ats_lock_drop(&lock);
    at = strstr(text, "started ");
    assert_non_null(at);
    at[8] = at[8] == '9' ? '8' : (char)(at[8] + 1); /* the same number, started at another time */
    write_lock("run.lock", text);
    assert_ok(ats_lock_take(folder, "run.lock", NULL, "me", "", &lock, &err), &err);
    ats_lock_drop(&lock);
}

static void a_lock_of_another_machine_is_believed_while_it_is_touched(void **state)
{
    (void)state;
    static const struct {
        int seconds; /* since it was touched; below 0: by a clock that was ahead */
        ats_code taken;
    } cases[] = {{0, ATS_E_LOCK}, {540, ATS_E_LOCK}, {-540, ATS_E_LOCK},
                 {700, ATS_OK},   {-700, ATS_OK},    {-300000000, ATS_OK}};
    ats_lock lock;
    ats_err err = {.code = ATS_OK};
    char path[160];
    snprintf(path, sizeof path, "%s/run.lock", folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct timespec then[2] = {{.tv_sec = time(NULL) - cases[i].seconds},
                                         {.tv_sec = time(NULL) - cases[i].seconds}};
        write_lock("run.lock", "attnstress lock 1\npid 1\nstarted 1\nboot b\nhost far-away\n"
                               "space s\njob \nsince 2026-01-01T00:00:00Z\npurpose runs s\n");
        assert_int_equal(utimensat(AT_FDCWD, path, then, 0), 0);
        assert_int_equal(ats_lock_take(folder, "run.lock", NULL, "me", "", &lock, &err),
                         cases[i].taken);
        if (cases[i].taken == ATS_OK)
            ats_lock_drop(&lock);
        else
            assert_says(err.text, "far-away");
    }
    unlink(path);
}

static void a_lock_that_was_taken_away_is_noticed(void **state)
{
    (void)state;
    ats_lock lock;
    ats_err err = {.code = ATS_OK};
    char path[160];
    assert_ok(ats_lock_take(folder, "run.lock", NULL, "me", "", &lock, &err), &err);
    write_lock("run.lock", "attnstress lock 1\npid 1\nhost elsewhere\n");
    assert_int_equal(ats_lock_check(&lock, &err), ATS_E_LOCK);
    assert_says(err.text, "took the lock over");
    ats_lock_drop(&lock);
    snprintf(path, sizeof path, "%s/run.lock", folder);
    assert_int_equal(unlink(path), 0); /* the other's lock was left alone */
    assert_ok(ats_lock_take(folder, "run.lock", NULL, "me", "", &lock, &err), &err);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(ats_lock_check(&lock, &err), ATS_E_LOCK);
    assert_says(err.text, "the lock is gone");
    ats_lock_drop(&lock);
}

static void a_missing_folder_is_named(void **state)
{
    (void)state;
    ats_lock lock;
    ats_err err = {.code = ATS_OK};
    assert_int_equal(ats_lock_take("/nowhere/x", "run.lock", NULL, "me", "", &lock, &err),
                     ATS_E_IO);
    assert_says(err.text, "/nowhere/x");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_second_is_told_who_the_first_is),
        TEST(shards_of_one_split_are_friends),
        TEST(a_dead_holder_is_taken_over),
        TEST(a_process_number_given_again_is_another_process),
        TEST(a_lock_of_another_machine_is_believed_while_it_is_touched),
        TEST(a_lock_that_was_taken_away_is_noticed),
        TEST(a_missing_folder_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

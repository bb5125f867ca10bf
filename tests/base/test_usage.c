/* Peak memory and bytes read from a made-up /proc, and the real ones of this test. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/usage.h"
#include "support/check.h"

static char root[] = "/tmp/ats-usage-XXXXXX";

static void put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/proc/self/%s", root, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void make_folders(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/proc", root);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/proc/self", root);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void numbers_are_the_kernels(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(root));
    ats_usage u = ats_usage_read(root);
    assert_true(u.peak_bytes > 0); /* of getrusage: there is no status */
    assert_int_equal(u.read_bytes, -1);
    make_folders();
    put("status", "Name:\tx\nVmPeak:\t 9000 kB\nVmHWM:\t    2048 kB\nVmRSS:\t 1024 kB\n");
    put("io", "rchar: 100\nwchar: 20\nsyscr: 5\nread_bytes: 4096\nwrite_bytes: 8192\n"
              "cancelled_write_bytes: 7\n");
    u = ats_usage_read(root);
    assert_int_equal(u.peak_bytes, 2 << 20);
    assert_int_equal(u.read_bytes, 100);
    assert_int_equal(u.written_bytes, 20);
    assert_int_equal(u.loaded_bytes, 4096);
    assert_int_equal(u.stored_bytes, 8192);
}

static void memory_that_was_used_is_seen(void **state)
{
    (void)state;
    enum { BYTES = 64 << 20 };
    const ats_usage before = ats_usage_read("");
    char *block = malloc(BYTES);
    assert_non_null(block);
    memset(block, 1, BYTES);
    const ats_usage after = ats_usage_read("");
    assert_int_equal(block[BYTES - 1], 1);
    free(block);
    assert_true(after.peak_bytes >= before.peak_bytes && after.peak_bytes > BYTES);
    assert_true(after.user_seconds + after.system_seconds > 0);
}

static int leave(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_the_kernels),
        cmocka_unit_test(memory_that_was_used_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, leave);
}

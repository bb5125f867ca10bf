/* Memory limits read from a made-up /proc and /sys, and sizes as people write them. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "support/check.h"

static char root[] = "/tmp/ats-memory-XXXXXX";

static void put(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *at = full + sizeof root; *at != '\0'; at++)
        if (*at == '/') {
            *at = '\0';
            mkdir(full, 0700);
            *at = '/';
        }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void nothing_is_known_without_files(void **state)
{
    (void)state;
    const ats_memory m = ats_memory_read(root);
    assert_int_equal(m.available, -1);
    assert_int_equal(m.group, -1);
    assert_int_equal(ats_memory_usable(&m), -1);
}

static void the_tightest_limit_counts(void **state)
{
    (void)state;
    put("proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:    8192 kB\n");
    put("proc/self/cgroup", "0::/job/step\n");
    put("sys/fs/cgroup/job/step/memory.max", "max\n");
    ats_memory m = ats_memory_read(root);
    assert_int_equal(m.available, 8 << 20);
    assert_int_equal(m.group, -1);
    assert_int_equal(ats_memory_usable(&m), 8 << 20);
    put("sys/fs/cgroup/job/memory.max", "6000000\n");
    put("sys/fs/cgroup/job/memory.current", "2500000\n");
    put("sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 500000\nactive_file 7\n");
    m = ats_memory_read(root);
    assert_int_equal(m.group, 4000000);
    assert_int_equal(ats_memory_usable(&m), 4000000);
    put("sys/fs/cgroup/job/step/memory.max", "1000\n");
    put("sys/fs/cgroup/job/step/memory.current", "5000\n");
    m = ats_memory_read(root);
    assert_int_equal(m.group, 0);
}

static void the_first_version_is_read_too(void **state)
{
    (void)state;
    put("proc/self/cgroup", "11:cpu,cpuacct:/x\n5:memory:/old\n0::/\n");
    put("sys/fs/cgroup/memory/old/memory.limit_in_bytes", "9223372036854771712\n");
    ats_memory m = ats_memory_read(root);
    assert_int_equal(m.group, -1);
    put("sys/fs/cgroup/memory/old/memory.limit_in_bytes", "3000000\n");
    put("sys/fs/cgroup/memory/old/memory.usage_in_bytes", "1000000\n");
    m = ats_memory_read(root);
    assert_int_equal(m.group, 2000000);
}

static void this_machine_has_memory(void **state)
{
    (void)state;
    const ats_memory m = ats_memory_read("");
    assert_true(m.available > 0);
    assert_true(ats_memory_usable(&m) <= m.available);
}

static void sizes_as_people_write_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {{"1", 1},
                {"1000000", 1000000},
                {"2G", (int64_t)2 << 30},
                {"2g", (int64_t)2 << 30},
                {"1.5 GiB", (int64_t)3 << 29},
                {"512MiB", 512 << 20},
                {"64kB", 64 << 10},
                {"3T", (int64_t)3 << 40},
                {"100b", 100}};
    static const char *const bad[] = {"",   "G",    "-1",  "0",   "0.5", "2 G G", "2Q",
                                      "2i", "1e99", " 2G", "+2G", "nan", "2GiBB", "0x10q"};
    int64_t bytes = 0;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (!ats_memory_parse(good[i].text, &bytes)) fail_msg("%s was refused", good[i].text);
        assert_int_equal(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (ats_memory_parse(bad[i], &bytes)) fail_msg("%s was taken", bad[i]);
}

static int setup(void **state)
{
    (void)state;
    return mkdtemp(root) == NULL;
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_without_files),
        cmocka_unit_test(the_tightest_limit_counts),
        cmocka_unit_test(the_first_version_is_read_too),
        cmocka_unit_test(this_machine_has_memory),
        cmocka_unit_test(sizes_as_people_write_them),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

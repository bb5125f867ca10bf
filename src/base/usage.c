#include "base/usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* The number after "key:" in a file of lines; -1: none. */
static int64_t number_of(const char *root, const char *path, const char *key)
{
    char full[1024], line[256];
    int64_t value = -1;
    const size_t length = strlen(key);
    snprintf(full, sizeof full, "%s%s", root, path);
    FILE *file = fopen(full, "r");
    if (file == NULL) return -1;
    while (value < 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, length) == 0 && line[length] == ':')
            value = strtoll(line + length + 1, NULL, 10);
    fclose(file);
    return value;
}

static double seconds(const struct timeval *t)
{
    return (double)t->tv_sec + 1e-6 * (double)t->tv_usec;
}

/* The peak of getrusage is inherited from the process that started this one; VmHWM is not. */
ats_usage ats_usage_read(const char *root)
{
    struct rusage used;
    const int64_t kib = number_of(root, "/proc/self/status", "VmHWM");
    ats_usage usage = {
        .peak_bytes = kib < 0 ? -1 : kib * 1024,
        .user_seconds = -1,
        .system_seconds = -1,
        .read_bytes = number_of(root, "/proc/self/io", "rchar"),
        .written_bytes = number_of(root, "/proc/self/io", "wchar"),
        .loaded_bytes = number_of(root, "/proc/self/io", "read_bytes"),
        .stored_bytes = number_of(root, "/proc/self/io", "write_bytes"),
    };
    if (getrusage(RUSAGE_SELF, &used) == 0) {
        usage.user_seconds = seconds(&used.ru_utime);
        usage.system_seconds = seconds(&used.ru_stime);
        if (kib < 0) usage.peak_bytes = (int64_t)used.ru_maxrss * 1024;
    }
    return usage;
}

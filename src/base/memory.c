#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PATH_BYTES = 1024, LINE = 512 };

/* A number alone in a file; -1: no file, or a word such as "max". */
static int64_t number_in(const char *root, const char *path, const char *name)
{
    char full[3 * PATH_BYTES];
    long long value = -1;
    snprintf(full, sizeof full, "%s%s/%s", root, path, name);
    FILE *file = fopen(full, "r");
    if (file == NULL) return -1;
    if (fscanf(file, "%lld", &value) != 1 || value < 0) value = -1;
    fclose(file);
    return value;
}

/* The number after "key" in lines of "key number"; -1: none. */
static int64_t number_of(const char *root, const char *path, const char *key)
{
    char full[3 * PATH_BYTES], line[LINE];
    int64_t value = -1;
    const size_t length = strlen(key);
    snprintf(full, sizeof full, "%s%s", root, path);
    FILE *file = fopen(full, "r");
    if (file == NULL) return -1;
    while (value < 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, length) == 0 && (line[length] == ' ' || line[length] == ':'))
            value = strtoll(line + length + 1, NULL, 10);
    fclose(file);
    return value;
}

static int64_t smaller(int64_t a, int64_t b) { return a < 0 || (b >= 0 && b < a) ? b : a; }

/* What one group leaves: its limit less what is in use and could not be dropped. */
static int64_t left_in(const char *root, const char *folder, bool old)
{
    char stat[2 * PATH_BYTES];
    const int64_t limit = number_in(root, folder, old ? "memory.limit_in_bytes" : "memory.max");
    const int64_t used = number_in(root, folder, old ? "memory.usage_in_bytes" : "memory.current");
    if (limit < 0 || limit > INT64_MAX / 4) return -1; /* version 1 says "none" by a huge number */
    snprintf(stat, sizeof stat, "%s/memory.stat", folder);
    const int64_t cache = number_of(root, stat, old ? "total_inactive_file" : "inactive_file");
    const int64_t held = (used > 0 ? used : 0) - (cache > 0 ? cache : 0);
    return held < 0 ? limit : held < limit ? limit - held : 0;
}

/* The group and everything above it. */
static int64_t walk(const char *root, const char *mount, const char *group, bool old)
{
    char folder[PATH_BYTES];
    int64_t left = -1;
    const int length = snprintf(folder, sizeof folder, "%s%s", mount, group);
    if (length < 0 || (size_t)length >= sizeof folder) return -1;
    for (;;) {
        left = smaller(left, left_in(root, folder, old));
        char *slash = strrchr(folder, '/');
        if (slash == NULL || strlen(folder) <= strlen(mount)) return left;
        *slash = '\0';
    }
}

/* Lines "0::/group" (version 2) and "N:memory:/group" (version 1). */
static int64_t group_limit(const char *root)
{
    char full[2 * PATH_BYTES], line[LINE];
    int64_t left = -1;
    snprintf(full, sizeof full, "%s/proc/self/cgroup", root);
    FILE *file = fopen(full, "r");
    if (file == NULL) return -1;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        const char *first = strchr(line, ':');
        const char *second = first != NULL ? strchr(first + 1, ':') : NULL;
        if (second == NULL) continue;
        const bool old = strncmp(first, ":memory:", 8) == 0;
        if (!old && strncmp(line, "0::", 3) != 0) continue;
        const char *mount = old ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
        left =
            smaller(left, walk(root, mount, strcmp(second + 1, "/") == 0 ? "" : second + 1, old));
    }
    fclose(file);
    return left;
}

ats_memory ats_memory_read(const char *root)
{
    const int64_t kib = number_of(root, "/proc/meminfo", "MemAvailable");
    return (ats_memory){.available = kib < 0 ? -1 : kib * 1024, .group = group_limit(root)};
}

int64_t ats_memory_usable(const ats_memory *memory)
{
    return smaller(memory->available, memory->group);
}

bool ats_memory_parse(const char *text, int64_t *bytes)
{
    static const char *const units = "kmgt";
    char *end = NULL;
    if (text[0] < '0' || text[0] > '9') return false;
    double value = strtod(text, &end);
    while (*end == ' ') end++;
    const char *unit = *end != '\0' ? strchr(units, *end | 32) : NULL;
    if (unit != NULL) {
        for (int64_t i = 0; i <= unit - units; i++) value *= 1024;
        end++;
        if (strcasecmp(end, "ib") == 0) end += 2;
    }
    if (strcasecmp(end, "b") == 0) end++;
    if (*end != '\0' || !(value >= 1) || value > 0x1p60) return false;
    *bytes = (int64_t)value;
    return true;
}

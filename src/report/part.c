#include "report/part.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "h5/attr.h"
#include "h5/clone.h"
#include "h5/seal.h"
#include "report/results_private.h"

ats_code ats_parts_folder(ats_arena *arena, const char *result, const char **out, ats_err *err)
{
    return ats_arena_printf(arena, out, err, "%s.parts", result);
}

ats_code ats_part_path(ats_arena *arena, const char *folder, int64_t number, const char **out,
                       ats_err *err)
{
    return ats_arena_printf(arena, out, err, "%s/%03lld.h5", folder, (long long)number);
}

int64_t ats_part_number(const char *name)
{
    const size_t digits = strspn(name, "0123456789");
    if (digits < 3 || digits > 12 || strcmp(name + digits, ".h5") != 0) return -1;
    return strtoll(name, NULL, 10);
}

/* "name is X, here Y", or "" when every attribute is as expected. */
static ats_code compare(ats_arena *arena, const ats_h5_file *file, const ats_attribute *expected,
                        int64_t count, const char **why, ats_err *err)
{
    ats_code rc = ATS_OK;
    *why = "";
    for (int64_t i = 0; i < count; i++) {
        const ats_attribute *a = &expected[i];
        const char *found = "nothing", *want = a->text != NULL ? a->text : "";
        ats_err ignored;
        if (ats_h5_attr_words(file, "/", a->name, arena, &found, &ignored) != ATS_OK)
            found = "nothing";
        if (a->type != ATS_TYPE_TEXT)
            ATS_TRY(ats_arena_printf(arena, &want, err, "%lld", (long long)a->i64));
        if (strcmp(found, want) == 0) continue;
        rc = ats_arena_printf(arena, why, err, "its %s is \"%s\", here \"%s\"", a->name, found,
                              want);
        break;
    }
out:
    return rc;
}

static ats_code look_inside(ats_arena *arena, const char *path, const ats_attribute *expected,
                            int64_t n_expected, ats_part_state *state, const char **why,
                            ats_err *err)
{
    ats_result_file *file = NULL;
    ats_err inside = {.code = ATS_OK};
    ats_code rc = ats_result_open(path, &file, &inside);
    if (rc == ATS_E_INPUT) {
        *state = ATS_PART_DAMAGED;
        return ats_arena_strdup(arena, inside.text, why, err);
    }
    if (rc != ATS_OK) {
        *err = inside;
        return rc;
    }
    rc = compare(arena, &file->file, expected, n_expected, why, err);
    *state = (*why)[0] != '\0'                              ? ATS_PART_OTHER
             : ats_h5_has_attr(&file->file, "/", "partial") ? ATS_PART_PARTIAL
                                                            : ATS_PART_WHOLE;
    ats_result_close(file);
    return rc;
}

ats_code ats_result_check(ats_arena *arena, const char *path, const ats_attribute *expected,
                          int64_t n_expected, ats_part_state *state, const char **why, ats_err *err)
{
    *state = ATS_PART_ABSENT;
    *why = "";
    if (access(path, F_OK) != 0 && errno == ENOENT) return ATS_OK;
    return look_inside(arena, path, expected, n_expected, state, why, err);
}

ats_code ats_part_check(ats_arena *arena, const char *path, const ats_attribute *expected,
                        int64_t n_expected, ats_part_state *state, const char **why, ats_err *err)
{
    bool whole = false;
    *state = ATS_PART_ABSENT;
    *why = "";
    if (access(path, F_OK) != 0 && errno == ENOENT) return ATS_OK;
    ats_code rc = ats_h5_seal_check(path, &whole, why, err);
    if (rc != ATS_OK) return rc;
    *state = ATS_PART_DAMAGED;
    return whole ? look_inside(arena, path, expected, n_expected, state, why, err) : ATS_OK;
}

static int by_number(const void *a, const void *b)
{
    const char *x = strrchr(*(const char *const *)a, '/'),
               *y = strrchr(*(const char *const *)b, '/');
    const int64_t m = ats_part_number(x + 1), n = ats_part_number(y + 1);
    return (m > n) - (m < n);
}

ats_code ats_parts_list(ats_arena *arena, const char *folder, const char *const **out,
                        int64_t *count, ats_err *err)
{
    DIR *open = opendir(folder);
    if (open == NULL)
        return ats_fail(err, ATS_E_IO, "%s: cannot be listed: %s", folder, strerror(errno));
    const char **paths = NULL;
    int64_t n = 0, room = 0;
    ats_code rc = ATS_OK;
    for (struct dirent *entry; (entry = readdir(open)) != NULL;) room++;
    rewinddir(open);
    ATS_TRY(ATS_NEW(arena, room + 1, &paths, err));
    for (struct dirent *entry; n < room && (entry = readdir(open)) != NULL;)
        if (ats_part_number(entry->d_name) >= 0)
            ATS_TRY(ats_arena_printf(arena, &paths[n++], err, "%s/%s", folder, entry->d_name));
    qsort(paths, (size_t)n, sizeof *paths, by_number);
    *out = paths;
    *count = n;
out:
    closedir(open);
    return rc;
}

/* A part, or a part that was being written. */
static bool ours(const char *name)
{
    char head[64];
    const size_t length = strlen(name), tail = sizeof ".tmp" - 1;
    if (ats_part_number(name) >= 0) return true;
    if (length <= tail || length - tail >= sizeof head || strcmp(name + length - tail, ".tmp") != 0)
        return false;
    snprintf(head, sizeof head, "%.*s", (int)(length - tail), name);
    return ats_part_number(head) >= 0;
}

ats_code ats_parts_remove(const char *folder, bool dry, int64_t *bytes, ats_err *err)
{
    DIR *open = opendir(folder);
    ats_code rc = ATS_OK;
    *bytes = 0;
    if (open == NULL && errno == ENOENT) return ATS_OK;
    if (open == NULL)
        return ats_fail(err, ATS_E_IO, "%s: cannot be listed: %s", folder, strerror(errno));
    for (struct dirent *entry; (entry = readdir(open)) != NULL;) {
        struct stat status;
        if (!ours(entry->d_name)) continue;
        if (fstatat(dirfd(open), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0)
            *bytes += (int64_t)status.st_size;
        if (!dry && unlinkat(dirfd(open), entry->d_name, 0) != 0 && errno != ENOENT)
            rc = ats_fail(err, ATS_E_IO, "%s/%s: cannot be removed: %s", folder, entry->d_name,
                          strerror(errno));
    }
    closedir(open);
    if (rc == ATS_OK && !dry && rmdir(folder) != 0 && errno != ENOTEMPTY && errno != EEXIST &&
        errno != ENOENT)
        rc = ats_fail(err, ATS_E_IO, "%s: cannot be removed: %s", folder, strerror(errno));
    return rc;
}

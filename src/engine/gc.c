#include "engine/gc.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"
#include "engine/journal.h"
#include "report/part.h"

const char *ats_gc_name(ats_gc_kind kind)
{
    static const char *const names[] = {"finished", "old", "kept: may be continued",
                                        "kept: in use"};
    return names[kind];
}

static bool is_parts(const char *path)
{
    static const char tail[] = ".parts";
    struct stat status;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    return n >= sizeof tail && strncmp(path + n - (sizeof tail - 1), tail, sizeof tail - 1) == 0 &&
           lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Days since anything in the folder was written. */
static double age(const char *path)
{
    struct stat status;
    DIR *open = opendir(path);
    time_t latest = stat(path, &status) == 0 ? status.st_mtime : 0;
    for (struct dirent *entry; open != NULL && (entry = readdir(open)) != NULL;)
        if (strcmp(entry->d_name, "..") != 0 &&
            fstatat(dirfd(open), entry->d_name, &status, 0) == 0 && status.st_mtime > latest)
            latest = status.st_mtime;
    if (open != NULL) closedir(open);
    return difftime(time(NULL), latest) / 86400;
}

static ats_code of_first_part(ats_arena *arena, const char *path, ats_attribute *same, int *n,
                              ats_err *err)
{
    static const char *const names[] = {"suite_hash", "capture_hashes", "backend"};
    const char *const *parts = NULL;
    int64_t n_parts = 0;
    ats_result_file *file = NULL;
    ats_err ignored;
    ats_code rc;
    *n = 0;
    ATS_TRY(ats_parts_list(arena, path, &parts, &n_parts, err));
    if (n_parts == 0 || ats_result_open(parts[0], &file, &ignored) != ATS_OK) goto out;
    for (int i = 0; i < 3; i++) {
        char text[4096];
        const char *copy = NULL;
        if (ats_result_attribute(file, names[i], text, sizeof text, &ignored) != ATS_OK) continue;
        ATS_TRY(ats_arena_strdup(arena, text, &copy, err));
        same[(*n)++] = (ats_attribute){.name = names[i], .type = ATS_TYPE_TEXT, .text = copy};
    }
out:
    ats_result_close(file);
    return rc;
}

static ats_code result_of(ats_arena *arena, const char *path, const char **out, ats_err *err)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    return ats_arena_printf(arena, out, err, "%.*s", (int)(length - (sizeof ".parts" - 1)), path);
}

/* The result beside the folder is complete and of the same run. */
static ats_code is_finished(ats_arena *arena, const char *path, bool *out, ats_err *err)
{
    ats_attribute same[3];
    const char *result = NULL, *why = "";
    ats_part_state state = ATS_PART_ABSENT;
    int n = 0;
    ats_code rc;
    ATS_TRY(result_of(arena, path, &result, err));
    ATS_TRY(of_first_part(arena, path, same, &n, err));
    rc = ats_result_check(arena, result, same, n, &state, &why, err);
    *out = rc == ATS_OK && state == ATS_PART_WHOLE;
    if (rc == ATS_E_LOCK) rc = ATS_OK; /* someone writes it now */
out:
    return rc;
}

/* The journal of a finished result goes beside it, that of an old run goes. */
static ats_code settle_journal(ats_arena *arena, const char *path, bool finished, ats_err *err)
{
    const char *result = NULL, *journal = NULL;
    ats_code rc = ats_arena_printf(arena, &journal, err, "%s/journal.jsonl", path);
    if (rc == ATS_OK) rc = result_of(arena, path, &result, err);
    if (rc != ATS_OK) return rc;
    if (finished) return ats_journal_move(arena, result, NULL, err);
    unlink(journal);
    return ATS_OK;
}

static ats_code clear(ats_arena *arena, const char *path, double days, bool remove,
                      ats_gc_folder *out, ats_err *err)
{
    char who[2048];
    bool finished = false;
    ats_gc_folder one = {.path = path, .kind = ATS_GC_YOUNG, .days = age(path)};
    ats_code rc;
    ATS_TRY(is_finished(arena, path, &finished, err));
    if (finished)
        one.kind = ATS_GC_FINISHED;
    else if (one.days >= days)
        one.kind = ATS_GC_OLD;
    if (ats_lock_held(path, who, sizeof who)) one.kind = ATS_GC_IN_USE;
    const bool goes = one.kind == ATS_GC_FINISHED || one.kind == ATS_GC_OLD;
    ATS_TRY(ats_parts_remove(path, !(goes && remove), &one.bytes, err));
    if (goes && remove) {
        ATS_TRY(settle_journal(arena, path, finished, err));
        ats_lock_sweep(path);
        rmdir(path); /* stays when it holds what is not ours */
    }
    *out = one;
out:
    return rc;
}

static ats_code list_folders(ats_arena *arena, const char *folder, const char ***out,
                             int64_t *count, ats_err *err)
{
    const char **paths = NULL;
    int64_t n = 0, room = 0;
    ats_code rc = ATS_OK;
    if (is_parts(folder)) {
        ATS_TRY(ATS_NEW(arena, 1, &paths, err));
        paths[n++] = folder;
        *out = paths;
        *count = n;
        return ATS_OK;
    }
    DIR *open = opendir(folder);
    if (open == NULL)
        return ats_fail(err, ATS_E_INPUT, "%s: cannot be listed: %s", folder, strerror(errno));
    while (readdir(open) != NULL) room++;
    rewinddir(open);
    rc = ATS_NEW(arena, room + 1, &paths, err);
    for (struct dirent *entry; rc == ATS_OK && n < room && (entry = readdir(open)) != NULL;) {
        rc = ats_arena_printf(arena, &paths[n], err, "%s/%s", folder, entry->d_name);
        if (rc == ATS_OK && is_parts(paths[n])) n++;
    }
    closedir(open);
    *out = paths;
    *count = n;
out:
    return rc;
}

ats_code ats_gc(ats_arena *arena, const char *folder, double days, bool remove, ats_gc_folder **out,
                int64_t *count, ats_err *err)
{
    const char **paths = NULL;
    ats_gc_folder *list = NULL;
    int64_t n = 0;
    ats_code rc;
    ATS_TRY(list_folders(arena, folder, &paths, &n, err));
    ATS_TRY(ATS_NEW0(arena, n, &list, err));
    for (int64_t i = 0; i < n; i++) ATS_TRY(clear(arena, paths[i], days, remove, &list[i], err));
    *out = list;
    *count = n;
out:
    return rc;
}

#include "engine/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "report/part.h"

enum { LARGEST = 16 << 20 }; /* bytes; a line is about one KiB */

static ats_code in_folder(ats_arena *arena, const char *folder, const char **out, ats_err *err)
{
    return ats_arena_printf(arena, out, err, "%s/journal.jsonl", folder);
}

ats_code ats_journal_path(ats_arena *arena, const char *result, const char **out, ats_err *err)
{
    return ats_arena_printf(arena, out, err, "%s.run.jsonl", result);
}

/* A file as text, "" when there is none or it is no plain file of a sane size. */
static ats_code slurp(ats_arena *arena, const char *path, const char **out, ats_err *err)
{
    struct stat status;
    char *text = NULL;
    *out = "";
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > LARGEST)
        return ATS_OK;
    ats_code rc = ATS_NEW0(arena, (int64_t)status.st_size + 1, &text, err);
    FILE *file = rc == ATS_OK ? fopen(path, "rb") : NULL;
    if (file == NULL) return rc;
    const size_t got = fread(text, 1, (size_t)status.st_size, file);
    fclose(file);
    text[got] = '\0';
    *out = text;
    return ATS_OK;
}

/* One write at the end of the file, so that the lines of several shards do not mix. */
static ats_code append(ats_arena *arena, const char *path, const char *line, bool *made,
                       ats_err *err)
{
    const char *whole = NULL;
    ats_code rc = ats_arena_printf(arena, &whole, err, "%s\n", line);
    if (rc != ATS_OK) return rc;
    const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    *made = file >= 0;
    if (file < 0 && errno == ENOENT) return ATS_OK;
    const size_t length = strlen(whole);
    const bool good = file >= 0 && write(file, whole, length) == (ssize_t)length;
    const int why = errno;
    if (file >= 0) close(file);
    return good ? ATS_OK
                : ats_fail(err, ATS_E_IO, "%s: cannot be written: %s", path, strerror(why));
}

ats_code ats_journal_add(ats_arena *arena, const char *result, const char *line, ats_err *err)
{
    const char *folder = NULL, *path = NULL;
    bool made = false;
    ats_code rc;
    ATS_TRY(ats_parts_folder(arena, result, &folder, err));
    ATS_TRY(in_folder(arena, folder, &path, err));
    ATS_TRY(append(arena, path, line, &made, err));
out:
    return rc;
}

/* The journal is whole before it gets its place; whoever finds the folder later does the same. */
ats_code ats_journal_move(ats_arena *arena, const char *result, const char *line, ats_err *err)
{
    const char *folder = NULL, *from = NULL, *path = NULL, *inside = NULL, *there = NULL;
    bool made = false;
    ats_code rc;
    ATS_TRY(ats_parts_folder(arena, result, &folder, err));
    ATS_TRY(in_folder(arena, folder, &from, err));
    ATS_TRY(ats_journal_path(arena, result, &path, err));
    if (line != NULL) {
        if (mkdir(folder, 0777) != 0 && errno != EEXIST)
            ATS_TRY(ats_fail(err, ATS_E_IO, "%s: cannot be made: %s", folder, strerror(errno)));
        ATS_TRY(append(arena, from, line, &made, err));
    }
    ATS_TRY(slurp(arena, from, &inside, err));
    ATS_TRY(slurp(arena, path, &there, err));
    if (strstr(there, inside) != NULL) /* a merge told them already, or there are none */
        unlink(from);
    else if (rename(from, path) != 0 && errno != ENOENT)
        rc = ats_fail(err, ATS_E_IO, "%s: cannot be written: %s", path, strerror(errno));
    rmdir(folder); /* stays unless it is empty */
out:
    return rc;
}

static bool put(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL) return false;
    const bool good = fputs(text, file) >= 0 && fflush(file) == 0 && fsync(fileno(file)) == 0;
    return fclose(file) == 0 && good;
}

/* Lines that were cut short, by a full disk, do not spoil the next ones. */
static void add_lines(ats_text *text, const char *lines)
{
    ats_text_add(text, "%s", lines);
    const size_t n = strlen(lines);
    if (n > 0 && lines[n - 1] != '\n') ats_text_add(text, "\n");
}

ats_code ats_journal_gather(ats_arena *arena, const char *result, const char *const *folders,
                            int64_t n_folders, const char *line, ats_err *err)
{
    ats_text text = {.arena = arena, .err = err};
    const char *path = NULL, *temporary = NULL, *whole = NULL, *from = NULL, *lines = NULL;
    ats_code rc;
    for (int64_t i = 0; i < n_folders; i++) {
        ATS_TRY(in_folder(arena, folders[i], &from, err));
        ATS_TRY(slurp(arena, from, &lines, err));
        add_lines(&text, lines);
    }
    add_lines(&text, line);
    ATS_TRY(ats_text_done(&text, &whole));
    ATS_TRY(ats_journal_path(arena, result, &path, err));
    ATS_TRY(ats_arena_printf(arena, &temporary, err, "%s.tmp", path));
    if (!put(temporary, whole) || rename(temporary, path) != 0) {
        rc = ats_fail(err, ATS_E_IO, "%s: cannot be written: %s", path, strerror(errno));
        unlink(temporary);
    }
out:
    return rc;
}

ats_code ats_journal_read(ats_arena *arena, const char *result, const char *const **lines,
                          int64_t *count, ats_err *err)
{
    const char *path = NULL, *text = NULL, **list = NULL;
    int64_t n = 0, room = 1;
    ats_code rc;
    *count = 0;
    ATS_TRY(ats_journal_path(arena, result, &path, err));
    ATS_TRY(slurp(arena, path, &text, err));
    for (const char *c = text; *c != '\0'; c++) room += *c == '\n';
    ATS_TRY(ATS_NEW(arena, room, &list, err));
    while (*text != '\0') {
        const size_t length = strcspn(text, "\n");
        if (length > 0)
            ATS_TRY(ats_arena_printf(arena, &list[n++], err, "%.*s", (int)length, text));
        text += length + (text[length] == '\n');
    }
    *lines = list;
    *count = n;
out:
    return rc;
}

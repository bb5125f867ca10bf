#include "cli/output.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool ats_output_same(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool is_hdf5(const char *path)
{
    static const char signature[] = "\x89HDF\r\n\x1a\n";
    char start[8] = "";
    FILE *file = fopen(path, "rb");
    const size_t got = file != NULL ? fread(start, 1, sizeof start, file) : 0;
    if (file != NULL) fclose(file);
    return got == sizeof start && memcmp(start, signature, sizeof start) == 0;
}

ats_code ats_output_check(const char *option, const char *path, int64_t n,
                          const char *const *inputs, ats_err *err)
{
    struct stat info;
    for (int64_t i = 0; i < n; i++)
        if (inputs[i] != NULL && ats_output_same(path, inputs[i]))
            return ats_fail(err, ATS_E_USAGE,
                            "%s %s is %s, which is read here; it would be overwritten, so give "
                            "another name",
                            option, path, inputs[i]);
    if (stat(path, &info) != 0) return ATS_OK;
    if (S_ISDIR(info.st_mode))
        return ats_fail(err, ATS_E_IO, "%s %s is a folder; name a file in it", option, path);
    if (S_ISREG(info.st_mode) && is_hdf5(path))
        return ats_fail(err, ATS_E_USAGE,
                        "%s %s is an HDF5 file; nothing was overwritten; give another name, or "
                        "move that one away",
                        option, path);
    return ATS_OK;
}

/* Pipes and devices know no fsync (EINVAL, EROFS). */
static bool put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (file == NULL) return false;
    bool good = fputs(text, file) >= 0 && fflush(file) == 0;
    if (good && fsync(fileno(file)) != 0) good = errno == EINVAL || errno == EROFS;
    const int why = errno;
    if (fclose(file) != 0) return false;
    errno = why;
    return good;
}

/* Under a name of its own, so that two processes that are given one file do not mix. */
static bool replace(const char *path, const char *text)
{
    char temporary[PATH_MAX];
    if (snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid()) >=
        (int)sizeof temporary) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (put(temporary, text) && rename(temporary, path) == 0) return true;
    const int why = errno;
    remove(temporary);
    errno = why;
    return false;
}

ats_code ats_output_write(const char *path, const char *text, ats_err *err)
{
    struct stat info;
    char target[PATH_MAX];
    bool good = false;
    if (lstat(path, &info) != 0)
        good = replace(path, text);
    else if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) /* a link to nothing yet; a pipe */
        good = put(path, text);
    else
        good = realpath(path, target) != NULL && replace(target, text);
    if (good) return ATS_OK;
    return ats_fail(err, ATS_E_IO, "%s cannot be written: %s; name another file", path,
                    strerror(errno));
}

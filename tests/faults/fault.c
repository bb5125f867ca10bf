/* Loaded before a program (LD_PRELOAD): lets its n-th call of one kind fail, or kills it there.
 *
 * ATS_FAULT=kind:n[+]:what - kind: write, fsync, rename, open, mkdir, unlink, malloc; n from 1,
 * with
 * + every later call too; what: an errno by number, or KILL. ATS_FAULT_LOG: a file that gets the
 * number of calls of each kind at the end. Calls on the terminal's three are never counted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { WRITE, FSYNC, RENAME, OPEN, MKDIR, UNLINK, MALLOC, N_KINDS };
static const char *const kinds[N_KINDS] = {"write", "fsync",  "rename", "open",
                                           "mkdir", "unlink", "malloc"};
static atomic_long count[N_KINDS];
static int wanted = -1, why;
static long number;
static bool onwards, deadly, ready;

__attribute__((constructor)) static void read_wish(void)
{
    const char *wish = getenv("ATS_FAULT");
    ready = true;
    if (wish == NULL) return;
    for (int k = 0; k < N_KINDS; k++) {
        const size_t n = strlen(kinds[k]);
        if (strncmp(wish, kinds[k], n) != 0 || wish[n] != ':') continue;
        char *end = NULL;
        number = strtol(wish + n + 1, &end, 10);
        if (*end == '+') {
            onwards = true;
            end++;
        }
        deadly = strcmp(end, ":KILL") == 0;
        why = deadly ? 0 : atoi(end + 1);
        wanted = k;
    }
}

__attribute__((destructor)) static void write_counts(void)
{
    const char *path = getenv("ATS_FAULT_LOG");
    char text[512];
    int used = 0;
    if (path == NULL) return;
    wanted = -1;
    for (int k = 0; k < N_KINDS; k++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s %ld\n", kinds[k],
                         atomic_load(&count[k]));
    FILE *file = fopen(path, "w");
    if (file == NULL) return;
    fwrite(text, 1, (size_t)used, file);
    fclose(file);
}

/* Does this call fail? */
static bool fails(int kind)
{
    if (!ready) return false;
    const long n = atomic_fetch_add(&count[kind], 1) + 1;
    if (kind != wanted || (onwards ? n < number : n != number)) return false;
    if (deadly) kill(getpid(), SIGKILL);
    errno = why;
    return true;
}

#define REAL(name, type) ((type)dlsym(RTLD_NEXT, name))

ssize_t write(int fd, const void *data, size_t size)
{
    static ssize_t (*real)(int, const void *, size_t);
    if (real == NULL) real = REAL("write", ssize_t(*)(int, const void *, size_t));
    return fd > 2 && fails(WRITE) ? -1 : real(fd, data, size);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (real == NULL) real = REAL("pwrite64", ssize_t(*)(int, const void *, size_t, off64_t));
    return fails(WRITE) ? -1 : real(fd, data, size, at);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    return pwrite64(fd, data, size, at);
}

int fsync(int fd)
{
    static int (*real)(int);
    if (real == NULL) real = REAL("fsync", int (*)(int));
    return fails(FSYNC) ? -1 : real(fd);
}

int rename(const char *from, const char *to)
{
    static int (*real)(const char *, const char *);
    if (real == NULL) real = REAL("rename", int (*)(const char *, const char *));
    return fails(RENAME) ? -1 : real(from, to);
}

int mkdir(const char *path, mode_t mode)
{
    static int (*real)(const char *, mode_t);
    if (real == NULL) real = REAL("mkdir", int (*)(const char *, mode_t));
    return fails(MKDIR) ? -1 : real(path, mode);
}

int unlink(const char *path)
{
    static int (*real)(const char *);
    if (real == NULL) real = REAL("unlink", int (*)(const char *));
    return fails(UNLINK) ? -1 : real(path);
}

int unlinkat(int fd, const char *path, int flags)
{
    static int (*real)(int, const char *, int);
    if (real == NULL) real = REAL("unlinkat", int (*)(int, const char *, int));
    return fails(UNLINK) ? -1 : real(fd, path, flags);
}

/* Opening for writing alone. */
static int open_by(const char *name, const char *path, int flags, mode_t mode)
{
    int (*real)(const char *, int, ...) = REAL(name, int (*)(const char *, int, ...));
    const bool writes = (flags & (O_WRONLY | O_RDWR)) != 0;
    return writes && fails(OPEN) ? -1 : real(path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    return open_by("open", path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    return open_by("open64", path, flags, mode);
}

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

#ifdef ATS_FAULT_MALLOC
void *malloc(size_t size) { return fails(MALLOC) ? NULL : __libc_malloc(size); }
void *calloc(size_t n, size_t size) { return fails(MALLOC) ? NULL : __libc_calloc(n, size); }
void *realloc(void *memory, size_t size)
{
    return fails(MALLOC) ? NULL : __libc_realloc(memory, size);
}
#endif

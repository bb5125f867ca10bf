#include "memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

static const uint8_t *memory;
static size_t memory_size, offset; /* of read(): one reader at a time */

void ats_fuzz_memory(const uint8_t *bytes, size_t size)
{
    memory = bytes;
    memory_size = size;
    offset = 0;
}

int __real_open(const char *path, int flags, ...);
int __real_close(int fd);
int __real_access(const char *path, int mode);
int __real_stat(const char *path, struct stat *out);
int __real_fstat(int fd, struct stat *out);
int __real_dup(int fd);
ssize_t __real_read(int fd, void *out, size_t count);
ssize_t __real_pread(int fd, void *out, size_t count, off_t at);
zip_t *__real_zip_fdopen(int fd, int flags, int *fault);

int __wrap_open(const char *path, int flags, ...);
int __wrap_close(int fd);
int __wrap_access(const char *path, int mode);
int __wrap_stat(const char *path, struct stat *out);
int __wrap_fstat(int fd, struct stat *out);
int __wrap_dup(int fd);
ssize_t __wrap_read(int fd, void *out, size_t count);
ssize_t __wrap_pread(int fd, void *out, size_t count, off_t at);
zip_t *__wrap_zip_fdopen(int fd, int flags, int *fault);

static int ours(const char *path) { return strcmp(path, ATS_FUZZ_PATH) == 0; }

static int missing(void)
{
    if (memory != NULL) return 0;
    errno = ENOENT;
    return -1;
}

static int describe(struct stat *out)
{
    memset(out, 0, sizeof *out);
    out->st_mode = S_IFREG | 0600;
    out->st_size = (off_t)memory_size;
    return 0;
}

static ssize_t copy(void *out, size_t count, size_t at)
{
    if (at >= memory_size) return 0;
    if (count > memory_size - at) count = memory_size - at;
    if (count > 0) memcpy(out, memory + at, count);
    return (ssize_t)count;
}

int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const int mode = (flags & O_CREAT) != 0 ? va_arg(args, int) : 0;
    va_end(args);
    if (!ours(path)) return __real_open(path, flags, mode);
    offset = 0;
    return missing() != 0 ? -1 : ATS_FUZZ_FD;
}

int __wrap_close(int fd) { return fd == ATS_FUZZ_FD ? 0 : __real_close(fd); }

int __wrap_access(const char *path, int mode)
{
    return ours(path) ? missing() : __real_access(path, mode);
}

int __wrap_stat(const char *path, struct stat *out)
{
    if (!ours(path)) return __real_stat(path, out);
    return missing() != 0 ? -1 : describe(out);
}

int __wrap_fstat(int fd, struct stat *out)
{
    return fd == ATS_FUZZ_FD ? describe(out) : __real_fstat(fd, out);
}

int __wrap_dup(int fd) { return fd == ATS_FUZZ_FD ? fd : __real_dup(fd); }

ssize_t __wrap_read(int fd, void *out, size_t count)
{
    if (fd != ATS_FUZZ_FD) return __real_read(fd, out, count);
    const ssize_t got = copy(out, count, offset);
    offset += (size_t)got;
    return got;
}

ssize_t __wrap_pread(int fd, void *out, size_t count, off_t at)
{
    if (fd != ATS_FUZZ_FD) return __real_pread(fd, out, count, at);
    return at < 0 ? -1 : copy(out, count, (size_t)at);
}

zip_t *__wrap_zip_fdopen(int fd, int flags, int *fault)
{
    if (fd != ATS_FUZZ_FD) return __real_zip_fdopen(fd, flags, fault);
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t *source = zip_source_buffer_create(memory, memory_size, 0, &error);
    zip_t *archive =
        source != NULL ? zip_open_from_source(source, flags | ZIP_RDONLY, &error) : NULL;
    if (archive == NULL) {
        *fault = zip_error_code_zip(&error);
        if (source != NULL) zip_source_free(source);
    }
    zip_error_fini(&error);
    return archive;
}

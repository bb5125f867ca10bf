#include "base/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14; elsewhere it fails, and pages come one by one */
#endif

enum { PATH_BYTES = 4096 };
static const int64_t granule = (int64_t)1 << 20; /* bytes that come into memory together */

struct ats_scratch {
    char folder[PATH_BYTES];
    int file;
    int64_t bytes;
    uint8_t *map;
    int64_t n_granules, most; /* of granules in memory */
    pthread_mutex_t lock;     /* of what follows, but for looks at single marks */
    int64_t used;
    atomic_uchar *mark; /* [n_granules] 1: used since pages were dropped last */
};

const char *ats_scratch_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder != NULL && folder[0] != '\0' ? folder : "/var/tmp";
}

/* A range touches two granules, and each thread may still look at those of before a drop. */
static int64_t spare(int threads) { return 4 * (int64_t)threads; }

int64_t ats_scratch_least(int threads) { return (2 * spare(threads)) * granule; }

static ats_code fail(const char *folder, int64_t bytes, const char *what, ats_err *err)
{
    return ats_fail(err, ATS_E_IO,
                    "%s: %s for %.2f GiB of keys and values that memory does not hold; choose "
                    "another folder with --scratch, or give more --memory",
                    folder, what, (double)bytes / 1073741824.0);
}

/* Files there are memory, which is what there is too little of. */
static bool in_memory(const char *folder)
{
    struct statfs fs;
    return statfs(folder, &fs) == 0 && (fs.f_type == 0x01021994 || fs.f_type == 0x858458f6);
}

ats_code ats_scratch_check(const char *folder, int64_t bytes, ats_err *err)
{
    struct statvfs fs;
    if (access(folder, W_OK | X_OK) != 0 || statvfs(folder, &fs) != 0)
        return fail(folder, bytes, strerror(errno), err);
    if (in_memory(folder)) return fail(folder, bytes, "is kept in memory, no place", err);
    if ((double)fs.f_bavail * (double)fs.f_frsize < (double)bytes)
        return fail(folder, bytes, "has too little room", err);
    return ATS_OK;
}

/* A file without a name. */
static int open_file(const char *folder)
{
    char path[PATH_BYTES];
    const int unnamed = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (unnamed >= 0) return unnamed;
    const int length = snprintf(path, sizeof path, "%s/attnstress-XXXXXX", folder);
    if (length < 0 || (size_t)length >= sizeof path) return -1;
    const int named = mkostemp(path, O_CLOEXEC);
    if (named >= 0) unlink(path);
    return named;
}

ats_code ats_scratch_new(const char *folder, int64_t bytes, int64_t resident, int threads,
                         ats_scratch **out, ats_err *err)
{
    ats_code rc = ats_scratch_check(folder, bytes, err);
    if (rc != ATS_OK) return rc;
    ats_scratch *s = calloc(1, sizeof *s);
    if (s == NULL) return ats_fail(err, ATS_E_MEMORY, "out of memory");
    snprintf(s->folder, sizeof s->folder, "%s", folder);
    s->bytes = bytes;
    s->n_granules = (bytes + granule - 1) / granule;
    s->most = resident / granule - spare(threads);
    pthread_mutex_init(&s->lock, NULL);
    s->mark = calloc((size_t)s->n_granules + 1, sizeof *s->mark);
    s->file = open_file(folder);
    int failure = s->file < 0 ? errno : 0;
    if (failure == 0 && bytes > 0) failure = posix_fallocate(s->file, 0, bytes);
    if (s->mark == NULL) failure = ENOMEM;
    if (failure != 0) {
        ats_scratch_free(s);
        return fail(folder, bytes, strerror(failure), err);
    }
    *out = s;
    return ATS_OK;
}

ats_code ats_scratch_write(ats_scratch *scratch, int64_t offset, const void *data, int64_t bytes,
                           ats_err *err)
{
    const char *from = data;
    for (int64_t done = 0; done < bytes;) {
        const ssize_t n = pwrite(scratch->file, from + done, (size_t)(bytes - done), offset + done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fail(scratch->folder, scratch->bytes, strerror(errno), err);
        done += n;
    }
    return ATS_OK;
}

ats_code ats_scratch_map(ats_scratch *scratch, const void **out, ats_err *err)
{
    /* Pages that the disk does not have cannot be dropped; and what it refuses is told now. */
    if (fdatasync(scratch->file) != 0)
        return fail(scratch->folder, scratch->bytes, strerror(errno), err);
    void *map = mmap(NULL, (size_t)scratch->bytes, PROT_READ, MAP_SHARED, scratch->file, 0);
    if (map == MAP_FAILED) return fail(scratch->folder, scratch->bytes, strerror(errno), err);
    scratch->map = map;
    *out = map;
    return ATS_OK;
}

/* Marks are cleared before pages are dropped: a granule may be in memory without a mark for the
 * time that a thread looks at it, never with one and not counted. */
static void take(ats_scratch *s, int64_t at)
{
    pthread_mutex_lock(&s->lock);
    const bool new = atomic_load(&s->mark[at]) == 0;
    if (new && s->used >= s->most) {
        for (int64_t i = 0; i < s->n_granules; i++) atomic_store(&s->mark[i], 0);
        s->used = 0;
        (void)madvise(s->map, (size_t)s->bytes, MADV_DONTNEED);
    }
    s->used += new;
    atomic_store(&s->mark[at], 1);
    pthread_mutex_unlock(&s->lock);
    const int64_t left = s->bytes - at * granule;
    if (new)
        (void)madvise(s->map + at * granule, (size_t)(left < granule ? left : granule),
                      MADV_POPULATE_READ);
}

void ats_scratch_use(ats_scratch *scratch, const void *from, int64_t bytes)
{
    if (bytes <= 0) return;
    const int64_t start = (const uint8_t *)from - scratch->map;
    for (int64_t at = start / granule; at <= (start + bytes - 1) / granule; at++)
        if (atomic_load_explicit(&scratch->mark[at], memory_order_relaxed) == 0) take(scratch, at);
}

void ats_scratch_free(ats_scratch *scratch)
{
    if (scratch == NULL) return;
    if (scratch->map != NULL) munmap(scratch->map, (size_t)scratch->bytes);
    if (scratch->file >= 0) close(scratch->file);
    pthread_mutex_destroy(&scratch->lock);
    free(scratch->mark);
    free(scratch);
}

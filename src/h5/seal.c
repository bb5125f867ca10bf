#include "h5/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { ROOM = 1 << 20 };

/* "attnstress-seal\n", 32 digits of the hash, 15 digits of the length before it, a newline. */
static void write_words(char out[ATS_H5_SEAL_BYTES + 1], XXH128_hash_t hash, int64_t length)
{
    snprintf(out, ATS_H5_SEAL_BYTES + 1, "attnstress-seal\n%016llx%016llx%015llx\n",
             (unsigned long long)hash.high64, (unsigned long long)hash.low64,
             (unsigned long long)length & 0xfffffffffffffffULL);
}

static ats_code hash_bytes(int fd, const char *path, int64_t length, XXH128_hash_t *out,
                           ats_err *err)
{
    ats_code rc = ATS_OK;
    XXH3_state_t *state = XXH3_createState();
    void *buffer = malloc(ROOM);
    if (state == NULL || buffer == NULL)
        rc = ats_fail(err, ATS_E_MEMORY, "%s: out of memory for its seal", path);
    else
        XXH3_128bits_reset(state);
    for (int64_t at = 0; rc == ATS_OK && at < length;) {
        const size_t want = length - at < ROOM ? (size_t)(length - at) : ROOM;
        const ssize_t got = pread(fd, buffer, want, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            rc = ats_fail(err, ATS_E_IO, "%s: cannot be read back: %s", path,
                          got < 0 ? strerror(errno) : "it became shorter while it was read");
            break;
        }
        XXH3_128bits_update(state, buffer, (size_t)got);
        at += got;
    }
    if (rc == ATS_OK) *out = XXH3_128bits_digest(state);
    free(buffer);
    XXH3_freeState(state);
    return rc;
}

static ats_code append(int fd, const char *path, ats_err *err)
{
    struct stat status;
    XXH128_hash_t hash;
    char words[ATS_H5_SEAL_BYTES + 1];
    if (fd < 0 || fstat(fd, &status) != 0)
        return ats_fail(err, ATS_E_IO, "%s: cannot be opened for its seal: %s", path,
                        strerror(errno));
    ats_code rc = hash_bytes(fd, path, (int64_t)status.st_size, &hash, err);
    if (rc != ATS_OK) return rc;
    write_words(words, hash, (int64_t)status.st_size);
    for (size_t done = 0; done < ATS_H5_SEAL_BYTES;) {
        const ssize_t n =
            pwrite(fd, words + done, ATS_H5_SEAL_BYTES - done, status.st_size + (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return ats_fail(err, ATS_E_IO, "%s: the seal cannot be written: %s", path,
                            strerror(n < 0 ? errno : ENOSPC));
        done += (size_t)n;
    }
    return ATS_OK;
}

ats_code ats_h5_seal(const char *path, ats_err *err)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    ats_code rc = append(fd, path, err);
    if (fd >= 0 && close(fd) != 0 && rc == ATS_OK)
        rc = ats_fail(err, ATS_E_IO, "%s: closing it failed: %s", path, strerror(errno));
    return rc;
}

static ats_code check(int fd, const char *path, const char **why, ats_err *err)
{
    struct stat status;
    XXH128_hash_t hash;
    char found[ATS_H5_SEAL_BYTES], words[ATS_H5_SEAL_BYTES + 1];
    if (fstat(fd, &status) != 0)
        return ats_fail(err, ATS_E_IO, "%s: cannot be read: %s", path, strerror(errno));
    *why = "is too short to be whole";
    if (!S_ISREG(status.st_mode) || status.st_size < ATS_H5_SEAL_BYTES) return ATS_OK;
    const int64_t length = (int64_t)status.st_size - ATS_H5_SEAL_BYTES;
    if (pread(fd, found, sizeof found, (off_t)length) != (ssize_t)sizeof found)
        return ats_fail(err, ATS_E_IO, "%s: its end cannot be read: %s", path, strerror(errno));
    *why = "has no seal at its end: it was cut short, or never finished";
    if (memcmp(found, "attnstress-seal\n", 16) != 0) return ATS_OK;
    ats_code rc = hash_bytes(fd, path, length, &hash, err);
    if (rc != ATS_OK) return rc;
    write_words(words, hash, length);
    *why = memcmp(found, words, sizeof found) == 0
               ? ""
               : "does not fit its seal: its bytes are not those that were written";
    return ATS_OK;
}

ats_code ats_h5_seal_check(const char *path, bool *whole, const char **why, ats_err *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const char *words = "";
    if (fd < 0) return ats_fail(err, ATS_E_IO, "%s: cannot be opened: %s", path, strerror(errno));
    const ats_code rc = check(fd, path, &words, err);
    close(fd);
    if (rc != ATS_OK) return rc;
    *why = words;
    *whole = words[0] == '\0';
    return ATS_OK;
}

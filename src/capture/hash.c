#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "capture/reader.h"

static ats_code hash_stream(int fd, const char *path, XXH3_state_t *state, void *buffer,
                            size_t room, ats_err *err)
{
    XXH3_128bits_reset(state);
    for (;;) {
        const ssize_t got = read(fd, buffer, room);
        if (got == 0) return ATS_OK;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return ats_fail(err, ATS_E_IO, "%s: cannot be read: %s", path, strerror(errno));
        XXH3_128bits_update(state, buffer, (size_t)got);
    }
}

ats_code ats_capture_hash(const char *path, char out[33], ats_err *err)
{
    enum { ROOM = 256 << 10 };
    ats_code rc = ATS_OK;
    XXH3_state_t *state = XXH3_createState();
    void *buffer = malloc(ROOM);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (state == NULL || buffer == NULL)
        rc = ats_fail(err, ATS_E_MEMORY, "%s: out of memory for its hash", path);
    else if (fd < 0)
        rc = ats_fail(err, ATS_E_IO, "%s: cannot be opened: %s", path, strerror(errno));
    else
        rc = hash_stream(fd, path, state, buffer, ROOM, err);
    if (rc == ATS_OK) {
        const XXH128_hash_t hash = XXH3_128bits_digest(state);
        snprintf(out, 33, "%016llx%016llx", (unsigned long long)hash.high64,
                 (unsigned long long)hash.low64);
    }
    if (fd >= 0) close(fd);
    free(buffer);
    XXH3_freeState(state);
    return rc;
}

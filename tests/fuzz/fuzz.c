#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

static void take_away(void) { unlink(path); }

/* HDF5 asks for the real path of what it opens, so a memfd would be refused. */
const char *ats_fuzz_file(const uint8_t *data, size_t size)
{
    static int fd = -1;
    if (fd < 0) {
        snprintf(path, sizeof path, "/dev/shm/attnstress-fuzz-XXXXXX");
        fd = mkostemp(path, O_CLOEXEC);
        atexit(take_away);
    }
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size) {
        perror(path);
        exit(1);
    }
    return path;
}

static int64_t refusals;

void ats_fuzz_refused(const char *why)
{
    static int told = -1;
    if (told < 0) told = getenv("ATS_FUZZ_VERBOSE") != NULL;
    if (told == 1) fprintf(stderr, "refused: %s\n", why);
    refusals++;
}

int64_t ats_fuzz_refusals(void) { return refusals; }

char *ats_fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL) exit(1);
    if (size > 0) memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

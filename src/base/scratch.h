/* Arrays on a disk instead of in memory: written once to a file without a name, then mapped for
 * reading. Pages stay in memory while they are looked at, within a number of bytes.
 *
 * Numbers read through the mapping never depend on what is in memory: a page that was dropped is
 * read again when it is touched, announced or not. Only how much stays does.
 * Ownership: the caller frees it; the file is gone with it, or with the process.
 * Threads: use() from any, the rest from one. */
#ifndef ATS_BASE_SCRATCH_H
#define ATS_BASE_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ats_scratch ats_scratch;

/* --scratch's folder when none is given: TMPDIR, else /var/tmp. */
const char *ats_scratch_folder(void);
/* Bytes of a mapping that stay in memory at least, with so many threads at work. */
int64_t ats_scratch_least(int threads);
/* Whether a file of so many bytes can be there: a folder on a disk, writable, with room. */
ATS_MUST_CHECK ats_code ats_scratch_check(const char *folder, int64_t bytes, ats_err *err);

/* resident: bytes of it to keep in memory at most, ats_scratch_least(threads) or more. The disk's
 * blocks are taken here, so that writing does not find it full. */
ATS_MUST_CHECK ats_code ats_scratch_new(const char *folder, int64_t bytes, int64_t resident,
                                        int threads, ats_scratch **out, ats_err *err);
ATS_MUST_CHECK ats_code ats_scratch_write(ats_scratch *scratch, int64_t offset, const void *data,
                                          int64_t bytes, ats_err *err);
/* After the last write; waits until the disk has everything. out: [bytes], read-only. */
ATS_MUST_CHECK ats_code ats_scratch_map(ats_scratch *scratch, const void **out, ats_err *err);
/* Says that [from, from + bytes) of the mapping is read next, and drops what was used before where
 * the room is taken. A thread's range: at most 1 MiB. */
void ats_scratch_use(ats_scratch *scratch, const void *from, int64_t bytes);
/* The same for rows [first, first + count) of an array of rows, which is in memory and needs no
 * saying where scratch is NULL. */
static inline void ats_scratch_use_rows(ats_scratch *scratch, const void *rows, int64_t row_bytes,
                                        int64_t first, int64_t count)
{
    if (scratch == NULL) return;
    ats_scratch_use(scratch, (const char *)rows + first * row_bytes, count * row_bytes);
}
void ats_scratch_free(ats_scratch *scratch);

#endif

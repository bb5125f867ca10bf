/* Arena: memory that is released all at once.
 *
 * A run has one arena, each worker a case arena that is reset between cases. In
 * count-only mode nothing is allocated and `used` tells what would be needed.
 * Debug builds fill fresh memory with NaN bits, ASan builds poison the unused rest.
 * Ownership: everything handed out belongs to the arena until reset or fini. Not thread-safe. */
#ifndef ATS_BASE_ARENA_H
#define ATS_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ats_arena_block ats_arena_block;

typedef struct ats_arena {
    ats_arena_block *blocks; /* newest first */
    size_t used;             /* bytes handed out since the last reset, alignment included */
    size_t peak;             /* largest `used` ever seen, bytes */
    bool count_only;
} ats_arena;

/* A zeroed ats_arena is valid and empty. */
void ats_arena_init(ats_arena *arena, bool count_only);
/* 64-byte aligned, not zeroed. count * size is checked for overflow. NULL in count-only mode. */
ATS_MUST_CHECK ats_code ats_arena_alloc(ats_arena *arena, int64_t count, size_t size, void **out,
                                        ats_err *err);
/* The same, zeroed. */
ATS_MUST_CHECK ats_code ats_arena_zalloc(ats_arena *arena, int64_t count, size_t size, void **out,
                                         ats_err *err);
/* Copies text (NUL-terminated) into the arena. */
ATS_MUST_CHECK ats_code ats_arena_strdup(ats_arena *arena, const char *text, const char **out,
                                         ats_err *err);
/* printf into the arena. */
ATS_MUST_CHECK ats_code ats_arena_printf(ats_arena *arena, const char **out, ats_err *err,
                                         const char *fmt, ...) ATS_PRINTF(4, 5);
/* Keeps the blocks for reuse, forgets the contents. */
void ats_arena_reset(ats_arena *arena);
void ats_arena_fini(ats_arena *arena);

/* ATS_NEW(arena, count, &pointer, err): typed allocation; the pointer is written through its own
 * type (a store through void ** would break the aliasing rules), and only on success. */
#define ATS_NEW(arena, count, out, err) ATS_NEW_BY_(ats_arena_alloc, arena, count, out, err)
#define ATS_NEW0(arena, count, out, err) ATS_NEW_BY_(ats_arena_zalloc, arena, count, out, err)
#define ATS_NEW_BY_(alloc, arena, count, out, err)                                     \
    __extension__({                                                                    \
        void *ats_new_memory_ = NULL;                                                  \
        const ats_code ats_new_rc_ =                                                   \
            alloc((arena), (int64_t)(count), sizeof **(out), &ats_new_memory_, (err)); \
        if (ats_new_rc_ == ATS_OK) *(out) = ats_new_memory_;                           \
        ats_new_rc_;                                                                   \
    })

#endif

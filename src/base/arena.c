#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define ATS_ASAN 1
#elif defined(__has_feature) /* clang's way of saying it */
#if __has_feature(address_sanitizer)
#define ATS_ASAN 1
#endif
#endif
#ifdef ATS_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

enum { ALIGN = 64, FIRST_BLOCK = 1 << 16, HUGE_PAGE = 2 << 20, HUGE_BLOCK = 4 << 20 };

struct ats_arena_block {
    ats_arena_block *next;
    size_t size, used; /* of data, bytes */
    unsigned char *data;
};

void ats_arena_init(ats_arena *arena, bool count_only)
{
    *arena = (ats_arena){.count_only = count_only};
}

static ats_arena_block *new_block(size_t size)
{
    ats_arena_block *block = malloc(sizeof *block);
    if (block == NULL) return NULL;
    block->data = aligned_alloc(size >= HUGE_BLOCK ? HUGE_PAGE : ALIGN, size);
    if (block->data == NULL) {
        free(block);
        return NULL;
    }
    /* Large pages are a wish: fewer faults and address look-ups where the system grants it. */
    if (size >= HUGE_BLOCK) (void)madvise(block->data, size, MADV_HUGEPAGE);
    block->size = size;
    block->used = 0;
    POISON(block->data, size);
    return block;
}

/* The block that `bytes` go into: the newest one if they fit, else a new one of at least double
 * size. */
static ats_arena_block *block_for(ats_arena *arena, size_t bytes)
{
    ats_arena_block *top = arena->blocks;
    if (top != NULL && top->size - top->used >= bytes) return top;
    size_t size = top != NULL ? 2 * top->size : (size_t)FIRST_BLOCK;
    if (size > ((size_t)64 << 20)) size = (size_t)64 << 20;
    if (size < bytes) size = bytes;
    if (size >= HUGE_BLOCK) size = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    ats_arena_block *block = new_block(size);
    if (block == NULL) return NULL;
    block->next = top;
    arena->blocks = block;
    return block;
}

ats_code ats_arena_alloc(ats_arena *arena, int64_t count, size_t size, void **out, ats_err *err)
{
    ATS_ASSERT(count >= 0);
    size_t bytes;
    if (__builtin_mul_overflow((size_t)count, size, &bytes) || bytes > SIZE_MAX / 4)
        return ats_fail(err, ATS_E_MEMORY, "%lld elements of %zu bytes do not fit in memory",
                        (long long)count, size);
    bytes = (bytes + ALIGN) & ~(size_t)(ALIGN - 1); /* at least one byte stays poisoned */
    void *memory = NULL;
    if (!arena->count_only) {
        ats_arena_block *block = block_for(arena, bytes);
        if (block == NULL)
            return ats_fail(err, ATS_E_MEMORY,
                            "out of memory: %zu more bytes were asked for after %zu; use fewer "
                            "samples or layers at a time",
                            bytes, arena->used);
        memory = block->data + block->used;
        block->used += bytes;
        UNPOISON(memory, (size_t)count * size);
#ifndef NDEBUG
        memset(memory, 0xff, (size_t)count * size);
#endif
    }
    arena->used += bytes;
    if (arena->used > arena->peak) arena->peak = arena->used;
    *out = memory;
    return ATS_OK;
}

ats_code ats_arena_zalloc(ats_arena *arena, int64_t count, size_t size, void **out, ats_err *err)
{
    ats_code rc = ats_arena_alloc(arena, count, size, out, err);
    if (rc == ATS_OK && *out != NULL) memset(*out, 0, (size_t)count * size);
    return rc;
}

ats_code ats_arena_strdup(ats_arena *arena, const char *text, const char **out, ats_err *err)
{
    char *copy = NULL;
    const size_t length = strlen(text) + 1;
    ats_code rc = ATS_NEW(arena, length, &copy, err);
    if (rc != ATS_OK) return rc;
    if (copy != NULL) memcpy(copy, text, length);
    *out = copy;
    return ATS_OK;
}

ats_code ats_arena_printf(ats_arena *arena, const char **out, ats_err *err, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *text = NULL;
    ats_code rc = ATS_NEW(arena, (int64_t)length + 1, &text, err);
    if (rc == ATS_OK) {
        if (text != NULL) vsnprintf(text, (size_t)length + 1, fmt, again);
        *out = text;
    }
    va_end(again);
    return rc;
}

void ats_arena_reset(ats_arena *arena)
{
    /* Only the newest block is kept: it is the largest. */
    ats_arena_block *top = arena->blocks;
    if (top != NULL) {
        ats_arena_block *old = top->next;
        while (old != NULL) {
            ats_arena_block *next = old->next;
            free(old->data);
            free(old);
            old = next;
        }
        top->next = NULL;
        top->used = 0;
        POISON(top->data, top->size);
    }
    arena->used = 0;
}

void ats_arena_fini(ats_arena *arena)
{
    ats_arena_reset(arena);
    if (arena->blocks != NULL) {
        free(arena->blocks->data);
        free(arena->blocks);
    }
    *arena = (ats_arena){.blocks = NULL};
}

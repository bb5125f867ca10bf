/* The tile unit of AMX as a handful of operations: eight tiles of 16 rows of 64 bytes, all of them
 * in use. Tile numbers are constants. A thread brackets its work with tile_begin and tile_end, and
 * keeps nothing in tiles between two brackets. The tests put a file of this name with the same
 * operations in plain C in its place. */
#ifndef ATS_KERNELS_CPU_TILE_H
#define ATS_KERNELS_CPU_TILE_H

#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__linux__)
#define HAS_TILES 1
#include <cpuid.h>
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* GCC's tile loads do not say that they read memory: what was written before must be there. */
#define TILE_LOAD(tile, from, stride)                                                              \
    do {                                                                                           \
        __asm__ volatile("" ::: "memory");                                                         \
        _tile_loadd(tile, from, stride);                                                           \
    } while (0)
#define TILE_STORE(tile, to, stride) _tile_stored(tile, to, stride)
#define TILE_ZERO(tile) _tile_zero(tile)
/* c [16, 16] floats += a [16, 16 pairs] . b [16 pairs, 16 columns] of bfloat16. */
#define TILE_DOT(c, a, b) _tile_dpbf16ps(c, a, b)

static inline void tile_begin(void)
{
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.bytes[i] = 64;
        config.rows[i] = 16;
    }
    __asm__ volatile("" : : "m"(config) : "memory");
    _tile_loadconfig(&config);
}

static inline void tile_end(void) { _tile_release(); }

/* NULL where this process may use tiles, else what is missing. Linux gives the tiles' state to a
 * process that asks (Documentation/arch/x86/xstate.rst), once for all its threads. */
static inline const char *tile_missing(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_TILE_DATA = 18, TILE_STATES = 3 << 17 };
    unsigned a = 0, b = 0, c = 0, d = 0, low = 0, high = 0;
    const unsigned amx_bf16 = 1u << 22, amx_tile = 1u << 24, osxsave = 1u << 27;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & amx_bf16) == 0 || (d & amx_tile) == 0)
        return "this machine lacks AMX for bfloat16";
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & osxsave) == 0)
        return "the operating system does not keep the state of AMX";
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & TILE_STATES) != TILE_STATES)
        return "the operating system does not keep the state of AMX";
    if (syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_TILE_DATA) != 0)
        return "the kernel does not let this process use AMX";
    return NULL;
}
#endif

#endif

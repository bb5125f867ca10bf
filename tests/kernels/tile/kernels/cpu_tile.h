/* The tile unit in plain C, in the place of kernels/cpu_tile.h: what Intel's manual says of
 * TILELOADD, TILESTORED and TDPBF16PS, operation by operation. One tile unit a thread; using it
 * outside of a bracket stops the test. */
#ifndef ATS_KERNELS_CPU_TILE_H
#define ATS_KERNELS_CPU_TILE_H

#define HAS_TILES 1
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct tile_unit {
    bool ready;
    unsigned char tile[8][16][64];
} tile_unit;

static _Thread_local tile_unit unit;

static inline unsigned char (*tile_at(int tile))[64]
{
    if (!unit.ready) abort();
    return unit.tile[tile];
}

static inline void tile_begin(void)
{
    if (unit.ready) abort();
    memset(&unit, 0, sizeof unit);
    unit.ready = true;
}

static inline void tile_end(void)
{
    memset(&unit, 0xa5, sizeof unit);
    unit.ready = false;
}

static inline void tile_load(int tile, const void *from, int64_t stride)
{
    for (int row = 0; row < 16; row++)
        memcpy(tile_at(tile)[row], (const unsigned char *)from + row * stride, 64);
}

static inline void tile_store(int tile, void *to, int64_t stride)
{
    for (int row = 0; row < 16; row++)
        memcpy((unsigned char *)to + row * stride, tile_at(tile)[row], 64);
}

/* Numbers below the normal range are 0, with their sign. */
static inline float tile_flush(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x; }

static inline float tile_word(int tile, int row, int word)
{
    uint16_t bits;
    memcpy(&bits, &tile_at(tile)[row][2 * word], sizeof bits);
    const uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return tile_flush(x);
}

/* a + x y with one rounding: the product of two bfloat16 has 16 bits and a has 24, so that in
 * double the sum either is exact or keeps what decides the rounding to float. */
static inline float tile_fma(float a, float x, float y)
{
    return tile_flush((float)((double)a + (double)x * (double)y));
}

/* Even and odd words are summed apart over the pairs, then added to each other and to c. */
static inline void tile_dot(int c, int a, int b)
{
    float right[16][32];
    for (int k = 0; k < 16; k++)
        for (int n = 0; n < 32; n++) right[k][n] = tile_word(b, k, n);
    for (int m = 0; m < 16; m++) {
        float sums[32] = {0};
        for (int k = 0; k < 16; k++) {
            const float left[2] = {tile_word(a, m, 2 * k), tile_word(a, m, 2 * k + 1)};
            for (int n = 0; n < 32; n++) sums[n] = tile_fma(sums[n], left[n % 2], right[k][n]);
        }
        for (int n = 0; n < 16; n++) {
            float now;
            memcpy(&now, &tile_at(c)[m][4 * n], sizeof now);
            now = tile_flush(tile_flush(now) + tile_flush(sums[2 * n] + sums[2 * n + 1]));
            memcpy(&tile_at(c)[m][4 * n], &now, sizeof now);
        }
    }
}

#define TILE_LOAD(tile, from, stride) tile_load(tile, from, stride)
#define TILE_STORE(tile, to, stride) tile_store(tile, to, stride)
#define TILE_ZERO(number) memset(tile_at(number), 0, sizeof unit.tile[0])
#define TILE_DOT(c, a, b) tile_dot(c, a, b)

static inline const char *tile_missing(void) { return NULL; }

#endif

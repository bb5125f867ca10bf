#include "kernels/cpu_matrix.h"
#include "kernels/cpu_tile.h"

#ifdef HAS_TILES
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu_ops.h"

#define VL 16
#include "kernels/cpu_ops_math.h"

enum {
    BLOCK = ATS_MATRIX_BLOCK,
    SIDE = ATS_MATRIX_SIDE,
    WORDS = ATS_MATRIX_WORDS,
    TERMS = ATS_MATRIX_TERMS,
    ROW = BLOCK * 2 /* bytes of a tile's row */
};

typedef uint32_t vu __attribute__((vector_size(4 * VL)));

INLINE vu u_load(const void *p)
{
    vu x;
    memcpy(&x, p, sizeof x);
    return x;
}

INLINE void u_store(void *p, vu x) { memcpy(p, &x, sizeof x); }

/* The bfloat16 nearest to x, ties to even, in the upper half; cut off where rounding would leave
 * the range of float, and where x is no number. */
INLINE vu upper_term(vf x)
{
    const vu bits = (vu)x, up = bits + 0x7fff + ((bits >> 16) & 1);
    const vu edge = (vu)((up & 0x7f800000u) == 0x7f800000u);
    return ((bits & edge) | (up & ~edge)) & 0xffff0000u;
}

/* Terms of two rows, as pairs of words: the first row's in the lower half. */
INLINE void split_pair(vf first, vf second, vu pair[TERMS])
{
#pragma GCC unroll 2
    for (int term = 0; term < TERMS; term++) {
        const vu a = upper_term(first), b = upper_term(second);
        pair[term] = (a >> 16) | b;
        first -= (vf)a;
        second -= (vf)b;
    }
}

/* Row `at` of x [n, lanes], one vector of lanes; 0 beyond the end. */
INLINE vf row_or_zero(const float *x, int64_t n, int64_t lanes, int64_t at)
{
    return at < n ? v_load(x + at * lanes) : v_set(0.0f);
}

static int amx_pack_queries(int64_t lanes, int64_t d, const float *q, uint16_t *packed)
{
    vu rest = {0};
    for (int64_t lane = 0; lane < lanes; lane += SIDE)
        for (int64_t block = 0; block < ats_matrix_blocks(d); block++, packed += TERMS * WORDS)
            for (int64_t i = 0; i < SIDE; i++) {
                const int64_t at = block * BLOCK + 2 * i;
                vu pair[TERMS];
                split_pair(row_or_zero(q + lane, d, lanes, at),
                           row_or_zero(q + lane, d, lanes, at + 1), pair);
                u_store(packed + i * BLOCK, pair[0]);
                u_store(packed + WORDS + i * BLOCK, pair[1]);
                rest |= pair[1] & 0x7fff7fffu;
            }
    uint32_t any = 0;
    for (int i = 0; i < VL; i++) any |= rest[i];
    return any != 0 ? 2 : 1;
}

/* Transposes words of 32 bits. */
INLINE void transpose(vi x[VL])
{
#pragma GCC unroll 4
    for (int stride = 1; stride < VL; stride *= 2) {
        vi low, high;
#pragma GCC unroll 16
        for (int i = 0; i < VL; i++) {
            low[i] = (i & stride) == 0 ? i : VL + i - stride;
            high[i] = (i & stride) == 0 ? i + stride : VL + i;
        }
#pragma GCC unroll 16
        for (int i = 0; i < VL; i++) {
            if ((i & stride) != 0) continue;
            const vf a = (vf)x[i], b = (vf)x[i + stride];
            x[i] = (vi)v_shuffle(a, b, low);
            x[i + stride] = (vi)v_shuffle(a, b, high);
        }
    }
}

/* Weights of 16 rows and 32 keys as the left operand: a row of pairs of keys for each row. */
static void pack_weights(int64_t keys, int64_t lanes, const float *p, uint16_t *packed)
{
    for (int64_t lane = 0; lane < lanes; lane += SIDE)
        for (int64_t block = 0; block < ats_matrix_blocks(keys); block++, packed += TERMS * WORDS) {
            vi term[TERMS][VL];
            for (int i = 0; i < SIDE; i++) {
                const int64_t at = block * BLOCK + 2 * i;
                vu pair[TERMS];
                split_pair(row_or_zero(p + lane, keys, lanes, at),
                           row_or_zero(p + lane, keys, lanes, at + 1), pair);
                for (int t = 0; t < TERMS; t++) term[t][i] = (vi)pair[t];
            }
            for (int t = 0; t < TERMS; t++) {
                transpose(term[t]);
                for (int i = 0; i < VL; i++)
                    u_store(packed + t * WORDS + i * BLOCK, (vu)term[t][i]);
            }
        }
}

/* Tiles are packed block by block of keys, strip by strip of 16 columns. */
static void amx_pack_values(int64_t keys, int64_t width, const uint16_t *v, uint16_t *packed)
{
    typedef uint16_t words __attribute__((vector_size(2 * SIDE)));
    for (int64_t column = 0; column < width; column += SIDE)
        for (int64_t key = 0; key < ats_matrix_blocks(keys) * BLOCK; key += 2, packed += BLOCK) {
            words even = {0}, odd = {0};
            if (key < keys) memcpy(&even, v + key * width + column, sizeof even);
            if (key + 1 < keys) memcpy(&odd, v + (key + 1) * width + column, sizeof odd);
            u_store(packed, __builtin_convertvector(even, vu) | __builtin_convertvector(odd, vu)
                                                                    << 16);
        }
}

/* Tiles: sums 0 to 3 (left, then right), left operands 4 and 5, right ones 6 and 7. */
INLINE void clear_sums(void)
{
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
}

INLINE void multiply(const int left, const int right)
{
    TILE_DOT(0, 4, 6);
    if (right > 1) TILE_DOT(1, 4, 7);
    if (left > 1) TILE_DOT(2, 5, 6);
    if (left > 1 && right > 1) TILE_DOT(3, 5, 7);
}

/* A tile's sums at out [.., ldc], its first `rows` rows alone. */
#define STORE_SUMS(tile, count, out, ldc)                                                          \
    do {                                                                                           \
        if ((count) >= SIDE) {                                                                     \
            TILE_STORE(tile, out, (ldc)*4);                                                        \
        } else if ((count) > 0) {                                                                  \
            float whole[SIDE * SIDE];                                                              \
            TILE_STORE(tile, whole, SIDE * 4);                                                     \
            for (int64_t r = 0; r < (count); r++)                                                  \
                memcpy((out) + r * (ldc), whole + r * SIDE, SIDE * sizeof *whole);                 \
        }                                                                                          \
    } while (0)

INLINE void store_sums(const int left, const int right, int64_t rows, float *out, int64_t ldc)
{
    STORE_SUMS(0, rows, out, ldc);
    if (right > 1) STORE_SUMS(1, rows, out + SIDE, ldc);
    if (left > 1) STORE_SUMS(2, rows - SIDE, out + SIDE * ldc, ldc);
    if (left > 1 && right > 1) STORE_SUMS(3, rows - SIDE, out + SIDE * ldc + SIDE, ldc);
}

/* Up to 32 keys and up to 32 lanes. k has `pitch` words a row, whole tiles of them. */
INLINE void dot_tiles(const int left, const int right, int64_t rows, int64_t blocks,
                      const uint16_t *k, int64_t pitch, const uint16_t *packed, int terms, float *z,
                      int64_t lanes)
{
    const uint16_t *other = packed + blocks * TERMS * WORDS;
    clear_sums();
    for (int64_t block = 0; block < blocks; block++) {
        TILE_LOAD(4, k + block * BLOCK, pitch * 2);
        if (left > 1) TILE_LOAD(5, k + SIDE * pitch + block * BLOCK, pitch * 2);
        for (int term = 0; term < terms; term++) {
            const int64_t at = (block * TERMS + term) * WORDS;
            TILE_LOAD(6, packed + at, ROW);
            if (right > 1) TILE_LOAD(7, other + at, ROW);
            multiply(left, right);
        }
    }
    store_sums(left, right, rows, z, lanes);
}

/* Keys [0, count) of k [.., d], as they lie or padded in the room. */
static const uint16_t *whole_rows(int64_t count, int64_t d, const uint16_t *k, uint16_t *room,
                                  int64_t *pitch)
{
    const int64_t padded = ats_matrix_blocks(d) * BLOCK;
    *pitch = padded;
    if (padded == d && count % SIDE == 0) return k;
    memset(room, 0, (size_t)(BLOCK * padded) * sizeof *room);
    for (int64_t i = 0; i < count; i++)
        memcpy(room + i * padded, k + i * d, (size_t)d * sizeof *room);
    return room;
}

static void amx_dot(int64_t keys, int64_t lanes, int64_t d, const uint16_t *k,
                    const uint16_t *packed, int terms, float scale, uint16_t *room, float *z)
{
    const int64_t blocks = ats_matrix_blocks(d), strip = blocks * TERMS * WORDS;
    tile_begin();
    for (int64_t i = 0; i < keys; i += BLOCK) {
        const int64_t count = keys - i < BLOCK ? keys - i : BLOCK;
        int64_t pitch;
        const uint16_t *rows = whole_rows(count, d, k + i * d, room, &pitch);
        for (int64_t j = 0; j < lanes; j += BLOCK) {
            const uint16_t *q = packed + j / SIDE * strip;
            float *at = z + i * lanes + j;
            const bool high = count > SIDE, wide = lanes - j > SIDE;
            if (high && wide)
                dot_tiles(2, 2, count, blocks, rows, pitch, q, terms, at, lanes);
            else if (high)
                dot_tiles(2, 1, count, blocks, rows, pitch, q, terms, at, lanes);
            else if (wide)
                dot_tiles(1, 2, count, blocks, rows, pitch, q, terms, at, lanes);
            else
                dot_tiles(1, 1, count, blocks, rows, pitch, q, terms, at, lanes);
        }
    }
    tile_end();
    for (int64_t i = 0; scale != 1.0f && i < keys * lanes; i += VL)
        v_store(z + i, v_load(z + i) * scale);
}

/* Up to 32 rows and up to 32 columns. */
INLINE void mix_tiles(const int left, const int right, int64_t rows, int64_t blocks,
                      const uint16_t *weights, const uint16_t *values, float *o, int64_t width)
{
    const uint16_t *lower = weights + blocks * TERMS * WORDS, *other = values + blocks * WORDS;
    clear_sums();
    for (int64_t block = 0; block < blocks; block++) {
        TILE_LOAD(6, values + block * WORDS, ROW);
        if (right > 1) TILE_LOAD(7, other + block * WORDS, ROW);
        for (int term = 0; term < TERMS; term++) {
            const int64_t at = (block * TERMS + term) * WORDS;
            TILE_LOAD(4, weights + at, ROW);
            if (left > 1) TILE_LOAD(5, lower + at, ROW);
            multiply(left, right);
        }
    }
    store_sums(left, right, rows, o, width);
}

static void amx_mix(int64_t keys, int64_t rows, int64_t lanes, int64_t width, const float *p,
                    const uint16_t *packed, uint16_t *room, float *o)
{
    const int64_t blocks = ats_matrix_blocks(keys);
    pack_weights(keys, lanes, p, room);
    tile_begin();
    for (int64_t i = 0; i < rows; i += BLOCK)
        for (int64_t j = 0; j < width; j += BLOCK) {
            const uint16_t *weights = room + i / SIDE * blocks * TERMS * WORDS;
            const uint16_t *values = packed + j / SIDE * blocks * WORDS;
            float *at = o + i * width + j;
            const bool high = rows - i > SIDE, wide = width - j > SIDE;
            if (high && wide)
                mix_tiles(2, 2, rows - i, blocks, weights, values, at, width);
            else if (high)
                mix_tiles(2, 1, rows - i, blocks, weights, values, at, width);
            else if (wide)
                mix_tiles(1, 2, rows - i, blocks, weights, values, at, width);
            else
                mix_tiles(1, 1, rows - i, blocks, weights, values, at, width);
        }
    tile_end();
}

static float amx_burn(int64_t steps)
{
    static const uint16_t one[WORDS] = {0x3f80};
    float out[SIDE * SIDE];
    tile_begin();
    clear_sums();
    TILE_LOAD(4, one, ROW);
    TILE_LOAD(5, one, ROW);
    TILE_LOAD(6, one, ROW);
    TILE_LOAD(7, one, ROW);
    for (int64_t i = 0; i < steps; i++) multiply(2, 2);
    TILE_STORE(0, out, SIDE * 4);
    tile_end();
    return out[0];
}

static const char *amx_missing(void) { return tile_missing(); }

const ats_cpu_matrix ats_cpu_matrix_amx = {
    .name = "amx",
    .missing = amx_missing,
    .pack_queries = amx_pack_queries,
    .dot = amx_dot,
    .pack_values = amx_pack_values,
    .mix = amx_mix,
    .burn_flops = 4.0 * 2 * SIDE * SIDE * BLOCK,
    .burn = amx_burn,
};
#else
const ats_cpu_matrix ats_cpu_matrix_amx = {.name = 0};
#endif

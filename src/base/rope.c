#include "base/rope.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 64, TABLE_BYTES = 4 << 20 };

static void angles(const ats_rope *rope, int64_t delta, int64_t first, int64_t count, float *c,
                   float *s)
{
    for (int64_t i = 0; i < count; i++) {
        const double angle = (double)delta * rope->inv_freq[first + i];
        c[i] = (float)cos(angle);
        s[i] = (float)sin(angle);
    }
}

/* Turns pairs [first, first + count) of one row. */
static void turn_row(const ats_rope *rope, int64_t first, int64_t count, const float *c,
                     const float *s, float *row)
{
    if (rope->layout == ATS_ROPE_HALF) {
        float *restrict a = row + first, *restrict b = row + first + rope->pairs;
        for (int64_t i = 0; i < count; i++) {
            const float x = a[i], y = b[i];
            a[i] = x * c[i] - y * s[i];
            b[i] = y * c[i] + x * s[i];
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        float *pair = row + 2 * (first + i);
        const float x = pair[0], y = pair[1];
        pair[0] = x * c[i] - y * s[i];
        pair[1] = y * c[i] + x * s[i];
    }
}

/* False: nothing is left to turn. */
static bool begin(const ats_rope *rope, int64_t delta, int64_t count, const float *src, float *dst)
{
    if (src != dst) memcpy(dst, src, (size_t)count * sizeof *dst);
    return rope->layout != ATS_ROPE_NONE && delta != 0;
}

void ats_rope_move(const ats_rope *rope, int64_t delta, int64_t rows, int64_t d, const float *src,
                   float *dst)
{
    float c[BLOCK], s[BLOCK];
    if (!begin(rope, delta, rows * d, src, dst)) return;
    for (int64_t first = 0; first < rope->pairs; first += BLOCK) {
        const int64_t left = rope->pairs - first, count = left < BLOCK ? left : BLOCK;
        angles(rope, delta, first, count, c, s);
        for (int64_t row = 0; row < rows; row++) turn_row(rope, first, count, c, s, dst + row * d);
    }
}

/* An empty table for the frequencies; false: no memory. */
static bool make_table(ats_turns *turns, const ats_rope *rope)
{
    const int64_t each = 2 * rope->pairs * (int64_t)sizeof(float);
    int64_t slots = 16;
    if (turns->slots > 0 && turns->pairs == rope->pairs) {
        memset(turns->used, 0, (size_t)turns->slots);
        turns->inv_freq = rope->inv_freq;
        return true;
    }
    while (2 * slots * each <= TABLE_BYTES) slots *= 2;
    ats_turns_fini(turns);
    ats_code rc;
    ATS_TRY(ATS_NEW(&turns->arena, slots, &turns->delta, NULL));
    ATS_TRY(ATS_NEW0(&turns->arena, slots, &turns->used, NULL));
    ATS_TRY(ATS_NEW(&turns->arena, slots * 2 * rope->pairs, &turns->table, NULL));
    turns->inv_freq = rope->inv_freq;
    turns->pairs = rope->pairs;
    turns->slots = slots;
out:
    if (rc != ATS_OK) ats_turns_fini(turns);
    return rc == ATS_OK;
}

static bool holds(const ats_turns *turns, const ats_rope *rope)
{
    return turns->slots > 0 && turns->inv_freq == rope->inv_freq && turns->pairs == rope->pairs;
}

void ats_turns_move(ats_turns *turns, const ats_rope *rope, int64_t delta, int64_t rows, int64_t d,
                    const float *src, float *dst)
{
    if (turns == NULL || rope->pairs < 1 || (!holds(turns, rope) && !make_table(turns, rope))) {
        ats_rope_move(rope, delta, rows, d, src, dst);
        return;
    }
    if (!begin(rope, delta, rows * d, src, dst)) return;
    const int64_t slot = (int64_t)((uint64_t)delta & (uint64_t)(turns->slots - 1));
    float *c = turns->table + slot * 2 * rope->pairs, *s = c + rope->pairs;
    if (!turns->used[slot] || turns->delta[slot] != delta) {
        angles(rope, delta, 0, rope->pairs, c, s);
        turns->used[slot] = 1;
        turns->delta[slot] = delta;
    }
    for (int64_t row = 0; row < rows; row++) turn_row(rope, 0, rope->pairs, c, s, dst + row * d);
}

void ats_turns_fini(ats_turns *turns)
{
    ats_arena_fini(&turns->arena);
    *turns = (ats_turns){.slots = 0};
}

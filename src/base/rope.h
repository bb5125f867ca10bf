/* Rotary position moves: R(delta) applied to rows that already hold their rotation.
 * Angles in double, rotation in float (Su et al. 2021, RoFormer; both pair layouts).
 * Ownership: an ats_turns owns its table; one thread at a time. */
#ifndef ATS_BASE_ROPE_H
#define ATS_BASE_ROPE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/contract.h"

/* dst[r, :] = R(delta) src[r, :] for r < rows; in place is fine. Elements past the rotary
 * width are copied. src, dst: [rows, d]. A contract without RoPE copies. */
void ats_rope_move(const ats_rope *rope, int64_t delta, int64_t rows, int64_t d, const float *src,
                   float *dst);

/* Cosines and sines of turns already made with one set of frequencies: where rows are moved one by
 * one, those cost more than the move. A zeroed one is valid and empty. */
typedef struct ats_turns {
    ats_arena arena;
    const double *inv_freq; /* of the table */
    int64_t pairs, slots;   /* slots: a power of two; delta & (slots - 1) is its place */
    int64_t *delta;         /* [slots] */
    uint8_t *used;          /* [slots] */
    float *table;           /* [slots, 2, pairs] cosines, then sines */
} ats_turns;

/* ats_rope_move, to the same bits. turns NULL, or no memory for a table: without one. */
void ats_turns_move(ats_turns *turns, const ats_rope *rope, int64_t delta, int64_t rows, int64_t d,
                    const float *src, float *dst);
void ats_turns_fini(ats_turns *turns);

#endif

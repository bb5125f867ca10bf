/* Rotary position moves: R(delta) applied to rows that already hold their rotation.
 * Angles in double, rotation in float (Su et al. 2021, RoFormer; both pair layouts). */
#ifndef ATS_BASE_ROPE_H
#define ATS_BASE_ROPE_H

#include <stdint.h>

#include "base/contract.h"

/* dst[r, :] = R(delta) src[r, :] for r < rows; in place is fine. Elements past the rotary
 * width are copied. src, dst: [rows, d]. A contract without RoPE copies. */
void ats_rope_move(const ats_rope *rope, int64_t delta, int64_t rows, int64_t d, const float *src,
                   float *dst);

#endif

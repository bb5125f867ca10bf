#include "base/rope.h"

#include <math.h>
#include <string.h>

void ats_rope_move(const ats_rope *rope, int64_t delta, int64_t rows, int64_t d, const float *src,
                   float *dst)
{
    if (src != dst) memcpy(dst, src, (size_t)rows * (size_t)d * sizeof *dst);
    if (rope->layout == ATS_ROPE_NONE || delta == 0) return;
    const bool half = rope->layout == ATS_ROPE_HALF;
    for (int64_t pair = 0; pair < rope->pairs; pair++) {
        const double angle = (double)delta * rope->inv_freq[pair];
        const float c = (float)cos(angle), s = (float)sin(angle);
        float *a = dst + (half ? pair : 2 * pair);
        float *b = dst + (half ? pair + rope->pairs : 2 * pair + 1);
        for (int64_t row = 0; row < rows; row++, a += d, b += d) {
            const float x = *a, y = *b;
            *a = x * c - y * s;
            *b = y * c + x * s;
        }
    }
}

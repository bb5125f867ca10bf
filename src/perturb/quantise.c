#include "perturb/quantise.h"

#include <math.h>

/* count elements, `stride` apart. */
static void round_group(int bits, int64_t count, int64_t stride, float *x)
{
    double low = INFINITY, high = -(double)INFINITY;
    for (int64_t i = 0; i < count; i++) {
        const double value = (double)x[i * stride];
        if (!isfinite(value)) continue;
        low = fmin(low, value);
        high = fmax(high, value);
    }
    if (!(high > low)) return;
    const double step = (high - low) / (double)((1 << bits) - 1);
    for (int64_t i = 0; i < count; i++) {
        const double value = (double)x[i * stride];
        if (isfinite(value)) x[i * stride] = (float)(low + step * nearbyint((value - low) / step));
    }
}

void ats_quantise(int bits, bool per_channel, int64_t group, int64_t rows, int64_t d, float *x)
{
    const int64_t along = per_channel ? rows : d, lines = per_channel ? d : rows;
    if (group <= 0 || group > along) group = along;
    for (int64_t line = 0; line < lines; line++)
        for (int64_t start = 0; start < along; start += group) {
            const int64_t count = along - start < group ? along - start : group;
            if (per_channel)
                round_group(bits, count, d, x + start * d + line);
            else
                round_group(bits, count, 1, x + line * d + start);
        }
}

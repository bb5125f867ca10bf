#include "h5/shuffle.h"

/* The shuffled sizes that captures and results have are straight loops over restrict pointers,
 * which compilers turn into instructions that move bytes within vectors. */

static void part_4(const uint8_t *restrict data, int64_t elements, uint8_t *restrict a,
                   uint8_t *restrict b, uint8_t *restrict c, uint8_t *restrict d)
{
    for (int64_t i = 0; i < elements; i++) {
        a[i] = data[4 * i];
        b[i] = data[4 * i + 1];
        c[i] = data[4 * i + 2];
        d[i] = data[4 * i + 3];
    }
}

void ats_h5_shuffle(const uint8_t *data, size_t size, int64_t elements, int64_t stride,
                    uint8_t *planes)
{
    if (size == 4) {
        part_4(data, elements, planes, planes + stride, planes + 2 * stride, planes + 3 * stride);
        return;
    }
    for (size_t byte = 0; byte < size; byte++) {
        uint8_t *plane = planes + (int64_t)byte * stride;
        for (int64_t i = 0; i < elements; i++) plane[i] = data[(size_t)i * size + byte];
    }
}

/* `all` stays a byte, as wide as the data. */
static bool interleave_2(const uint8_t *restrict low, const uint8_t *restrict high,
                         int64_t elements, uint8_t exponent, uint8_t *restrict out)
{
    uint8_t all = 0;
    for (int64_t i = 0; i < elements; i++) {
        out[2 * i] = low[i];
        out[2 * i + 1] = high[i];
        all |= (uint8_t)((high[i] & exponent) == exponent);
    }
    return all != 0;
}

static bool interleave_4(const uint8_t *restrict a, const uint8_t *restrict b,
                         const uint8_t *restrict c, const uint8_t *restrict d, int64_t elements,
                         uint8_t exponent, uint8_t *restrict out)
{
    uint8_t all = 0;
    for (int64_t i = 0; i < elements; i++) {
        out[4 * i] = a[i];
        out[4 * i + 1] = b[i];
        out[4 * i + 2] = c[i];
        out[4 * i + 3] = d[i];
        all |= (uint8_t)((d[i] & exponent) == exponent);
    }
    return all != 0;
}

static bool interleave(const uint8_t *restrict planes, int64_t stride, size_t size,
                       int64_t elements, uint8_t exponent, uint8_t *restrict out)
{
    const uint8_t *last = planes + (int64_t)(size - 1) * stride;
    uint8_t all = 0;
    for (size_t byte = 0; byte < size; byte++)
        for (int64_t i = 0; i < elements; i++)
            out[(size_t)i * size + byte] = planes[(int64_t)byte * stride + i];
    for (int64_t i = 0; i < elements; i++) all |= (uint8_t)((last[i] & exponent) == exponent);
    return all != 0;
}

bool ats_h5_unshuffle(const uint8_t *planes, int64_t stride, size_t size, int64_t elements,
                      uint8_t exponent, uint8_t *out)
{
    bool all;
    if (size == 2)
        all = interleave_2(planes, planes + stride, elements, exponent, out);
    else if (size == 4)
        all = interleave_4(planes, planes + stride, planes + 2 * stride, planes + 3 * stride,
                           elements, exponent, out);
    else
        all = interleave(planes, stride, size, elements, exponent, out);
    return all && exponent != 0;
}

#include "base/half.h"

#include <string.h>

static inline float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t to_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float widen_bf16(uint16_t bits) { return from_bits((uint32_t)bits << 16); }

float ats_bf16_to_f32(uint16_t bits) { return widen_bf16(bits); }

uint16_t ats_f32_to_bf16(float x)
{
    const uint32_t bits = to_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((bits >> 16) | 0x40u); /* quiet NaN */
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float ats_f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t exponent = (h >> 10) & 0x1fu, fraction = h & 0x3ffu;
    if (exponent == 0x1fu) return from_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent != 0) return from_bits(sign | (exponent + 112u) << 23 | fraction << 13);
    /* Subnormal: fraction * 2^-24, exact in float. */
    const float magnitude = (float)fraction * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

uint16_t ats_f32_to_f16(float x)
{
    const uint32_t bits = to_bits(x), sign = (bits >> 16) & 0x8000u, rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
    if (rest >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* 65520 and above round to inf */
    if (rest >= 0x38800000u) { /* normal in binary16 */
        const uint32_t rounded = rest + 0xfffu + ((rest >> 13) & 1u);
        return (uint16_t)(sign | ((rounded - 0x38000000u) >> 13));
    }
    /* Subnormal: adding 2^-1 * ulp range lets the FPU round to a multiple of 2^-24. */
    const float shifted = from_bits(rest) + 0.5f;
    return (uint16_t)(sign | (to_bits(shifted) - 0x3f000000u));
}

size_t ats_dtype_size(ats_dtype dtype) { return dtype == ATS_F32 ? 4 : 2; }

static const char *const dtype_names[][2] = {
    [ATS_F32] = {"float32", "F32"}, [ATS_F16] = {"float16", "F16"}, [ATS_BF16] = {"bfloat16", "BF16"}};

const char *ats_dtype_name(ats_dtype dtype) { return dtype_names[dtype][0]; }

bool ats_dtype_parse(const char *name, ats_dtype *out)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 2; j++)
            if (strcmp(name, dtype_names[i][j]) == 0) {
                *out = (ats_dtype)i;
                return true;
            }
    return false;
}

float ats_load(ats_dtype dtype, const void *src, int64_t index)
{
    if (dtype == ATS_F32) return ((const float *)src)[index];
    const uint16_t bits = ((const uint16_t *)src)[index];
    return dtype == ATS_BF16 ? ats_bf16_to_f32(bits) : ats_f16_to_f32(bits);
}

void ats_widen(ats_dtype dtype, const void *src, int64_t offset, int64_t count, float *dst)
{
    if (dtype == ATS_F32) {
        memcpy(dst, (const float *)src + offset, (size_t)count * sizeof *dst);
        return;
    }
    const uint16_t *words = (const uint16_t *)src + offset;
    if (dtype == ATS_BF16)
        for (int64_t i = 0; i < count; i++) dst[i] = widen_bf16(words[i]);
    else
        for (int64_t i = 0; i < count; i++) dst[i] = ats_f16_to_f32(words[i]);
}

void ats_narrow(ats_dtype dtype, const float *src, int64_t count, void *dst, int64_t offset)
{
    if (dtype == ATS_F32) {
        memcpy((float *)dst + offset, src, (size_t)count * sizeof *src);
        return;
    }
    uint16_t *words = (uint16_t *)dst + offset;
    for (int64_t i = 0; i < count; i++)
        words[i] = dtype == ATS_BF16 ? ats_f32_to_bf16(src[i]) : ats_f32_to_f16(src[i]);
}

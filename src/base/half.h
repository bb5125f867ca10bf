/* 16-bit floats as raw words: IEEE binary16 and bfloat16, round to nearest even.
 * Storage types of a capture's tensors. Pure functions, no state. */
#ifndef ATS_BASE_HALF_H
#define ATS_BASE_HALF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ats_dtype { ATS_F32, ATS_F16, ATS_BF16 } ats_dtype;

float ats_bf16_to_f32(uint16_t bits);
uint16_t ats_f32_to_bf16(float x); /* overflow gives inf, NaN stays a quiet NaN */
float ats_f16_to_f32(uint16_t bits);
uint16_t ats_f32_to_f16(float x);

size_t ats_dtype_size(ats_dtype dtype);          /* bytes */
const char *ats_dtype_name(ats_dtype dtype);     /* "float32", "float16", "bfloat16" */
bool ats_dtype_parse(const char *name, ats_dtype *out); /* also "F32", "F16", "BF16" */

/* dst[i] = src[offset + i] for i < count, widened exactly. */
void ats_widen(ats_dtype dtype, const void *src, int64_t offset, int64_t count, float *dst);
/* One element, widened exactly. */
float ats_load(ats_dtype dtype, const void *src, int64_t index);
/* dst[offset + i] = src[i], rounded to nearest even. */
void ats_narrow(ats_dtype dtype, const float *src, int64_t count, void *dst, int64_t offset);

#endif

/* The vectors of AVX-512 for cpu_ops_body.h: included by the files of its instruction sets alone.
 */
#ifndef ATS_KERNELS_CPU_OPS_AVX512_H
#define ATS_KERNELS_CPU_OPS_AVX512_H

#include <immintrin.h>

#define VL 16
#define MR 6
#define NV 4
#define THIN 16
#define V_MAX(a, b) _mm512_max_ps(a, b)
#define V_SELECT_GT(a, b, x, y) _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), y, x)
#define V_ANY_GT(a, b) (_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ) != 0)
#define V_BITS_GT(a, b) ((uint32_t)_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ))
#define V_COUNT_GT(n, a, b)                                                                        \
    ((vi)_mm512_mask_add_epi32((__m512i)(n), _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), (__m512i)(n),   \
                               _mm512_set1_epi32(1)))
#define V_WIDEN_BF16(p)                                                                            \
    _mm512_castsi512_ps(_mm512_slli_epi32(                                                         \
        _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(p))), 16))
#define V_WIDEN_F16(p) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define V_ANY_NAN(a) (_mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q) != 0)
#define V_SQRT(a) _mm512_sqrt_ps(a)
#define OPS_NARROW &ats_cpu_ops_avx2

#endif

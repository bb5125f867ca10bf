#include "kernels/cpu_ops.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>

#define VL 8
#define MR 6
#define NV 2
#define THIN 12
#define V_MAX(a, b) _mm256_max_ps(a, b)
#define V_SELECT_GT(a, b, x, y) _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_GT_OQ))
#define V_ANY_GT(a, b) (_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)) != 0)
#define V_BITS_GT(a, b) ((uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)))
#define V_WIDEN_BF16(p)                                                                            \
    _mm256_castsi256_ps(_mm256_slli_epi32(                                                         \
        _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p))), 16))
#define V_WIDEN_F16(p) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define V_ANY_NAN(a) (_mm256_movemask_ps(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)) != 0)
#define V_SQRT(a) _mm256_sqrt_ps(a)
#define OPS_TABLE ats_cpu_ops_avx2
#define OPS_NAME "avx2"
#include "kernels/cpu_ops_body.h"
#else
const ats_cpu_ops ats_cpu_ops_avx2 = {.name = NULL};
#endif

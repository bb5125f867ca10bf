/* AVX-512 with its dot product of bfloat16 pairs, for what is bfloat16 on both sides. */
#include "kernels/cpu_ops.h"

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BF16__)
#include "kernels/cpu_ops_avx512.h"
#define V_DOT_PAIRS(sum, a, b) _mm512_dpbf16_ps(sum, (__m512bh)(a), (__m512bh)(b))
#define OPS_TABLE ats_cpu_ops_avx512_bf16
#define OPS_NAME "avx512_bf16"
#include "kernels/cpu_ops_body.h"
#else
const ats_cpu_ops ats_cpu_ops_avx512_bf16 = {.name = NULL};
#endif

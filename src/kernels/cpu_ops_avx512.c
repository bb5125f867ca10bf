#include "kernels/cpu_ops.h"

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include "kernels/cpu_ops_avx512.h"
#define OPS_TABLE ats_cpu_ops_avx512
#define OPS_NAME "avx512"
#include "kernels/cpu_ops_body.h"
#else
const ats_cpu_ops ats_cpu_ops_avx512 = {.name = NULL};
#endif

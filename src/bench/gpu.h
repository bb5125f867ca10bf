/* What the GPU backends reach: kernels alone, timed by the device's own clock, and whole
 * evaluations. Rows of group "gpu"; without a device that is ATS_E_DEVICE and no row. */
#ifndef ATS_BENCH_GPU_H
#define ATS_BENCH_GPU_H

#include "bench/bench.h"

ATS_MUST_CHECK ats_code ats_bench_gpu(ats_bench *bench, bool kernels_alone, ats_err *err);

#endif

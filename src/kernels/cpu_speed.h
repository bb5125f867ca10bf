/* How fast the cpu backend multiplies here and now, for estimates. */
#ifndef ATS_KERNELS_CPU_SPEED_H
#define ATS_KERNELS_CPU_SPEED_H

#include "base/status.h"

/* Seconds of one multiply-add of a block of logits, on one thread that has its core: a measurement
 * of about a millisecond. Fails where ATTNSTRESS_CPU names a level that is not to be had, and
 * without memory. */
ATS_MUST_CHECK ats_code ats_cpu_multiply_seconds(double *out, ats_err *err);

#endif

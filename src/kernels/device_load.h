/* Finds and opens the GPU module, attnstress_cuda.so: the file that ATTNSTRESS_CUDA_MODULE names,
 * else beside the program, in ../lib/attnstress, or where the loader looks. Opened once, never
 * closed. Thread-safe. */
#ifndef ATS_KERNELS_DEVICE_LOAD_H
#define ATS_KERNELS_DEVICE_LOAD_H

#include "base/status.h"
#include "kernels/device.h"

/* ATS_E_DEVICE and the reason when there is no module, or one of another build. */
ATS_MUST_CHECK ats_code ats_device_load(const ats_device_api **out, ats_err *err);

#endif

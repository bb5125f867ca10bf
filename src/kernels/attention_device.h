/* The backends of a GPU: the fused kernel, and products by cuBLAS as its cross-check. Both live in
 * a module that is opened at run time; without it, or without a device, they say why. */
#ifndef ATS_KERNELS_ATTENTION_DEVICE_H
#define ATS_KERNELS_ATTENTION_DEVICE_H

#include "kernels/backend.h"

extern const ats_backend ats_backend_cuda;
extern const ats_backend ats_backend_cublas;

#endif

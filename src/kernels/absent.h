/* Backends that this build lacks: they keep their name, and every call says why it cannot run. */
#ifndef ATS_KERNELS_ABSENT_H
#define ATS_KERNELS_ABSENT_H

#include "kernels/backend.h"

extern const ats_backend ats_backend_cuda;
extern const ats_backend ats_backend_cublas;

#endif

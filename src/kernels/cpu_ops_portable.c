/* Four lanes of the compiler's vector extension: runs everywhere. */
#define VL 4
#define MR 2
#define NV 4
#define THIN 8
#define OPS_TABLE ats_cpu_ops_portable
#define OPS_NAME "portable"
#include "kernels/cpu_ops_body.h"

/* The calls of calls.h, each with eight whole numbers: what the callee does not read is harmless.
 */
#include "calls.h"

#include <errno.h>

#define CALL(name, result, why)                                                                    \
    long __real_##name(long, long, long, long, long, long, long, long);                            \
    long __wrap_##name(long, long, long, long, long, long, long, long);                            \
    long __wrap_##name(long a, long b, long c, long d, long e, long f, long g, long h)             \
    {                                                                                              \
        return ats_call_fails(#name, why) ? (long)(result)                                         \
                                          : __real_##name(a, b, c, d, e, f, g, h);                 \
    }
ATS_CALLS(CALL)

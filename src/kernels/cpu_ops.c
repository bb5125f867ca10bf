#include "kernels/cpu_ops.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* Not every compiler's __builtin_cpu_supports knows f16c. */
static bool machine_has_f16c(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

static bool machine_has_avx512(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
#else
    return false;
#endif
}

static bool machine_has_avx2(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && machine_has_f16c();
#else
    return false;
#endif
}

typedef struct level {
    const char *name;
    const ats_cpu_ops *ops;
    bool available;
} level;

ats_code ats_cpu_ops_find(const ats_cpu_ops **out, ats_err *err)
{
    /* Widest first. */
    const level levels[] = {
        {"avx512", &ats_cpu_ops_avx512, ats_cpu_ops_avx512.name != NULL && machine_has_avx512()},
        {"avx2", &ats_cpu_ops_avx2, ats_cpu_ops_avx2.name != NULL && machine_has_avx2()},
        {"portable", &ats_cpu_ops_portable, true},
    };
    const char *wanted = getenv("ATTNSTRESS_CPU");
    const bool any = wanted == NULL || *wanted == '\0';
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        const level *at = &levels[i];
        if (!any && strcmp(at->name, wanted) != 0) continue;
        if (at->available) {
            *out = at->ops;
            return ATS_OK;
        }
        if (!any)
            return ats_fail(err, ATS_E_UNSUPPORTED,
                            "ATTNSTRESS_CPU asks for %s, which this machine or build lacks; unset "
                            "it to take the best there is",
                            wanted);
    }
    return ats_fail(err, ATS_E_UNSUPPORTED,
                    "ATTNSTRESS_CPU is \"%s\"; choose portable, avx2 or avx512, or unset it",
                    wanted);
}

#include "kernels/cpu_ops.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu_matrix.h"

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

static bool machine_has_avx512_bf16(void)
{
#if defined(__x86_64__)
    return machine_has_avx512() && __builtin_cpu_supports("avx512bf16");
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
    const ats_cpu_ops *ops; /* NULL: not here, because */
    const char *missing;
} level;

enum { N_LEVELS = 5 };

static ats_cpu_ops with_matrix; /* the widest vectors, and matrix units */
static level levels[N_LEVELS];  /* best first; filled once */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static level vectors(const char *name, const ats_cpu_ops *ops, bool here)
{
    return (level){name, ops->name != NULL && here ? ops : NULL, "this machine or build lacks it"};
}

static void find_levels(void)
{
    const char *no_matrix = "this build lacks it";
    int widest = 1;
    levels[1] = vectors("avx512_bf16", &ats_cpu_ops_avx512_bf16, machine_has_avx512_bf16());
    levels[2] = vectors("avx512", &ats_cpu_ops_avx512, machine_has_avx512());
    levels[3] = vectors("avx2", &ats_cpu_ops_avx2, machine_has_avx2());
    levels[4] = vectors("portable", &ats_cpu_ops_portable, true);
    while (levels[widest].ops == NULL) widest++;
    if (ats_cpu_matrix_amx.name != NULL) no_matrix = ats_cpu_matrix_amx.missing();
    with_matrix = *levels[widest].ops;
    with_matrix.name = "amx";
    with_matrix.matrix = &ats_cpu_matrix_amx;
    levels[0] = (level){"amx", no_matrix == NULL ? &with_matrix : NULL, no_matrix};
}

ats_code ats_cpu_ops_find(const ats_cpu_ops **out, ats_err *err)
{
    const char *wanted = getenv("ATTNSTRESS_CPU");
    const bool any = wanted == NULL || *wanted == '\0';
    pthread_once(&once, find_levels);
    for (int i = 0; i < N_LEVELS; i++) {
        const level *at = &levels[i];
        if (!any && strcmp(at->name, wanted) != 0) continue;
        if (at->ops != NULL) {
            *out = at->ops;
            return ATS_OK;
        }
        if (!any)
            return ats_fail(
                err, ATS_E_UNSUPPORTED,
                "ATTNSTRESS_CPU asks for %s, but %s; unset it to take the best there is", wanted,
                at->missing);
    }
    return ats_fail(
        err, ATS_E_UNSUPPORTED,
        "ATTNSTRESS_CPU is \"%s\"; choose portable, avx2, avx512, avx512_bf16 or amx, or "
        "unset it",
        wanted);
}

const char *ats_cpu_matrix_missing(void)
{
    pthread_once(&once, find_levels);
    return levels[0].missing;
}

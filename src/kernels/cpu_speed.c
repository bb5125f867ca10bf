#include "kernels/cpu_speed.h"

#include "base/arena.h"
#include "base/log.h"
#include "kernels/cpu_ops.h"

/* One leaf of keys against a tile of rows: the sizes of a pass, within the second cache. */
enum { KEYS = 256, WIDTH = 128, TRIES = 8 };

ats_code ats_cpu_multiply_seconds(double *out, ats_err *err)
{
    const ats_cpu_ops *ops;
    ats_arena arena;
    float *q = NULL, *k = NULL, *z = NULL;
    double best = 0;
    ats_code rc;
    ats_arena_init(&arena, false);
    ATS_TRY(ats_cpu_ops_find(&ops, err));
    ATS_TRY(ATS_NEW0(&arena, WIDTH * ATS_CPU_TILE, &q, err));
    ATS_TRY(ATS_NEW0(&arena, KEYS * WIDTH, &k, err));
    ATS_TRY(ATS_NEW0(&arena, KEYS * ATS_CPU_TILE, &z, err));
    for (int i = 0; i < TRIES; i++) {
        const double start = ats_clock();
        ops->gemm(KEYS, ATS_CPU_TILE, WIDTH, k, WIDTH, 1, q, ATS_CPU_TILE, z, ATS_CPU_TILE);
        const double seconds = ats_clock() - start;
        if (i == 0 || seconds < best) best = seconds;
    }
    *out = best / ((double)KEYS * WIDTH * ATS_CPU_TILE);
out:
    ats_arena_fini(&arena);
    return rc;
}

/* The least a pass can do: output and log-sum-exp of every row, no statistics, nothing kept. Built
 * from the same vector kernels; what the statistics cost is measured against it.
 * Ownership: everything lives in the arena given to ats_bench_plain_new. */
#ifndef ATS_BENCH_PLAIN_H
#define ATS_BENCH_PLAIN_H

#include "base/arena.h"
#include "kernels/backend.h"
#include "kernels/cpu_ops.h"

typedef struct ats_bench_plain {
    const ats_problem *problem; /* one key head, no bias, cap or mask */
    const ats_cpu_ops *ops;
    int64_t tiles, width; /* tiles of ATS_BENCH_TILE rows */
    float *q;             /* [tiles, d_qk, tile] */
    float *room;          /* [threads, room_floats] panels of a worker */
    float *sums;          /* [threads, tiles, tile, 2 + width] m, l, o of a worker */
    int64_t room_floats, sums_floats;
    double *lse;   /* [rows] */
    float *output; /* [rows, width] */
} ats_bench_plain;

enum { ATS_BENCH_TILE = 64, ATS_BENCH_BLOCK = 256 /* keys */ };

ATS_MUST_CHECK ats_code ats_bench_plain_new(ats_arena *arena, const ats_problem *problem,
                                            ats_bench_plain *out, ats_err *err);
ATS_MUST_CHECK ats_code ats_bench_plain_run(ats_bench_plain *plain, ats_err *err);

#endif

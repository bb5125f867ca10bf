/* One pass: against the multiply-add peak, the memory's speed, and a pass that keeps nothing but
 * output and log-sum-exp. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "bench/bench.h"
#include "bench/plain.h"
#include "kernels/cpu_matrix.h"

typedef struct pass {
    const ats_backend *cpu;
    ats_problem problem;
    ats_bench_plain plain;
} pass;

static ats_code run(void *ctx, ats_err *err)
{
    pass *p = ctx;
    return p->cpu->evaluate(&p->problem, NULL, 0, ats_bench_ignore, NULL, err);
}

static ats_code run_plain(void *ctx, ats_err *err)
{
    pass *p = ctx;
    return ats_bench_plain_run(&p->plain, err);
}

static ats_code make(ats_arena *arena, const ats_bench_shape *shape, pass *p, ats_err *err)
{
    ats_code rc;
    ATS_TRY(ats_backend_find("cpu", &p->cpu, err));
    ATS_TRY(ats_bench_problem(arena, shape, &p->problem, err));
    ATS_TRY(ats_bench_plain_new(arena, &p->problem, &p->plain, err));
out:
    return rc;
}

static double flops_of(const ats_problem *p)
{
    return 2 * (double)p->n_rows * (double)p->n_keys * (double)(p->d_qk + p->d_v);
}

static double bytes_of(const ats_problem *p)
{
    return (double)p->n_keys * (double)(p->d_qk * (int64_t)ats_dtype_size(p->k_dtype) +
                                        p->d_v * (int64_t)ats_dtype_size(p->v_dtype));
}

static ats_code wide(ats_bench *bench, ats_arena *arena, ats_err *err)
{
    const ats_bench_shape shape = {bench->quick ? 8192 : 32768, 8, 64, 128, ATS_F32};
    ats_bench_row row = {.key = "fp32_pass",
                         .group = "bars",
                         .what = "fp32 pass with all statistics, 512 rows, of the FMA peak",
                         .unit = "%",
                         .must = 70,
                         .goal = 90};
    pass p = {0};
    ats_code rc;
    ATS_TRY(make(arena, &shape, &p, err));
    ats_bench_timed things[] = {{run, &p, 0}, {run_plain, &p, 0}};
    ATS_TRY(ats_bench_time(bench, things, 2, err));
    const double flops = flops_of(&p.problem) / things[0].best;
    row.value = 100 * flops / bench->flops;
    snprintf(row.note, sizeof row.note, "%lld keys, d 128: %.1f GFLOP/s, %.1f ms",
             (long long)shape.n_keys, flops / 1e9, 1e3 * things[0].best);
    ATS_TRY(ats_bench_add(bench, &row, err));
    row = (ats_bench_row){.key = "statistics",
                          .group = "bars",
                          .what = "statistics over output and log-sum-exp alone, 512 rows",
                          .unit = "%",
                          .value = 100 * (things[0].best / things[1].best - 1),
                          .must = 15,
                          .goal = 3,
                          .at_most = true};
    snprintf(row.note, sizeof row.note, "without statistics %.1f GFLOP/s, %.1f ms",
             flops_of(&p.problem) / things[1].best / 1e9, 1e3 * things[1].best);
    ATS_TRY(ats_bench_add(bench, &row, err));
out:
    return rc;
}

/* The pass by matrix units against the fp32 pass of the same shape. Both read values of their own
 * type; only bfloat16 goes through matrix units. */
static ats_code matrix(ats_bench *bench, ats_arena *arena, ats_err *err)
{
    ats_bench_shape shape = {bench->quick ? 8192 : 32768, 8, 64, 128, ATS_F32};
    ats_bench_row row = {.key = "amx_pass",
                         .group = "bars",
                         .what = "AMX pass of bfloat16 over the fp32 pass, 512 rows",
                         .value = (double)NAN,
                         .unit = "x",
                         .must = 3,
                         .goal = 5};
    const ats_cpu_ops *ops = NULL;
    pass full = {0}, half = {0};
    ats_code rc;
    ATS_TRY(ats_cpu_ops_find(&ops, err));
    if (ops->matrix == NULL) {
        const char *missing = ats_cpu_matrix_missing();
        snprintf(row.note, sizeof row.note, "not measured: %s",
                 missing != NULL ? missing : "ATTNSTRESS_CPU names another level");
        ATS_TRY(ats_bench_add(bench, &row, err));
        goto out;
    }
    ATS_TRY(make(arena, &shape, &full, err));
    shape.dtype = ATS_BF16;
    ATS_TRY(make(arena, &shape, &half, err));
    ats_bench_timed things[] = {{run, &full, 0}, {run, &half, 0}};
    ATS_TRY(ats_bench_time(bench, things, 2, err));
    const double flops = flops_of(&half.problem) / things[1].best;
    row.value = things[0].best / things[1].best;
    snprintf(
        row.note, sizeof row.note,
        "fp32 %.1f ms, bfloat16 %.1f ms: %.1f GFLOP/s, %.0f %% of the AMX peak before splitting",
        1e3 * things[0].best, 1e3 * things[1].best, flops / 1e9, 100 * flops / bench->matrix_flops);
    ATS_TRY(ats_bench_add(bench, &row, err));
out:
    return rc;
}

static ats_code probe(ats_bench *bench, ats_arena *arena, ats_dtype dtype, int64_t rows,
                      const char *key, ats_err *err)
{
    const int64_t n = bench->quick ? 131072 : 524288;
    const ats_bench_shape shape = {n, 1, rows, 128, dtype};
    ats_bench_row row = {.key = key, .group = "bars", .unit = "%", .must = 70, .goal = 95};
    pass p = {0};
    ats_code rc;
    ATS_TRY(make(arena, &shape, &p, err));
    ats_bench_timed things[] = {{run, &p, 0}};
    ATS_TRY(ats_bench_time(bench, things, 1, err));
    const double rate = bytes_of(&p.problem) / things[0].best;
    row.value = 100 * rate / bench->bandwidth;
    snprintf(row.what, sizeof row.what, "probe mode, %lld row%s, %s, of memory bandwidth",
             (long long)rows, rows > 1 ? "s" : "", ats_dtype_name(dtype));
    snprintf(row.note, sizeof row.note, "%lld keys, d 128: %.1f GB/s, %.1f ms", (long long)n,
             rate / 1e9, 1e3 * things[0].best);
    ATS_TRY(ats_bench_add(bench, &row, err));
out:
    return rc;
}

ats_code ats_bench_pass(ats_bench *bench, ats_err *err)
{
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_code rc = wide(bench, &arena, err);
    ats_arena_reset(&arena);
    if (rc == ATS_OK) rc = matrix(bench, &arena, err);
    ats_arena_fini(&arena);
    return rc;
}

ats_code ats_bench_probes(ats_bench *bench, ats_err *err)
{
    static const struct {
        const char *key;
        ats_dtype dtype;
        int64_t rows;
    } modes[] = {{"probe_8_bf16", ATS_BF16, 8},
                 {"probe_4_bf16", ATS_BF16, 4},
                 {"probe_1_bf16", ATS_BF16, 1},
                 {"probe_8_f16", ATS_F16, 8},
                 {"probe_8_f32", ATS_F32, 8}};
    ats_code rc = ATS_OK;
    for (size_t i = 0; i < sizeof modes / sizeof *modes && rc == ATS_OK; i++) {
        ats_arena arena;
        ats_arena_init(&arena, false);
        rc = probe(bench, &arena, modes[i].dtype, modes[i].rows, modes[i].key, err);
        ats_arena_fini(&arena);
    }
    return rc;
}

/* The machine's ceilings: multiply-adds from registers, matrix units, and reading memory. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/parallel.h"
#include "bench/bench.h"
#include "kernels/cpu_matrix.h"
#include "kernels/cpu_ops.h"

typedef struct ceiling {
    const ats_cpu_ops *ops;
    int64_t items;
    const float *memory; /* [floats] */
    int64_t floats;      /* of one item */
    float *out;          /* [items] keeps the work from being dropped */
} ceiling;

enum { BURN_STEPS = 200000 /* as long as a kernel, so that no step of the clock counts */ };

static ats_code burn_item(void *ctx, int64_t item, int worker, ats_err *err)
{
    (void)worker;
    (void)err;
    const ceiling *c = ctx;
    c->out[item] = c->ops->burn(BURN_STEPS);
    return ATS_OK;
}

static ats_code read_item(void *ctx, int64_t item, int worker, ats_err *err)
{
    (void)worker;
    (void)err;
    const ceiling *c = ctx;
    c->out[item] = c->ops->read(c->floats, c->memory + item * c->floats);
    return ATS_OK;
}

static ats_code burn_matrix_item(void *ctx, int64_t item, int worker, ats_err *err)
{
    (void)worker;
    (void)err;
    const ceiling *c = ctx;
    c->out[item] = c->ops->matrix->burn(BURN_STEPS);
    return ATS_OK;
}

static ats_code burn_matrix(void *ctx, ats_err *err)
{
    const ceiling *c = ctx;
    return ats_parallel_for(c->items, burn_matrix_item, ctx, err);
}

static ats_code burn(void *ctx, ats_err *err)
{
    const ceiling *c = ctx;
    return ats_parallel_for(c->items, burn_item, ctx, err);
}

static ats_code read_all(void *ctx, ats_err *err)
{
    const ceiling *c = ctx;
    return ats_parallel_for(c->items, read_item, ctx, err);
}

/* Why there are no matrix units to measure. */
static const char *no_matrix(void)
{
    const char *missing = ats_cpu_matrix_missing();
    return missing != NULL ? missing : "ATTNSTRESS_CPU names another level";
}

static ats_code add_matrix(ats_bench *bench, ceiling *c, int threads, ats_err *err)
{
    ats_bench_row row = {.key = "amx_peak",
                         .group = "machine",
                         .value = (double)NAN,
                         .unit = "GFLOP/s",
                         .must = (double)NAN,
                         .goal = (double)NAN};
    snprintf(row.what, sizeof row.what, "AMX bfloat16 peak, %d thread%s", threads,
             threads > 1 ? "s" : "");
    bench->matrix_flops = 0;
    if (c->ops->matrix != NULL) {
        ats_bench_timed thing = {burn_matrix, c, 0};
        c->items = 16 * threads;
        const ats_code rc = ats_bench_time(bench, &thing, 1, err);
        if (rc != ATS_OK) return rc;
        bench->matrix_flops =
            (double)c->items * BURN_STEPS * c->ops->matrix->burn_flops / thing.best;
        row.value = bench->matrix_flops / 1e9;
        snprintf(row.note, sizeof row.note, "four sums of 16 x 16, tiles loaded once");
    } else {
        snprintf(row.note, sizeof row.note, "not measured: %s", no_matrix());
    }
    return ats_bench_add(bench, &row, err);
}

static ats_code add_rows(ats_bench *bench, const ceiling *c, int threads, double flops,
                         double bytes, ats_err *err)
{
    ats_bench_row row = {.group = "machine", .must = (double)NAN, .goal = (double)NAN};
    ats_code rc;
    row.key = "fma_peak";
    row.value = flops / 1e9;
    row.unit = "GFLOP/s";
    snprintf(row.what, sizeof row.what, "fp32 multiply-add peak, %d thread%s", threads,
             threads > 1 ? "s" : "");
    snprintf(row.note, sizeof row.note, "%s, from registers", c->ops->name);
    ATS_TRY(ats_bench_add(bench, &row, err));
    row.key = "memory_read";
    row.value = bytes / 1e9;
    row.unit = "GB/s";
    snprintf(row.what, sizeof row.what, "memory read, %d thread%s", threads,
             threads > 1 ? "s" : "");
    snprintf(row.note, sizeof row.note, "%lld MiB, read front to back",
             (long long)(c->items * c->floats * 4 / (1 << 20)));
    ATS_TRY(ats_bench_add(bench, &row, err));
out:
    return rc;
}

ats_code ats_bench_machine(ats_bench *bench, ats_err *err)
{
    const int64_t bytes = (int64_t)(bench->quick ? 128 : 512) << 20, piece = 1 << 20;
    ceiling c = {.floats = piece / 4};
    float *memory = NULL;
    ats_arena arena;
    ats_code rc;
    ats_arena_init(&arena, false);
    ATS_TRY(ats_cpu_ops_find(&c.ops, err));
    ATS_TRY(ATS_NEW0(&arena, bytes / 4, &memory, err));
    ATS_TRY(ATS_NEW0(&arena, bytes / piece, &c.out, err));
    c.memory = memory;
    for (int all = bench->threads > 1 ? 0 : 1; all < 2; all++) {
        const int threads = all ? bench->threads : 1;
        ats_set_threads(threads);
        ats_bench_timed things[] = {{burn, &c, 0}, {read_all, &c, 0}};
        c.items = 16 * threads;
        ATS_TRY(ats_bench_time(bench, &things[0], 1, err));
        const double flops = (double)c.items * BURN_STEPS * c.ops->burn_flops / things[0].best;
        c.items = bytes / piece;
        ATS_TRY(ats_bench_time(bench, &things[1], 1, err));
        const double rate = (double)bytes / things[1].best;
        ATS_TRY(add_rows(bench, &c, threads, flops, rate, err));
        ATS_TRY(add_matrix(bench, &c, threads, err));
        bench->flops = flops;
        bench->bandwidth = rate;
    }
out:
    ats_set_threads(bench->threads);
    ats_arena_fini(&arena);
    return rc;
}

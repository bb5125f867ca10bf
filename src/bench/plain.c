#include "bench/plain.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"

enum { TILE = ATS_BENCH_TILE, BLOCK = ATS_BENCH_BLOCK };

ats_code ats_bench_plain_new(ats_arena *arena, const ats_problem *problem, ats_bench_plain *out,
                             ats_err *err)
{
    const int64_t threads = ats_threads(), d = problem->d_qk;
    ats_bench_plain x = {.problem = problem,
                         .tiles = (problem->n_rows + TILE - 1) / TILE,
                         .width = (problem->d_v + 15) / 16 * 16};
    ats_code rc;
    ATS_TRY(ats_cpu_ops_find(&x.ops, err));
    x.room_floats = BLOCK * (d + x.width + 2 * TILE) + TILE * x.width + 2 * TILE;
    x.sums_floats = x.tiles * TILE * (2 + x.width);
    ATS_TRY(ATS_NEW0(arena, x.tiles * d * TILE, &x.q, err));
    ATS_TRY(ATS_NEW0(arena, threads * x.room_floats, &x.room, err));
    ATS_TRY(ATS_NEW0(arena, threads * x.sums_floats, &x.sums, err));
    ATS_TRY(ATS_NEW0(arena, problem->n_rows, &x.lse, err));
    ATS_TRY(ATS_NEW0(arena, problem->n_rows * x.width, &x.output, err));
    for (int64_t row = 0; row < problem->n_rows; row++)
        for (int64_t j = 0; j < d; j++)
            x.q[(row / TILE * d + j) * TILE + row % TILE] = problem->q[row * d + j];
    *out = x;
out:
    return rc;
}

/* Adds a block's m, l [TILE] and o [TILE, width] to a worker's sums. */
static void add_block(const ats_bench_plain *x, float *sums, const float *m, const float *l,
                      const float *o)
{
    for (int64_t row = 0; row < TILE; row++) {
        float *at = sums + row * (2 + x->width);
        const float peak = at[0] > m[row] ? at[0] : m[row];
        const float old = at[1] > 0 ? expf(at[0] - peak) : 0.0f, new = expf(m[row] - peak);
        at[0] = peak;
        at[1] = old * at[1] + new *l[row];
        for (int64_t j = 0; j < x->width; j++)
            at[2 + j] = old * at[2 + j] + new *o[row * x->width + j];
    }
}

static ats_code block(void *ctx, int64_t index, int worker, ats_err *err)
{
    (void)err;
    const ats_bench_plain *x = ctx;
    const ats_problem *p = x->problem;
    const int64_t first = index * BLOCK, left = p->n_keys - first;
    const int64_t keys = left < BLOCK ? left : BLOCK;
    float *k = x->room + worker * x->room_floats, *v = k + BLOCK * p->d_qk;
    float *z = v + BLOCK * x->width, *weights = z + BLOCK * TILE, *o = weights + BLOCK * TILE;
    float *m = o + TILE * x->width, *l = m + TILE;
    x->ops->widen(p->k_dtype, p->k, first * p->d_qk, keys * p->d_qk, k);
    x->ops->widen(p->v_dtype, p->v, first * p->d_v, keys * p->d_v, v);
    for (int64_t tile = 0; tile < x->tiles; tile++) {
        x->ops->gemm(keys, TILE, p->d_qk, k, p->d_qk, 1, x->q + tile * p->d_qk * TILE, TILE, z,
                     TILE);
        x->ops->weights(keys, TILE, (float)p->contract.scale, z, weights, m, l);
        x->ops->gemm(TILE, x->width, keys, weights, 1, TILE, v, x->width, o, x->width);
        add_block(x, x->sums + worker * x->sums_floats + tile * TILE * (2 + x->width), m, l, o);
    }
    return ATS_OK;
}

ats_code ats_bench_plain_run(ats_bench_plain *x, ats_err *err)
{
    const int threads = ats_threads();
    memset(x->sums, 0, (size_t)(threads * x->sums_floats) * sizeof(float));
    for (int64_t i = 0; i < threads * x->tiles * TILE; i++) x->sums[i * (2 + x->width)] = -INFINITY;
    const ats_code rc = ats_parallel_for((x->problem->n_keys + BLOCK - 1) / BLOCK, block, x, err);
    if (rc != ATS_OK) return rc;
    for (int64_t row = 0; row < x->problem->n_rows; row++) {
        float *sums = x->sums + row * (2 + x->width);
        for (int w = 1; w < threads; w++) {
            const float *other = sums + w * x->sums_floats;
            const float peak = sums[0] > other[0] ? sums[0] : other[0];
            const float a = sums[1] > 0 ? expf(sums[0] - peak) : 0.0f;
            const float b = other[1] > 0 ? expf(other[0] - peak) : 0.0f;
            sums[0] = peak;
            for (int64_t j = 1; j < 2 + x->width; j++) sums[j] = a * sums[j] + b * other[j];
        }
        x->lse[row] = (double)sums[0] + log((double)sums[1]);
        for (int64_t j = 0; j < x->width; j++)
            x->output[row * x->width + j] = sums[2 + j] / sums[1];
    }
    return ATS_OK;
}

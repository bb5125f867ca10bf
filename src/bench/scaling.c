/* Growth with keys, variants, layers and heads: time at four sizes, against the first. */
#include <math.h>
#include <stdio.h>

#include "bench/bench.h"

typedef struct work {
    const ats_backend *cpu;
    ats_problem problem;
    ats_edit *edits;
    int64_t n_edits, times;
} work;

static ats_code run(void *ctx, ats_err *err)
{
    const work *w = ctx;
    ats_code rc = ATS_OK;
    for (int64_t i = 0; i < w->times && rc == ATS_OK; i++)
        rc = w->cpu->evaluate(&w->problem, w->edits, w->n_edits, ats_bench_ignore, NULL, err);
    return rc;
}

typedef struct size {
    int64_t keys, variants, layers, heads;
} size;

static ats_code measure(ats_bench *bench, size s, double *out, ats_err *err)
{
    const ats_bench_shape shape = {s.keys, 4 * s.heads, 8, 64, ATS_BF16};
    work w = {.n_edits = s.variants, .times = s.layers};
    ats_bench_timed thing = {run, &w, 0};
    ats_arena arena;
    ats_code rc;
    ats_arena_init(&arena, false);
    ATS_TRY(ats_backend_find("cpu", &w.cpu, err));
    ATS_TRY(ats_bench_problem(&arena, &shape, &w.problem, err));
    ATS_TRY(ATS_NEW(&arena, s.variants, &w.edits, err));
    ATS_TRY(ats_bench_edits(&arena, &w.problem, s.variants, 16, w.edits, err));
    ATS_TRY(ats_bench_time(bench, &thing, 1, err));
    *out = thing.best;
out:
    ats_arena_fini(&arena);
    return rc;
}

/* unit: how far the axis grows between two sizes. */
static ats_code grow(ats_bench *bench, const char *key, const char *axis, const size *sizes,
                     const int64_t *at, ats_err *err)
{
    enum { SIZES = 4 };
    double took[SIZES];
    ats_bench_row row = {
        .key = key, .group = "scaling", .unit = "x", .must = (double)NAN, .goal = (double)NAN};
    int used = 0;
    ats_code rc = ATS_OK;
    for (int i = 0; i < SIZES; i++) {
        ATS_TRY(measure(bench, sizes[i], &took[i], err));
        used += snprintf(row.note + used, sizeof row.note - (size_t)used, "%s%lld: %.2f ms",
                         i > 0 ? ", " : "", (long long)at[i], 1e3 * took[i]);
    }
    row.value = took[SIZES - 1] / took[SIZES - 2] / ((double)at[SIZES - 1] / (double)at[SIZES - 2]);
    snprintf(row.what, sizeof row.what, "time over linear growth with %s, last doubling", axis);
    ATS_TRY(ats_bench_add(bench, &row, err));
out:
    return rc;
}

ats_code ats_bench_scaling(ats_bench *bench, ats_err *err)
{
    const int64_t n = bench->quick ? 4096 : 16384;
    const int64_t keys[] = {n, 2 * n, 4 * n, 8 * n}, counts[] = {64, 128, 256, 512};
    const int64_t few[] = {1, 2, 4, 8};
    size by_keys[4], by_variants[4], by_layers[4], by_heads[4];
    ats_code rc;
    for (int i = 0; i < 4; i++) {
        by_keys[i] = (size){keys[i], 16, 1, 1};
        by_variants[i] = (size){n, counts[i], 1, 1};
        by_layers[i] = (size){n, 16, few[i], 1};
        by_heads[i] = (size){n, 16, 1, few[i]};
    }
    ATS_TRY(grow(bench, "growth_keys", "keys", by_keys, keys, err));
    ATS_TRY(grow(bench, "growth_variants", "variants", by_variants, counts, err));
    ATS_TRY(grow(bench, "growth_layers", "layers", by_layers, few, err));
    ATS_TRY(grow(bench, "growth_heads", "query heads of a group", by_heads, few, err));
out:
    return rc;
}

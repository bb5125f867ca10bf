/* The cpu backend: one base pass, then variants in parallel, each from shared states. */
#include <stdint.h>

#include "base/parallel.h"
#include "kernels/cpu.h"
#include "kernels/stats.h"

extern const ats_backend ats_backend_cpu;

static ats_code cpu_probe(ats_err *err)
{
    const ats_cpu_ops *ops;
    return ats_cpu_ops_find(&ops, err);
}

static ats_code cpu_supports(const ats_problem *problem, ats_err *err)
{
    return ats_problem_check(problem, err);
}

static const char *cpu_detail(void)
{
    const ats_cpu_ops *ops;
    return ats_cpu_ops_find(&ops, NULL) == ATS_OK ? ops->name : "unavailable";
}

/* Bytes of a variant that changes every leaf, the worst that a worker holds at a time. */
static ats_code count_variant(ats_arena *arena, const ats_cpu_base *base, int64_t leaves)
{
    ats_cpu_state state;
    float *z;
    ats_code rc = ATS_OK;
    for (int64_t i = 0; i < 2 * leaves; i++) ATS_TRY(ats_cpu_state_new(arena, base, &state, NULL));
    ATS_TRY(ATS_NEW(arena, leaves * base->tree.leaf * base->lanes, &z, NULL));
out:
    return rc;
}

static size_t cpu_workspace(const ats_problem *problem, int64_t n_variants)
{
    ats_arena arena;
    ats_cpu_base base;
    ats_cpu_worker worker;
    int64_t threads = ats_threads();
    if (n_variants < threads) threads = n_variants > 1 ? n_variants : 1;
    ats_arena_init(&arena, true);
    if (ats_cpu_base_layout(&arena, problem, &ats_cpu_ops_portable, &base, NULL) != ATS_OK)
        return SIZE_MAX;
    const size_t shared = arena.used;
    ats_arena_init(&arena, true);
    if (ats_cpu_worker_layout(&arena, &base, &worker, NULL) != ATS_OK ||
        count_variant(&arena, &base, problem->n_keys / base.tree.leaf + 1) != ATS_OK)
        return SIZE_MAX;
    return shared + (size_t)threads * arena.used;
}

typedef struct cpu_run {
    const ats_cpu_base *base;
    ats_cpu_worker *workers;
    const ats_edit *variants;
    ats_emit_fn emit;
    void *ctx;
} cpu_run;

static ats_code measure(ats_cpu_worker *worker, ats_cpu_variant *variant, ats_stats *out,
                        ats_err *err)
{
    ats_code rc;
    ATS_TRY(ats_cpu_fold(worker, variant, err));
    if (variant->edit != NULL) ats_cpu_pair_masses(variant, &out->pair);
    ats_cpu_route(variant, &out->route);
    ATS_TRY(ats_cpu_vectors(worker, variant, out, err));
    ATS_TRY(ats_cpu_scan(worker, variant, out, err));
    if (variant->edit != NULL) ATS_TRY(ats_cpu_divergences(worker, variant, &out->pair, err));
out:
    return rc;
}

static ats_code measure_base(ats_cpu_worker *worker, ats_cpu_base *base, ats_err *err)
{
    ats_cpu_variant variant;
    ats_code rc;
    ATS_TRY(ats_cpu_variant_build(worker, base, NULL, &variant, err));
    ATS_TRY(measure(worker, &variant, &base->stats, err));
    ats_cpu_base_weights(base, variant.norm);
out:
    return rc;
}

static ats_code measure_variant(void *ctx, int64_t index, int worker_index, ats_err *err)
{
    const cpu_run *run = ctx;
    ats_cpu_worker *worker = &run->workers[worker_index];
    const ats_edit *edit = &run->variants[index];
    ats_cpu_variant variant;
    ats_code rc;
    ATS_TRY(ats_edit_check(run->base->problem, edit, err));
    ats_stats_clear(run->base->problem, &worker->stats);
    ATS_TRY(ats_cpu_variant_build(worker, run->base, edit, &variant, err));
    ATS_TRY(measure(worker, &variant, &worker->stats, err));
    ATS_TRY(run->emit(run->ctx, index, worker_index, &run->base->stats, &worker->stats, err));
out:
    return rc;
}

static ats_code cpu_evaluate(const ats_problem *problem, const ats_edit *variants,
                             int64_t n_variants, ats_emit_fn emit, void *ctx, ats_err *err)
{
    const ats_cpu_ops *ops;
    const int threads = ats_threads();
    ats_cpu_base base;
    ats_cpu_worker *workers = NULL;
    ats_arena arena;
    ats_code rc;
    ats_arena_init(&arena, false);
    ATS_TRY(ats_cpu_ops_find(&ops, err));
    ATS_TRY(cpu_supports(problem, err));
    ATS_TRY(ats_cpu_base_layout(&arena, problem, ops, &base, err));
    ATS_TRY(ATS_NEW0(&arena, threads, &workers, err));
    for (int i = 0; i < threads; i++)
        ATS_TRY(ats_cpu_worker_layout(&arena, &base, &workers[i], err));
    ATS_TRY(ats_cpu_base_pass(&base, workers, err));
    ATS_TRY(measure_base(&workers[0], &base, err));
    ATS_TRY(emit(ctx, -1, 0, &base.stats, &base.stats, err));
    cpu_run run = {&base, workers, variants, emit, ctx};
    ATS_TRY(ats_parallel_for(n_variants, measure_variant, &run, err));
out:
    for (int i = 0; workers != NULL && i < threads; i++) ats_arena_fini(&workers[i].arena);
    ats_arena_fini(&arena);
    return rc;
}

const ats_backend ats_backend_cpu = {
    .name = "cpu",
    .summary = "float arithmetic in vectors, all variants from one pass over the base",
    .probe = cpu_probe,
    .supports = cpu_supports,
    .workspace_bytes = cpu_workspace,
    .evaluate = cpu_evaluate,
    .detail = cpu_detail,
};

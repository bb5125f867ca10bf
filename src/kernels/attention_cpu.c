/* The cpu backend: one base pass, then variants in parallel, each from shared states. */
#include <stdint.h>

#include "base/parallel.h"
#include "kernels/blocks.h"
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

/* Bytes of a variant that changes every leaf: logits and states of each, and those of the leaves
 * where a row's first or last legal key changes in their four parts. */
static ats_code count_variant(ats_arena *arena, const ats_cpu_base *base, int64_t leaves)
{
    const int64_t ends = 4 * base->problem->n_rows + 64;
    const int64_t split = ends < leaves ? ends : leaves;
    ats_cpu_state state;
    float *z;
    ats_code rc = ATS_OK;
    for (int64_t i = 0; i < 2 * (leaves + split); i++)
        ATS_TRY(ats_cpu_state_new(arena, base, &state, NULL));
    ATS_TRY(ATS_NEW(arena, 2 * (leaves + 2 * split) * base->tree.leaf * base->lanes, &z, NULL));
out:
    return rc;
}

/* Rows of a problem, with so many variants at work. */
static size_t bytes_of(const ats_problem *problem, int64_t at_work)
{
    ats_arena arena, small;
    ats_cpu_tiles tiles;
    ats_cpu_worker worker;
    size_t bytes = SIZE_MAX;
    const ats_cpu_ops *ops = &ats_cpu_ops_portable;
    if (ats_cpu_ops_find(&ops, NULL) != ATS_OK) return SIZE_MAX;
    const ats_cpu_needs needs = {.ops = ops, .logits = at_work > 0};
    ats_arena_init(&arena, true);
    ats_arena_init(&small, false);
    if (ats_cpu_tiles_layout(&arena, &small, problem, &needs, &tiles, NULL) != ATS_OK) goto out;
    const size_t shared = arena.used;
    ats_arena_init(&arena, true);
    if (tiles.n > 0 && ats_cpu_worker_layout(&arena, &tiles, &worker, NULL) != ATS_OK) goto out;
    const size_t each = arena.used;
    ats_arena_init(&arena, true);
    if (tiles.n > 0 &&
        count_variant(&arena, &tiles.at[0], problem->n_keys / tiles.at[0].tree.leaf + 1) != ATS_OK)
        goto out;
    bytes = shared + (size_t)ats_threads() * each + (size_t)at_work * arena.used;
out:
    ats_arena_fini(&small);
    return bytes;
}

static size_t cpu_workspace(const ats_problem *problem, int64_t n_variants)
{
    return ats_blocks_choose(problem, n_variants, bytes_of).bytes;
}

typedef struct cpu_run {
    const ats_cpu_tiles *tiles;
    ats_cpu_worker *workers;
    const ats_edit *variants;
    const ats_cpu_device *device; /* or NULL */
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

static ats_code measure_base(void *ctx, int64_t tile, int worker_index, ats_err *err)
{
    const cpu_run *run = ctx;
    ats_cpu_worker *worker = &run->workers[worker_index];
    ats_cpu_base *base = &run->tiles->at[tile];
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
    const ats_cpu_tiles *tiles = run->tiles;
    ats_cpu_worker *worker = &run->workers[worker_index];
    const ats_edit *edit = &run->variants[index];
    const ats_problem *whole = tiles->at[0].whole;
    ats_cpu_variant variant;
    ats_code rc;
    ATS_TRY(ats_edit_check(whole, edit, err));
    ats_stats_clear_numbers(whole, &worker->stats);
    if (run->device != NULL)
        ATS_TRY(run->device->variant(run->device->ctx, worker_index, tiles, edit, err));
    for (int64_t tile = 0; tile < tiles->n; tile++) {
        ats_stats rows;
        if (run->device != NULL)
            worker->pieces = run->device->pieces(run->device->ctx, worker_index, tile);
        ats_stats_rows(whole, &worker->stats, tiles->at[tile].first_row, &rows);
        ATS_TRY(ats_cpu_variant_build(worker, &tiles->at[tile], edit, &variant, err));
        ATS_TRY(measure(worker, &variant, &rows, err));
    }
    ATS_TRY(run->emit(run->ctx, index, worker_index, &tiles->stats, &worker->stats, err));
out:
    return rc;
}

static ats_code evaluate(const ats_problem *problem, const ats_edit *variants, int64_t n_variants,
                         int at_work, const ats_cpu_device *device, size_t turn_room,
                         ats_emit_fn emit, void *ctx, ats_err *err)
{
    const ats_cpu_ops *ops;
    const int threads = ats_threads();
    ats_cpu_tiles tiles;
    ats_cpu_worker *workers = NULL;
    ats_arena arena;
    ats_code rc;
    ats_arena_init(&arena, false);
    ATS_TRY(ats_cpu_ops_find(&ops, err));
    ATS_TRY(cpu_supports(problem, err));
    const ats_cpu_needs needs = {.ops = ops,
                                 .edits = variants,
                                 .n_edits = n_variants,
                                 .logits = n_variants > 0 || device != NULL,
                                 .wide = device != NULL};
    ATS_TRY(ats_cpu_tiles_layout(&arena, &arena, problem, &needs, &tiles, err));
    ATS_TRY(ATS_NEW0(&arena, threads, &workers, err));
    for (int i = 0; i < threads; i++)
        ATS_TRY(ats_cpu_worker_layout(&arena, &tiles, &workers[i], err));
    if (device != NULL && tiles.n > 0)
        ATS_TRY(device->base(device->ctx, &tiles, workers[0].heavy, workers[0].payload, err));
    ATS_TRY(ats_cpu_base_pass(&tiles, workers, err));
    if (device != NULL && tiles.n > 0) ATS_TRY(device->regions(device->ctx, err));
    if (turn_room > 0)
        ATS_TRY(ats_cpu_turns_make(&arena, &tiles, workers, variants, n_variants, turn_room, err));
    cpu_run run = {&tiles, workers, variants, device, emit, ctx};
    ATS_TRY(ats_parallel_for(tiles.n, measure_base, &run, err));
    ATS_TRY(emit(ctx, -1, 0, &tiles.stats, &tiles.stats, err));
    ATS_TRY(ats_parallel_some(at_work, n_variants, measure_variant, &run, err));
out:
    for (int i = 0; workers != NULL && i < threads; i++) ats_arena_fini(&workers[i].arena);
    ats_arena_fini(&arena);
    return rc;
}

ats_code ats_cpu_evaluate(const ats_problem *problem, const ats_edit *variants, int64_t n_variants,
                          int at_work, const ats_cpu_device *device, ats_emit_fn emit, void *ctx,
                          ats_err *err)
{
    return evaluate(problem, variants, n_variants, at_work, device, 0, emit, ctx, err);
}

static ats_code evaluate_rows(const ats_problem *problem, const ats_edit *variants,
                              int64_t n_variants, int at_work, ats_emit_fn emit, void *ctx,
                              ats_err *err)
{
    return evaluate(problem, variants, n_variants, at_work, NULL, 0, emit, ctx, err);
}

/* All rows at once: what memory is left holds turned keys. */
static ats_code evaluate_whole(const ats_problem *problem, const ats_edit *variants,
                               int64_t n_variants, int at_work, ats_emit_fn emit, void *ctx,
                               ats_err *err)
{
    const size_t most = problem->memory > 0 ? (size_t)problem->memory : (size_t)1 << 30;
    const int64_t busy = at_work < n_variants ? at_work : n_variants;
    const size_t taken = problem->memory > 0 ? bytes_of(problem, busy) : 0;
    return evaluate(problem, variants, n_variants, at_work, NULL, taken < most ? most - taken : 0,
                    emit, ctx, err);
}

static ats_code cpu_evaluate(const ats_problem *problem, const ats_edit *variants,
                             int64_t n_variants, ats_emit_fn emit, void *ctx, ats_err *err)
{
    const ats_code rc = cpu_supports(problem, err);
    if (rc != ATS_OK) return rc;
    const ats_blocks blocks = ats_blocks_choose(problem, n_variants, bytes_of);
    return ats_blocks_evaluate(problem, variants, n_variants, &blocks,
                               blocks.rows < problem->n_rows ? evaluate_rows : evaluate_whole, emit,
                               ctx, err);
}

const ats_backend ats_backend_cpu = {
    .name = "cpu",
    .summary = "float arithmetic in vectors, all variants from one pass over the base",
    .streams = true,
    .probe = cpu_probe,
    .supports = cpu_supports,
    .workspace_bytes = cpu_workspace,
    .evaluate = cpu_evaluate,
    .detail = cpu_detail,
};

#include "kernels/blocks.h"

#include <string.h>

#include "base/parallel.h"
#include "kernels/stats.h"

/* The variants' statistics that wait for the last block. */
static size_t store_bytes(const ats_problem *problem, int64_t n_variants)
{
    ats_arena arena;
    ats_stats stats;
    ats_arena_init(&arena, true);
    if (ats_stats_new(&arena, problem, true, &stats, NULL) != ATS_OK) return SIZE_MAX;
    size_t bytes;
    return __builtin_mul_overflow(arena.used, (size_t)n_variants + 1, &bytes) ? SIZE_MAX : bytes;
}

/* Rows [first, first + rows) by themselves, every row its own probe. keep: room for the mask. */
static void rows_of(const ats_problem *p, int64_t first, int64_t rows, uint8_t *keep,
                    ats_problem *out)
{
    ats_problem block = *p;
    block.n_rows = block.n_probes = rows;
    block.q = p->q + first * p->d_qk;
    block.q_pos = p->q_pos + first;
    if (p->q_segment != NULL) block.q_segment = p->q_segment + first;
    if (p->sink != NULL) block.sink = p->sink + first;
    if (p->alibi_slope != NULL) block.alibi_slope = p->alibi_slope + first;
    if (p->bias != NULL) block.bias = p->bias + first;
    for (int64_t row = 0; keep != NULL && row < rows; row++)
        memcpy(keep + row * p->n_keys, p->keep + (first + row) % p->n_probes * p->n_keys,
               (size_t)p->n_keys);
    if (p->keep != NULL) block.keep = keep;
    *out = block;
}

static size_t block_bytes(const ats_problem *p, int64_t n_variants, int64_t rows, int workers,
                          ats_block_bytes_fn bytes)
{
    ats_problem block = *p;
    block.n_rows = rows;
    block.n_probes = rows;
    size_t used = bytes(&block, workers < n_variants ? workers : n_variants);
    if (used == SIZE_MAX || rows == p->n_rows) return used;
    const size_t mask = p->keep != NULL ? (size_t)(rows * p->n_keys) : 0;
    if (__builtin_add_overflow(used, mask, &used) ||
        __builtin_add_overflow(used, store_bytes(p, n_variants), &used))
        return SIZE_MAX;
    return used;
}

/* Half of the rows in whole steps; `rows` where that is none. */
static int64_t smaller(int64_t rows)
{
    if (rows <= ATS_BLOCK_ROWS) return rows;
    return (rows / 2 + ATS_BLOCK_ROWS - 1) / ATS_BLOCK_ROWS * ATS_BLOCK_ROWS;
}

ats_blocks ats_blocks_choose(const ats_problem *p, int64_t n_variants, ats_block_bytes_fn bytes)
{
    const size_t room = p->memory > 0 ? (size_t)p->memory : SIZE_MAX;
    ats_blocks b = {.rows = p->n_rows, .workers = ats_threads()};
    b.bytes = block_bytes(p, n_variants, b.rows, b.workers, bytes);
    while (b.bytes > room && smaller(b.rows) < b.rows) {
        b.rows = smaller(b.rows);
        b.bytes = block_bytes(p, n_variants, b.rows, b.workers, bytes);
    }
    while (b.bytes > room && b.workers > 1) {
        b.workers = b.workers > 4 ? b.workers / 2 : b.workers - 1;
        b.bytes = block_bytes(p, n_variants, b.rows, b.workers, bytes);
    }
    return b;
}

typedef struct store {
    const ats_problem *problem; /* whole */
    const ats_problem *block;
    int64_t first;    /* row of the block */
    ats_stats *stats; /* [1 + n_variants], the base first */
    ats_emit_fn emit; /* of the caller */
    void *ctx;
} store;

/* The block's rows of every array, to their place. */
static ats_code keep_rows(void *ctx, int64_t variant, int worker, const ats_stats *base,
                          const ats_stats *stats, ats_err *err)
{
    (void)worker, (void)base, (void)err;
    const store *s = ctx;
    ats_stats from = *stats;
    ats_stats_array sources[ATS_STATS_ARRAYS], targets[ATS_STATS_ARRAYS];
    const bool pair = variant >= 0;
    const int64_t count = ats_stats_list(s->block, &from, pair, sources);
    ats_stats_list(s->problem, &s->stats[1 + variant], pair, targets);
    for (int64_t i = 0; i < count; i++) {
        const size_t size = sources[i].type == ATS_ARRAY_F32 ? sizeof(float) : sizeof(int64_t);
        const size_t row = (size_t)sources[i].per_row * size;
        if (row > 0)
            memcpy((char *)*targets[i].place + (size_t)s->first * row, *sources[i].place,
                   (size_t)s->block->n_rows * row);
    }
    return ATS_OK;
}

static ats_code emit_one(void *ctx, int64_t variant, int worker, ats_err *err)
{
    const store *s = ctx;
    return s->emit(s->ctx, variant, worker, &s->stats[0], &s->stats[1 + variant], err);
}

/* The edits as the block's rows see them. */
static void edits_of(const ats_problem *p, const ats_edit *edits, int64_t n, int64_t first,
                     ats_edit *out)
{
    for (int64_t i = 0; i < n; i++) {
        out[i] = edits[i];
        if (edits[i].q != NULL) out[i].q = edits[i].q + first * p->d_qk;
    }
}

static ats_code make_store(ats_arena *arena, const ats_problem *p, int64_t n_variants, store *s,
                           ats_err *err)
{
    ats_code rc;
    ATS_TRY(ATS_NEW0(arena, n_variants + 1, &s->stats, err));
    for (int64_t i = 0; i <= n_variants; i++)
        ATS_TRY(ats_stats_new(arena, p, i > 0, &s->stats[i], err));
out:
    return rc;
}

static ats_code refuse(const ats_problem *p, const ats_blocks *b, ats_err *err)
{
    return ats_fail(err, ATS_E_MEMORY,
                    "%lld keys with %lld query rows need %.2f GiB of memory beside the tensors, "
                    "even %lld rows and one variant at a time; the budget leaves %.2f GiB. Give "
                    "--memory that much more, or evaluate fewer variants together",
                    (long long)p->n_keys, (long long)p->n_rows, (double)b->bytes / 1073741824.0,
                    (long long)b->rows, (double)p->memory / 1073741824.0);
}

ats_code ats_blocks_evaluate(const ats_problem *p, const ats_edit *variants, int64_t n_variants,
                             const ats_blocks *blocks, ats_block_fn evaluate, ats_emit_fn emit,
                             void *ctx, ats_err *err)
{
    if (p->memory > 0 && blocks->bytes > (size_t)p->memory) return refuse(p, blocks, err);
    if (p->account != NULL) {
        p->account->problems++;
        p->account->variants += n_variants;
        p->account->blocks += (p->n_rows + blocks->rows - 1) / blocks->rows;
    }
    if (blocks->rows >= p->n_rows)
        return evaluate(p, variants, n_variants, blocks->workers, emit, ctx, err);
    ats_problem block;
    store s = {.problem = p, .block = &block, .emit = emit, .ctx = ctx};
    ats_edit *edits = NULL;
    uint8_t *keep = NULL;
    ats_arena arena;
    ats_code rc;
    ats_arena_init(&arena, false);
    ATS_TRY(make_store(&arena, p, n_variants, &s, err));
    ATS_TRY(ATS_NEW(&arena, n_variants, &edits, err));
    if (p->keep != NULL) ATS_TRY(ATS_NEW(&arena, blocks->rows * p->n_keys, &keep, err));
    for (int64_t next = 0; next < p->n_rows; next += blocks->rows) {
        /* Blocks of one size go one way through a backend: the last one takes rows once more. */
        s.first = next + blocks->rows < p->n_rows ? next : p->n_rows - blocks->rows;
        rows_of(p, s.first, blocks->rows, keep, &block);
        edits_of(p, variants, n_variants, s.first, edits);
        rc = evaluate(&block, edits, n_variants, blocks->workers, keep_rows, &s, err);
        if (rc != ATS_OK && s.first > 0)
            rc = ats_prepend(err, rc, "query rows counted from %lld on", (long long)s.first);
        ATS_TRY(rc);
    }
    ATS_TRY(emit(ctx, -1, 0, &s.stats[0], &s.stats[0], err));
    ATS_TRY(ats_parallel_for(n_variants, emit_one, &s, err));
out:
    ats_arena_fini(&arena);
    return rc;
}

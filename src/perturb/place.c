#include "perturb/place.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "perturb/params.h"
#include "perturb/script.h"
#include "perturb/target.h"

/* Places are made before any work is estimated, so a slip in a count must end here and not in
 * memory: four times a context of a million keys. */
#define MOST_ROWS (INT64_C(1) << 22)

/* Rows inserted before base row `at`. */
typedef struct place_block {
    int64_t at, rows;
} place_block;

typedef struct place_blocks {
    int64_t count;
    place_block *items; /* [count], ascending `at` */
} place_blocks;

ats_place ats_place_of(const ats_build *ctx, const ats_span *span, int64_t units, int64_t unit_rows,
                       bool joined)
{
    return (ats_place){.start = span->start,
                       .stop = span->stop,
                       .units = units,
                       .unit_rows = unit_rows,
                       .joined = joined,
                       .placement = ats_arg_text(ctx, "placement"),
                       .depth = ats_arg(ctx, "depth"),
                       .free_zone = ats_arg_int(ctx, "free_zone")};
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : (x > high ? high : x);
}

static bool splits(int64_t at, int64_t start, int64_t stop) { return at > start && at < stop; }

/* The nearest end of an interval that `at` would split, if it is not past cap, else `at`. */
static int64_t out_of(int64_t at, int64_t start, int64_t stop, int64_t cap)
{
    if (!splits(at, start, stop)) return at;
    return at - start <= stop - at || stop > cap ? start : stop;
}

/* Does an insertion before row `at` split a span or enter the free zone? */
static bool is_free(const ats_build *ctx, const ats_place *place, int64_t at)
{
    if (splits(at, place->start - place->free_zone, place->stop + place->free_zone)) return false;
    for (int64_t i = 0; i < ctx->sample->n_spans; i++) {
        const ats_span *span = &ctx->sample->spans[i];
        if (strcmp(span->role, "filler") != 0 && splits(at, span->start, span->stop)) return false;
    }
    return true;
}

/* The nearest insertion point that splits no span, as far as one pass over the spans finds it. */
static int64_t snap(const ats_build *ctx, const ats_place *place, int64_t at, int64_t cap)
{
    at = out_of(at, place->start - place->free_zone, place->stop + place->free_zone, cap);
    for (int64_t i = 0; i < ctx->sample->n_spans; i++) {
        const ats_span *span = &ctx->sample->spans[i];
        if (strcmp(span->role, "filler") != 0) at = out_of(at, span->start, span->stop, cap);
    }
    return clamp(at, 0, cap);
}

int64_t ats_place_depth(const ats_build *ctx, const ats_place *place, double depth)
{
    const int64_t cap = ats_row_cap(ctx), first = cap > 0 ? 1 : 0;
    const int64_t at = first + (int64_t)llround(depth * (double)(cap - first));
    return snap(ctx, place, at, cap);
}

static int64_t random_point(const ats_build *ctx, const ats_place *place, int64_t cap, ats_rng *rng)
{
    int64_t at = cap;
    for (int tries = 0; tries < 64 && cap > 0; tries++) {
        at = 1 + ats_rng_below(rng, cap);
        if (is_free(ctx, place, at)) return at;
    }
    return snap(ctx, place, at, cap);
}

/* Units before the span; the others go after it, or all to one point. */
static int64_t units_before(const ats_place *place)
{
    if (strcmp(place->placement, "before") == 0) return place->units;
    if (strcmp(place->placement, "around") == 0) return (place->units + 1) / 2;
    return 0;
}

static int64_t unit_point(const ats_build *ctx, const ats_place *place, int64_t unit, int64_t cap,
                          ats_rng *rng)
{
    if (strcmp(place->placement, "random") == 0) return random_point(ctx, place, cap, rng);
    if (strcmp(place->placement, "depth") == 0) return ats_place_depth(ctx, place, place->depth);
    const int64_t before = units_before(place);
    const int64_t at = unit < before
                           ? place->start - place->free_zone - (before - 1 - unit) * place->gap
                           : place->stop + place->free_zone + (unit - before) * place->gap;
    return clamp(at, 0, cap);
}

static int compare_blocks(const void *a, const void *b)
{
    const place_block *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static ats_code find_blocks(const ats_build *ctx, const ats_place *place, place_blocks *out,
                            ats_err *err)
{
    const int64_t cap = ats_row_cap(ctx);
    ats_rng rng = ats_place_stream(ctx, "place");
    ats_code rc;
    out->count = 0;
    ATS_TRY(ATS_NEW(ctx->arena, place->units, &out->items, err));
    for (int64_t i = 0; i < place->units; i++)
        out->items[i] = (place_block){unit_point(ctx, place, i, cap, &rng), place->unit_rows};
    qsort(out->items, (size_t)place->units, sizeof *out->items, compare_blocks);
    for (int64_t i = 0; i < place->units; i++) {
        const bool same = out->count > 0 && out->items[out->count - 1].at == out->items[i].at;
        if (place->joined && same)
            out->items[out->count - 1].rows += out->items[i].rows;
        else
            out->items[out->count++] = out->items[i];
    }
out:
    return rc;
}

/* Position of the row before an insertion point; of the first row where there is none. */
static int64_t position_before(const ats_sample *sample, int64_t at)
{
    return sample->position[at > 0 ? at - 1 : 0];
}

/* overlay: nobody moves; a block's last row stands at the position before the insertion point. */
static ats_code emit_overlay(const ats_sample *sample, const place_blocks *blocks,
                             ats_script *script, int64_t *position, ats_err *err)
{
    int64_t row = 0;
    for (int64_t b = 0; b < blocks->count; b++) {
        const place_block *block = &blocks->items[b];
        const int64_t last = position_before(sample, block->at);
        for (int64_t i = 0; i < block->rows; i++) {
            const int64_t p = last - block->rows + 1 + i;
            position[row + i] = p > 0 ? p : 0;
        }
        const ats_code rc = ats_script_insert(script, block->at, row, block->rows, err);
        if (rc != ATS_OK) return rc;
        row += block->rows;
    }
    return ATS_OK;
}

/* shift, and move, which makes the same room without rows in it. */
static ats_code emit_shift(const ats_sample *sample, const place_blocks *blocks, bool rows,
                           ats_script *script, int64_t *position, int64_t *moved, ats_err *err)
{
    int64_t row = 0;
    ats_code rc = ATS_OK;
    for (int64_t b = 0; b < blocks->count; b++) {
        const place_block *block = &blocks->items[b];
        const int64_t before = position_before(sample, block->at) - (block->at > 0 ? 0 : 1) + row;
        const int64_t next = b + 1 < blocks->count ? blocks->items[b + 1].at : script->n_keys;
        if (rows) {
            for (int64_t i = 0; i < block->rows; i++) position[row + i] = before + 1 + i;
            ATS_TRY(ats_script_insert(script, block->at, row, block->rows, err));
        }
        row += block->rows;
        ATS_TRY(ats_script_move(script, block->at, next, row, err));
    }
    *moved = row;
out:
    return rc;
}

static ats_code emit_replace(const ats_sample *sample, const int64_t *rows, int64_t count,
                             ats_script *script, int64_t *position, ats_err *err)
{
    for (int64_t i = 0, run; i < count; i += run) {
        run = 1;
        while (i + run < count && rows[i + run] == rows[i] + run) run++;
        for (int64_t j = 0; j < run; j++) position[i + j] = sample->position[rows[i + j]];
        const ats_code rc = ats_script_overwrite(script, rows[i], rows[i] + run, i, err);
        if (rc != ATS_OK) return rc;
    }
    return ATS_OK;
}

ats_code ats_place_layout(const ats_build *ctx, const ats_place *place, ats_built *out,
                          ats_err *err)
{
    const ats_sample *sample = ctx->sample;
    const int64_t total = place->units * place->unit_rows;
    ats_script script = ats_script_begin(ctx->arena, sample->n_keys);
    place_blocks blocks = {.count = 0};
    int64_t *position = NULL, *rows = NULL;
    ats_code rc;
    ATS_ASSERT(ctx->mode != ATS_MODE_NONE);
    ATS_TRY(ats_need_moves(ctx, ats_mode_name(ctx->mode), err));
    if (total > MOST_ROWS) {
        rc = ats_fail(
            err, ATS_E_SUITE,
            "%s would insert %lld rows, and a variant may insert %lld at most; ask for fewer",
            ctx->family->kind, (long long)total, (long long)MOST_ROWS);
        goto out;
    }
    ATS_TRY(ATS_NEW(ctx->arena, total, &position, err));
    if (ctx->mode == ATS_MODE_REPLACE) {
        ATS_TRY(ats_place_filler(ctx, place, &rows, err));
        ATS_TRY(emit_replace(sample, rows, total, &script, position, err));
    } else {
        ATS_TRY(find_blocks(ctx, place, &blocks, err));
        if (ctx->mode == ATS_MODE_OVERLAY)
            ATS_TRY(emit_overlay(sample, &blocks, &script, position, err));
        else
            ATS_TRY(emit_shift(sample, &blocks, ctx->mode == ATS_MODE_SHIFT, &script, position,
                               &out->edit.query_delta, err));
    }
    out->edit.side.count = ctx->mode == ATS_MODE_MOVE ? 0 : total;
    out->edit.side.position = position;
    rc = ats_script_emit(&script, &out->edit, err);
out:
    return rc;
}

ats_code ats_place_swap(const ats_build *ctx, const int64_t *rows, int64_t count, bool key,
                        bool value, ats_built *out, ats_err *err)
{
    ats_script script = ats_script_begin(ctx->arena, ctx->sample->n_keys);
    int64_t *position = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(ctx->arena, count, &position, err));
    for (int64_t i = 0, run; i < count; i += run) {
        run = 1;
        while (i + run < count && rows[i + run] == rows[i] + run) run++;
        for (int64_t j = 0; j < run; j++) position[i + j] = ctx->sample->position[rows[i + j]];
        ATS_TRY(ats_script_swap(&script, rows[i], rows[i] + run, i, key, value, err));
    }
    out->edit.side.count = count;
    out->edit.side.position = position;
    rc = ats_script_emit(&script, &out->edit, err);
out:
    return rc;
}

#include "perturb/combine.h"

#include <math.h>
#include <string.h>

#include "perturb/cache.h"
#include "perturb/script.h"

/* What one edit does to one base row. */
typedef struct row_op {
    ats_segment_kind kind; /* KEEP, HIDE or SWAP */
    bool key, value;       /* SWAP */
    int64_t delta, row;    /* KEEP; SWAP: side row */
} row_op;

/* A block of side rows that stands before base row `at`. */
typedef struct block {
    int64_t at, row, count;
} block;

typedef struct taken_apart {
    const ats_edit *edit;
    row_op *ops; /* [n_keys] */
    int64_t n_blocks;
    block *blocks;
} taken_apart;

static ats_code take_apart(const ats_build *ctx, const ats_edit *edit, taken_apart *out,
                           ats_err *err)
{
    const int64_t n = ctx->sample->n_keys;
    int64_t next = 0;
    ats_code rc;
    *out = (taken_apart){.edit = edit};
    ATS_TRY(ATS_NEW0(ctx->arena, n, &out->ops, err));
    ATS_TRY(ATS_NEW(ctx->arena, edit->n_segments, &out->blocks, err));
    for (int64_t i = 0; i < edit->n_segments; i++) {
        const ats_segment *s = &edit->segments[i];
        if (s->kind == ATS_SEG_ROWS) {
            out->blocks[out->n_blocks++] = (block){next, s->row, s->stop - s->start};
            continue;
        }
        for (int64_t row = s->start; row < s->stop; row++)
            out->ops[row] =
                (row_op){s->kind, s->swap_key, s->swap_value,
                         s->kind == ATS_SEG_KEEP ? s->delta : 0, s->row + (row - s->start)};
        next = s->stop;
    }
out:
    return rc;
}

static ats_code join_row(const ats_build *ctx, int64_t row, const row_op *a, const row_op *b,
                         int64_t shift_b, row_op *out, ats_err *err)
{
    *out = *a;
    if (a->kind == ATS_SEG_HIDE || b->kind == ATS_SEG_HIDE) {
        *out = (row_op){.kind = ATS_SEG_HIDE};
        return ATS_OK;
    } else if (a->kind == ATS_SEG_KEEP && b->kind == ATS_SEG_KEEP) {
        out->delta = a->delta + b->delta;
        return ATS_OK;
    } else if (a->kind == ATS_SEG_SWAP && b->kind == ATS_SEG_KEEP && b->delta == 0) {
        return ATS_OK;
    } else if (b->kind == ATS_SEG_SWAP && a->kind == ATS_SEG_KEEP && a->delta == 0) {
        *out = *b;
        out->row += shift_b;
        return ATS_OK;
    }
    return ats_fail(
        err, ATS_E_SUITE,
        "combine: row %lld of sample %s is replaced by one part and moved or replaced by "
        "the other; combine parts that touch different rows",
        (long long)row, ctx->sample->id);
}

/* Moves of the other edit at an insertion point: a's rows stand before b's at the same point. */
static int64_t move_at(const ats_build *ctx, const taken_apart *other, int64_t at, bool before)
{
    const int64_t n = ctx->sample->n_keys;
    const int64_t row = before ? at - 1 : at;
    if (row < 0) return 0;
    return row < n ? other->ops[row].delta : other->edit->query_delta;
}

/* Moves the blocks of one edit with the other, before unused side rows are dropped. */
static void move_blocks(const ats_build *ctx, const taken_apart *one, const taken_apart *other,
                        bool first, int64_t shift, ats_side *side)
{
    const int64_t d = ctx->layer->d_qk;
    int64_t *position = (int64_t *)(uintptr_t)side->position;
    float *k = (float *)(uintptr_t)side->k;
    for (int64_t i = 0; i < one->n_blocks; i++) {
        const block *b = &one->blocks[i];
        const int64_t delta = move_at(ctx, other, b->at, first);
        for (int64_t j = 0; j < b->count; j++) position[shift + b->row + j] += delta;
        if (delta != 0 && k != NULL)
            ats_build_move(ctx, delta, b->count, k + (shift + b->row) * d,
                           k + (shift + b->row) * d);
    }
}

static ats_code insert_blocks(const taken_apart *one, int64_t shift, const int64_t *place,
                              ats_script *script, ats_err *err)
{
    ats_code rc = ATS_OK;
    for (int64_t i = 0; i < one->n_blocks && rc == ATS_OK; i++) {
        const block *b = &one->blocks[i];
        if (b->count > 0)
            rc = ats_script_insert(script, b->at, place[shift + b->row], b->count, err);
    }
    return rc;
}

static void mark_blocks(const taken_apart *one, int64_t shift, int64_t *place)
{
    for (int64_t i = 0; i < one->n_blocks; i++)
        for (int64_t j = 0; j < one->blocks[i].count; j++)
            place[shift + one->blocks[i].row + j] = 1;
}

/* Side rows whose base row got hidden have no place any more: the rest close up.
 * place [side->count]: 1 for rows in use; becomes their new index. */
static void close_up(const ats_build *ctx, ats_side *side, int64_t *place)
{
    const size_t d = (size_t)ctx->layer->d_qk, dv = (size_t)ctx->layer->d_v;
    int64_t *position = (int64_t *)(uintptr_t)side->position;
    float *k = (float *)(uintptr_t)side->k, *v = (float *)(uintptr_t)side->v;
    int64_t kept = 0;
    for (int64_t i = 0; i < side->count; i++) {
        if (place[i] == 0) continue;
        place[i] = kept;
        position[kept] = position[i];
        if (k != NULL && kept != i) {
            memcpy(k + (size_t)kept * d, k + (size_t)i * d, d * sizeof *k);
            memcpy(v + (size_t)kept * dv, v + (size_t)i * dv, dv * sizeof *v);
        }
        kept++;
    }
    side->count = kept;
}

static bool same_run(const row_op *a, const row_op *b, int64_t distance)
{
    if (a->kind != b->kind || a->delta != b->delta) return false;
    if (a->kind != ATS_SEG_SWAP) return true;
    return a->key == b->key && a->value == b->value && b->row == a->row + distance;
}

static ats_code emit_rows(const ats_build *ctx, const row_op *ops, ats_script *script, ats_err *err)
{
    const int64_t n = ctx->sample->n_keys;
    ats_code rc = ATS_OK;
    for (int64_t i = 0, stop; i < n; i = stop) {
        const row_op *op = &ops[i];
        for (stop = i + 1; stop < n && same_run(op, &ops[stop], stop - i);) stop++;
        if (op->kind == ATS_SEG_HIDE)
            ATS_TRY(ats_script_hide(script, i, stop, err));
        else if (op->kind == ATS_SEG_SWAP)
            ATS_TRY(ats_script_swap(script, i, stop, op->row, op->key, op->value, err));
        else if (op->delta != 0)
            ATS_TRY(ats_script_move(script, i, stop, op->delta, err));
    }
out:
    return rc;
}

/* Both side buffers, one behind the other; without tensors positions alone. */
static ats_code join_sides(const ats_build *ctx, const ats_side *a, const ats_side *b,
                           ats_side *out, ats_err *err)
{
    const int64_t d = ctx->layer->d_qk, dv = ctx->layer->d_v, n = a->count + b->count;
    const bool tensors = (a->count == 0 || a->k != NULL) && (b->count == 0 || b->k != NULL);
    int64_t *position = NULL;
    float *k = NULL, *v = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(ctx->arena, n, &position, err));
    if (a->count > 0) memcpy(position, a->position, (size_t)a->count * sizeof *position);
    if (b->count > 0) memcpy(position + a->count, b->position, (size_t)b->count * sizeof *position);
    *out = (ats_side){.count = n, .position = position};
    if (!tensors || n == 0) goto out;
    ATS_TRY(ATS_NEW(ctx->arena, n * d, &k, err));
    ATS_TRY(ATS_NEW(ctx->arena, n * dv, &v, err));
    if (a->count > 0) {
        memcpy(k, a->k, (size_t)(a->count * d) * sizeof *k);
        memcpy(v, a->v, (size_t)(a->count * dv) * sizeof *v);
    }
    if (b->count > 0) {
        memcpy(k + a->count * d, b->k, (size_t)(b->count * d) * sizeof *k);
        memcpy(v + a->count * dv, b->v, (size_t)(b->count * dv) * sizeof *v);
    }
    out->k = k;
    out->v = v;
out:
    return rc;
}

static ats_code join_whole(const ats_edit *a, const ats_edit *b, ats_edit *out, ats_err *err)
{
    if (a->q != NULL && b->q != NULL)
        return ats_fail(err, ATS_E_SUITE, "combine: both parts replace the queries");
    if (a->scale > 0 && b->scale > 0)
        return ats_fail(err, ATS_E_SUITE, "combine: both parts set the scale");
    out->query_delta = a->query_delta + b->query_delta;
    out->temperature = a->temperature * b->temperature;
    out->scale = a->scale > 0 ? a->scale : b->scale;
    out->q = a->q != NULL ? a->q : b->q;
    return ATS_OK;
}

ats_code ats_edits_combine(const ats_build *ctx, const ats_edit *a, const ats_edit *b,
                           ats_edit *out, ats_err *err)
{
    const int64_t n = ctx->sample->n_keys;
    ats_script script = ats_script_begin(ctx->arena, n);
    ats_edit joined = {.temperature = 1};
    taken_apart x, y;
    row_op *ops = NULL;
    int64_t *place = NULL;
    ats_code rc;
    ATS_TRY(join_whole(a, b, &joined, err));
    ATS_TRY(take_apart(ctx, a, &x, err));
    ATS_TRY(take_apart(ctx, b, &y, err));
    ATS_TRY(ATS_NEW(ctx->arena, n, &ops, err));
    for (int64_t i = 0; i < n; i++)
        ATS_TRY(join_row(ctx, i, &x.ops[i], &y.ops[i], a->side.count, &ops[i], err));
    ATS_TRY(join_sides(ctx, &a->side, &b->side, &joined.side, err));
    move_blocks(ctx, &x, &y, true, 0, &joined.side);
    move_blocks(ctx, &y, &x, false, a->side.count, &joined.side);
    ATS_TRY(ATS_NEW0(ctx->arena, joined.side.count, &place, err));
    mark_blocks(&x, 0, place);
    mark_blocks(&y, a->side.count, place);
    for (int64_t i = 0; i < n; i++)
        if (ops[i].kind == ATS_SEG_SWAP) place[ops[i].row] = 1;
    close_up(ctx, &joined.side, place);
    for (int64_t i = 0; i < n; i++)
        if (ops[i].kind == ATS_SEG_SWAP) ops[i].row = place[ops[i].row];
    ATS_TRY(insert_blocks(&x, 0, place, &script, err));
    ATS_TRY(insert_blocks(&y, a->side.count, place, &script, err));
    ATS_TRY(emit_rows(ctx, ops, &script, err));
    ATS_TRY(ats_script_emit(&script, &joined, err));
    *out = joined;
out:
    return rc;
}

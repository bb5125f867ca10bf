#include "perturb/script.h"

#include <stdlib.h>
#include <string.h>

ats_script ats_script_begin(ats_arena *arena, int64_t n_keys)
{
    return (ats_script){.arena = arena, .n_keys = n_keys};
}

static ats_code add(ats_script *script, const ats_segment *segment, int64_t at, ats_err *err)
{
    if (script->n_ops == script->capacity) {
        const int64_t capacity = script->capacity > 0 ? 2 * script->capacity : 16;
        ats_script_op *ops = NULL;
        const ats_code rc = ATS_NEW(script->arena, capacity, &ops, err);
        if (rc != ATS_OK) return rc;
        if (script->n_ops > 0) memcpy(ops, script->ops, (size_t)script->n_ops * sizeof *ops);
        script->ops = ops;
        script->capacity = capacity;
    }
    script->ops[script->n_ops] =
        (ats_script_op){.segment = *segment, .at = at, .order = script->n_ops};
    script->n_ops++;
    return ATS_OK;
}

static ats_code add_base(ats_script *script, const ats_segment *segment, ats_err *err)
{
    if (segment->start < 0 || segment->start > segment->stop || segment->stop > script->n_keys)
        return ats_fail(err, ATS_E_INTERNAL, "edit script: rows [%lld, %lld) are not in [0, %lld)",
                        (long long)segment->start, (long long)segment->stop,
                        (long long)script->n_keys);
    return segment->start == segment->stop ? ATS_OK : add(script, segment, segment->start, err);
}

ats_code ats_script_insert(ats_script *script, int64_t at, int64_t row, int64_t count, ats_err *err)
{
    if (at < 0 || at > script->n_keys || row < 0 || count < 0)
        return ats_fail(err, ATS_E_INTERNAL,
                        "edit script: %lld side rows from %lld cannot go before row %lld of %lld",
                        (long long)count, (long long)row, (long long)at, (long long)script->n_keys);
    const ats_segment segment = {.kind = ATS_SEG_ROWS, .stop = count, .row = row};
    return count == 0 ? ATS_OK : add(script, &segment, at, err);
}

ats_code ats_script_hide(ats_script *script, int64_t start, int64_t stop, ats_err *err)
{
    const ats_segment segment = {.kind = ATS_SEG_HIDE, .start = start, .stop = stop};
    return add_base(script, &segment, err);
}

ats_code ats_script_move(ats_script *script, int64_t start, int64_t stop, int64_t delta,
                         ats_err *err)
{
    const ats_segment segment = {
        .kind = ATS_SEG_KEEP, .start = start, .stop = stop, .delta = delta};
    return add_base(script, &segment, err);
}

ats_code ats_script_swap(ats_script *script, int64_t start, int64_t stop, int64_t row, bool key,
                         bool value, ats_err *err)
{
    const ats_segment segment = {.kind = ATS_SEG_SWAP,
                                 .start = start,
                                 .stop = stop,
                                 .row = row,
                                 .swap_key = key,
                                 .swap_value = value};
    return add_base(script, &segment, err);
}

ats_code ats_script_overwrite(ats_script *script, int64_t start, int64_t stop, int64_t row,
                              ats_err *err)
{
    const ats_code rc = ats_script_hide(script, start, stop, err);
    return rc != ATS_OK ? rc : ats_script_insert(script, start, row, stop - start, err);
}

/* By place; ROWS before the base rows of the same place; else in call order. */
static int compare_ops(const void *a, const void *b)
{
    const ats_script_op *x = a, *y = b;
    const int rows_x = x->segment.kind == ATS_SEG_ROWS, rows_y = y->segment.kind == ATS_SEG_ROWS;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    if (rows_x != rows_y) return rows_y - rows_x;
    return (x->order > y->order) - (x->order < y->order);
}

/* What the emitter knows between operations. */
typedef struct emitter {
    ats_segment *segments; /* [count] written so far */
    int64_t count;
    int64_t next;     /* first base row not yet named */
    ats_segment open; /* base operation in progress; open.start == open.stop: none */
} emitter;

/* Appends, or extends the last segment when both say the same. */
static void put(emitter *e, const ats_segment *segment)
{
    if (e->count > 0) {
        ats_segment *last = &e->segments[e->count - 1];
        const bool base = last->kind == segment->kind && segment->kind != ATS_SEG_ROWS &&
                          segment->kind != ATS_SEG_SWAP && last->delta == segment->delta;
        if (base && last->stop == segment->start) {
            last->stop = segment->stop;
            return;
        }
    }
    e->segments[e->count++] = *segment;
}

/* Names base rows up to `row`: the rest of the open operation, then kept rows. */
static void advance(emitter *e, int64_t row)
{
    if (e->next < e->open.stop && e->next < row) {
        ats_segment piece = e->open;
        piece.stop = row < piece.stop ? row : piece.stop;
        put(e, &piece);
        e->open.row += piece.stop - piece.start;
        e->open.start = e->next = piece.stop;
    }
    if (e->next < row) {
        put(e, &(ats_segment){.kind = ATS_SEG_KEEP, .start = e->next, .stop = row});
        e->next = row;
    }
}

ats_code ats_script_emit(ats_script *script, ats_edit *out, ats_err *err)
{
    emitter e = {.count = 0};
    ats_code rc;
    if (script->n_ops > 1)
        qsort(script->ops, (size_t)script->n_ops, sizeof *script->ops, compare_ops);
    /* Each operation adds at most itself, the kept rows before it and the rest of a split one. */
    ATS_TRY(ATS_NEW(script->arena, 3 * script->n_ops + 2, &e.segments, err));
    for (int64_t i = 0; i < script->n_ops; i++) {
        const ats_script_op *op = &script->ops[i];
        advance(&e, op->at);
        if (op->segment.kind == ATS_SEG_ROWS) {
            put(&e, &op->segment);
            continue;
        }
        if (e.next < e.open.stop)
            ATS_TRY(ats_fail(err, ATS_E_INTERNAL, "edit script: row %lld is named twice",
                             (long long)op->at));
        e.open = op->segment;
    }
    advance(&e, script->n_keys);
    out->segments = e.segments;
    out->n_segments = e.count;
    if (out->temperature == 0) out->temperature = 1;
out:
    return rc;
}

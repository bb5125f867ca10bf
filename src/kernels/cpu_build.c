#include "kernels/cpu.h"

#include <math.h>
#include <string.h>

void ats_cpu_add_part(ats_cpu_builder *b, ats_cpu_part part)
{
    ATS_ASSERT(b->variant->n_parts < b->part_capacity);
    b->variant->parts[b->variant->n_parts++] = part;
}

void ats_cpu_add_chunk(ats_cpu_builder *b, ats_cpu_chunk chunk)
{
    ATS_ASSERT(b->variant->n_chunks < b->chunk_capacity);
    b->variant->chunks[b->variant->n_chunks++] = chunk;
}

/* True where the key's logit is the base's: same key, same distance, same contract. */
bool ats_cpu_same_logits(const ats_cpu_variant *v, const ats_segment *s)
{
    if (s == NULL) return true;
    const int64_t delta = s->kind == ATS_SEG_KEEP ? s->delta : 0;
    const int64_t chunk = v->base->problem->contract.chunk;
    if (v->edit->apart || v->rescaled || v->edit->query_delta != delta) return false;
    if (s->kind == ATS_SEG_SWAP && s->swap_key) return false;
    return chunk == 0 || delta % chunk == 0;
}

bool ats_cpu_swaps_value(const ats_segment *s)
{
    return s != NULL && s->kind == ATS_SEG_SWAP && s->swap_value;
}

/* Whole leaves with one fate: tree nodes. */
static void flush_pending(ats_cpu_builder *b)
{
    ats_cover cover[ATS_MAX_COVER];
    if (b->pending_start >= b->pending_stop) return;
    const int64_t count =
        ats_key_tree_cover(&b->base->tree, b->run, b->pending_start, b->pending_stop, cover);
    for (int64_t i = 0; b->mark != NULL && i < count; i++)
        b->mark[cover[i].node] |= ATS_CPU_MARK_STATE;
    for (int64_t i = 0; b->mark == NULL && i < count; i++) {
        const ats_cpu_state *node = &b->base->nodes[cover[i].node];
        ats_cpu_part part = {.run = b->run, .b = node, .node = cover[i].node};
        if (!b->pending_hidden) part.v = node;
        part.survives = part.same = !b->pending_hidden;
        ats_cpu_add_part(b, part);
    }
    b->pending_start = b->pending_stop = 0;
}

ats_code ats_cpu_insert(ats_cpu_builder *b, const ats_cpu_fragment *f, int64_t place, ats_err *err)
{
    const ats_cpu_base *base = b->base;
    ats_cpu_variant *v = b->variant;
    ats_cpu_worker *w = b->worker;
    const int64_t dv = base->problem->d_v, width = base->width;
    ats_code rc = ATS_OK;
    for (int64_t at = f->start; at < f->stop; at += base->tree.leaf) {
        const int64_t left = f->stop - at, keys = left < base->tree.leaf ? left : base->tree.leaf;
        const ats_cpu_keys source = {.side = true, .first = at, .keys = keys, .at = -1};
        ats_cpu_state *state = NULL;
        float *z = NULL;
        ATS_TRY(ATS_NEW(&w->arena, keys * base->lanes, &z, err));
        ATS_TRY(ATS_NEW(&w->arena, 1, &state, err));
        ATS_TRY(ats_cpu_state_new(&w->arena, base, state, err));
        ATS_TRY(ats_cpu_key_logits(w, v, &source, z, err));
        ATS_TRY(ats_cpu_check(v, z, keys, v->side_bad + at, err));
        memset(w->v_panel, 0, (size_t)(keys * width) * sizeof(float));
        for (int64_t i = 0; i < keys; i++)
            if (!v->side_bad[at + i])
                memcpy(w->v_panel + i * width, v->edit->side.v + (at + i) * dv,
                       (size_t)dv * sizeof(float));
        ats_cpu_state_fill(base, w, -1, keys, z, w->v_panel, v->side_norm + at, v->side_log + at,
                           state);
        ats_cpu_add_part(b, (ats_cpu_part){.run = -1, .v = state, .node = -1});
        ats_cpu_add_chunk(b, (ats_cpu_chunk){.keys = keys,
                                             .first = at,
                                             .inserted = true,
                                             .place = place,
                                             .zv = z,
                                             .m = state->m,
                                             .mc = state->mc,
                                             .v_norm = v->side_norm + at,
                                             .log_norm = v->side_log + at});
    }
out:
    return rc;
}

ats_code ats_cpu_leaf_chunks(ats_cpu_builder *b, int64_t leaf, const float *m, const float *mc,
                             ats_err *err)
{
    const ats_cpu_base *base = b->base;
    int64_t place = 2 * base->tree.leaves[leaf].start;
    for (int64_t i = 0; i < b->n_fragments; i++) {
        const ats_cpu_fragment *f = &b->fragments[i];
        if (f->inserted) {
            const ats_code rc = ats_cpu_insert(b, f, place, err);
            if (rc != ATS_OK) return rc;
            continue;
        }
        const float *zb = base->z + f->start * base->lanes;
        const bool hidden = f->segment != NULL && f->segment->kind == ATS_SEG_HIDE;
        ats_cpu_add_chunk(
            b, (ats_cpu_chunk){.keys = f->stop - f->start,
                               .first = f->start,
                               .same = !hidden && f->zv == NULL && f->v_norm == NULL,
                               .place = 2 * f->start + 1,
                               .zb = zb,
                               .zv = hidden          ? NULL
                                     : f->zv != NULL ? f->zv
                                                     : zb,
                               .mb = base->nodes[leaf].m,
                               .m = m,
                               .mc = mc,
                               .v_norm = f->v_norm != NULL ? f->v_norm : base->v_norm + f->start,
                               .log_norm =
                                   f->log_norm != NULL ? f->log_norm : base->log_norm + f->start,
                               .leaf = leaf});
        place = 2 * f->stop;
    }
    return ATS_OK;
}

/* All base fragments of the leaf share a fate that nodes know: unchanged, or hidden. */
static bool uniform(const ats_cpu_builder *b, bool *hide)
{
    int64_t same = 0, hidden = 0, count = 0;
    for (int64_t i = 0; i < b->n_fragments; i++) {
        const ats_segment *s = b->fragments[i].segment;
        if (b->fragments[i].inserted) continue;
        count++;
        if (s != NULL && s->kind == ATS_SEG_HIDE)
            hidden++;
        else if (ats_cpu_same_logits(b->variant, s) && !ats_cpu_swaps_value(s))
            same++;
    }
    *hide = hidden == count;
    return same == count || hidden == count;
}

/* Keys that follow the pending ones, with one fate. */
static void add_pending(ats_cpu_builder *b, ats_range keys, bool hide)
{
    if (b->pending_start < b->pending_stop && b->pending_hidden != hide) flush_pending(b);
    if (b->pending_start >= b->pending_stop) b->pending_start = keys.start;
    b->pending_stop = keys.stop;
    b->pending_hidden = hide;
}

static ats_code finish_leaf(ats_cpu_builder *b, int64_t leaf, ats_err *err)
{
    const ats_cpu_base *base = b->base;
    const ats_range keys = base->tree.leaves[leaf];
    const ats_cpu_state *node = &base->nodes[leaf];
    bool hide;
    if (!uniform(b, &hide)) {
        flush_pending(b);
        if (b->mark == NULL) return ats_cpu_mixed_leaf(b, leaf, err);
        b->mark[leaf] |= ATS_CPU_MARK_STATE | ATS_CPU_MARK_LOGITS;
        return ATS_OK;
    }
    add_pending(b, keys, hide);
    return b->mark != NULL ? ATS_OK : ats_cpu_leaf_chunks(b, leaf, node->m, node->mc, err);
}

/* Leaves from `leaf` on that a single segment covers with one fate; 0: look at them one by one. */
static int64_t covered(const ats_cpu_builder *b, const ats_run *run, int64_t leaf, int64_t next)
{
    const ats_edit *edit = b->variant->edit;
    const ats_key_tree *tree = &b->base->tree;
    const int64_t start = tree->leaves[leaf].start, end = run->first_leaf + run->n_leaves;
    if (edit == NULL) return end - leaf;
    if (next >= edit->n_segments) return 0;
    const ats_segment *s = &edit->segments[next];
    if (s->kind != ATS_SEG_KEEP || !ats_cpu_same_logits(b->variant, s)) return 0;
    if (s->start > start || s->stop <= start) return 0;
    return s->stop >= run->stop ? end - leaf : (s->stop - start) / tree->leaf;
}

static void add_covered(ats_cpu_builder *b, int64_t leaf, int64_t count)
{
    const ats_range *leaves = b->base->tree.leaves;
    const ats_range keys = {leaves[leaf].start, leaves[leaf + count - 1].stop};
    add_pending(b, keys, false);
    if (b->mark == NULL)
        ats_cpu_add_chunk(b, (ats_cpu_chunk){.keys = keys.stop - keys.start,
                                             .first = keys.start,
                                             .same = true,
                                             .leaf = leaf,
                                             .n_leaves = count});
}

/* Adds the part of a segment that lies in a leaf, or its inserted rows; false: the segment goes on
 * beyond the leaf. */
static bool take(ats_cpu_builder *b, const ats_segment *s, ats_range leaf)
{
    if (s->kind == ATS_SEG_ROWS) {
        if (s->stop > 0)
            b->fragments[b->n_fragments++] = (ats_cpu_fragment){
                .segment = s, .start = s->row, .stop = s->row + s->stop, .inserted = true};
        return true;
    }
    const int64_t start = s->start > leaf.start ? s->start : leaf.start;
    const int64_t stop = s->stop < leaf.stop ? s->stop : leaf.stop;
    if (start < stop)
        b->fragments[b->n_fragments++] =
            (ats_cpu_fragment){.segment = s, .start = start, .stop = stop};
    return s->stop <= leaf.stop;
}

static ats_code walk_run(ats_cpu_builder *b, int64_t *next, ats_err *err)
{
    const ats_key_tree *tree = &b->base->tree;
    const ats_edit *edit = b->variant->edit;
    const ats_run *run = &tree->runs[b->run];
    for (int64_t leaf = run->first_leaf; leaf < run->first_leaf + run->n_leaves; leaf++) {
        const int64_t whole = covered(b, run, leaf, *next);
        if (whole > 0) {
            add_covered(b, leaf, whole);
            leaf += whole - 1;
            if (edit != NULL && edit->segments[*next].stop == tree->leaves[leaf].stop) ++*next;
            continue;
        }
        const ats_range keys = tree->leaves[leaf];
        b->n_fragments = 0;
        while (*next < edit->n_segments && take(b, &edit->segments[*next], keys)) {
            ++*next;
            if (edit->segments[*next - 1].kind != ATS_SEG_ROWS &&
                edit->segments[*next - 1].stop == keys.stop)
                break;
        }
        const ats_code rc = finish_leaf(b, leaf, err);
        if (rc != ATS_OK) return rc;
    }
    flush_pending(b);
    return ATS_OK;
}

static ats_code walk(ats_cpu_builder *b, ats_err *err)
{
    const ats_key_tree *tree = &b->base->tree;
    const ats_edit *edit = b->variant->edit;
    int64_t next = 0; /* segment */
    ats_code rc = ATS_OK;
    for (b->run = 0; b->run < tree->n_runs; b->run++) {
        if (b->mark == NULL) b->variant->run_parts[b->run] = b->variant->n_parts;
        ATS_TRY(walk_run(b, &next, err));
    }
    if (b->mark != NULL) goto out;
    b->variant->run_parts[tree->n_runs] = b->variant->n_parts;
    for (; edit != NULL && next < edit->n_segments; next++) { /* rows after the last key */
        b->n_fragments = 0;
        take(b, &edit->segments[next], (ats_range){0, 0});
        for (int64_t i = 0; i < b->n_fragments; i++)
            ATS_TRY(ats_cpu_insert(b, &b->fragments[i], 2 * b->base->problem->n_keys, err));
    }
out:
    return rc;
}

static ats_code side_norms(ats_cpu_worker *w, ats_cpu_variant *v, ats_err *err)
{
    const ats_cpu_base *base = v->base;
    const int64_t count = v->edit != NULL ? v->edit->side.count : 0;
    const int64_t dv = base->problem->d_v, width = base->width, leaf = base->tree.leaf;
    ats_code rc;
    ATS_TRY(ATS_NEW(&w->arena, count, &v->side_norm, err));
    ATS_TRY(ATS_NEW(&w->arena, count, &v->side_log, err));
    ATS_TRY(ATS_NEW(&w->arena, count, &v->side_bad, err));
    for (int64_t at = 0; at < count; at += leaf) {
        const int64_t rows = count - at < leaf ? count - at : leaf;
        memset(w->v_panel, 0, (size_t)(rows * width) * sizeof(float));
        for (int64_t i = 0; i < rows; i++)
            memcpy(w->v_panel + i * width, v->edit->side.v + (at + i) * dv,
                   (size_t)dv * sizeof(float));
        ats_cpu_value_norms(base, rows, w->v_panel, v->side_norm + at, v->side_log + at,
                            v->side_bad + at);
    }
out:
    return rc;
}

static ats_code make_lists(ats_cpu_builder *b, ats_err *err)
{
    ats_cpu_worker *w = b->worker;
    ats_cpu_variant *v = b->variant;
    const int64_t leaves = b->base->tree.n_leaves, rows = b->base->problem->n_rows;
    const int64_t segments = v->edit != NULL ? v->edit->n_segments : 1;
    int64_t inserted = 0;
    for (int64_t i = 0; v->edit != NULL && i < segments; i++)
        if (v->edit->segments[i].kind == ATS_SEG_ROWS)
            inserted += v->edit->segments[i].stop / b->base->tree.leaf + 1;
    b->part_capacity = 6 * leaves + inserted;
    b->chunk_capacity = leaves + segments + inserted;
    ats_code rc;
    ATS_TRY(ATS_NEW(&w->arena, b->part_capacity, &v->parts, err));
    ATS_TRY(ATS_NEW(&w->arena, b->chunk_capacity, &v->chunks, err));
    ATS_TRY(ATS_NEW(&w->arena, leaves, &v->touched, err));
    ATS_TRY(ATS_NEW(&w->arena, segments + 1, &b->fragments, err));
    ATS_TRY(ATS_NEW(&w->arena, rows, &v->sink, err));
    ATS_TRY(ATS_NEW(&w->arena, rows, &v->norm, err));
    ATS_TRY(ATS_NEW(&w->arena, b->base->lanes, &v->peak, err));
    ATS_TRY(ATS_NEW(&w->arena, b->base->lanes, &v->log_sum, err));
    ATS_TRY(ATS_NEW(&w->arena, b->base->lanes, &v->keys, err));
    ATS_TRY(ATS_NEW(&w->arena, rows, &v->key_sum, err));
    ATS_TRY(ATS_NEW(&w->arena, rows, &v->scratch, err));
    ATS_TRY(ATS_NEW(&w->arena, b->base->tree.n_runs + 1, &v->run_parts, err));
    ATS_TRY(ATS_NEW(&w->arena, rows, &v->log_a, err));
    ATS_TRY(ATS_NEW(&w->arena, rows, &v->log_b, err));
    ATS_TRY(ATS_NEW(&w->arena, rows, &v->log_c, err));
out:
    return rc;
}

static ats_cpu_variant start(const ats_cpu_base *base, const ats_edit *edit)
{
    const ats_contract *c = &base->problem->contract;
    ats_cpu_variant v = {
        .base = base, .edit = edit, .scale = c->scale, .temperature = c->temperature};
    if (edit == NULL) return v;
    if (edit->scale != 0) v.scale = edit->scale;
    v.temperature *= edit->temperature;
    v.rescaled = v.scale != c->scale || edit->q != NULL || v.temperature != c->temperature;
    return v;
}

ats_code ats_cpu_variant_mark(ats_arena *arena, const ats_cpu_base *base, const ats_edit *edit,
                              uint8_t *mark, ats_err *err)
{
    ats_cpu_variant variant = start(base, edit);
    ats_cpu_builder b = {.variant = &variant, .base = base, .mark = mark};
    const ats_code rc = ATS_NEW(arena, edit->n_segments + 1, &b.fragments, err);
    return rc != ATS_OK ? rc : walk(&b, err);
}

ats_code ats_cpu_variant_build(ats_cpu_worker *worker, const ats_cpu_base *base,
                               const ats_edit *edit, ats_cpu_variant *out, ats_err *err)
{
    const ats_problem *p = base->problem;
    ats_arena_reset(&worker->arena);
    worker->turned = NULL;
    *out = start(base, edit);
    ats_cpu_builder b = {.worker = worker, .variant = out, .base = base};
    ats_code rc;
    ATS_TRY(make_lists(&b, err));
    ATS_TRY(side_norms(worker, out, err));
    for (int64_t row = 0; row < p->n_rows; row++)
        out->sink[row] =
            p->sink != NULL ? (double)p->sink[row] / out->temperature : (double)-INFINITY;
    ATS_TRY(walk(&b, err));
    out->touched_survivors = out->n_touched > 0 || out->rescaled;
    out->identical = !out->rescaled;
    for (int64_t i = 0; i < out->n_parts; i++) out->identical &= out->parts[i].same;
out:
    return rc;
}

#include "kernels/cpu.h"

#include <string.h>

/* What becomes of the keys of a fragment. */
typedef enum fate {
    SAME, /* nothing */
    HIDDEN,
    SWAPPED, /* another value, the same logit */
    CHANGED  /* another logit */
} fate;

/* The keys of one leaf with one fate, gathered; values are in the worker's panels. */
typedef struct group {
    int64_t leaf, keys;
    bool whole;                  /* every key of the leaf */
    bool values;                 /* some value is replaced */
    const float *zb, *zv;        /* [keys, lanes]; zv: changed keys only */
    const float *norm_b, *log_b; /* [keys] of the base's values */
    const float *norm_v, *log_v; /* of the variant's */
    float *m, *mc;               /* [lanes] raised by each variant state */
} group;

static fate fate_of(const ats_cpu_builder *b, const ats_cpu_fragment *f)
{
    if (f->segment->kind == ATS_SEG_HIDE) return HIDDEN;
    if (!ats_cpu_same_logits(b->variant, f->segment)) return CHANGED;
    return ats_cpu_swaps_value(f->segment) ? SWAPPED : SAME;
}

static bool belongs(const ats_cpu_builder *b, const ats_cpu_fragment *f, fate which)
{
    return !f->inserted && fate_of(b, f) == which;
}

static const float *base_z(const ats_cpu_base *base, int64_t key)
{
    return base->z + key * base->lanes;
}

static int64_t side_row(const ats_cpu_fragment *f)
{
    return f->segment->row + f->start - f->segment->start;
}

/* Base logits and norms of the group: those of the leaf itself, or copies side by side. */
static ats_code gather_base(ats_cpu_builder *b, fate which, group *g, ats_err *err)
{
    const ats_cpu_base *base = b->base;
    const ats_range leaf = base->tree.leaves[g->leaf];
    float *z = NULL, *norm = NULL, *log_norm = NULL;
    ats_code rc = ATS_OK;
    if (g->whole) {
        g->zb = base_z(base, leaf.start);
        g->norm_b = base->v_norm + leaf.start;
        g->log_b = base->log_norm + leaf.start;
        goto out;
    }
    ATS_TRY(ATS_NEW(&b->worker->arena, g->keys * base->lanes, &z, err));
    ATS_TRY(ATS_NEW(&b->worker->arena, g->keys, &norm, err));
    ATS_TRY(ATS_NEW(&b->worker->arena, g->keys, &log_norm, err));
    g->zb = z;
    g->norm_b = norm;
    g->log_b = log_norm;
    for (int64_t i = 0, at = 0; i < b->n_fragments; i++) {
        const ats_cpu_fragment *f = &b->fragments[i];
        if (!belongs(b, f, which)) continue;
        const int64_t keys = f->stop - f->start;
        memcpy(z + at * base->lanes, base_z(base, f->start),
               (size_t)(keys * base->lanes) * sizeof *z);
        memcpy(norm + at, base->v_norm + f->start, (size_t)keys * sizeof *norm);
        memcpy(log_norm + at, base->log_norm + f->start, (size_t)keys * sizeof *log_norm);
        at += keys;
    }
out:
    return rc;
}

/* Base values of the group into the first panel. */
static void gather_values(ats_cpu_builder *b, fate which, const group *g)
{
    const ats_cpu_base *base = b->base;
    for (int64_t i = 0, at = 0; i < b->n_fragments; i++) {
        const ats_cpu_fragment *f = &b->fragments[i];
        if (!belongs(b, f, which)) continue;
        float *panel = b->worker->v_panel + at * base->width;
        ats_cpu_base_values(base, f->start, f->stop - f->start, panel);
        ats_cpu_clear_bad(base, g->leaf, f->start, f->stop - f->start, panel);
        at += f->stop - f->start;
    }
}

/* Replaced values of fragment f, which stands at row `at` of the group's panels. */
static void replace_values(ats_cpu_builder *b, const ats_cpu_fragment *f, int64_t at, float *norm,
                           float *log_norm)
{
    const ats_cpu_variant *v = b->variant;
    const int64_t dv = b->base->problem->d_v, width = b->base->width;
    for (int64_t j = 0; j < f->stop - f->start; j++, at++) {
        const int64_t side = side_row(f) + j;
        const float *old = b->worker->v_panel + at * width;
        float *new = b->worker->w_panel + at *width, *change = b->worker->d_panel + at *width;
        memset(new, 0, (size_t)width * sizeof *new);
        if (!v->side_bad[side]) memcpy(new, v->edit->side.v + side * dv, (size_t)dv * sizeof *new);
        for (int64_t i = 0; i < width; i++) change[i] = new[i] - old[i];
        norm[at] = v->side_norm[side];
        log_norm[at] = v->side_log[side];
    }
}

/* Variant values and differences into the other panels, where the group replaces some. */
static ats_code gather_replaced(ats_cpu_builder *b, fate which, group *g, ats_err *err)
{
    const int64_t bytes = g->keys * b->base->width * (int64_t)sizeof(float);
    float *norm = NULL, *log_norm = NULL;
    ats_code rc = ATS_OK;
    g->norm_v = g->norm_b;
    g->log_v = g->log_b;
    if (!g->values) goto out;
    ATS_TRY(ATS_NEW(&b->worker->arena, g->keys, &norm, err));
    ATS_TRY(ATS_NEW(&b->worker->arena, g->keys, &log_norm, err));
    memcpy(norm, g->norm_b, (size_t)g->keys * sizeof *norm);
    memcpy(log_norm, g->log_b, (size_t)g->keys * sizeof *log_norm);
    memcpy(b->worker->w_panel, b->worker->v_panel, (size_t)bytes);
    memset(b->worker->d_panel, 0, (size_t)bytes);
    for (int64_t i = 0, at = 0; i < b->n_fragments; i++) {
        ats_cpu_fragment *f = &b->fragments[i];
        if (!belongs(b, f, which)) continue;
        if (ats_cpu_swaps_value(f->segment)) replace_values(b, f, at, norm, log_norm);
        f->v_norm = norm + at;
        f->log_norm = log_norm + at;
        at += f->stop - f->start;
    }
    g->norm_v = norm;
    g->log_v = log_norm;
out:
    return rc;
}

/* False: no key has this fate. */
static ats_code gather(ats_cpu_builder *b, fate which, group *g, bool *any, ats_err *err)
{
    const ats_range leaf = b->base->tree.leaves[g->leaf];
    g->keys = 0;
    g->values = false;
    g->zv = NULL;
    for (int64_t i = 0; i < b->n_fragments; i++) {
        const ats_cpu_fragment *f = &b->fragments[i];
        if (!belongs(b, f, which)) continue;
        g->keys += f->stop - f->start;
        g->values |= which != HIDDEN && ats_cpu_swaps_value(f->segment);
    }
    *any = g->keys > 0;
    if (!*any) return ATS_OK;
    g->whole = g->keys == leaf.stop - leaf.start;
    const ats_code rc = gather_base(b, which, g, err);
    if (rc != ATS_OK) return rc;
    gather_values(b, which, g);
    return gather_replaced(b, which, g, err);
}

/* Logits of the changed keys. */
static ats_code change_logits(ats_cpu_builder *b, group *g, ats_err *err)
{
    float *z = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(&b->worker->arena, g->keys * b->base->lanes, &z, err));
    g->zv = z;
    for (int64_t i = 0; i < b->n_fragments; i++) {
        ats_cpu_fragment *f = &b->fragments[i];
        if (!belongs(b, f, CHANGED)) continue;
        const ats_segment *s = f->segment;
        const bool side = s->kind == ATS_SEG_SWAP && s->swap_key;
        const ats_cpu_keys keys = {.side = side,
                                   .first = side ? side_row(f) : f->start,
                                   .keys = f->stop - f->start,
                                   .at = f->start,
                                   .delta = s->kind == ATS_SEG_KEEP ? s->delta : 0};
        const uint8_t *bad =
            ats_cpu_swaps_value(s) ? b->variant->side_bad + side_row(f) : b->base->v_bad + f->start;
        ATS_TRY(ats_cpu_key_logits(b->worker, b->variant, &keys, z, err));
        ATS_TRY(ats_cpu_check(b->variant, z, keys.keys, bad, err));
        f->zv = z;
        z += keys.keys * b->base->lanes;
    }
out:
    return rc;
}

/* A new state of the group's keys over the base's values or the variant's. */
static ats_code new_state(ats_cpu_builder *b, const group *g, const float *z, bool of_variant,
                          const ats_cpu_state **out, ats_err *err)
{
    ats_cpu_state *state = NULL;
    ats_cpu_worker *w = b->worker;
    const ats_cpu_base *base = b->base;
    ats_code rc;
    ATS_TRY(ATS_NEW(&w->arena, 1, &state, err));
    ATS_TRY(ats_cpu_state_new(&w->arena, base, state, err));
    const bool replaced = of_variant && g->values;
    ats_cpu_state_fill(base, w, g->whole && !replaced ? g->leaf : -1, g->keys, z,
                       replaced ? w->w_panel : w->v_panel, of_variant ? g->norm_v : g->norm_b,
                       of_variant ? g->log_v : g->log_b, state);
    for (int64_t i = 0; of_variant && i < base->lanes; i++) {
        g->m[i] = state->m[i] > g->m[i] ? state->m[i] : g->m[i];
        g->mc[i] = state->mc[i] > g->mc[i] ? state->mc[i] : g->mc[i];
    }
    *out = state;
out:
    return rc;
}

/* sum exp(z - m) (v' - v) with the weights that the last state left in worker->p. */
static ats_code difference(ats_cpu_builder *b, const group *g, const float **out, ats_err *err)
{
    const ats_cpu_base *base = b->base;
    const int64_t rows = base->problem->n_rows;
    float *d = NULL;
    if (!g->values) return ATS_OK;
    const ats_code rc = ATS_NEW(&b->worker->arena, rows * base->width, &d, err);
    if (rc != ATS_OK) return rc;
    base->ops->gemm(rows, base->width, g->keys, b->worker->p, 1, base->lanes, b->worker->d_panel,
                    base->width, d, base->width);
    *out = d;
    return ATS_OK;
}

static ats_code add_same(ats_cpu_builder *b, group *g, ats_err *err)
{
    ats_cpu_part part = {.run = b->run, .survives = true, .same = true, .node = -1};
    bool any;
    ats_code rc;
    ATS_TRY(gather(b, SAME, g, &any, err));
    if (!any) goto out;
    ATS_TRY(new_state(b, g, g->zb, true, &part.v, err));
    part.b = part.v;
    ats_cpu_add_part(b, part);
out:
    return rc;
}

static ats_code add_hidden(ats_cpu_builder *b, group *g, ats_err *err)
{
    ats_cpu_part part = {.run = b->run, .node = -1};
    bool any;
    ats_code rc;
    ATS_TRY(gather(b, HIDDEN, g, &any, err));
    if (!any) goto out;
    ATS_TRY(new_state(b, g, g->zb, false, &part.b, err));
    ats_cpu_add_part(b, part);
out:
    return rc;
}

static ats_code add_swapped(ats_cpu_builder *b, group *g, ats_err *err)
{
    ats_cpu_part part = {.run = b->run, .survives = true, .same = true, .node = -1};
    bool any;
    ats_code rc;
    ATS_TRY(gather(b, SWAPPED, g, &any, err));
    if (!any) goto out;
    for (int64_t i = 0; i < b->n_fragments; i++) {
        const ats_cpu_fragment *f = &b->fragments[i];
        if (belongs(b, f, SWAPPED))
            ATS_TRY(ats_cpu_check(b->variant, base_z(b->base, f->start), f->stop - f->start,
                                  b->variant->side_bad + side_row(f), err));
    }
    ATS_TRY(new_state(b, g, g->zb, false, &part.b, err));
    ATS_TRY(difference(b, g, &part.db, err));
    ATS_TRY(new_state(b, g, g->zb, true, &part.v, err));
    part.dv = part.db;
    ats_cpu_add_part(b, part);
out:
    return rc;
}

/* Survivors whose logits changed; apart: z are not the whole group's. */
static ats_code add_survivors(ats_cpu_builder *b, const group *g, const float *zb, const float *zv,
                              bool apart, ats_err *err)
{
    ats_cpu_part part = {.run = b->run, .survives = true, .node = -1};
    ats_cpu_variant *v = b->variant;
    ats_code rc = ATS_OK;
    if (g->whole && !g->values && !apart) {
        part.node = g->leaf;
        part.b = &b->base->nodes[g->leaf];
    } else {
        ATS_TRY(new_state(b, g, zb, false, &part.b, err));
        ATS_TRY(difference(b, g, &part.db, err));
    }
    ATS_TRY(new_state(b, g, zv, true, &part.v, err));
    ATS_TRY(difference(b, g, &part.dv, err));
    v->touched[v->n_touched++] = (ats_cpu_touched){g->keys, zb, zv, v->n_parts};
    ats_cpu_add_part(b, part);
out:
    return rc;
}

/* Some row loses or gains keys: survivors, removed and newly legal ones apart. */
static ats_code add_split(ats_cpu_builder *b, const group *g, ats_err *err)
{
    const int64_t count = g->keys * b->base->lanes;
    float *z[4] = {NULL};
    ats_cpu_part lost = {.run = b->run, .node = -1}, gained = {.run = b->run, .node = -1};
    ats_code rc;
    for (int i = 0; i < 4; i++) ATS_TRY(ATS_NEW(&b->worker->arena, count, &z[i], err));
    b->base->ops->split(count, g->zb, g->zv, z[0], z[1]);
    b->base->ops->split(count, g->zv, g->zb, z[2], z[3]);
    ATS_TRY(add_survivors(b, g, z[0], z[2], true, err));
    ATS_TRY(new_state(b, g, z[1], false, &lost.b, err));
    ats_cpu_add_part(b, lost);
    ATS_TRY(new_state(b, g, z[3], true, &gained.v, err));
    ats_cpu_add_part(b, gained);
out:
    return rc;
}

static ats_code add_changed(ats_cpu_builder *b, group *g, ats_err *err)
{
    const ats_cpu_base *base = b->base;
    bool any;
    ats_code rc;
    ATS_TRY(gather(b, CHANGED, g, &any, err));
    if (!any) goto out;
    ATS_TRY(change_logits(b, g, err));
    if (base->ops->differ(g->keys, base->lanes, base->problem->n_rows, g->zb, g->zv) != 0)
        ATS_TRY(add_split(b, g, err));
    else
        ATS_TRY(add_survivors(b, g, g->zb, g->zv, false, err));
out:
    return rc;
}

ats_code ats_cpu_mixed_leaf(ats_cpu_builder *b, int64_t leaf, ats_err *err)
{
    const ats_cpu_base *base = b->base;
    group g = {.leaf = leaf};
    ats_code rc;
    ATS_TRY(ats_cpu_leaf_fetch(base, leaf, err));
    ATS_TRY(ATS_NEW(&b->worker->arena, base->lanes, &g.m, err));
    ATS_TRY(ATS_NEW(&b->worker->arena, base->lanes, &g.mc, err));
    for (int64_t i = 0; i < base->lanes; i++) g.m[i] = g.mc[i] = -INFINITY;
    ATS_TRY(add_same(b, &g, err));
    ATS_TRY(add_swapped(b, &g, err));
    ATS_TRY(add_hidden(b, &g, err));
    ATS_TRY(add_changed(b, &g, err));
    ATS_TRY(ats_cpu_leaf_chunks(b, leaf, g.m, g.mc, err));
out:
    return rc;
}

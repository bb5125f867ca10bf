#include "kernels/cpu.h"

#include <math.h>
#include <string.h>

/* One leaf whose keys have different fates: the logits of each group, -inf at other keys. */
typedef struct mixed {
    int64_t leaf, start, keys;
    float *same, *gone, *swapped;   /* [keys, lanes] base logits, NULL: group empty */
    const float *old;               /* changed keys: base logits and */
    float *new;                     /* variant logits */
    bool only_changed;              /* the leaf has no other group */
    bool values;                    /* some value is replaced */
    const float *v_norm, *log_norm; /* [keys] of the variant's values */
    float *m, *mc;                  /* [lanes] bounds of all variant states */
} mixed;

static const float *base_z(const ats_cpu_base *base, int64_t key)
{
    return base->z + key * base->lanes;
}

static ats_code group(ats_cpu_builder *b, const mixed *x, float **z, ats_err *err)
{
    if (*z != NULL) return ATS_OK;
    const int64_t count = x->keys * b->base->lanes;
    const ats_code rc = ATS_NEW(&b->worker->arena, count, z, err);
    if (rc != ATS_OK) return rc;
    for (int64_t i = 0; i < count; i++) (*z)[i] = -INFINITY;
    return ATS_OK;
}

/* Copies base logits of a fragment into a group. */
static ats_code into_group(ats_cpu_builder *b, const mixed *x, const ats_cpu_fragment *f, float **z,
                           ats_err *err)
{
    const ats_code rc = group(b, x, z, err);
    if (rc != ATS_OK) return rc;
    const int64_t lanes = b->base->lanes;
    memcpy(*z + (f->start - x->start) * lanes, base_z(b->base, f->start),
           (size_t)((f->stop - f->start) * lanes) * sizeof **z);
    return ATS_OK;
}

static int64_t side_row(const ats_cpu_fragment *f)
{
    return f->segment->row + f->start - f->segment->start;
}

static void swap_rows(ats_cpu_builder *b, const mixed *x, const ats_cpu_fragment *f, float *norm,
                      float *log_norm)
{
    const ats_cpu_variant *v = b->variant;
    const ats_cpu_worker *w = b->worker;
    const int64_t dv = b->base->problem->d_v, width = b->base->width;
    for (int64_t key = f->start; key < f->stop; key++) {
        const int64_t side = side_row(f) + key - f->start, at = key - x->start;
        float *row = w->w_panel + at * width;
        if (v->side_bad[side])
            memset(row, 0, (size_t)dv * sizeof *row);
        else
            memcpy(row, v->edit->side.v + side * dv, (size_t)dv * sizeof *row);
        for (int64_t j = 0; j < width; j++)
            w->d_panel[at * width + j] = row[j] - w->v_panel[at * width + j];
        norm[at] = v->side_norm[side];
        log_norm[at] = v->side_log[side];
    }
}

/* Fills the value panels of the leaf: base, and (where an edit replaces some) variant and
 * difference. */
static ats_code load_values(ats_cpu_builder *b, mixed *x, ats_err *err)
{
    const ats_cpu_base *base = b->base;
    ats_cpu_worker *w = b->worker;
    float *norm = NULL, *log_norm = NULL;
    ats_code rc = ATS_OK;
    ats_cpu_base_values(base, x->start, x->keys, w->v_panel);
    for (int64_t i = 0; base->leaf_bad[x->leaf] && i < x->keys; i++)
        if (base->v_bad[x->start + i])
            memset(w->v_panel + i * base->width, 0, (size_t)base->width * sizeof(float));
    x->v_norm = base->v_norm + x->start;
    x->log_norm = base->log_norm + x->start;
    if (!x->values) goto out;
    ATS_TRY(ATS_NEW(&w->arena, x->keys, &norm, err));
    ATS_TRY(ATS_NEW(&w->arena, x->keys, &log_norm, err));
    memcpy(norm, x->v_norm, (size_t)x->keys * sizeof *norm);
    memcpy(log_norm, x->log_norm, (size_t)x->keys * sizeof *log_norm);
    memcpy(w->w_panel, w->v_panel, (size_t)(x->keys * base->width) * sizeof(float));
    memset(w->d_panel, 0, (size_t)(x->keys * base->width) * sizeof(float));
    for (int64_t i = 0; i < b->n_fragments; i++)
        if (!b->fragments[i].inserted && ats_cpu_swaps_value(b->fragments[i].segment))
            swap_rows(b, x, &b->fragments[i], norm, log_norm);
    x->v_norm = norm;
    x->log_norm = log_norm;
out:
    return rc;
}

static ats_code changed_fragment(ats_cpu_builder *b, mixed *x, const ats_cpu_fragment *f,
                                 float **old, ats_err *err)
{
    const ats_segment *s = f->segment;
    const ats_cpu_base *base = b->base;
    ats_code rc;
    if (x->only_changed)
        x->old = base_z(base, x->start);
    else {
        ATS_TRY(into_group(b, x, f, old, err));
        x->old = *old;
    }
    ATS_TRY(group(b, x, &x->new, err));
    float *z = x->new + (f->start - x->start) * base->lanes;
    const bool side = s->kind == ATS_SEG_SWAP && s->swap_key;
    const ats_cpu_keys keys = {.side = side,
                               .first = side ? side_row(f) : f->start,
                               .keys = f->stop - f->start,
                               .at = f->start,
                               .delta = s->kind == ATS_SEG_KEEP ? s->delta : 0};
    ATS_TRY(ats_cpu_key_logits(b->worker, b->variant, &keys, z, err));
    const uint8_t *bad =
        ats_cpu_swaps_value(s) ? b->variant->side_bad + side_row(f) : base->v_bad + f->start;
    ATS_TRY(ats_cpu_check(b->variant, z, keys.keys, bad, err));
out:
    return rc;
}

static ats_code sort_fragments(ats_cpu_builder *b, mixed *x, ats_err *err)
{
    float *old = NULL;
    ats_code rc = ATS_OK;
    x->only_changed = true;
    for (int64_t i = 0; i < b->n_fragments; i++) {
        const ats_cpu_fragment *f = &b->fragments[i];
        if (f->inserted) continue;
        const bool hidden = f->segment->kind == ATS_SEG_HIDE;
        x->values |= !hidden && ats_cpu_swaps_value(f->segment);
        if (hidden || ats_cpu_same_logits(b->variant, f->segment)) x->only_changed = false;
    }
    for (int64_t i = 0; i < b->n_fragments; i++) {
        const ats_cpu_fragment *f = &b->fragments[i];
        if (f->inserted) continue;
        if (f->segment->kind == ATS_SEG_HIDE) {
            ATS_TRY(into_group(b, x, f, &x->gone, err));
        } else if (!ats_cpu_same_logits(b->variant, f->segment)) {
            ATS_TRY(changed_fragment(b, x, f, &old, err));
        } else if (ats_cpu_swaps_value(f->segment)) {
            ATS_TRY(into_group(b, x, f, &x->swapped, err));
            ATS_TRY(ats_cpu_check(b->variant, base_z(b->base, f->start), f->stop - f->start,
                                  b->variant->side_bad + side_row(f), err));
        } else {
            ATS_TRY(into_group(b, x, f, &x->same, err));
        }
    }
out:
    return rc;
}

/* A new state of a group's logits over the base's values or the variant's. */
static ats_code new_state(ats_cpu_builder *b, const mixed *x, const float *z, bool of_variant,
                          const ats_cpu_state **out, ats_err *err)
{
    ats_cpu_state *state = NULL;
    ats_cpu_worker *w = b->worker;
    const ats_cpu_base *base = b->base;
    const bool other = of_variant && x->values;
    ats_code rc;
    ATS_TRY(ATS_NEW(&w->arena, 1, &state, err));
    ATS_TRY(ats_cpu_state_new(&w->arena, base, state, err));
    ats_cpu_state_fill(base, w, x->keys, z, other ? w->w_panel : w->v_panel,
                       other ? x->v_norm : base->v_norm + x->start,
                       other ? x->log_norm : base->log_norm + x->start, state);
    for (int64_t i = 0; of_variant && i < base->lanes; i++) {
        if (state->m[i] > x->m[i]) x->m[i] = state->m[i];
        if (state->mc[i] > x->mc[i]) x->mc[i] = state->mc[i];
    }
    *out = state;
out:
    return rc;
}

/* sum exp(z - m) (v' - v) with the weights that the last state left in worker->p. */
static ats_code difference(ats_cpu_builder *b, const mixed *x, const float **out, ats_err *err)
{
    const ats_cpu_base *base = b->base;
    const int64_t rows = base->problem->n_rows;
    float *d = NULL;
    if (!x->values) return ATS_OK;
    const ats_code rc = ATS_NEW(&b->worker->arena, rows * base->width, &d, err);
    if (rc != ATS_OK) return rc;
    base->ops->gemm(rows, base->width, x->keys, b->worker->p, 1, base->lanes, b->worker->d_panel,
                    base->width, d, base->width);
    *out = d;
    return ATS_OK;
}

static ats_code add_unchanged(ats_cpu_builder *b, const mixed *x, ats_err *err)
{
    ats_code rc = ATS_OK;
    if (x->same != NULL) {
        ats_cpu_part part = {.run = b->run, .survives = true, .same = true};
        ATS_TRY(new_state(b, x, x->same, true, &part.v, err));
        /* Rows of this group keep their values, but the bounds must count them as the variant's. */
        part.b = part.v;
        ats_cpu_add_part(b, part);
    }
    if (x->swapped != NULL) {
        ats_cpu_part part = {.run = b->run, .survives = true, .same = true};
        ATS_TRY(new_state(b, x, x->swapped, false, &part.b, err));
        ATS_TRY(difference(b, x, &part.db, err));
        ATS_TRY(new_state(b, x, x->swapped, true, &part.v, err));
        part.dv = part.db;
        ats_cpu_add_part(b, part);
    }
    if (x->gone != NULL) {
        ats_cpu_part part = {.run = b->run};
        ATS_TRY(new_state(b, x, x->gone, false, &part.b, err));
        ats_cpu_add_part(b, part);
    }
out:
    return rc;
}

/* Survivors whose logits changed; node: their base state when it is a whole leaf's. */
static ats_code add_survivors(ats_cpu_builder *b, const mixed *x, const float *zb, const float *zv,
                              const ats_cpu_state *node, ats_err *err)
{
    ats_cpu_part part = {.run = b->run, .survives = true, .b = node};
    ats_cpu_variant *v = b->variant;
    ats_code rc = ATS_OK;
    if (node == NULL || x->values) {
        ATS_TRY(new_state(b, x, zb, false, &part.b, err));
        ATS_TRY(difference(b, x, &part.db, err));
    }
    ATS_TRY(new_state(b, x, zv, true, &part.v, err));
    ATS_TRY(difference(b, x, &part.dv, err));
    v->touched[v->n_touched++] = (ats_cpu_touched){x->keys, zb, zv, v->n_parts};
    ats_cpu_add_part(b, part);
out:
    return rc;
}

/* Some row loses or gains keys: survivors, removed and newly legal ones apart. */
static ats_code add_split(ats_cpu_builder *b, const mixed *x, ats_err *err)
{
    const int64_t count = x->keys * b->base->lanes;
    float *z[4] = {NULL};
    ats_cpu_part lost = {.run = b->run}, gained = {.run = b->run};
    ats_code rc;
    for (int i = 0; i < 4; i++) ATS_TRY(ATS_NEW(&b->worker->arena, count, &z[i], err));
    b->base->ops->split(count, x->old, x->new, z[0], z[1]);
    b->base->ops->split(count, x->new, x->old, z[2], z[3]);
    ATS_TRY(add_survivors(b, x, z[0], z[2], NULL, err));
    ATS_TRY(new_state(b, x, z[1], false, &lost.b, err));
    ats_cpu_add_part(b, lost);
    ATS_TRY(new_state(b, x, z[3], true, &gained.v, err));
    ats_cpu_add_part(b, gained);
out:
    return rc;
}

static ats_code add_changed(ats_cpu_builder *b, const mixed *x, ats_err *err)
{
    const ats_cpu_base *base = b->base;
    if (x->new == NULL) return ATS_OK;
    if (base->ops->differ(x->keys, base->lanes, base->problem->n_rows, x->old, x->new) != 0)
        return add_split(b, x, err);
    return add_survivors(b, x, x->old, x->new, x->only_changed ? &base->nodes[x->leaf] : NULL, err);
}

static ats_code add_chunks(ats_cpu_builder *b, const mixed *x, ats_err *err)
{
    const ats_cpu_base *base = b->base;
    ats_code rc = ATS_OK;
    for (int64_t i = 0; i < b->n_fragments; i++) {
        const ats_cpu_fragment *f = &b->fragments[i];
        if (f->inserted) {
            ATS_TRY(ats_cpu_insert(b, f, err));
            continue;
        }
        if (f->segment->kind == ATS_SEG_HIDE) continue;
        const int64_t offset = f->start - x->start;
        const float *zb = base_z(base, f->start);
        const bool same = ats_cpu_same_logits(b->variant, f->segment);
        ats_cpu_add_chunk(b, (ats_cpu_chunk){.keys = f->stop - f->start,
                                             .first = f->start,
                                             .zb = zb,
                                             .zv = same ? zb : x->new + offset * base->lanes,
                                             .mb = base->nodes[x->leaf].m,
                                             .m = x->m,
                                             .mc = x->mc,
                                             .v_norm = x->v_norm + offset,
                                             .log_norm = x->log_norm + offset});
    }
out:
    return rc;
}

ats_code ats_cpu_mixed_leaf(ats_cpu_builder *b, int64_t leaf, ats_err *err)
{
    const ats_range keys = b->base->tree.leaves[leaf];
    mixed x = {.leaf = leaf, .start = keys.start, .keys = keys.stop - keys.start};
    ats_code rc;
    ATS_TRY(ATS_NEW(&b->worker->arena, b->base->lanes, &x.m, err));
    ATS_TRY(ATS_NEW(&b->worker->arena, b->base->lanes, &x.mc, err));
    for (int64_t i = 0; i < b->base->lanes; i++) x.m[i] = x.mc[i] = -INFINITY;
    ATS_TRY(sort_fragments(b, &x, err));
    ATS_TRY(load_values(b, &x, err));
    ATS_TRY(add_unchanged(b, &x, err));
    ATS_TRY(add_changed(b, &x, err));
    ATS_TRY(add_chunks(b, &x, err));
out:
    return rc;
}

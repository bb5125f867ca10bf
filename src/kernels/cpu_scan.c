/* Statistics that need single keys: top lists, their overlaps, and how many keys are heavier than a
 * region's best. */
#include "kernels/cpu_top.h"

#include <string.h>

/* Writes a list without keys whose weight (or payload) is 0. */
static void write_list(const ats_cpu_top *list, int64_t row, const ats_cpu_norm *norm, int64_t k,
                       bool payload, int64_t *index, double *weights, double *norms)
{
    int64_t used = 0;
    for (int64_t i = 0; i < list->count[row] && used < k; i++) {
        const int64_t at = row * list->limit + i;
        const double w = ats_cpu_weight((double)list->z[at], norm);
        const double size = w * (double)list->norm[at];
        if (!((payload ? size : w) > 0)) continue;
        index[used] = list->key[at];
        if (weights != NULL) weights[used] = w;
        if (payload) norms[used] = size;
        used++;
    }
    for (; used < k; used++) {
        index[used] = -1;
        if (weights != NULL) weights[used] = (double)NAN;
        if (payload) norms[used] = (double)NAN;
    }
}

static int64_t used_of(const int64_t *keys, int64_t limit)
{
    int64_t used = 0;
    while (used < limit && keys[used] != -1) used++;
    return used;
}

static int64_t shared(const int64_t *x, int64_t nx, const int64_t *y, int64_t ny)
{
    int64_t count = 0;
    for (int64_t i = 0; i < nx; i++)
        for (int64_t j = 0; j < ny; j++) count += x[i] == y[j];
    return count;
}

static bool survives(const ats_cpu_variant *v, const ats_cpu_changes *changes, int64_t key,
                     int64_t row)
{
    if (key < 0) return false;
    const ats_cpu_chunk *chunk = ats_cpu_changes_at(changes, key);
    if (chunk == NULL) return true;      /* in a list, so legal, and the same in both */
    if (chunk->zv == NULL) return false; /* hidden: its logits may not be there either */
    const int64_t at = (key - chunk->first) * v->base->lanes + row;
    return chunk->zb[at] > -INFINITY && chunk->zv[at] > -INFINITY;
}

/* Lists restricted to survivors into keys [rows, k]: the full list where all its keys survive, else
 * filled anew. */
static ats_code survivors_list(ats_cpu_worker *worker, const ats_cpu_variant *v,
                               const ats_cpu_changes *changes, ats_cpu_which which,
                               const int64_t *full, int64_t *keys, ats_err *err)
{
    const int64_t rows = v->base->problem->n_rows, k = v->base->problem->top_k;
    const ats_cpu_norm *norm = which == ATS_CPU_SURVIVORS ? v->norm : v->base->norm;
    uint8_t *wanted = NULL;
    bool any = false;
    ats_cpu_top list;
    ats_code rc;
    ATS_TRY(ATS_NEW0(&worker->arena, rows, &wanted, err));
    memcpy(keys, full, (size_t)(rows * k) * sizeof *keys);
    for (int64_t row = 0; row < rows; row++) {
        const int64_t used = used_of(full + row * k, k);
        for (int64_t i = 0; i < used; i++)
            wanted[row] |= !survives(v, changes, full[row * k + i], row);
        any |= wanted[row] != 0;
    }
    if (!any) goto out;
    ATS_TRY(ats_cpu_top_new(&worker->arena, v->base, k, &list, err));
    ATS_TRY(ats_cpu_top_fill(worker, v, changes, which, false, wanted, &list, err));
    for (int64_t row = 0; row < rows; row++)
        if (wanted[row]) write_list(&list, row, &norm[row], k, false, keys + row * k, NULL, NULL);
out:
    return rc;
}

static ats_code overlaps(ats_cpu_worker *worker, const ats_cpu_variant *v,
                         const ats_cpu_changes *changes, ats_stats *out, ats_err *err)
{
    const int64_t rows = v->base->problem->n_rows, k = v->base->problem->top_k;
    const int64_t *old_keys = v->base->stats.route.top_index, *new_keys = out->route.top_index;
    int64_t *old_left = NULL, *new_left = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(&worker->arena, rows * k, &old_left, err));
    ATS_TRY(ATS_NEW(&worker->arena, rows * k, &new_left, err));
    ATS_TRY(survivors_list(worker, v, changes, ATS_CPU_SURVIVORS_IN_BASE, old_keys, old_left, err));
    ATS_TRY(survivors_list(worker, v, changes, ATS_CPU_SURVIVORS, new_keys, new_left, err));
    for (int64_t row = 0; row < rows; row++) {
        if (!ats_cpu_defined(&v->norm[row]) || !ats_cpu_defined(&v->base->norm[row])) continue;
        const int64_t at = row * k;
        const int64_t a = used_of(old_keys + at, k), b = used_of(new_keys + at, k);
        const int64_t as = used_of(old_left + at, k), bs = used_of(new_left + at, k);
        out->pair.overlap_all[row] = shared(old_keys + at, a, new_keys + at, b);
        out->pair.overlap_k_all[row] = a > b ? a : b;
        out->pair.overlap_survivors[row] = shared(old_left + at, as, new_left + at, bs);
        out->pair.overlap_k_survivors[row] = as > bs ? as : bs;
    }
out:
    return rc;
}

typedef struct counting {
    const ats_cpu_variant *v;
    int64_t region;
    float *all,
        *changed; /* [lanes] thresholds of rows counted in full, and from the base's count */
    float *count; /* [lanes] */
    ats_route_stats *out;
} counting;

/* Adds sign times the keys of z, logits that are there, above the thresholds. */
static void count(const counting *c, const float *z, const float *bound, int64_t keys,
                  const float *threshold, int64_t sign)
{
    const ats_cpu_base *base = c->v->base;
    const int64_t regions = base->problem->n_regions;
    if (z == NULL || !base->ops->any_above(base->lanes, bound, threshold)) return;
    memset(c->count, 0, (size_t)base->lanes * sizeof *c->count);
    base->ops->count_above(keys, base->lanes, z, threshold, c->count);
    for (int64_t row = 0; row < base->problem->n_rows; row++)
        c->out->region_heavier[row * regions + c->region] += sign * (int64_t)c->count[row];
}

/* The same for a chunk: its own logits (sign 1), or those of the base (-1). */
static ats_code count_piece(const counting *c, const ats_cpu_chunk *chunk, const float *threshold,
                            int64_t sign, ats_err *err)
{
    const ats_cpu_base *base = c->v->base;
    const float *z = sign > 0 ? chunk->zv : chunk->zb, *bound = sign > 0 ? chunk->m : chunk->mb;
    if (z == NULL || !base->ops->any_above(base->lanes, bound, threshold)) return ATS_OK;
    const ats_code rc = ats_cpu_chunk_fetch(base, chunk, err);
    if (rc == ATS_OK) count(c, z, bound, chunk->keys, threshold, sign);
    return rc;
}

static ats_code count_chunk(const counting *c, const ats_cpu_chunk *chunk, ats_err *err)
{
    ats_code rc = ATS_OK;
    if (chunk->n_leaves == 0) return count_piece(c, chunk, c->all, 1, err);
    for (int64_t i = 0; rc == ATS_OK && i < chunk->n_leaves; i++) {
        const ats_cpu_chunk leaf = ats_cpu_chunk_leaf(c->v->base, chunk->leaf + i);
        rc = count_piece(c, &leaf, c->all, 1, err);
    }
    return rc;
}

/* No key of the region is heavier than its best, so all heavier keys lie outside. Where the best
 * is the base's, only changed and inserted keys can differ from the base's count. */
static ats_code count_region(const counting *c, const ats_cpu_changes *changes, ats_err *err)
{
    const ats_cpu_variant *v = c->v;
    const ats_problem *p = v->base->problem;
    const ats_route_stats *old = &v->base->stats.route;
    bool any_all = false, any_changed = false;
    ats_code rc = ATS_OK;
    for (int64_t row = 0; row < v->base->lanes; row++) {
        c->all[row] = c->changed[row] = INFINITY;
        if (row >= p->n_rows || !ats_cpu_defined(&v->norm[row])) continue;
        const int64_t at = row * p->n_regions + c->region;
        const double best = c->out->region_max[at];
        const bool from_base =
            changes->few && ats_cpu_defined(&v->base->norm[row]) && best == old->region_max[at];
        c->out->region_heavier[at] = from_base ? old->region_heavier[at] : 0;
        (from_base ? c->changed : c->all)[row] = (float)best;
        any_changed |= from_base;
        any_all |= !from_base;
    }
    for (int64_t i = 0; any_all && i < v->n_chunks; i++)
        ATS_TRY(count_chunk(c, &v->chunks[i], err));
    for (int64_t i = 0; any_changed && i < v->n_chunks; i++) {
        const ats_cpu_chunk *chunk = &v->chunks[i];
        if (chunk->same) continue;
        ATS_TRY(count_piece(c, chunk, c->changed, 1, err));
        ATS_TRY(count_piece(c, chunk, c->changed, -1, err));
    }
out:
    return rc;
}

/* The base's own counts: from the pass, from its list, or from logits once more. */
static ats_code count_base(const counting *c, ats_cpu_worker *worker, ats_err *err)
{
    const ats_cpu_base *base = c->v->base;
    const int64_t regions = base->problem->n_regions;
    ats_cpu_variant plain = *c->v;
    bool open = false;
    for (int64_t row = 0; row < base->lanes; row++) {
        c->all[row] = INFINITY;
        if (row >= base->problem->n_rows || !ats_cpu_defined(&c->v->norm[row])) continue;
        int64_t *to = &c->out->region_heavier[row * regions + c->region];
        const double best = c->out->region_max[row * regions + c->region];
        if (base->aimed[c->region]) {
            *to = (int64_t)base->heavier[c->region * base->lanes + row];
        } else if (!ats_cpu_top_heavier(&base->heavy, row, best, to)) {
            *to = 0;
            c->all[row] = (float)best;
            open = true;
        }
    }
    for (int64_t leaf = 0; open && leaf < base->tree.n_leaves; leaf++) {
        const float *m = base->nodes[leaf].m, *z = NULL;
        if (!base->ops->any_above(base->lanes, m, c->all)) continue;
        const ats_code rc = ats_cpu_leaf_logits(worker, &plain, leaf, &z, err);
        if (rc != ATS_OK) return rc;
        count(c, z, m, base->tree.leaves[leaf].stop - base->tree.leaves[leaf].start, c->all, 1);
    }
    return ATS_OK;
}

static ats_code heavier(ats_cpu_worker *worker, const ats_cpu_variant *v,
                        const ats_cpu_changes *changes, ats_route_stats *out, ats_err *err)
{
    counting c = {.v = v, .out = out};
    ats_code rc;
    ATS_TRY(ATS_NEW(&worker->arena, v->base->lanes, &c.all, err));
    ATS_TRY(ATS_NEW(&worker->arena, v->base->lanes, &c.changed, err));
    ATS_TRY(ATS_NEW(&worker->arena, v->base->lanes, &c.count, err));
    for (c.region = 0; c.region < v->base->problem->n_regions; c.region++) {
        if (v->edit != NULL)
            ATS_TRY(count_region(&c, changes, err));
        else
            ATS_TRY(count_base(&c, worker, err));
    }
out:
    return rc;
}

static void write_lists(const ats_cpu_variant *v, const ats_cpu_top *heavy,
                        const ats_cpu_top *payload, ats_route_stats *out)
{
    const int64_t k = v->base->problem->top_k;
    for (int64_t row = 0; row < v->base->problem->n_rows; row++) {
        const ats_cpu_norm *norm = &v->norm[row];
        const int64_t at = row * k;
        if (!ats_cpu_defined(norm)) continue;
        write_list(heavy, row, norm, k, false, out->top_index + at, out->top_weight + at, NULL);
        write_list(payload, row, norm, k, true, out->topc_index + at, out->topc_weight + at,
                   out->topc_norm + at);
    }
}

ats_code ats_cpu_scan(ats_cpu_worker *worker, const ats_cpu_variant *v, ats_stats *out,
                      ats_err *err)
{
    const ats_cpu_base *base = v->base;
    const int64_t rows = base->problem->n_rows, k = base->problem->top_k;
    ats_cpu_top heavy = base->heavy, payload = base->payload;
    ats_cpu_changes changes;
    uint8_t *wanted = NULL;
    ats_code rc;
    ATS_TRY(ats_cpu_changes_find(worker, v, &changes, err));
    if (v->edit != NULL) {
        ATS_TRY(ATS_NEW(&worker->arena, rows, &wanted, err));
        memset(wanted, 1, (size_t)rows);
        ATS_TRY(ats_cpu_top_new(&worker->arena, base, k, &heavy, err));
        ATS_TRY(ats_cpu_top_new(&worker->arena, base, k, &payload, err));
        ATS_TRY(ats_cpu_top_fill(worker, v, &changes, ATS_CPU_ALL, false, wanted, &heavy, err));
        ATS_TRY(ats_cpu_top_fill(worker, v, &changes, ATS_CPU_ALL, true, wanted, &payload, err));
    }
    write_lists(v, &heavy, &payload, &out->route);
    ATS_TRY(heavier(worker, v, &changes, &out->route, err));
    if (v->edit != NULL) ATS_TRY(overlaps(worker, v, &changes, out, err));
out:
    return rc;
}

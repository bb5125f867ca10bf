#include "kernels/cpu_top.h"

#include <string.h>

ats_code ats_cpu_top_new(ats_arena *arena, const ats_cpu_base *base, int64_t limit,
                         ats_cpu_top *out, ats_err *err)
{
    const int64_t rows = base->problem->n_rows;
    ats_code rc;
    *out = (ats_cpu_top){.limit = limit};
    ATS_TRY(ATS_NEW(arena, base->lanes, &out->threshold, err));
    ATS_TRY(ATS_NEW0(arena, rows, &out->count, err));
    ATS_TRY(ATS_NEW(arena, rows * limit, &out->key, err));
    ATS_TRY(ATS_NEW(arena, rows * limit, &out->place, err));
    ATS_TRY(ATS_NEW(arena, rows * limit, &out->score, err));
    ATS_TRY(ATS_NEW(arena, rows * limit, &out->z, err));
    ATS_TRY(ATS_NEW(arena, rows * limit, &out->norm, err));
    for (int64_t i = 0; !arena->count_only && i < base->lanes; i++)
        out->threshold[i] = i < rows ? -INFINITY : INFINITY;
out:
    return rc;
}

typedef struct entry {
    int64_t key, place;
    float score, z, norm;
} entry;

static void put(ats_cpu_top *list, int64_t at, const entry *e)
{
    list->key[at] = e->key;
    list->place[at] = e->place;
    list->score[at] = e->score;
    list->z[at] = e->z;
    list->norm[at] = e->norm;
}

static entry get(const ats_cpu_top *list, int64_t at)
{
    return (entry){list->key[at], list->place[at], list->score[at], list->z[at], list->norm[at]};
}

/* Larger score first, then the earlier place. */
static bool better(const ats_cpu_top *list, const entry *e, int64_t at)
{
    return e->score > list->score[at] ||
           (e->score == list->score[at] && e->place < list->place[at]);
}

static void offer(ats_cpu_top *list, int64_t row, const entry *e)
{
    const int64_t first = row * list->limit;
    int64_t at = list->count[row];
    if (at == list->limit) {
        if (!better(list, e, first + at - 1)) return;
        at--;
    } else {
        list->count[row]++;
    }
    for (; at > 0 && better(list, e, first + at - 1); at--) {
        const entry moved = get(list, first + at - 1);
        put(list, first + at, &moved);
    }
    put(list, first + at, e);
    if (list->count[row] < list->limit) return;
    const float last = list->score[first + list->limit - 1];
    list->threshold[row] = list->unordered ? nextafterf(last, -INFINITY) : last;
}

static ats_code scan_piece(const ats_cpu_variant *v, const ats_cpu_chunk *chunk,
                           ats_cpu_which which, bool payload, ats_cpu_top *list, ats_err *err)
{
    const ats_cpu_base *base = v->base;
    const int64_t lanes = base->lanes, rows = base->problem->n_rows;
    const bool in_base = which == ATS_CPU_SURVIVORS_IN_BASE;
    const float *z = in_base ? chunk->zb : chunk->zv, *other = in_base ? chunk->zv : chunk->zb;
    const float *bound = in_base ? chunk->mb : payload ? chunk->mc : chunk->m;
    const float *add = payload ? chunk->log_norm : NULL;
    if (chunk->zv == NULL || (which != ATS_CPU_ALL && chunk->zb == NULL)) return ATS_OK;
    if (!base->ops->any_above(lanes, bound, list->threshold)) return ATS_OK;
    const ats_code rc = ats_cpu_chunk_fetch(base, chunk, err);
    if (rc != ATS_OK) return rc;
    for (int64_t i = 0;; i++) {
        i = base->ops->next_above(i, chunk->keys, lanes, z, add, list->threshold);
        if (i >= chunk->keys) break;
        entry e = {.key = chunk->inserted ? -2 - (chunk->first + i) : chunk->first + i,
                   .place = chunk->inserted ? chunk->place : chunk->place + 2 * i,
                   .norm = chunk->v_norm[i]};
        for (int64_t row = 0; row < rows; row++) {
            e.z = z[i * lanes + row];
            e.score = e.z + (payload ? chunk->log_norm[i] : 0.0f);
            if (!(e.score > list->threshold[row])) continue;
            if (which != ATS_CPU_ALL && !(other[i * lanes + row] > -INFINITY)) continue;
            offer(list, row, &e);
        }
    }
    return ATS_OK;
}

ats_cpu_chunk ats_cpu_chunk_leaf(const ats_cpu_base *base, int64_t leaf)
{
    const ats_range keys = base->tree.leaves[leaf];
    const float *z = base->z != NULL ? base->z + keys.start * base->lanes : NULL;
    const ats_cpu_state *node = &base->nodes[leaf];
    return (ats_cpu_chunk){.keys = keys.stop - keys.start,
                           .first = keys.start,
                           .same = true,
                           .place = 2 * keys.start + 1,
                           .zb = z,
                           .zv = z,
                           .mb = node->m,
                           .m = node->m,
                           .mc = node->mc,
                           .v_norm = base->v_norm + keys.start,
                           .log_norm = base->log_norm + keys.start,
                           .leaf = leaf};
}

static ats_code scan_chunk(const ats_cpu_variant *v, const ats_cpu_chunk *chunk,
                           ats_cpu_which which, bool payload, ats_cpu_top *list, ats_err *err)
{
    ats_code rc = ATS_OK;
    if (chunk->n_leaves == 0) return scan_piece(v, chunk, which, payload, list, err);
    for (int64_t i = 0; rc == ATS_OK && i < chunk->n_leaves; i++) {
        const ats_cpu_chunk leaf = ats_cpu_chunk_leaf(v->base, chunk->leaf + i);
        rc = scan_piece(v, &leaf, which, payload, list, err);
    }
    return rc;
}

/* Scans the chunks; changed: but those that are the base's. */
static ats_code scan_chunks(const ats_cpu_variant *v, ats_cpu_which which, bool payload,
                            bool changed, ats_cpu_top *list, ats_err *err)
{
    ats_code rc = ATS_OK;
    for (int64_t i = 0; rc == ATS_OK && i < v->n_chunks; i++)
        if (!changed || !v->chunks[i].same)
            rc = scan_chunk(v, &v->chunks[i], which, payload, list, err);
    return rc;
}

ats_code ats_cpu_changes_find(ats_cpu_worker *worker, const ats_cpu_variant *v,
                              ats_cpu_changes *out, ats_err *err)
{
    ats_cpu_changes found = {.few = false};
    int64_t keys = 0;
    const ats_code rc = ATS_NEW(&worker->arena, v->n_chunks, &found.chunks, err);
    if (rc != ATS_OK) return rc;
    for (int64_t i = 0; i < v->n_chunks; i++) {
        if (v->chunks[i].same || v->chunks[i].inserted) continue;
        found.chunks[found.n_chunks++] = &v->chunks[i];
        keys += v->chunks[i].keys;
    }
    found.few = v->edit != NULL && keys <= v->base->problem->n_keys / 2;
    *out = found;
    return ATS_OK;
}

/* Starts a row's list with the base's entries that still hold; false: they do not suffice. */
static bool seed(const ats_cpu_variant *v, const ats_cpu_changes *changes, ats_cpu_which which,
                 const ats_cpu_top *from, int64_t row, ats_cpu_top *list)
{
    const int64_t lanes = v->base->lanes;
    for (int64_t i = 0; i < from->count[row] && list->count[row] < list->limit; i++) {
        const entry e = get(from, row * from->limit + i);
        const ats_cpu_chunk *chunk = ats_cpu_changes_at(changes, e.key);
        if (chunk != NULL) {
            if (which != ATS_CPU_SURVIVORS_IN_BASE || chunk->zv == NULL) continue;
            if (!(chunk->zv[(e.key - chunk->first) * lanes + row] > -INFINITY)) continue;
        }
        put(list, row * list->limit + list->count[row]++, &e);
    }
    return list->count[row] == list->limit || from->count[row] < from->limit;
}

/* Scans what the seeded rows still lack: changed and inserted keys. */
static ats_code scan_changes(const ats_cpu_variant *v, ats_cpu_which which, bool payload,
                             ats_cpu_top *list, ats_err *err)
{
    list->unordered = true;
    const ats_code rc = scan_chunks(v, which, payload, true, list, err);
    list->unordered = false;
    return rc;
}

ats_code ats_cpu_top_fill(ats_cpu_worker *worker, const ats_cpu_variant *v,
                          const ats_cpu_changes *changes, ats_cpu_which which, bool payload,
                          const uint8_t *wanted, ats_cpu_top *list, ats_err *err)
{
    const int64_t rows = v->base->problem->n_rows;
    const ats_cpu_top *from = payload ? &v->base->payload : &v->base->heavy;
    bool scan = false;
    float *seeded = NULL; /* [lanes] thresholds of the seeded rows */
    ats_code rc = ATS_NEW(&worker->arena, v->base->lanes, &seeded, err);
    if (rc != ATS_OK) return rc;
    for (int64_t row = 0; row < v->base->lanes; row++) seeded[row] = INFINITY;
    for (int64_t row = 0; row < rows; row++) {
        list->count[row] = 0;
        list->threshold[row] = INFINITY;
        if (!wanted[row]) continue;
        if (changes->few && seed(v, changes, which, from, row, list)) {
            const bool full = list->count[row] == list->limit;
            seeded[row] =
                full ? nextafterf(list->score[(row + 1) * list->limit - 1], -INFINITY) : -INFINITY;
        } else {
            list->count[row] = 0;
            list->threshold[row] = -INFINITY;
            scan = true;
        }
    }
    if (scan) rc = scan_chunks(v, which, payload, false, list, err);
    if (rc != ATS_OK || !changes->few || which == ATS_CPU_SURVIVORS_IN_BASE) return rc;
    memcpy(list->threshold, seeded, (size_t)v->base->lanes * sizeof *seeded);
    return scan_changes(v, which, payload, list, err);
}

ats_code ats_cpu_pool_new(ats_arena *arena, const ats_cpu_base *base, int64_t limit,
                          ats_cpu_pool *out, ats_err *err)
{
    const int64_t rows = base->problem->n_rows;
    ats_cpu_pool pool = {.limit = limit};
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, base->lanes, &pool.threshold, err));
    ATS_TRY(ATS_NEW0(arena, rows, &pool.count, err));
    ATS_TRY(ATS_NEW(arena, rows * limit, &pool.pick, err));
    for (int64_t i = 0; !arena->count_only && i < base->lanes; i++)
        pool.threshold[i] = i < rows ? -INFINITY : INFINITY;
    *out = pool;
out:
    return rc;
}

/* The largest float below a finite x. */
static float next_below(float x)
{
    uint32_t bits;
    if (x == 0) return -0x1p-149f;
    memcpy(&bits, &x, sizeof bits);
    bits = x > 0 ? bits - 1 : bits + 1;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Larger score first, then the earlier key: the same list in whatever order keys are offered. */
static void pool_put(ats_cpu_pool *pool, int64_t row, ats_cpu_pick new)
{
    ats_cpu_pick *list = pool->pick + row * pool->limit;
    int64_t at = pool->count[row];
    if (at == pool->limit) {
        const ats_cpu_pick *last = &list[--at];
        if (last->score > new.score || (last->score == new.score && last->key < new.key)) return;
    } else {
        pool->count[row]++;
    }
    for (; at > 0; at--) {
        const ats_cpu_pick *before = &list[at - 1];
        if (before->score > new.score || (before->score == new.score && before->key < new.key))
            break;
        list[at] = *before;
    }
    list[at] = new;
    /* An equal score of an earlier key may still come. */
    if (pool->count[row] == pool->limit)
        pool->threshold[row] = next_below(list[pool->limit - 1].score);
}

void ats_cpu_pool_offer(ats_cpu_pool *pool, int64_t first, int64_t n, const uint16_t *hits,
                        const float *z, int64_t lanes, const float *add)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t key = hits[i] >> 8, row = hits[i] & 0xff;
        const float x = z[key * lanes + row], score = add != NULL ? x + add[key] : x;
        if (score > pool->threshold[row])
            pool_put(pool, row, (ats_cpu_pick){score, x, first + key});
    }
}

void ats_cpu_pool_take(ats_cpu_pool *pool, int64_t row, int64_t n, int64_t stride, const float *z,
                       const int32_t *place, int64_t first, const float *add)
{
    for (int64_t i = 0; i < n && place[i * stride] >= 0; i++) {
        const int64_t key = first + place[i * stride];
        const float x = z[i * stride], score = add != NULL ? x + add[key] : x;
        if (!(score > pool->threshold[row])) return;
        pool_put(pool, row, (ats_cpu_pick){score, x, key});
    }
}

void ats_cpu_pool_join(ats_cpu_pool *pool, const ats_cpu_pool *other, const ats_cpu_base *base)
{
    for (int64_t row = 0; row < base->problem->n_rows; row++)
        for (int64_t i = 0; i < other->count[row]; i++) {
            const ats_cpu_pick pick = other->pick[row * other->limit + i];
            if (pick.score > pool->threshold[row]) pool_put(pool, row, pick);
        }
}

void ats_cpu_pool_list(const ats_cpu_pool *pool, const ats_cpu_base *base, ats_cpu_top *out)
{
    for (int64_t row = 0; row < base->problem->n_rows; row++) {
        out->count[row] = pool->count[row];
        for (int64_t i = 0; i < pool->count[row]; i++) {
            const int64_t at = row * pool->limit + i;
            const ats_cpu_pick *pick = &pool->pick[at];
            out->key[at] = pick->key;
            out->place[at] = 2 * pick->key + 1;
            out->score[at] = pick->score;
            out->z[at] = pick->z;
            out->norm[at] = base->v_norm[pick->key];
        }
    }
}

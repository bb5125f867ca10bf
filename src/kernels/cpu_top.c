/* Scans over the keys of a variant in sequence order: top lists, their overlaps, and how many keys
 * are heavier than a region's best. Chunks whose bound cannot enter a list are skipped; ties stay
 * with the earlier key because only a strictly larger score enters a full list. */
#include "kernels/cpu.h"

#include <math.h>
#include <string.h>

/* The `limit` best keys of every row. */
typedef struct top_list {
    int64_t limit;
    float *threshold;        /* [lanes] score to beat; +inf: the row is not wanted */
    int64_t *count;          /* [rows] */
    int64_t *key;            /* [rows, limit] base index or -2 - side row */
    float *score, *z, *norm; /* [rows, limit] */
} top_list;

typedef enum which_keys {
    ALL_KEYS,          /* of the variant */
    SURVIVORS,         /* of the variant, legal in the base too */
    SURVIVORS_IN_BASE, /* the same keys by their base logits */
} which_keys;

static ats_code list_new(ats_arena *arena, const ats_cpu_base *base, top_list *out, ats_err *err)
{
    const int64_t rows = base->problem->n_rows, k = base->problem->top_k;
    ats_code rc;
    out->limit = k;
    ATS_TRY(ATS_NEW(arena, base->lanes, &out->threshold, err));
    ATS_TRY(ATS_NEW0(arena, rows, &out->count, err));
    ATS_TRY(ATS_NEW(arena, rows * k, &out->key, err));
    ATS_TRY(ATS_NEW(arena, rows * k, &out->score, err));
    ATS_TRY(ATS_NEW(arena, rows * k, &out->z, err));
    ATS_TRY(ATS_NEW(arena, rows * k, &out->norm, err));
    for (int64_t i = 0; i < base->lanes; i++) out->threshold[i] = i < rows ? -INFINITY : INFINITY;
out:
    return rc;
}

static void offer(top_list *list, int64_t row, int64_t key, float score, float z, float norm)
{
    const int64_t first = row * list->limit;
    int64_t at = list->count[row];
    if (at == list->limit)
        at--;
    else
        list->count[row]++;
    for (; at > 0 && score > list->score[first + at - 1]; at--) {
        list->score[first + at] = list->score[first + at - 1];
        list->key[first + at] = list->key[first + at - 1];
        list->z[first + at] = list->z[first + at - 1];
        list->norm[first + at] = list->norm[first + at - 1];
    }
    list->score[first + at] = score;
    list->key[first + at] = key;
    list->z[first + at] = z;
    list->norm[first + at] = norm;
    if (list->count[row] == list->limit)
        list->threshold[row] = list->score[first + list->limit - 1];
}

static bool any_above(const float *bound, const float *threshold, int64_t lanes)
{
    bool any = false;
    for (int64_t i = 0; i < lanes; i++) any |= bound[i] > threshold[i];
    return any;
}

static void scan_chunk(const ats_cpu_variant *v, const ats_cpu_chunk *chunk, which_keys which,
                       bool payload, top_list *list)
{
    const int64_t lanes = v->base->lanes, rows = v->base->problem->n_rows;
    const bool in_base = which == SURVIVORS_IN_BASE;
    const float *z = in_base ? chunk->zb : chunk->zv, *other = in_base ? chunk->zv : chunk->zb;
    const float *bound = in_base ? chunk->mb : payload ? chunk->mc : chunk->m;
    const float *add = payload ? chunk->log_norm : NULL;
    if (!any_above(bound, list->threshold, lanes)) return;
    for (int64_t i = 0;; i++) {
        i = v->base->ops->next_above(i, chunk->keys, lanes, z, add, list->threshold);
        if (i >= chunk->keys) break;
        const float more = payload ? chunk->log_norm[i] : 0.0f;
        const int64_t key = chunk->inserted ? -2 - (chunk->first + i) : chunk->first + i;
        for (int64_t row = 0; row < rows; row++) {
            const float x = z[i * lanes + row], score = x + more;
            if (!(score > list->threshold[row])) continue;
            if (which != ALL_KEYS && !(other[i * lanes + row] > -INFINITY)) continue;
            offer(list, row, key, score, x, chunk->v_norm[i]);
        }
    }
}

static void scan(const ats_cpu_variant *v, which_keys which, bool payload, top_list *list)
{
    for (int64_t i = 0; i < v->n_chunks; i++)
        if (which == ALL_KEYS || !v->chunks[i].inserted)
            scan_chunk(v, &v->chunks[i], which, payload, list);
}

static double weight(float z, double lse) { return exp((double)z - lse); }

/* Writes a list without keys whose weight (or payload) is 0. */
static void write_list(const top_list *list, int64_t row, double lse, bool payload, int64_t *index,
                       double *weights, double *norms)
{
    int64_t used = 0;
    for (int64_t i = 0; i < list->count[row]; i++) {
        const int64_t at = row * list->limit + i;
        const double w = weight(list->z[at], lse), norm = w * (double)list->norm[at];
        if (!((payload ? norm : w) > 0)) continue;
        index[used] = list->key[at];
        weights[used] = w;
        if (payload) norms[used] = norm;
        used++;
    }
    for (; used < list->limit; used++) {
        index[used] = -1;
        weights[used] = (double)NAN;
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

/* Logit of a base key in the variant, -inf where it is not legal there. Chunks of base keys
 * ascend, with inserted ones between. */
static float variant_logit(const ats_cpu_variant *v, int64_t key, int64_t row)
{
    for (int64_t i = 0; i < v->n_chunks; i++) {
        const ats_cpu_chunk *chunk = &v->chunks[i];
        if (chunk->inserted || key >= chunk->first + chunk->keys) continue;
        if (key < chunk->first) break;
        return chunk->zv[(key - chunk->first) * v->base->lanes + row];
    }
    return -INFINITY;
}

static bool all_survive(const ats_cpu_variant *v, const int64_t *keys, int64_t count, int64_t row)
{
    for (int64_t i = 0; i < count; i++) {
        if (keys[i] < 0) return false;
        if (!(v->base->z[keys[i] * v->base->lanes + row] > -INFINITY)) return false;
        if (!(variant_logit(v, keys[i], row) > -INFINITY)) return false;
    }
    return true;
}

/* A list restricted to survivors: the full list where all its keys survive, else scanned anew. */
static ats_code survivors_list(ats_cpu_worker *worker, const ats_cpu_variant *v, which_keys which,
                               const int64_t *full, top_list *list, int64_t *keys, ats_err *err)
{
    const int64_t rows = v->base->problem->n_rows, k = v->base->problem->top_k;
    const double *lse = which == SURVIVORS ? v->lse : v->base->stats.route.lse;
    int64_t wanted = 0;
    double *weights = NULL;
    ats_code rc;
    ATS_TRY(list_new(&worker->arena, v->base, list, err));
    ATS_TRY(ATS_NEW(&worker->arena, k, &weights, err));
    for (int64_t row = 0; row < rows; row++) {
        if (all_survive(v, full + row * k, used_of(full + row * k, k), row))
            list->threshold[row] = INFINITY;
        else
            wanted++;
    }
    memcpy(keys, full, (size_t)(rows * k) * sizeof *keys);
    if (wanted == 0) goto out;
    float *const threshold = list->threshold;
    ATS_TRY(ATS_NEW(&worker->arena, v->base->lanes, &list->threshold, err));
    memcpy(list->threshold, threshold, (size_t)v->base->lanes * sizeof(float));
    scan(v, which, false, list);
    for (int64_t row = 0; row < rows; row++)
        if (threshold[row] < INFINITY)
            write_list(list, row, lse[row], false, keys + row * k, weights, NULL);
out:
    return rc;
}

static ats_code overlaps(ats_cpu_worker *worker, const ats_cpu_variant *v, ats_stats *out,
                         ats_err *err)
{
    const int64_t rows = v->base->problem->n_rows, k = v->base->problem->top_k;
    const int64_t *old_keys = v->base->stats.route.top_index, *new_keys = out->route.top_index;
    int64_t *old_left = NULL, *new_left = NULL;
    top_list old_list, new_list;
    ats_code rc;
    ATS_TRY(ATS_NEW(&worker->arena, rows * k, &old_left, err));
    ATS_TRY(ATS_NEW(&worker->arena, rows * k, &new_left, err));
    ATS_TRY(survivors_list(worker, v, SURVIVORS_IN_BASE, old_keys, &old_list, old_left, err));
    ATS_TRY(survivors_list(worker, v, SURVIVORS, new_keys, &new_list, new_left, err));
    for (int64_t row = 0; row < rows; row++) {
        if (!(v->lse[row] > (double)-INFINITY) ||
            !(v->base->stats.route.lse[row] > (double)-INFINITY))
            continue;
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

/* No key of the region is heavier than its best, so all heavier keys lie outside. */
static ats_code heavier(ats_cpu_worker *worker, const ats_cpu_variant *v, ats_route_stats *out,
                        ats_err *err)
{
    const ats_problem *p = v->base->problem;
    const int64_t lanes = v->base->lanes;
    float *threshold = NULL, *count = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(&worker->arena, lanes, &threshold, err));
    ATS_TRY(ATS_NEW(&worker->arena, lanes, &count, err));
    for (int64_t r = 0; r < p->n_regions; r++) {
        for (int64_t row = 0; row < lanes; row++) {
            const bool wanted = row < p->n_rows && v->lse[row] > (double)-INFINITY;
            threshold[row] = wanted ? (float)out->region_max[row * p->n_regions + r] : INFINITY;
            if (wanted) out->region_heavier[row * p->n_regions + r] = 0;
        }
        for (int64_t i = 0; i < v->n_chunks; i++) {
            const ats_cpu_chunk *chunk = &v->chunks[i];
            if (!any_above(chunk->m, threshold, lanes)) continue;
            memset(count, 0, (size_t)lanes * sizeof *count);
            v->base->ops->count_above(chunk->keys, lanes, chunk->zv, threshold, count);
            for (int64_t row = 0; row < p->n_rows; row++)
                out->region_heavier[row * p->n_regions + r] += (int64_t)count[row];
        }
    }
out:
    return rc;
}

ats_code ats_cpu_scan(ats_cpu_worker *worker, const ats_cpu_variant *v, ats_stats *out,
                      ats_err *err)
{
    const int64_t k = v->base->problem->top_k;
    top_list heavy, payload;
    ats_code rc;
    ATS_TRY(list_new(&worker->arena, v->base, &heavy, err));
    ATS_TRY(list_new(&worker->arena, v->base, &payload, err));
    scan(v, ALL_KEYS, false, &heavy);
    scan(v, ALL_KEYS, true, &payload);
    for (int64_t row = 0; row < v->base->problem->n_rows; row++) {
        if (!(v->lse[row] > (double)-INFINITY)) continue;
        const int64_t at = row * k;
        write_list(&heavy, row, v->lse[row], false, out->route.top_index + at,
                   out->route.top_weight + at, NULL);
        write_list(&payload, row, v->lse[row], true, out->route.topc_index + at,
                   out->route.topc_weight + at, out->route.topc_norm + at);
    }
    ATS_TRY(heavier(worker, v, &out->route, err));
    if (v->edit != NULL) ATS_TRY(overlaps(worker, v, out, err));
out:
    return rc;
}

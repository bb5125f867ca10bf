#include "kernels/cpu.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/rope.h"
#include "kernels/reference.h"

static int64_t chunk_start(int64_t position, int64_t size)
{
    const int64_t within = ((position % size) + size) % size;
    return position - within;
}

/* Legal keys of a row are those whose base position lies in [low, high]; no row: none. */
void ats_cpu_bounds(const ats_cpu_base *base, int64_t query_delta, int64_t delta, int64_t *low,
                    int64_t *high)
{
    const ats_problem *p = base->problem;
    const ats_contract *c = &p->contract;
    for (int64_t row = 0; row < base->lanes; row++) {
        low[row] = INT64_MAX;
        high[row] = INT64_MIN;
        if (row >= p->n_rows) continue;
        const int64_t at = p->q_pos[row] + query_delta;
        int64_t from = INT64_MIN / 2, to = INT64_MAX / 2;
        if (c->causal) to = at;
        if (c->window > 0) {
            from = at - c->window + 1;
            if (!c->causal) to = at + c->window - 1;
        }
        if (c->chunk > 0) {
            const int64_t start = chunk_start(at, c->chunk), last = start + c->chunk - 1;
            from = from > start ? from : start;
            to = to < last ? to : last;
        }
        low[row] = from - delta;
        high[row] = to - delta;
    }
}

/* dst [d, lanes] = transposed rows of src [rows, d], 0 in the padding. */
static void transpose(const float *src, int64_t rows, int64_t d, int64_t lanes, float *dst)
{
    memset(dst, 0, (size_t)(d * lanes) * sizeof *dst);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t j = 0; j < d; j++) dst[j * lanes + row] = src[row * d + j];
}

/* Nothing comes between q.k and the logit but a factor. */
static bool plain_logits(const ats_cpu_base *base)
{
    return base->problem->contract.softcap == 0 && base->plane == NULL && base->slope == NULL;
}

/* The factor that queries take along where nothing else comes between q.k and the logit, else 1. */
static float folded_scale(const ats_cpu_variant *variant)
{
    return plain_logits(variant->base) ? (float)(variant->scale / variant->temperature) : 1.0f;
}

static bool takes_pairs(const ats_cpu_base *base)
{
    return base->few && base->problem->k_dtype == ATS_BF16 && base->wide->pack_pairs != NULL;
}

static ats_code make_view(ats_arena *arena, const ats_cpu_variant *variant, int64_t turn,
                          ats_cpu_view *out, ats_err *err)
{
    const ats_cpu_base *base = variant->base;
    const ats_problem *p = base->problem;
    const ats_edit *edit = variant->edit;
    const float *source =
        edit != NULL && edit->q != NULL ? edit->q + base->first_row * p->d_qk : p->q;
    float *turned = NULL, *q = NULL, *q_at = NULL;
    uint16_t *packed = NULL;
    uint32_t *pairs = NULL;
    int terms = 0;
    const int64_t rows = p->n_rows > ATS_CPU_FEW ? p->n_rows : ATS_CPU_FEW;
    ats_code rc;
    ATS_TRY(ATS_NEW0(arena, rows * p->d_qk, &turned, err));
    ATS_TRY(ATS_NEW(arena, base->lanes * p->d_qk, &q, err));
    ATS_TRY(ATS_NEW(arena, base->lanes, &q_at, err));
    if (base->key_matrix != NULL)
        ATS_TRY(ATS_NEW(arena, ats_matrix_packed(p->d_qk, base->lanes), &packed, err));
    if (takes_pairs(base)) ATS_TRY(ATS_NEW(arena, ATS_CPU_FEW * p->d_qk, &pairs, err));
    if (arena->count_only) goto out;
    ats_rope_move(&p->contract.rope, turn, p->n_rows, p->d_qk, source, turned);
    if (base->key_matrix != NULL) {
        transpose(turned, p->n_rows, p->d_qk, base->lanes, q);
        terms = base->key_matrix->pack_queries(base->lanes, p->d_qk, q, packed);
    }
    if (pairs != NULL && !base->wide->pack_pairs(p->n_rows, p->d_qk, turned, pairs)) pairs = NULL;
    const float scale = folded_scale(variant);
    for (int64_t i = 0; scale != 1.0f && i < p->n_rows * p->d_qk; i++) turned[i] *= scale;
    transpose(turned, p->n_rows, p->d_qk, base->lanes, q);
    for (int64_t row = 0; row < base->lanes; row++)
        q_at[row] = row < p->n_rows ? (float)(p->q_pos[row] + turn - base->origin) : 0.0f;
    *out = (ats_cpu_view){turn, q, turned, q_at, packed, terms, pairs};
out:
    return rc;
}

ats_code ats_cpu_plain_view(ats_arena *arena, const ats_cpu_base *base, ats_cpu_view *out,
                            ats_err *err)
{
    const ats_contract *c = &base->problem->contract;
    const ats_cpu_variant plain = {.base = base, .scale = c->scale, .temperature = c->temperature};
    return make_view(arena, &plain, 0, out, err);
}

ats_code ats_cpu_view_get(ats_cpu_worker *worker, ats_cpu_variant *variant, int64_t turn,
                          ats_cpu_view *out, ats_err *err)
{
    if (turn == 0 && !variant->rescaled) {
        *out = variant->base->plain;
        return ATS_OK;
    }
    for (int i = 0; i < variant->n_views; i++)
        if (variant->views[i].turn == turn) {
            *out = variant->views[i];
            return ATS_OK;
        }
    const ats_code rc = make_view(&worker->arena, variant, turn, out, err);
    if (rc == ATS_OK && variant->n_views < ATS_CPU_VIEWS) variant->views[variant->n_views++] = *out;
    return rc;
}

/* Positions of the keys before their move, and whether every one is legal for every row. */
static bool all_legal(const ats_cpu_base *base, const int64_t *position, int64_t keys,
                      const int64_t *low, const int64_t *high)
{
    int64_t first = INT64_MAX, last = INT64_MIN, from = INT64_MIN, to = INT64_MAX;
    for (int64_t i = 0; i < keys; i++) {
        first = position[i] < first ? position[i] : first;
        last = position[i] > last ? position[i] : last;
    }
    for (int64_t row = 0; row < base->problem->n_rows; row++) {
        from = low[row] > from ? low[row] : from;
        to = high[row] < to ? high[row] : to;
    }
    return from <= first && last <= to;
}

static const float *key_rows(const ats_cpu_worker *worker, const ats_cpu_variant *variant,
                             const ats_cpu_keys *keys)
{
    const ats_problem *p = variant->base->problem;
    if (keys->side) return variant->edit->side.k + keys->first * p->d_qk;
    if (p->k_dtype == ATS_F32) return (const float *)p->k + keys->first * p->d_qk;
    variant->base->ops->widen(p->k_dtype, p->k, keys->first * p->d_qk, keys->keys * p->d_qk,
                              worker->k_panel);
    return worker->k_panel;
}

/* The piece with these keys, looked for from where it is expected. */
static const ats_cpu_piece *find_piece(ats_cpu_pieces *pieces, const ats_cpu_keys *keys)
{
    for (int64_t i = 0; pieces != NULL && i < pieces->count; i++) {
        const int64_t at = (pieces->next + i) % pieces->count;
        const ats_cpu_keys *have = &pieces->at[at].keys;
        if (have->side != keys->side || have->first != keys->first || have->keys != keys->keys ||
            have->at != keys->at || have->delta != keys->delta)
            continue;
        pieces->next = at + 1;
        return &pieces->at[at];
    }
    return NULL;
}

/* Bounds of the rows into the worker's room, where they are not there yet. */
static void find_bounds(ats_cpu_worker *w, const ats_cpu_base *base, int64_t query_delta,
                        int64_t delta)
{
    if (w->bounds_of == base && w->bounds_query == query_delta && w->bounds_delta == delta) return;
    ats_cpu_bounds(base, query_delta, delta, w->low, w->high);
    w->bounds_of = base;
    w->bounds_query = query_delta;
    w->bounds_delta = delta;
}

/* q.k for few rows: summed across a vector, or with a row in each lane where those would be too
 * many sums, a few keys at a time. */
static bool few_products(const ats_cpu_worker *w, const ats_cpu_variant *variant, ats_dtype dtype,
                         const void *words, const ats_cpu_keys *keys, const ats_cpu_view *view,
                         float *z)
{
    const ats_cpu_base *base = variant->base;
    enum { AT_A_TIME = 12 };
    const ats_problem *p = base->problem;
    const int64_t d = p->d_qk, line = 64;
    const ats_cpu_ahead *ahead = &w->values_ahead;
    if (view->pairs != NULL && dtype == ATS_BF16) {
        base->wide->dot_pairs(keys->keys, p->n_rows, d, words, keys->first, view->pairs,
                              folded_scale(variant), z, ahead);
        return true;
    }
    if (p->n_rows <= ATS_CPU_FEW / 2)
        return base->wide->dot(keys->keys, p->n_rows, d, dtype, words, keys->first, view->rows, z,
                               ahead);
    const int64_t steps = (keys->keys + AT_A_TIME - 1) / AT_A_TIME;
    const int64_t each = (ahead->bytes / line + steps) / steps;
    const char *next = ahead->from;
    for (int64_t i = 0; i < keys->keys; i += AT_A_TIME) {
        const int64_t left = keys->keys - i, count = left < AT_A_TIME ? left : AT_A_TIME;
        base->wide->widen(dtype, words, (keys->first + i) * d, count * d, w->k_panel);
        for (int64_t j = 0; ahead->bytes > 0 && j < each; j++, next += line)
            __builtin_prefetch(next, 0, 2);
        base->ops->gemm(count, base->lanes, d, w->k_panel, d, 1, view->q, base->lanes,
                        z + i * base->lanes, base->lanes);
    }
    return true;
}

ats_code ats_cpu_key_logits(ats_cpu_worker *worker, ats_cpu_variant *variant,
                            const ats_cpu_keys *keys, float *z, ats_err *err)
{
    const ats_cpu_base *base = variant->base;
    const ats_problem *p = base->problem;
    const int64_t lanes = base->lanes;
    const int64_t query_delta = variant->edit != NULL ? variant->edit->query_delta : 0;
    const int64_t at = keys->side ? keys->at : keys->first; /* base row, -1: inserted */
    const ats_cpu_piece *piece = find_piece(worker->pieces, keys);
    ats_cpu_view view;
    if (worker->pieces != NULL) worker->pieces->found = piece;
    if (piece != NULL) {
        worker->pieces->found_z = z;
        memcpy(z, piece->z, (size_t)(keys->keys * lanes) * sizeof *z);
        return ATS_OK;
    }
    ats_range leaf;
    const ats_cpu_turned *turned = ats_cpu_turns_at(variant, keys, &leaf);
    worker->turned = turned != NULL && keys->keys == leaf.stop - leaf.start ? turned : NULL;
    worker->turned_z = z;
    if (turned != NULL) {
        memcpy(z, turned->z + (keys->first - leaf.start) * lanes,
               (size_t)(keys->keys * lanes) * sizeof *z);
        return ATS_OK;
    }
    ats_code rc = ats_cpu_view_get(worker, variant, query_delta - keys->delta, &view, err);
    if (rc != ATS_OK) return rc;
    if (!keys->side) ats_problem_use_k(p, keys->first, keys->keys);
    const int64_t *position =
        at >= 0 ? p->key_pos + at : variant->edit->side.position + keys->first;
    const float *plane = base->plane != NULL && at >= 0 ? base->plane + at * lanes : NULL;
    const ats_dtype dtype = keys->side ? ATS_F32 : p->k_dtype;
    const void *words = keys->side ? variant->edit->side.k : p->k;
    if (base->key_matrix != NULL && !keys->side)
        base->key_matrix->dot(keys->keys, lanes, p->d_qk,
                              (const uint16_t *)p->k + keys->first * p->d_qk, view.packed,
                              view.terms, folded_scale(variant), worker->key_words, z);
    else if (!base->few || !few_products(worker, variant, dtype, words, keys, &view, z))
        base->ops->gemm(keys->keys, lanes, p->d_qk, key_rows(worker, variant, keys), p->d_qk, 1,
                        view.q, lanes, z, lanes);
    if (!plain_logits(base)) {
        float *k_at = worker->sums; /* at most one leaf of floats, free until the state is taken */
        for (int64_t i = 0; i < keys->keys; i++) k_at[i] = (float)(position[i] - base->origin);
        const ats_cpu_logits args = {.keys = keys->keys,
                                     .lanes = lanes,
                                     .scale = (float)variant->scale,
                                     .cap = (float)base->problem->contract.softcap,
                                     .inverse_temperature = (float)(1.0 / variant->temperature),
                                     .slope = base->slope,
                                     .q_at = view.q_at,
                                     .k_at = k_at,
                                     .plane = plane};
        base->ops->logits(&args, z);
    }
    find_bounds(worker, base, query_delta, keys->delta);
    if (plane != NULL || !all_legal(base, position, keys->keys, worker->low, worker->high))
        base->ops->mask(keys->keys, lanes, position, worker->low, worker->high, plane, z);
    return ATS_OK;
}

ats_code ats_cpu_leaf_fetch(const ats_cpu_base *base, int64_t leaf, ats_err *err)
{
    if (base->z_there == NULL || __atomic_load_n(&base->z_there[leaf], __ATOMIC_ACQUIRE) != 0)
        return ATS_OK;
    return base->device->logits(base->device->ctx, leaf, err);
}

ats_code ats_cpu_leaf_logits(ats_cpu_worker *worker, ats_cpu_variant *plain, int64_t leaf,
                             const float **out, ats_err *err)
{
    const ats_cpu_base *base = plain->base;
    const ats_range range = base->tree.leaves[leaf];
    const ats_cpu_keys keys = {.first = range.start, .keys = range.stop - range.start, .at = -1};
    *out = base->z != NULL ? base->z + range.start * base->lanes : worker->z;
    if (base->z != NULL) return ats_cpu_leaf_fetch(base, leaf, err);
    return ats_cpu_key_logits(worker, plain, &keys, worker->z, err);
}

void ats_cpu_base_values(const ats_cpu_base *base, int64_t first, int64_t keys, float *panel)
{
    const ats_problem *p = base->problem;
    ats_problem_use_v(p, first, keys);
    if (p->d_v == base->width) {
        base->ops->widen(p->v_dtype, p->v, first * p->d_v, keys * p->d_v, panel);
        return;
    }
    for (int64_t i = 0; i < keys; i++) {
        float *row = panel + i * base->width;
        base->ops->widen(p->v_dtype, p->v, (first + i) * p->d_v, p->d_v, row);
        memset(row + p->d_v, 0, (size_t)(base->width - p->d_v) * sizeof *row);
    }
}

/* In double, where squares leave the range of float. False: the norm leaves it too. */
static bool exact_norm(ats_dtype dtype, const void *rows, int64_t first, int64_t width, float *norm,
                       float *log_norm)
{
    double squares = 0;
    for (int64_t j = 0; j < width; j++) {
        const double x = (double)ats_load(dtype, rows, first + j);
        squares += x * x;
    }
    if (!(sqrt(squares) <= (double)FLT_MAX)) return false;
    *norm = (float)sqrt(squares);
    *log_norm = squares > 0 ? (float)(0.5 * log(squares)) : -INFINITY;
    return true;
}

int64_t ats_cpu_find_norms(const ats_cpu_base *base, int64_t keys, ats_dtype dtype,
                           const void *rows, int64_t first, float *norm, float *log_norm,
                           uint8_t *bad)
{
    int64_t n_bad = 0;
    base->wide->norms(keys, base->width, dtype, rows, first, norm, log_norm);
    memset(bad, 0, (size_t)keys);
    for (int64_t i = 0; i < keys; i++) {
        if (!isnan(norm[i]) ||
            exact_norm(dtype, rows, (first + i) * base->width, base->width, &norm[i], &log_norm[i]))
            continue;
        norm[i] = 0;
        log_norm[i] = -INFINITY;
        bad[i] = 1;
        n_bad++;
    }
    return n_bad;
}

int64_t ats_cpu_value_norms(const ats_cpu_base *base, int64_t keys, float *panel, float *norm,
                            float *log_norm, uint8_t *bad)
{
    const int64_t n_bad = ats_cpu_find_norms(base, keys, ATS_F32, panel, 0, norm, log_norm, bad);
    for (int64_t i = 0; n_bad > 0 && i < keys; i++)
        if (bad[i]) memset(panel + i * base->width, 0, (size_t)base->width * sizeof *panel);
    return n_bad;
}

void ats_cpu_clear_bad(const ats_cpu_base *base, int64_t leaf, int64_t first, int64_t keys,
                       float *panel)
{
    for (int64_t i = 0; base->leaf_bad[leaf] && i < keys; i++)
        if (base->v_bad[first + i])
            memset(panel + i * base->width, 0, (size_t)base->width * sizeof *panel);
}

ats_code ats_cpu_check(const ats_cpu_variant *variant, const float *z, int64_t keys,
                       const uint8_t *bad, ats_err *err)
{
    const ats_cpu_base *base = variant->base;
    bool suspect = base->ops->broken(keys * base->lanes, true, z);
    for (int64_t i = 0; i < keys; i++) suspect |= bad[i] != 0;
    if (!suspect) return ATS_OK;
    for (int64_t row = 0; row < base->problem->n_rows; row++)
        for (int64_t i = 0; i < keys; i++) {
            const float x = z[i * base->lanes + row];
            if (x == -INFINITY || (isfinite(x) && bad[i] == 0)) continue;
            /* The definition finds the tensor and the place, and says them. */
            const int64_t at = base->first_row + row;
            const ats_code rc = ats_reference_row(base->whole, variant->edit, at, NULL, NULL, NULL,
                                                  NULL, NULL, err);
            if (rc != ATS_OK) return rc;
            return ats_fail(
                err, ATS_E_INPUT,
                "a logit of query row %lld (scale %g), or the norm of a value that it sees, "
                "leaves the range of float; use the reference backend",
                (long long)at, variant->scale);
        }
    return ATS_OK;
}

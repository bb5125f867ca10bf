#include "kernels/cpu.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "kernels/cpu_top.h"
#include "kernels/stats.h"

static int64_t round_up(int64_t count, int64_t multiple)
{
    return (count + multiple - 1) / multiple * multiple;
}

static ats_code new_sums(ats_arena *arena, const ats_cpu_base *base, ats_cpu_state *out,
                         ats_err *err)
{
    const int64_t lanes = base->lanes;
    double *wide = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, 5 * lanes, &wide, err));
    const int64_t rows = base->few ? ATS_CPU_FEW : base->problem->n_rows;
    ATS_TRY(ATS_NEW(arena, rows * base->width, &out->o, err));
    if (wide == NULL) goto out;
    out->l = wide;
    out->e = wide + lanes;
    out->s2 = wide + 2 * lanes;
    out->a = wide + 3 * lanes;
    out->n = wide + 4 * lanes;
out:
    return rc;
}

static ats_code new_maxima(ats_arena *arena, const ats_cpu_base *base, ats_cpu_state *out,
                           ats_err *err)
{
    const ats_code rc = ATS_NEW(arena, 2 * base->lanes, &out->m, err);
    if (rc == ATS_OK && out->m != NULL) out->mc = out->m + base->lanes;
    return rc;
}

ats_code ats_cpu_state_new(ats_arena *arena, const ats_cpu_base *base, ats_cpu_state *out,
                           ats_err *err)
{
    ats_cpu_state state = {.m = NULL};
    ats_code rc;
    ATS_TRY(new_maxima(arena, base, &state, err));
    ATS_TRY(new_sums(arena, base, &state, err));
    *out = state;
out:
    return rc;
}

void ats_cpu_state_copy(const ats_cpu_base *base, const ats_cpu_state *from,
                        const ats_cpu_state *to)
{
    const size_t lanes = (size_t)base->lanes;
    memcpy(to->m, from->m, lanes * sizeof *to->m);
    memcpy(to->mc, from->mc, lanes * sizeof *to->mc);
    memcpy(to->l, from->l, 5 * lanes * sizeof *to->l); /* l, e, s2, a, n */
    memcpy(to->o, from->o, (size_t)(base->problem->n_rows * base->width) * sizeof *to->o);
}

/* Everything but the value sums; the weights stay in worker->p. */
static bool fill_sums(const ats_cpu_base *base, ats_cpu_worker *worker, int64_t keys,
                      const float *z, const float *v_norm, const float *log_norm,
                      const ats_cpu_state *out)
{
    const int64_t lanes = base->lanes;
    const ats_cpu_sums sums = {.m = out->m, .mc = out->mc, .sums = worker->sums};
    const bool finite = base->ops->state(keys, lanes, z, v_norm, log_norm, worker->p, &sums);
    /* l, e, s2, a, n lie one after the other in both. */
    for (int64_t i = 0; i < 5 * lanes; i++) out->l[i] = (double)worker->sums[i];
    return finite;
}

/* Sums of the stored values of a leaf with the weights in worker->p, by matrix units. */
static void mix_leaf(const ats_cpu_base *base, ats_cpu_worker *worker, int64_t leaf, float *o)
{
    const ats_problem *p = base->problem;
    const ats_range keys = base->tree.leaves[leaf];
    const int64_t count = keys.stop - keys.start, slot = leaf % (1 << ATS_CPU_GROUP);
    uint16_t *packed = worker->value_words[slot];
    ats_problem_use_v(p, keys.start, count);
    if (worker->packed_leaf[slot] != leaf + 1)
        base->value_matrix->pack_values(count, p->d_v, (const uint16_t *)p->v + keys.start * p->d_v,
                                        packed);
    worker->packed_leaf[slot] = leaf + 1;
    base->value_matrix->mix(count, p->n_rows, base->lanes, base->width, worker->p, packed,
                            worker->weight_words, o);
}

bool ats_cpu_leaf_fill(const ats_cpu_base *base, ats_cpu_worker *worker, int64_t leaf,
                       const float *z, const float *values, const ats_cpu_state *out)
{
    const ats_problem *p = base->problem;
    const ats_range keys = base->tree.leaves[leaf];
    const int64_t count = keys.stop - keys.start;
    const bool finite = fill_sums(base, worker, count, z, base->v_norm + keys.start,
                                  base->log_norm + keys.start, out);
    if (values == NULL && base->value_matrix != NULL) {
        mix_leaf(base, worker, leaf, out->o);
        return finite;
    }
    if (values == NULL) {
        if (base->wide->mix(count, p->n_rows, base->width, p->v_dtype, p->v, keys.start, worker->p,
                            out->o, &worker->keys_ahead))
            return finite;
        ats_cpu_base_values(base, keys.start, count, worker->v_panel);
        values = worker->v_panel;
    }
    base->wide->gemm(p->n_rows, base->width, count, worker->p, 1, base->lanes, values, base->width,
                     out->o, base->width);
    return finite;
}

bool ats_cpu_state_fill(const ats_cpu_base *base, ats_cpu_worker *worker, int64_t leaf,
                        int64_t keys, const float *z, const float *values, const float *v_norm,
                        const float *log_norm, const ats_cpu_state *out)
{
    const ats_cpu_pieces *pieces = worker->pieces;
    if (pieces != NULL && pieces->found != NULL && pieces->found_z == z &&
        pieces->found->keys.keys == keys && pieces->found->state.m != NULL) {
        ats_cpu_state_copy(base, &pieces->found->state, out);
        return true;
    }
    if (worker->turned != NULL && worker->turned_z == z && values == worker->v_panel) {
        ats_cpu_state_copy(base, &worker->turned->state, out);
        return true;
    }
    const bool finite = fill_sums(base, worker, keys, z, v_norm, log_norm, out);
    if (leaf >= 0 && base->value_matrix != NULL && !base->leaf_bad[leaf]) {
        mix_leaf(base, worker, leaf, out->o);
        return finite;
    }
    base->wide->gemm(base->problem->n_rows, base->width, keys, worker->p, 1, base->lanes, values,
                     base->width, out->o, base->width);
    return finite;
}

/* Bias, keep mask and segments as one plane; keys that a row can never see are -inf. */
static void fill_plane(const ats_cpu_base *base, float *plane)
{
    const ats_problem *p = base->problem;
    for (int64_t i = 0; i < p->n_keys; i++)
        for (int64_t row = 0; row < base->lanes; row++) {
            float x = 0.0f;
            if (row < p->n_rows) {
                const int64_t probe = (base->first_row + row) % p->n_probes;
                if (p->bias != NULL) x = p->bias[row][i];
                if (x <= ATS_BIAS_HIDES) x = -INFINITY;
                const bool kept = p->keep == NULL || p->keep[probe * p->n_keys + i] != 0;
                const bool own = p->key_segment == NULL || p->key_segment[i] == p->q_segment[row];
                if (!kept || !own) x = -INFINITY;
            }
            plane[i * base->lanes + row] = x;
        }
}

/* What belongs to keys alone, in the first tile and copied to the others. */
static ats_code key_arrays(ats_arena *arena, ats_cpu_base *base, ats_err *err)
{
    const int64_t n = base->problem->n_keys;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, n, &base->v_norm, err));
    ATS_TRY(ATS_NEW(arena, n, &base->log_norm, err));
    ATS_TRY(ATS_NEW(arena, n, &base->v_bad, err));
    ATS_TRY(ATS_NEW(arena, base->tree.n_leaves, &base->leaf_bad, err));
out:
    return rc;
}

static ats_code row_arrays(ats_arena *arena, ats_cpu_base *base, bool logits, ats_err *err)
{
    const ats_problem *p = base->problem;
    ats_code rc = ATS_OK;
    if (p->bias != NULL || p->keep != NULL || p->key_segment != NULL)
        ATS_TRY(ATS_NEW(arena, p->n_keys * base->lanes, &base->plane, err));
    if (p->alibi_slope != NULL) ATS_TRY(ATS_NEW0(arena, base->lanes, &base->slope, err));
    if (logits) ATS_TRY(ATS_NEW(arena, p->n_keys * base->lanes, &base->z, err));
    ATS_TRY(ATS_NEW0(arena, p->n_regions, &base->aimed, err));
    ATS_TRY(ATS_NEW(arena, p->n_regions * base->lanes, &base->aim, err));
    ATS_TRY(ATS_NEW0(arena, p->n_regions * base->lanes, &base->heavier, err));
    ATS_TRY(ATS_NEW0(arena, base->tree.n_nodes, &base->nodes, err));
    if (arena->count_only) goto out;
    if (base->plane != NULL) fill_plane(base, base->plane);
    for (int64_t row = 0; base->slope != NULL && row < p->n_rows; row++)
        base->slope[row] = p->alibi_slope[row];
out:
    return rc;
}

/* What the base's own measurement fills. The lists hold spare entries, so that a variant that hides
 * some of the best keys still finds top_k of them. */
static ats_code measured_arrays(ats_arena *arena, ats_cpu_base *base, bool spare, ats_err *err)
{
    const ats_problem *p = base->problem;
    const int64_t long_list = spare ? 2 * p->top_k + 8 : p->top_k;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, p->n_rows, &base->norm, err));
    ATS_TRY(ATS_NEW(arena, base->lanes, &base->peak, err));
    ATS_TRY(ATS_NEW(arena, base->lanes, &base->log_sum, err));
    ATS_TRY(ATS_NEW0(arena, base->tree.n_nodes, &base->weight, err));
    ATS_TRY(ats_cpu_top_new(arena, base, long_list, &base->heavy, err));
    ATS_TRY(ats_cpu_top_new(arena, base, long_list, &base->payload, err));
out:
    return rc;
}

/* Marked nodes in full; of other leaves the maxima. */
static ats_code node_arrays(ats_arena *arena, ats_cpu_base *base, const uint8_t *mark, ats_err *err)
{
    ats_code rc = ATS_OK;
    for (int64_t i = 0; i < base->tree.n_nodes; i++) {
        ats_cpu_state node = {.m = NULL};
        double *weight = NULL;
        const bool state = (mark[i] & ATS_CPU_MARK_STATE) != 0;
        if (!state && i >= base->tree.n_leaves) continue;
        ATS_TRY(new_maxima(arena, base, &node, err));
        if (state) {
            ATS_TRY(new_sums(arena, base, &node, err));
            ATS_TRY(ATS_NEW(arena, base->lanes, &weight, err));
        }
        if (arena->count_only) continue;
        base->nodes[i] = node;
        base->weight[i] = weight;
    }
out:
    return rc;
}

void ats_cpu_base_weights(ats_cpu_base *base, const ats_cpu_norm *norm)
{
    for (int64_t row = 0; row < base->lanes; row++) {
        const bool real = row < base->problem->n_rows;
        if (real) base->norm[row] = norm[row];
        base->peak[row] = real ? norm[row].peak : (double)-INFINITY;
        base->log_sum[row] = real ? norm[row].log_sum : 0;
    }
    for (int64_t i = 0; i < base->tree.n_nodes; i++)
        if (base->weight[i] != NULL)
            base->ops->exponentials(base->lanes, base->nodes[i].m, base->peak, base->log_sum,
                                    base->weight[i]);
}

/* Rows [first, first + rows) as a problem; n_probes stays that of the whole. */
static ats_problem rows_of(const ats_problem *p, int64_t first, int64_t rows)
{
    ats_problem tile = *p;
    tile.n_rows = rows;
    tile.q = p->q + first * p->d_qk;
    tile.q_pos = p->q_pos + first;
    if (p->q_segment != NULL) tile.q_segment = p->q_segment + first;
    if (p->sink != NULL) tile.sink = p->sink + first;
    if (p->alibi_slope != NULL) tile.alibi_slope = p->alibi_slope + first;
    if (p->bias != NULL) tile.bias = p->bias + first;
    return tile;
}

/* Nodes that are always there: those that other workers merge further, and what makes up roots. */
static void mark_upper(const ats_key_tree *tree, int block_level, uint8_t *mark)
{
    ats_cover cover[ATS_MAX_COVER];
    for (int64_t r = 0; r < tree->n_runs; r++) {
        const ats_run *run = &tree->runs[r];
        for (int level = block_level; run->n_leaves >> level > 0; level++)
            for (int64_t i = 0; i < run->n_leaves >> level; i++)
                mark[ats_key_tree_node(run, level, i)] |= ATS_CPU_MARK_STATE;
        const int64_t count = ats_key_tree_root_cover(tree, r, cover);
        for (int64_t i = 0; i < count; i++) mark[cover[i].node] |= ATS_CPU_MARK_STATE;
        mark[run->root] |= ATS_CPU_MARK_STATE;
    }
}

static ats_code mark_nodes(const ats_cpu_base *base, int block_level, const ats_edit *edits,
                           int64_t n_edits, uint8_t *mark, ats_err *err)
{
    ats_arena room;
    ats_code rc = ATS_OK;
    ats_arena_init(&room, false);
    mark_upper(&base->tree, block_level, mark);
    for (int64_t i = 0; i < n_edits; i++) {
        ats_arena_reset(&room);
        /* What is wrong with an edit is said when its turn comes. */
        if (ats_edit_check(base->whole, &edits[i], NULL) != ATS_OK) continue;
        ATS_TRY(ats_cpu_variant_mark(&room, base, &edits[i], mark, err));
    }
out:
    ats_arena_fini(&room);
    return rc;
}

/* Large enough that merging alone pays, small enough that every thread has a few. */
static int block_level(const ats_key_tree *tree)
{
    int level = ATS_CPU_LEVELS - 1;
    while (level > 0 && tree->n_leaves >> level < 4 * (int64_t)ats_threads()) level--;
    return level;
}

static ats_code tile_layout(ats_arena *arena, const ats_problem *whole, int64_t first,
                            const ats_cpu_needs *needs, const ats_cpu_base *shared,
                            ats_cpu_base *out, ats_err *err)
{
    ats_code rc;
    const bool few = !needs->wide && whole->n_rows <= ATS_CPU_FEW;
    const bool stored_width = whole->d_v % ATS_CPU_LANES == 0;
    const ats_cpu_matrix *matrix = few || needs->wide ? NULL : needs->ops->matrix;
    ats_cpu_base base = {.problem = out->problem,
                         .whole = whole,
                         .first_row = first,
                         .ops = few && needs->ops->narrow != NULL ? needs->ops->narrow : needs->ops,
                         .wide = needs->ops,
                         .key_matrix = whole->k_dtype == ATS_BF16 ? matrix : NULL,
                         .value_matrix = stored_width && whole->v_dtype == ATS_BF16 ? matrix : NULL,
                         .few = few,
                         .lanes = round_up(out->problem->n_rows, few ? ATS_CPU_FEW : ATS_CPU_LANES),
                         .width = round_up(whole->d_v, ATS_CPU_LANES),
                         .tree = out->tree,
                         .origin = whole->n_keys > 0 ? whole->key_pos[0] : 0};
    if (shared == NULL) {
        ATS_TRY(key_arrays(arena, &base, err));
    } else {
        base.v_norm = shared->v_norm;
        base.log_norm = shared->log_norm;
        base.v_bad = shared->v_bad;
        base.leaf_bad = shared->leaf_bad;
    }
    ATS_TRY(row_arrays(arena, &base, needs->logits, err));
    ATS_TRY(measured_arrays(arena, &base, needs->logits, err));
    ATS_TRY(ats_cpu_plain_view(arena, &base, &base.plain, err));
    *out = base;
out:
    return rc;
}

ats_code ats_cpu_tiles_layout(ats_arena *arena, ats_arena *small, const ats_problem *problem,
                              const ats_cpu_needs *needs, ats_cpu_tiles *out, ats_err *err)
{
    ats_arena room;
    ats_problem *rows = NULL;
    uint8_t *mark = NULL;
    ats_key_tree tree;
    ats_code rc;
    ats_arena_init(&room, false);
    const int64_t n = (problem->n_rows + ATS_CPU_TILE - 1) / ATS_CPU_TILE;
    const int64_t each = n > 0 ? round_up((problem->n_rows + n - 1) / n, ATS_CPU_LANES) : 0;
    ats_cpu_tiles tiles = {.n = n};
    ATS_TRY(ats_key_tree_make(small, problem, &tree, err));
    tiles.block_level = block_level(&tree);
    ATS_TRY(ATS_NEW0(small, n, &tiles.at, err));
    ATS_TRY(ATS_NEW0(small, n, &rows, err));
    ATS_TRY(ATS_NEW0(&room, tree.n_nodes, &mark, err));
    ATS_TRY(ATS_NEW(small, tree.n_leaves, &tiles.wanted, err));
    ATS_TRY(ats_stats_new(arena, problem, false, &tiles.stats, err));
    for (int64_t t = 0; t < n; t++) {
        const int64_t first = t * each, left = problem->n_rows - first;
        rows[t] = rows_of(problem, first, left < each ? left : each);
        tiles.at[t] = (ats_cpu_base){.problem = &rows[t], .tree = tree};
        ATS_TRY(tile_layout(arena, problem, first, needs, t > 0 ? &tiles.at[0] : NULL, &tiles.at[t],
                            err));
        if (t == 0 && arena->count_only)
            memset(mark, ATS_CPU_MARK_STATE, (size_t)tree.n_nodes);
        else if (t == 0)
            ATS_TRY(mark_nodes(&tiles.at[0], tiles.block_level, needs->edits, needs->n_edits, mark,
                               err));
        ATS_TRY(node_arrays(arena, &tiles.at[t], mark, err));
        ats_stats_rows(problem, &tiles.stats, first, &tiles.at[t].stats);
    }
    for (int64_t i = 0; i < tree.n_leaves; i++)
        tiles.wanted[i] = (mark[i] & ATS_CPU_MARK_LOGITS) != 0;
    *out = tiles;
out:
    ats_arena_fini(&room);
    return rc;
}

static ats_code matrix_rooms(ats_arena *arena, const ats_cpu_base *base, ats_cpu_worker *out,
                             ats_err *err)
{
    const int64_t leaf = base->tree.leaf, d = ats_matrix_blocks(base->problem->d_qk);
    ats_code rc = ATS_OK;
    if (base->key_matrix != NULL)
        ATS_TRY(ATS_NEW(arena, ATS_MATRIX_BLOCK * ATS_MATRIX_BLOCK * d, &out->key_words, err));
    if (base->value_matrix == NULL) goto out;
    ATS_TRY(ATS_NEW(arena, ats_matrix_packed(leaf, base->lanes), &out->weight_words, err));
    for (int i = 0; i < 1 << ATS_CPU_GROUP; i++)
        ATS_TRY(ATS_NEW(arena, leaf * base->width, &out->value_words[i], err));
out:
    return rc;
}

static ats_code worker_lists(ats_arena *arena, const ats_cpu_tiles *tiles, ats_cpu_worker *out,
                             ats_err *err)
{
    ats_code rc;
    ATS_TRY(ATS_NEW0(arena, tiles->n, &out->heavy, err));
    ATS_TRY(ATS_NEW0(arena, tiles->n, &out->payload, err));
    ATS_TRY(ATS_NEW0(arena, tiles->n, &out->heavier, err));
    for (int64_t t = 0; t < tiles->n; t++) {
        const ats_cpu_base *base = &tiles->at[t];
        float *heavier = NULL;
        ATS_TRY(ATS_NEW0(arena, base->problem->n_regions * base->lanes, &heavier, err));
        if (out->heavier != NULL) out->heavier[t] = heavier;
        ats_cpu_pool heavy, payload;
        ATS_TRY(ats_cpu_pool_new(arena, base, base->heavy.limit, &heavy, err));
        ATS_TRY(ats_cpu_pool_new(arena, base, base->payload.limit, &payload, err));
        if (arena->count_only) continue;
        out->heavy[t] = heavy;
        out->payload[t] = payload;
    }
out:
    return rc;
}

/* Nodes of the block level and above are stored, so that there is no room for them. */
static ats_code worker_rooms(ats_arena *arena, const ats_cpu_tiles *tiles, ats_cpu_worker *out,
                             ats_err *err)
{
    ats_code rc;
    ATS_TRY(ATS_NEW0(arena, tiles->n, &out->rooms, err));
    for (int64_t t = 0; t < tiles->n; t++)
        for (int i = t == 0 ? 0 : ATS_CPU_GROUP; i < tiles->block_level; i++) {
            ats_cpu_state left, right;
            ATS_TRY(ats_cpu_state_new(arena, &tiles->at[t], &left, err));
            ATS_TRY(ats_cpu_state_new(arena, &tiles->at[t], &right, err));
            if (arena->count_only) continue;
            out->rooms[t].left[i] = left;
            out->rooms[t].right[i] = right;
        }
out:
    return rc;
}

ats_code ats_cpu_worker_layout(ats_arena *arena, const ats_cpu_tiles *tiles, ats_cpu_worker *out,
                               ats_err *err)
{
    const ats_cpu_base *base = &tiles->at[0]; /* the widest */
    const int64_t leaf = base->tree.leaf, lanes = base->lanes;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, leaf * base->problem->d_qk, &out->k_panel, err));
    ATS_TRY(ATS_NEW(arena, leaf * base->width, &out->v_panel, err));
    ATS_TRY(ATS_NEW(arena, leaf * base->width, &out->w_panel, err));
    ATS_TRY(ATS_NEW(arena, leaf * base->width, &out->d_panel, err));
    ATS_TRY(ATS_NEW(arena, leaf * lanes, &out->p, err));
    ATS_TRY(ATS_NEW(arena, 5 * lanes > leaf ? 5 * lanes : leaf, &out->sums, err));
    ATS_TRY(ATS_NEW(arena, lanes, &out->low, err));
    ATS_TRY(ATS_NEW(arena, lanes, &out->high, err));
    ATS_TRY(ATS_NEW(arena, 2 * leaf * lanes, &out->hits, err));
    ATS_TRY(ATS_NEW(arena, leaf * lanes, &out->z, err));
    ATS_TRY(matrix_rooms(arena, base, out, err));
    ATS_TRY(worker_rooms(arena, tiles, out, err));
    ATS_TRY(worker_lists(arena, tiles, out, err));
    ATS_TRY(ats_stats_room(arena, base->whole, true, &out->stats, err));
out:
    return rc;
}

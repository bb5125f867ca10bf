/* The base pass: workers take subtrees of the key tree, compute their leaves and merge them; what
 * lies above is merged at the end. Every node is the merge of its two children, whoever does it. */
#include "kernels/cpu.h"

#include <string.h>

#include "base/parallel.h"
#include "kernels/cpu_top.h"

/* Leaves [first, first + count) of a run, an aligned subtree or the rest of the run. */
typedef struct block {
    int64_t run, first, count;
} block;

typedef struct leaf_pass {
    const ats_cpu_tiles *tiles;
    ats_cpu_worker *workers;
    ats_cpu_variant *plain; /* [threads, tiles] the base as a variant, for its queries */
    int64_t n_blocks;
    block *blocks;
} leaf_pass;

/* Lists of the best keys so far take what the leaf has to offer. */
static void offer_leaf(ats_cpu_worker *w, const ats_cpu_base *base, int64_t tile, ats_range keys,
                       const float *z, const ats_cpu_state *node)
{
    const int64_t count = keys.stop - keys.start;
    const float *log_norm = base->log_norm + keys.start;
    ats_cpu_pool *heavy = &w->heavy[tile], *payload = &w->payload[tile];
    const float *const bound[] = {node->m, node->mc};
    const float *const threshold[] = {heavy->threshold, payload->threshold};
    uint16_t *const hits[] = {w->hits, w->hits + base->tree.leaf * base->lanes};
    int64_t n[2];
    base->ops->above(count, base->lanes, z, log_norm, bound, threshold, hits, n);
    ats_cpu_pool_offer(heavy, keys.start, n[0], hits[0], z, base->lanes, NULL);
    ats_cpu_pool_offer(payload, keys.start, n[1], hits[1], z, base->lanes, log_norm);
}

/* Keys heavier than the best of a small region. */
static void count_leaf(ats_cpu_worker *w, const ats_cpu_base *base, int64_t tile, int64_t keys,
                       const float *z, const ats_cpu_state *node)
{
    const int64_t lanes = base->lanes;
    for (int64_t r = 0; r < base->problem->n_regions; r++)
        if (base->aimed[r] && base->ops->any_above(lanes, node->m, base->aim + r * lanes))
            base->ops->count_above(keys, lanes, z, base->aim + r * lanes,
                                   w->heavier[tile] + r * lanes);
}

/* The sum of a row is finite where all logits of its legal keys are. */
static bool finite_sums(const ats_cpu_base *base, const ats_cpu_state *state)
{
    for (int64_t row = 0; row < base->problem->n_rows; row++)
        if (!isfinite(state->l[row])) return false;
    return true;
}

/* A leaf whose logits and state a device made; lists of the best keys too, where it keeps logits.
 */
static ats_code given_leaf(const leaf_pass *pass, int64_t tile, int64_t leaf,
                           ats_cpu_worker *worker, const ats_cpu_variant *plain,
                           const ats_cpu_state *out, ats_err *err)
{
    const ats_cpu_base *base = &pass->tiles->at[tile];
    const ats_range range = base->tree.leaves[leaf];
    const float *z = base->z + range.start * base->lanes;
    const uint8_t *bad = base->v_bad + range.start;
    const int64_t keys = range.stop - range.start;
    const bool any_bad = memchr(bad, 1, (size_t)keys) != NULL;
    if (tile == 0) base->leaf_bad[leaf] = any_bad;
    ats_cpu_state_copy(base, &base->given[leaf], out);
    if (base->z_there != NULL && !any_bad && finite_sums(base, out)) return ATS_OK;
    ats_code rc = ats_cpu_leaf_fetch(base, leaf, err);
    if (rc == ATS_OK) rc = ats_cpu_check(plain, z, keys, bad, err);
    if (rc == ATS_OK && base->z_there == NULL) offer_leaf(worker, base, tile, range, z, out);
    return rc;
}

/* Values of a leaf, bad rows 0, or NULL: as they are stored; norms, which the first tile finds. */
static const float *leaf_values(const ats_cpu_base *base, int64_t tile, int64_t leaf,
                                ats_cpu_worker *worker)
{
    const ats_problem *p = base->problem;
    const ats_range range = base->tree.leaves[leaf];
    const int64_t start = range.start, keys = range.stop - start;
    const bool whole = p->d_v == base->width, floats = whole && p->v_dtype == ATS_F32;
    const bool words = whole && !floats && (base->few || base->value_matrix != NULL);
    const bool stored = floats || words;
    float *norm = base->v_norm + start, *log_norm = base->log_norm + start;
    uint8_t *bad = base->v_bad + start;
    ats_problem_use_v(p, start, keys);
    if (!stored) ats_cpu_base_values(base, start, keys, worker->v_panel);
    if (tile == 0 && stored)
        base->leaf_bad[leaf] =
            ats_cpu_find_norms(base, keys, p->v_dtype, p->v, start, norm, log_norm, bad) > 0;
    else if (tile == 0)
        base->leaf_bad[leaf] =
            ats_cpu_find_norms(base, keys, ATS_F32, worker->v_panel, 0, norm, log_norm, bad) > 0;
    if (!base->leaf_bad[leaf] && stored)
        return words || base->few ? NULL : (const float *)p->v + start * p->d_v;
    if (stored) ats_cpu_base_values(base, start, keys, worker->v_panel);
    ats_cpu_clear_bad(base, leaf, start, keys, worker->v_panel);
    return worker->v_panel;
}

/* With few rows memory is what is waited for: the leaf's values are fetched while its keys are at
 * work, and the next leaf's keys while its values are. */
static void look_ahead(ats_cpu_worker *w, const ats_cpu_base *base, int64_t leaf)
{
    const ats_problem *p = base->problem;
    const ats_range now = base->tree.leaves[leaf];
    const int64_t k_row = p->d_qk * (int64_t)ats_dtype_size(p->k_dtype);
    const int64_t v_row = p->d_v * (int64_t)ats_dtype_size(p->v_dtype);
    if (!base->few || p->n_rows <= 2) return; /* one stream is fetched in time by itself */
    w->values_ahead =
        (ats_cpu_ahead){(const char *)p->v + now.start * v_row, (now.stop - now.start) * v_row};
    if (leaf + 1 >= base->tree.n_leaves) return;
    const ats_range next = base->tree.leaves[leaf + 1];
    w->keys_ahead =
        (ats_cpu_ahead){(const char *)p->k + next.start * k_row, (next.stop - next.start) * k_row};
}

static ats_code base_leaf(const leaf_pass *pass, int64_t tile, int64_t leaf, ats_cpu_worker *worker,
                          const ats_cpu_variant *unchanging, const ats_cpu_state *out, ats_err *err)
{
    const ats_cpu_base *base = &pass->tiles->at[tile];
    const ats_range range = base->tree.leaves[leaf];
    const ats_cpu_keys keys = {.first = range.start, .keys = range.stop - range.start, .at = -1};
    float *z = base->z != NULL ? base->z + range.start * base->lanes : worker->z;
    ats_cpu_variant plain = *unchanging;
    if (base->given != NULL) return given_leaf(pass, tile, leaf, worker, &plain, out, err);
    look_ahead(worker, base, leaf);
    ats_code rc = ats_cpu_key_logits(worker, &plain, &keys, z, err);
    worker->values_ahead.bytes = 0;
    if (rc != ATS_OK) return rc;
    const float *values = leaf_values(base, tile, leaf, worker);
    const bool finite = ats_cpu_leaf_fill(base, worker, leaf, z, values, out);
    worker->keys_ahead.bytes = 0;
    if (!finite || base->leaf_bad[leaf])
        rc = ats_cpu_check(&plain, z, keys.keys, base->v_bad + range.start, err);
    if (rc != ATS_OK) return rc;
    offer_leaf(worker, base, tile, range, z, out);
    count_leaf(worker, base, tile, keys.keys, z, out);
    return ATS_OK;
}

/* Where node (level, index) goes while it is merged: its own place when it has one. */
static const ats_cpu_state *place(const ats_cpu_base *base, const ats_run *run, int level,
                                  int64_t index, const ats_cpu_rooms *rooms, ats_cpu_state *leaf)
{
    const ats_cpu_state *node = &base->nodes[ats_key_tree_node(run, level, index)];
    const ats_cpu_state *room = index % 2 == 0 ? &rooms->left[level] : &rooms->right[level];
    if (node->l != NULL) return node;
    if (level > 0) return room;
    *leaf = *room;
    leaf->m = node->m; /* the maxima of a leaf stay */
    leaf->mc = node->mc;
    return leaf;
}

/* Leaves [first, first + count) of a run, at most a node of level ATS_CPU_GROUP, for one tile. */
static ats_code tile_group(const leaf_pass *pass, int64_t tile, const block *group, int worker,
                           ats_err *err)
{
    const ats_cpu_base *base = &pass->tiles->at[tile];
    const ats_run *run = &base->tree.runs[group->run];
    ats_cpu_worker *w = &pass->workers[worker];
    const ats_cpu_variant *plain = &pass->plain[worker * pass->tiles->n + tile];
    const ats_cpu_state **left = w->rooms[tile].merged;
    ats_cpu_state leaves[2]; /* even and odd */
    for (int64_t i = group->first; i < group->first + group->count; i++) {
        const ats_cpu_state *now = place(base, run, 0, i, &w->rooms[0], &leaves[i % 2]);
        const ats_code rc = base_leaf(pass, tile, run->first_leaf + i, w, plain, now, err);
        if (rc != ATS_OK) return rc;
        int level = 0;
        int64_t index = i;
        for (; index % 2 == 1 && level < pass->tiles->block_level; index /= 2, level++) {
            const ats_cpu_rooms *rooms = &w->rooms[level + 1 < ATS_CPU_GROUP ? 0 : tile];
            const ats_cpu_state *node = place(base, run, level + 1, index / 2, rooms, NULL);
            base->ops->merge(base->problem->n_rows, base->lanes, base->width, left[level], now,
                             node);
            now = node;
        }
        left[level] = now;
    }
    return ATS_OK;
}

/* Tile 0 finds the norms of the values that the others need. */
static ats_code base_block(void *ctx, int64_t index, int worker, ats_err *err)
{
    const leaf_pass *pass = ctx;
    const block *b = &pass->blocks[index];
    const int64_t size = (int64_t)1 << ATS_CPU_GROUP;
    ats_code rc = ATS_OK;
    for (int64_t i = 0; i < b->count; i += size) {
        const block group = {b->run, b->first + i, b->count - i < size ? b->count - i : size};
        for (int64_t tile = 0; tile < pass->tiles->n && rc == ATS_OK; tile++)
            rc = tile_group(pass, tile, &group, worker, err);
    }
    return rc;
}

/* Nodes above the blocks, and the root, which merges its cover from the left where it is apart. */
static ats_code run_nodes(void *ctx, int64_t item, int worker, ats_err *err)
{
    (void)worker;
    (void)err;
    const ats_cpu_tiles *tiles = ctx;
    const ats_cpu_base *base = &tiles->at[item % tiles->n];
    const int64_t run = item / tiles->n, rows = base->problem->n_rows;
    const ats_run *r = &base->tree.runs[run];
    ats_cover cover[ATS_MAX_COVER];
    for (int level = tiles->block_level + 1; r->n_leaves >> level > 0; level++)
        for (int64_t i = 0; i < r->n_leaves >> level; i++)
            base->ops->merge(rows, base->lanes, base->width,
                             &base->nodes[ats_key_tree_node(r, level - 1, 2 * i)],
                             &base->nodes[ats_key_tree_node(r, level - 1, 2 * i + 1)],
                             &base->nodes[ats_key_tree_node(r, level, i)]);
    const int64_t count = ats_key_tree_root_cover(&base->tree, run, cover);
    for (int64_t i = 1; i < count; i++)
        base->ops->merge(rows, base->lanes, base->width,
                         &base->nodes[i == 1 ? cover[0].node : r->root],
                         &base->nodes[cover[i].node], &base->nodes[r->root]);
    return ATS_OK;
}

static ats_code make_blocks(ats_arena *arena, leaf_pass *pass, ats_err *err)
{
    const ats_key_tree *tree = &pass->tiles->at[0].tree;
    const int64_t size = (int64_t)1 << pass->tiles->block_level;
    const ats_code rc = ATS_NEW(arena, tree->n_leaves / size + tree->n_runs, &pass->blocks, err);
    if (rc != ATS_OK) return rc;
    for (int64_t r = 0; r < tree->n_runs; r++)
        for (int64_t i = 0; i < tree->runs[r].n_leaves; i += size) {
            const int64_t left = tree->runs[r].n_leaves - i;
            pass->blocks[pass->n_blocks++] = (block){r, i, left < size ? left : size};
        }
    return ATS_OK;
}

static ats_code make_queries(ats_arena *arena, leaf_pass *pass, int threads, ats_err *err)
{
    const int64_t tiles = pass->tiles->n;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, threads * tiles, &pass->plain, err));
    for (int64_t i = 0; i < threads * tiles; i++) {
        const ats_cpu_base *base = &pass->tiles->at[i % tiles];
        pass->plain[i] = (ats_cpu_variant){.base = base,
                                           .scale = base->problem->contract.scale,
                                           .temperature = base->problem->contract.temperature};
    }
out:
    return rc;
}

static int64_t region_keys(const ats_region *region)
{
    int64_t keys = 0;
    for (int64_t i = 0; i < region->n_ranges; i++)
        keys += region->ranges[i].stop - region->ranges[i].start;
    return keys;
}

/* The best logits of small regions, first: what is heavier is then counted on the way. Counts are
 * floats, so there may not be too many keys. */
static ats_code aim_region(void *ctx, int64_t item, int worker_index, ats_err *err)
{
    const leaf_pass *pass = ctx;
    const int64_t tile = item % pass->tiles->n, region = item / pass->tiles->n;
    const ats_cpu_base *base = &pass->tiles->at[tile];
    const ats_problem *p = base->problem;
    const ats_key_tree *tree = &base->tree;
    ats_cpu_variant plain = pass->plain[worker_index * pass->tiles->n + tile];
    float *aim = base->aim + region * base->lanes;
    for (int64_t row = 0; row < base->lanes; row++)
        aim[row] = row < p->n_rows ? -INFINITY : INFINITY;
    if (base->given != NULL || p->n_keys > 1 << 24 ||
        region_keys(&p->regions[region]) > p->n_keys / 32)
        return ATS_OK;
    base->aimed[region] = 1;
    for (int64_t r = 0; r < tree->n_runs; r++) {
        const ats_run *run = &tree->runs[r];
        if (!tree->member[region * tree->n_runs + r]) continue;
        for (int64_t leaf = run->first_leaf; leaf < run->first_leaf + run->n_leaves; leaf++) {
            const int64_t first = tree->leaves[leaf].start;
            const ats_cpu_keys keys = {
                .first = first, .keys = tree->leaves[leaf].stop - first, .at = -1};
            ats_cpu_worker *w = &pass->workers[worker_index];
            const ats_code rc = ats_cpu_key_logits(w, &plain, &keys, w->z, err);
            if (rc != ATS_OK) return rc;
            for (int64_t i = 0; i < keys.keys; i++)
                for (int64_t row = 0; row < p->n_rows; row++)
                    if (w->z[i * base->lanes + row] > aim[row])
                        aim[row] = w->z[i * base->lanes + row];
        }
    }
    return ATS_OK;
}

static void join_workers(const ats_cpu_tiles *tiles, ats_cpu_worker *workers, int threads)
{
    for (int64_t tile = 0; tile < tiles->n; tile++) {
        ats_cpu_base *base = &tiles->at[tile];
        ats_cpu_pool *heavy = &workers[0].heavy[tile], *payload = &workers[0].payload[tile];
        for (int w = 0; w < threads; w++) {
            for (int64_t i = 0; i < base->problem->n_regions * base->lanes; i++)
                base->heavier[i] += workers[w].heavier[tile][i];
            if (w == 0) continue;
            ats_cpu_pool_join(heavy, &workers[w].heavy[tile], base);
            ats_cpu_pool_join(payload, &workers[w].payload[tile], base);
        }
        ats_cpu_pool_list(heavy, base, &base->heavy);
        ats_cpu_pool_list(payload, base, &base->payload);
    }
}

ats_code ats_cpu_base_pass(const ats_cpu_tiles *tiles, ats_cpu_worker *workers, ats_err *err)
{
    const int threads = ats_threads();
    ats_code rc;
    ats_arena arena;
    ats_arena_init(&arena, false);
    leaf_pass pass = {.tiles = tiles, .workers = workers};
    const int64_t n_runs = tiles->n > 0 ? tiles->at[0].tree.n_runs : 0;
    ats_cpu_tiles merging = *tiles;
    if (tiles->n == 0) return ATS_OK;
    ATS_TRY(make_queries(&arena, &pass, threads, err));
    ATS_TRY(make_blocks(&arena, &pass, err));
    ATS_TRY(ats_parallel_for(tiles->at[0].problem->n_regions * tiles->n, aim_region, &pass, err));
    ATS_TRY(ats_parallel_for(pass.n_blocks, base_block, &pass, err));
    ATS_TRY(ats_parallel_for(n_runs * tiles->n, run_nodes, &merging, err));
    join_workers(tiles, workers, threads);
out:
    for (int i = 0; i < threads; i++) ats_arena_reset(&workers[i].arena);
    ats_arena_fini(&arena);
    return rc;
}

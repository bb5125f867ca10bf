/* The base on a device: states of all leaves, lists of the best keys, counts for regions; logits
 * come to the host where an edit takes single ones, and later where somebody asks for them. */
#include <string.h>

#include "base/log.h"
#include "kernels/cpu_top.h"
#include "kernels/device_pass.h"

enum {
    MAX_SLOTS = 8, /* workers beyond take turns: a slot holds some 100 MB of pinned memory */
    FETCHED = 16,  /* leaves whose logits come at once */
    MOST_COUNTED = 1 << 24 /* keys: counts become floats */
};

static ats_code describe(ats_device_run *run, bool lists, ats_device_problem *out, ats_err *err)
{
    const ats_cpu_tiles *tiles = run->tiles;
    const ats_problem *p = tiles->at[0].whole;
    const float **planes = NULL;
    const int64_t lanes = ats_device_lanes(tiles);
    ats_code rc = ATS_OK;
    if (tiles->at[0].plane != NULL) {
        ATS_TRY(ATS_NEW(&run->arena, tiles->n, &planes, err));
        for (int64_t t = 0; t < tiles->n; t++) planes[t] = tiles->at[t].plane;
    }
    if (p->alibi_slope != NULL) {
        ATS_TRY(ATS_NEW0(&run->arena, lanes, &run->slope, err));
        memcpy(run->slope, p->alibi_slope, (size_t)p->n_rows * sizeof *run->slope);
    }
    *out = (ats_device_problem){.n_keys = p->n_keys,
                                .d_qk = p->d_qk,
                                .d_v = p->d_v,
                                .rows = p->n_rows,
                                .lanes = lanes,
                                .width = tiles->at[0].width,
                                .leaf = tiles->at[0].tree.leaf,
                                .tile = tiles->at[0].lanes,
                                .n_tiles = tiles->n,
                                .k_type = (ats_device_type)p->k_dtype,
                                .v_type = (ats_device_type)p->v_dtype,
                                .k = p->k,
                                .v = p->v,
                                .position = p->key_pos,
                                .origin = tiles->at[0].origin,
                                .softcap = (float)p->contract.softcap,
                                .slope = run->slope,
                                .best = lists ? tiles->at[0].heavy.limit : 0,
                                .plane = planes};
out:
    return rc;
}

/* The pieces of the base: every leaf, its logits straight into z. */
static ats_code leaf_pieces(ats_device_run *run, ats_err *err)
{
    const ats_cpu_tiles *tiles = run->tiles;
    const ats_key_tree *tree = &tiles->at[0].tree;
    const int64_t n = tree->n_leaves;
    ats_device_state *states = NULL;
    ats_cpu_state *given = NULL, one = {.m = NULL};
    float **z = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW0(&run->arena, n, &run->leaves, err));
    ATS_TRY(ATS_NEW(&run->arena, n * tiles->n, &states, err));
    ATS_TRY(ATS_NEW(&run->arena, n * tiles->n, &given, err));
    ATS_TRY(ATS_NEW(&run->arena, n * tiles->n, &z, err));
    for (int64_t i = 0; i < n; i++) {
        const ats_range keys = tree->leaves[i];
        for (int64_t t = 0; t < tiles->n; t++) {
            ATS_TRY(ats_cpu_state_new(&run->arena, &tiles->at[t], &one, err));
            given[t * n + i] = one;
            states[i * tiles->n + t] = ats_device_state_of(&one);
            z[i * tiles->n + t] = tiles->at[t].z + keys.start * tiles->at[t].lanes;
        }
        run->leaves[i] = (ats_device_piece){.first = keys.start,
                                            .keys = keys.stop - keys.start,
                                            .at = -1,
                                            .z = z + i * tiles->n,
                                            .state = states + i * tiles->n};
    }
    for (int64_t t = 0; t < tiles->n; t++) tiles->at[t].given = given + t * n;
out:
    return rc;
}

static ats_code pass_over(ats_device_run *run, const ats_device_pass *pass, ats_err *err)
{
    ats_device_error error = {""};
    return ats_device_code(run->api->pass(run->device, 0, pass, &error), &error, err);
}

/* Where the lists of the rows are gathered. */
typedef struct gathering {
    const ats_cpu_tiles *tiles;
    ats_cpu_pool *pools[2]; /* [n_tiles] by weight, by payload */
} gathering;

static void take_list(void *ctx, int payload, int64_t row, int64_t count, int64_t stride,
                      const float *z, const int32_t *place, int64_t first)
{
    const gathering *g = ctx;
    const int64_t tile = row / g->tiles->at[0].lanes;
    const ats_cpu_base *base = &g->tiles->at[tile];
    ats_cpu_pool_take(&g->pools[payload][tile], row - base->first_row, count, stride, z, place,
                      first, payload != 0 ? base->log_norm : NULL);
}

/* The leaves, without the logits that nobody is known to take. */
static ats_code listed_pass(ats_device_run *run, ats_cpu_pool *heavy, ats_cpu_pool *payload,
                            ats_err *err)
{
    const ats_cpu_tiles *tiles = run->tiles;
    const int64_t n = tiles->at[0].tree.n_leaves;
    gathering g = {tiles, {heavy, payload}};
    const ats_device_best best = {&g, take_list};
    uint8_t *there = NULL;
    ats_device_piece *pieces = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(&run->arena, n, &there, err));
    ATS_TRY(ATS_NEW(&run->arena, n, &pieces, err));
    for (int64_t i = 0; i < n; i++) {
        pieces[i] = run->leaves[i];
        there[i] = tiles->wanted[i];
        if (there[i] == 0) pieces[i].z = NULL;
    }
    for (int64_t t = 0; t < tiles->n; t++) {
        tiles->at[t].z_there = there;
        tiles->at[t].device = &run->hooks;
    }
    const ats_device_pass pass = {
        .n_views = 1, .views = &run->view, .n_pieces = n, .pieces = pieces, .best = &best};
    ATS_TRY(pass_over(run, &pass, err));
out:
    return rc;
}

ats_code ats_device_base(void *ctx, const ats_cpu_tiles *tiles, ats_cpu_pool *heavy,
                         ats_cpu_pool *payload, ats_err *err)
{
    ats_device_run *run = ctx;
    ats_device_problem problem;
    ats_device_error error = {""};
    const ats_cpu_base *first = &tiles->at[0];
    /* cublas, the cross-check, leaves lists and counts to the host. */
    const bool lists = run->kind == ATS_DEVICE_FUSED && first->heavy.limit <= ATS_DEVICE_BEST;
    const int64_t slots = run->n_rooms < MAX_SLOTS ? run->n_rooms : MAX_SLOTS;
    ats_code rc;
    run->tiles = tiles;
    ATS_TRY(describe(run, lists, &problem, err));
    for (int64_t i = 0; i < run->n_rooms; i++)
        ATS_TRY(ATS_NEW0(&run->arena, tiles->n, &run->rooms[i].pieces, err));
    ATS_TRY(ats_device_code(run->api->open(run->kind, &problem, (int)slots, first->v_norm,
                                           first->log_norm, first->v_bad, &run->device, &error),
                            &error, err));
    if (run->api->notice(run->device)[0] != '\0') ats_info("%s", run->api->notice(run->device));
    ATS_TRY(leaf_pieces(run, err));
    ATS_TRY(ats_device_view_make(&run->arena, tiles, NULL, 0, &run->view, err));
    const ats_device_pass pass = {
        .n_views = 1, .views = &run->view, .n_pieces = first->tree.n_leaves, .pieces = run->leaves};
    ATS_TRY(lists ? listed_pass(run, heavy, payload, err) : pass_over(run, &pass, err));
out:
    return rc;
}

/* The best logit of a region into the tile's aim [lanes]; false: the list tells all rows how many
 * keys are heavier. */
static bool aim(ats_cpu_base *base, int64_t region)
{
    const ats_key_tree *tree = &base->tree;
    float *best = base->aim + region * base->lanes;
    bool open = false;
    for (int64_t row = 0; row < base->problem->n_rows; row++) {
        int64_t unused;
        best[row] = -INFINITY;
        for (int64_t r = 0; r < tree->n_runs; r++)
            if (tree->member[region * tree->n_runs + r])
                best[row] = fmaxf(best[row], base->nodes[tree->runs[r].root].m[row]);
        open |= !ats_cpu_top_heavier(&base->heavy, row, (double)best[row], &unused);
    }
    return open;
}

/* Counts of `n` regions, at most ATS_DEVICE_COUNTS, on the device. */
static ats_code count_regions(ats_device_run *run, const int64_t *regions, int64_t n,
                              const ats_device_piece *pieces, ats_err *err)
{
    const ats_cpu_tiles *tiles = run->tiles;
    const int64_t lanes = ats_device_lanes(tiles);
    float *above = NULL;
    int64_t *found = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW0(&run->arena, n * lanes, &above, err));
    ATS_TRY(ATS_NEW0(&run->arena, n * lanes, &found, err));
    for (int64_t i = 0; i < n * tiles->n; i++) {
        const ats_cpu_base *base = &tiles->at[i % tiles->n];
        memcpy(above + i / tiles->n * lanes + base->first_row,
               base->aim + regions[i / tiles->n] * base->lanes,
               (size_t)base->lanes * sizeof *above);
    }
    const ats_device_counts counts = {n, above, found};
    const ats_device_pass pass = {.n_views = 1,
                                  .views = &run->view,
                                  .n_pieces = tiles->at[0].tree.n_leaves,
                                  .pieces = pieces,
                                  .counts = &counts};
    ATS_TRY(pass_over(run, &pass, err));
    for (int64_t i = 0; i < n * tiles->n; i++) {
        ats_cpu_base *base = &tiles->at[i % tiles->n];
        const int64_t region = regions[i / tiles->n];
        const int64_t *from = found + i / tiles->n * lanes + base->first_row;
        base->aimed[region] = 1;
        for (int64_t row = 0; row < base->problem->n_rows; row++)
            base->heavier[region * base->lanes + row] = (float)from[row];
    }
out:
    return rc;
}

ats_code ats_device_regions(void *ctx, ats_err *err)
{
    ats_device_run *run = ctx;
    const ats_cpu_tiles *tiles = run->tiles;
    const ats_problem *p = tiles->at[0].whole;
    const int64_t n = tiles->at[0].tree.n_leaves;
    int64_t *open = NULL, n_open = 0;
    ats_device_piece *pieces = NULL;
    ats_code rc = ATS_OK;
    if (tiles->at[0].z_there == NULL || p->n_keys > MOST_COUNTED) return ATS_OK;
    ATS_TRY(ATS_NEW(&run->arena, p->n_regions, &open, err));
    for (int64_t r = 0; r < p->n_regions; r++) {
        bool any = false;
        for (int64_t t = 0; t < tiles->n; t++) any |= aim(&tiles->at[t], r);
        if (any) open[n_open++] = r;
    }
    if (n_open == 0) goto out;
    ATS_TRY(ATS_NEW(&run->arena, n, &pieces, err));
    for (int64_t i = 0; i < n; i++) {
        pieces[i] = run->leaves[i];
        pieces[i].z = NULL;
        pieces[i].state = NULL;
    }
    for (int64_t i = 0; i < n_open; i += ATS_DEVICE_COUNTS) {
        const int64_t left = n_open - i;
        ATS_TRY(count_regions(run, open + i, left < ATS_DEVICE_COUNTS ? left : ATS_DEVICE_COUNTS,
                              pieces, err));
    }
out:
    return rc;
}

ats_code ats_device_logits(void *ctx, int64_t leaf, ats_err *err)
{
    ats_device_run *run = ctx;
    uint8_t *there = run->tiles->at[0].z_there;
    const int64_t first = leaf / FETCHED * FETCHED, n = run->tiles->at[0].tree.n_leaves;
    int64_t count = 0, which[FETCHED];
    ats_device_piece pieces[FETCHED];
    pthread_mutex_lock(&run->fetching);
    for (int64_t i = first; i < first + FETCHED && i < n; i++) {
        if (there[i] != 0) continue;
        which[count] = i;
        pieces[count] = run->leaves[i];
        pieces[count++].state = NULL;
    }
    const ats_device_pass pass = {
        .n_views = 1, .views = &run->view, .n_pieces = count, .pieces = pieces};
    const ats_code rc = count > 0 ? pass_over(run, &pass, err) : ATS_OK;
    for (int64_t i = 0; rc == ATS_OK && i < count; i++)
        __atomic_store_n(&there[which[i]], 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&run->fetching);
    return rc;
}

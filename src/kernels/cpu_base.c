#include "kernels/cpu.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "kernels/cpu_top.h"
#include "kernels/stats.h"

ats_code ats_cpu_state_new(ats_arena *arena, const ats_cpu_base *base, ats_cpu_state *out,
                           ats_err *err)
{
    const int64_t lanes = base->lanes;
    float *narrow = NULL, *o = NULL;
    double *wide = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, 2 * lanes, &narrow, err));
    ATS_TRY(ATS_NEW(arena, 5 * lanes, &wide, err));
    ATS_TRY(ATS_NEW(arena, base->problem->n_rows * base->width, &o, err));
    if (wide != NULL)
        *out = (ats_cpu_state){.m = narrow,
                               .mc = narrow + lanes,
                               .l = wide,
                               .e = wide + lanes,
                               .s2 = wide + 2 * lanes,
                               .a = wide + 3 * lanes,
                               .n = wide + 4 * lanes,
                               .o = o};
out:
    return rc;
}

void ats_cpu_state_fill(const ats_cpu_base *base, ats_cpu_worker *worker, int64_t keys,
                        const float *z, const float *values, const float *v_norm,
                        const float *log_norm, const ats_cpu_state *out)
{
    const int64_t lanes = base->lanes;
    const ats_cpu_sums sums = {.m = out->m, .mc = out->mc, .sums = worker->sums};
    base->ops->state(keys, lanes, z, v_norm, log_norm, worker->p, &sums);
    /* l, e, s2, a, n lie one after the other in both. */
    for (int64_t i = 0; i < 5 * lanes; i++) out->l[i] = (double)worker->sums[i];
    base->ops->gemm(base->problem->n_rows, base->width, keys, worker->p, 1, lanes, values,
                    base->width, out->o, base->width);
}

ats_state ats_cpu_state_row(const ats_cpu_state *s, int64_t row)
{
    return (ats_state){.m = (double)s->m[row],
                       .l = s->l[row],
                       .e = s->e[row],
                       .s2 = s->s2[row],
                       .a = s->a[row],
                       .n = s->n[row]};
}

void ats_cpu_state_merge(const ats_cpu_base *base, const ats_cpu_state *x, const ats_cpu_state *y,
                         const ats_cpu_state *out)
{
    /* Values first: they need the old maxima, and out may be x. */
    for (int64_t row = 0; row < base->problem->n_rows; row++) {
        const ats_state_factors f = ats_state_common((double)x->m[row], (double)y->m[row]);
        const int64_t at = row * base->width;
        ats_state_merge_values(&f, base->width, x->o + at, y->o + at, out->o + at);
    }
    for (int64_t row = 0; row < base->lanes; row++) {
        const ats_state a = ats_cpu_state_row(x, row), b = ats_cpu_state_row(y, row);
        const ats_state merged = ats_state_merge(&a, &b);
        out->m[row] = (float)merged.m;
        out->mc[row] = x->mc[row] > y->mc[row] ? x->mc[row] : y->mc[row];
        out->l[row] = merged.l;
        out->e[row] = merged.e;
        out->s2[row] = merged.s2;
        out->a[row] = merged.a;
        out->n[row] = merged.n;
    }
}

/* Bias, keep mask and segments as one plane; keys that a row can never see are -inf. */
static void fill_plane(const ats_problem *p, int64_t lanes, float *plane)
{
    for (int64_t i = 0; i < p->n_keys; i++)
        for (int64_t row = 0; row < lanes; row++) {
            float x = 0.0f;
            if (row < p->n_rows) {
                if (p->bias != NULL) x = p->bias[row][i];
                if (x <= ATS_BIAS_HIDES) x = -INFINITY;
                const bool kept =
                    p->keep == NULL || p->keep[(row % p->n_probes) * p->n_keys + i] != 0;
                const bool own = p->key_segment == NULL || p->key_segment[i] == p->q_segment[row];
                if (!kept || !own) x = -INFINITY;
            }
            plane[i * lanes + row] = x;
        }
}

static ats_code static_arrays(ats_arena *arena, ats_cpu_base *base, ats_err *err)
{
    const ats_problem *p = base->problem;
    ats_code rc = ATS_OK;
    if (p->bias != NULL || p->keep != NULL || p->key_segment != NULL)
        ATS_TRY(ATS_NEW(arena, p->n_keys * base->lanes, &base->plane, err));
    if (p->alibi_slope != NULL) ATS_TRY(ATS_NEW0(arena, base->lanes, &base->slope, err));
    ATS_TRY(ATS_NEW(arena, p->n_keys, &base->v_norm, err));
    ATS_TRY(ATS_NEW(arena, p->n_keys, &base->log_norm, err));
    ATS_TRY(ATS_NEW(arena, p->n_keys, &base->v_bad, err));
    ATS_TRY(ATS_NEW(arena, base->tree.n_leaves, &base->leaf_bad, err));
    ATS_TRY(ATS_NEW(arena, p->n_keys * base->lanes, &base->z, err));
    ATS_TRY(ATS_NEW(arena, base->tree.n_nodes, &base->nodes, err));
    if (arena->count_only) goto out;
    if (base->plane != NULL) fill_plane(p, base->lanes, base->plane);
    for (int64_t row = 0; base->slope != NULL && row < p->n_rows; row++)
        base->slope[row] = p->alibi_slope[row];
out:
    return rc;
}

/* What the base's own measurement fills. The lists hold spare entries, so that a variant that hides
 * some of the best keys still finds top_k of them. */
static ats_code measured_arrays(ats_arena *arena, ats_cpu_base *base, ats_err *err)
{
    const ats_problem *p = base->problem;
    const int64_t nodes = base->tree.n_nodes, long_list = 2 * p->top_k + 48;
    double *weights = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, p->n_rows, &base->norm, err));
    ATS_TRY(ATS_NEW(arena, nodes, &base->weight, err));
    ATS_TRY(ATS_NEW(arena, nodes * base->lanes, &weights, err));
    for (int64_t i = 0; !arena->count_only && i < nodes; i++)
        base->weight[i] = weights + i * base->lanes;
    ATS_TRY(ats_cpu_top_new(arena, base, long_list, &base->heavy, err));
    ATS_TRY(ats_cpu_top_new(arena, base, long_list, &base->payload, err));
    ATS_TRY(ats_stats_new(arena, p, false, &base->stats, err));
out:
    return rc;
}

void ats_cpu_base_weights(ats_cpu_base *base, const ats_cpu_norm *norm)
{
    for (int64_t row = 0; row < base->problem->n_rows; row++) base->norm[row] = norm[row];
    for (int64_t i = 0; i < base->tree.n_nodes; i++)
        for (int64_t row = 0; row < base->problem->n_rows; row++)
            base->weight[i][row] = ats_cpu_weight((double)base->nodes[i].m[row], &norm[row]);
}

static int64_t round_up(int64_t count)
{
    return (count + ATS_CPU_LANES - 1) / ATS_CPU_LANES * ATS_CPU_LANES;
}

ats_code ats_cpu_base_layout(ats_arena *arena, const ats_problem *problem, const ats_cpu_ops *ops,
                             ats_cpu_base *out, ats_err *err)
{
    ats_code rc;
    ats_arena plan; /* the tree is small and always made: its size is what is to be known */
    ats_arena_init(&plan, false);
    ats_cpu_base base = {.problem = problem,
                         .ops = ops,
                         .lanes = round_up(problem->n_rows),
                         .width = round_up(problem->d_v),
                         .origin = problem->n_keys > 0 ? problem->key_pos[0] : 0};
    ATS_TRY(ats_key_tree_make(arena->count_only ? &plan : arena, problem, &base.tree, err));
    ATS_TRY(static_arrays(arena, &base, err));
    for (int64_t i = 0; i < base.tree.n_nodes; i++) {
        ats_cpu_state unused;
        ATS_TRY(ats_cpu_state_new(arena, &base, arena->count_only ? &unused : &base.nodes[i], err));
    }
    ATS_TRY(measured_arrays(arena, &base, err));
    *out = base;
    if (arena->count_only) out->tree = (ats_key_tree){.leaf = base.tree.leaf};
out:
    ats_arena_fini(&plan);
    return rc;
}

ats_code ats_cpu_worker_layout(ats_arena *arena, const ats_cpu_base *base, ats_cpu_worker *out,
                               ats_err *err)
{
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
    ATS_TRY(ats_stats_new(arena, base->problem, true, &out->stats, err));
out:
    return rc;
}

typedef struct leaf_pass {
    ats_cpu_base *base;
    ats_cpu_worker *workers;
    ats_cpu_variant *plain; /* [threads] the base as a variant, for its queries */
} leaf_pass;

static ats_code base_leaf(void *ctx, int64_t leaf, int worker_index, ats_err *err)
{
    const leaf_pass *pass = ctx;
    ats_cpu_base *base = pass->base;
    ats_cpu_worker *worker = &pass->workers[worker_index];
    ats_cpu_variant *plain = &pass->plain[worker_index];
    const ats_range range = base->tree.leaves[leaf];
    const ats_cpu_keys keys = {.first = range.start, .keys = range.stop - range.start, .at = -1};
    float *z = base->z + range.start * base->lanes;
    uint8_t *bad = base->v_bad + range.start;
    ats_code rc = ats_cpu_key_logits(worker, plain, &keys, z, err);
    if (rc != ATS_OK) return rc;
    ats_cpu_base_values(base, range.start, keys.keys, worker->v_panel);
    base->leaf_bad[leaf] =
        ats_cpu_value_norms(base, keys.keys, worker->v_panel, base->v_norm + range.start,
                            base->log_norm + range.start, bad) > 0;
    rc = ats_cpu_check(plain, z, keys.keys, bad, err);
    if (rc != ATS_OK) return rc;
    ats_cpu_state_fill(base, worker, keys.keys, z, worker->v_panel, base->v_norm + range.start,
                       base->log_norm + range.start, &base->nodes[leaf]);
    return ATS_OK;
}

/* Both children of a node lie one level below it; a root apart merges its cover from the left. */
static ats_code run_nodes(void *ctx, int64_t run, int worker, ats_err *err)
{
    (void)worker;
    (void)err;
    const ats_cpu_base *base = ctx;
    const ats_run *r = &base->tree.runs[run];
    ats_cover cover[ATS_MAX_COVER];
    for (int level = 1; r->n_leaves >> level > 0; level++)
        for (int64_t i = 0; i < r->n_leaves >> level; i++)
            ats_cpu_state_merge(base, &base->nodes[ats_key_tree_node(r, level - 1, 2 * i)],
                                &base->nodes[ats_key_tree_node(r, level - 1, 2 * i + 1)],
                                &base->nodes[ats_key_tree_node(r, level, i)]);
    const int64_t count = ats_key_tree_root_cover(&base->tree, run, cover);
    for (int64_t i = 1; i < count; i++)
        ats_cpu_state_merge(base, &base->nodes[i == 1 ? cover[0].node : r->root],
                            &base->nodes[cover[i].node], &base->nodes[r->root]);
    return ATS_OK;
}

ats_code ats_cpu_base_pass(ats_cpu_base *base, ats_cpu_worker *workers, ats_err *err)
{
    const int threads = ats_threads();
    ats_code rc;
    ats_arena arena;
    ats_arena_init(&arena, false);
    leaf_pass pass = {.base = base, .workers = workers};
    ATS_TRY(ATS_NEW(&arena, threads, &pass.plain, err));
    for (int i = 0; i < threads; i++)
        pass.plain[i] = (ats_cpu_variant){.base = base,
                                          .scale = base->problem->contract.scale,
                                          .temperature = base->problem->contract.temperature};
    ATS_TRY(ats_parallel_for(base->tree.n_leaves, base_leaf, &pass, err));
    ATS_TRY(ats_parallel_for(base->tree.n_runs, run_nodes, base, err));
out:
    for (int i = 0; i < threads; i++) ats_arena_reset(&workers[i].arena);
    ats_arena_fini(&arena);
    return rc;
}

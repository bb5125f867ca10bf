#include "kernels/range.h"

#include <stdlib.h>

int64_t ats_key_tree_leaf(int64_t n_keys)
{
    if (n_keys <= 16384) return 64;
    return n_keys <= 65536 ? 128 : 256;
}

static int compare_keys(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Ascending distinct run boundaries 0 .. n_keys; returns their count. */
static ats_code find_cuts(ats_arena *arena, const ats_problem *problem, int64_t **out,
                          int64_t *count, ats_err *err)
{
    int64_t capacity = 2, used = 0;
    for (int64_t r = 0; r < problem->n_regions; r++) capacity += 2 * problem->regions[r].n_ranges;
    int64_t *cuts = NULL;
    ats_code rc = ATS_NEW(arena, capacity, &cuts, err);
    if (rc != ATS_OK) return rc;
    cuts[used++] = 0;
    cuts[used++] = problem->n_keys;
    for (int64_t r = 0; r < problem->n_regions; r++)
        for (int64_t i = 0; i < problem->regions[r].n_ranges; i++) {
            cuts[used++] = problem->regions[r].ranges[i].start;
            cuts[used++] = problem->regions[r].ranges[i].stop;
        }
    qsort(cuts, (size_t)used, sizeof *cuts, compare_keys);
    int64_t distinct = 1;
    for (int64_t i = 1; i < used; i++)
        if (cuts[i] != cuts[distinct - 1]) cuts[distinct++] = cuts[i];
    *out = cuts;
    *count = distinct;
    return ATS_OK;
}

/* Aligned nodes above the leaves of a run of n leaves. */
static int64_t upper_nodes(int64_t n)
{
    int64_t count = 0;
    for (n >>= 1; n > 0; n >>= 1) count += n;
    return count;
}

/* The last aligned node is the root where the leaves are a power of two, else the root is apart. */
static bool root_apart(int64_t n) { return (n & (n - 1)) != 0; }

static void fill_runs(ats_key_tree *tree, const int64_t *cuts, ats_run *runs, ats_range *leaves)
{
    int64_t leaf = 0, node = tree->n_leaves;
    for (int64_t r = 0; r < tree->n_runs; r++) {
        const int64_t start = cuts[r], stop = cuts[r + 1];
        const int64_t count = (stop - start + tree->leaf - 1) / tree->leaf;
        const int64_t upper = upper_nodes(count);
        const int64_t top = upper > 0 ? node + upper - 1 : leaf;
        runs[r] = (ats_run){start, stop, leaf, count, node, root_apart(count) ? node + upper : top};
        node += upper + root_apart(count);
        for (int64_t at = start; at < stop; at += tree->leaf, leaf++)
            leaves[leaf] = (ats_range){at, at + tree->leaf < stop ? at + tree->leaf : stop};
    }
    tree->n_nodes = node;
}

/* Both lists ascend, so one sweep per region finds the runs inside its ranges. */
static void fill_member(const ats_key_tree *tree, const ats_problem *problem, uint8_t *member)
{
    for (int64_t g = 0; g < problem->n_regions; g++) {
        const ats_region *region = &problem->regions[g];
        int64_t i = 0;
        for (int64_t r = 0; r < tree->n_runs; r++) {
            while (i < region->n_ranges && region->ranges[i].stop <= tree->runs[r].start) i++;
            member[g * tree->n_runs + r] =
                i < region->n_ranges && region->ranges[i].start <= tree->runs[r].start;
        }
    }
}

ats_code ats_key_tree_make(ats_arena *arena, const ats_problem *problem, ats_key_tree *out,
                           ats_err *err)
{
    ats_code rc = ATS_OK;
    int64_t *cuts = NULL, n_cuts = 0;
    ats_run *runs = NULL;
    ats_range *leaves = NULL;
    uint8_t *member = NULL;
    ats_key_tree tree = {.leaf = ats_key_tree_leaf(problem->n_keys)};
    ATS_TRY(find_cuts(arena, problem, &cuts, &n_cuts, err));
    tree.n_runs = n_cuts - 1;
    for (int64_t r = 0; r < tree.n_runs; r++)
        tree.n_leaves += (cuts[r + 1] - cuts[r] + tree.leaf - 1) / tree.leaf;
    ATS_TRY(ATS_NEW(arena, tree.n_runs, &runs, err));
    ATS_TRY(ATS_NEW(arena, tree.n_leaves, &leaves, err));
    ATS_TRY(ATS_NEW(arena, tree.n_runs * problem->n_regions, &member, err));
    tree.runs = runs;
    tree.leaves = leaves;
    tree.member = member;
    fill_runs(&tree, cuts, runs, leaves);
    fill_member(&tree, problem, member);
    *out = tree;
out:
    return rc;
}

int64_t ats_key_tree_node(const ats_run *run, int level, int64_t index)
{
    if (level == 0) return run->first_leaf + index;
    int64_t node = run->first_node;
    for (int i = 1; i < level; i++) node += run->n_leaves >> i;
    return node + index;
}

/* The largest aligned node that starts at leaf `leaf` of the run and ends by key `stop`. */
static ats_cover largest_node(const ats_key_tree *tree, const ats_run *r, int64_t leaf,
                              int64_t stop)
{
    int level = 0;
    for (;;) {
        const int64_t width = (int64_t)1 << (level + 1);
        if (leaf % width != 0 || leaf + width > r->n_leaves) break;
        if (tree->leaves[r->first_leaf + leaf + width - 1].stop > stop) break;
        level++;
    }
    const int64_t first = r->first_leaf + leaf, last = first + ((int64_t)1 << level) - 1;
    return (ats_cover){ats_key_tree_node(r, level, leaf >> level), first, tree->leaves[first].start,
                       tree->leaves[last].stop};
}

int64_t ats_key_tree_root_cover(const ats_key_tree *tree, int64_t run, ats_cover *out)
{
    const ats_run *r = &tree->runs[run];
    int64_t count = 0;
    for (int64_t start = r->start; start < r->stop; start = out[count - 1].stop)
        out[count++] = largest_node(tree, r, (start - r->start) / tree->leaf, r->stop);
    return count;
}

int64_t ats_key_tree_cover(const ats_key_tree *tree, int64_t run, int64_t start, int64_t stop,
                           ats_cover *out)
{
    const ats_run *r = &tree->runs[run];
    int64_t count = 0;
    if (start == r->start && stop == r->stop) {
        out[0] = (ats_cover){r->root, r->first_leaf, start, stop};
        return 1;
    }
    while (start < stop) {
        const int64_t leaf = (start - r->start) / tree->leaf;
        const ats_range keys = tree->leaves[r->first_leaf + leaf];
        if (start != keys.start || stop < keys.stop) {
            const int64_t end = stop < keys.stop ? stop : keys.stop;
            out[count++] = (ats_cover){-1, r->first_leaf + leaf, start, end};
            start = end;
            continue;
        }
        out[count] = largest_node(tree, r, leaf, stop);
        start = out[count++].stop;
    }
    return count;
}

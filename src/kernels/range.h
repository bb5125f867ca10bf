/* The key axis cut into runs, leaves and a dyadic tree, as a function of the problem alone.
 *
 * A run is a maximal range that no region boundary cuts; a leaf is at most `leaf` keys of one run;
 * node (level, i) of a run covers its leaves [i << level, (i + 1) << level). A range of keys is
 * covered by whole nodes plus at most two ragged ends, so its sums never depend on who asks. A
 * whole run is one node, its root. Ownership: arrays belong to the arena. */
#ifndef ATS_KERNELS_RANGE_H
#define ATS_KERNELS_RANGE_H

#include "base/arena.h"
#include "kernels/backend.h"

typedef struct ats_run {
    int64_t start, stop;          /* keys */
    int64_t first_leaf, n_leaves; /* indices into ats_key_tree.leaves */
    int64_t first_node;           /* nodes of level >= 1, after all leaves: level by level */
    int64_t root;                 /* node of the whole run */
} ats_run;

typedef struct ats_key_tree {
    int64_t leaf;                      /* keys of a full leaf, at most 256 */
    int64_t n_runs, n_leaves, n_nodes; /* node index < n_leaves: that leaf */
    const ats_run *runs;
    const ats_range *leaves; /* [n_leaves] keys */
    const uint8_t *member;   /* [n_regions, n_runs] 1: the run lies in the region */
} ats_key_tree;

/* A piece of a cover: a whole node, or (node -1) keys [start, stop) within leaf `leaf`. */
typedef struct ats_cover {
    int64_t node, leaf, start, stop;
} ats_cover;

/* Keys of a leaf for a problem of n_keys. */
int64_t ats_key_tree_leaf(int64_t n_keys);
ATS_MUST_CHECK ats_code ats_key_tree_make(ats_arena *arena, const ats_problem *problem,
                                          ats_key_tree *out, ats_err *err);
/* Node (level, index) of a run. */
int64_t ats_key_tree_node(const ats_run *run, int level, int64_t index);
/* Cover of keys [start, stop) within run `run`: left to right, at most 2 log2(leaves) + 2 pieces.
 * `out` holds ATS_MAX_COVER. Returns the count. */
enum { ATS_MAX_COVER = 128 };
int64_t ats_key_tree_cover(const ats_key_tree *tree, int64_t run, int64_t start, int64_t stop,
                           ats_cover *out);
/* The aligned nodes that make up the root, left to right. */
int64_t ats_key_tree_root_cover(const ats_key_tree *tree, int64_t run, ats_cover *out);

#endif

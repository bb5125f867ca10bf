/* The key tree: every range is covered once, by pieces that depend on the problem alone. */
#include "support/check.h"

#include "base/arena.h"
#include "base/rng.h"
#include "kernels/range.h"

/* Keys of a node, from the leaves below it. */
static ats_range node_keys(const ats_key_tree *tree, const ats_run *run, int64_t node)
{
    for (int level = 0; run->n_leaves >> level > 0; level++)
        for (int64_t i = 0; i < run->n_leaves >> level; i++)
            if (ats_key_tree_node(run, level, i) == node) {
                const int64_t first = run->first_leaf + (i << level);
                const int64_t last = first + ((int64_t)1 << level) - 1;
                return (ats_range){tree->leaves[first].start, tree->leaves[last].stop};
            }
    assert_int_equal(node, run->root);
    return (ats_range){run->start, run->stop};
}

static void check_cover(const ats_key_tree *tree, int64_t run, int64_t start, int64_t stop)
{
    ats_cover cover[ATS_MAX_COVER];
    const int64_t count = ats_key_tree_cover(tree, run, start, stop, cover);
    int64_t at = start;
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(cover[i].start, at);
        assert_true(cover[i].stop > at && cover[i].stop <= stop);
        if (cover[i].node >= 0) {
            const ats_range keys = node_keys(tree, &tree->runs[run], cover[i].node);
            assert_int_equal(keys.start, cover[i].start);
            assert_int_equal(keys.stop, cover[i].stop);
        }
        at = cover[i].stop;
    }
    assert_int_equal(at, stop);
}

static void covers_are_exact(void **state)
{
    (void)state;
    ats_rng rng = ats_rng_stream(9, "", "", 0, 0, "range");
    for (int trial = 0; trial < 60; trial++) {
        ats_arena arena = {.blocks = NULL};
        ats_err err;
        const int64_t n = 1 + ats_rng_below(&rng, 3000), a = ats_rng_below(&rng, n);
        const ats_range range = {a, a + 1 + ats_rng_below(&rng, n - a)};
        const ats_region region = {1, &range};
        const ats_problem problem = {.n_keys = n, .n_regions = 1, .regions = &region};
        ats_key_tree tree;
        assert_ok(ats_key_tree_make(&arena, &problem, &tree, &err), &err);
        for (int64_t r = 0; r < tree.n_runs; r++) {
            const ats_run *run = &tree.runs[r];
            const bool inside = run->start >= range.start && run->stop <= range.stop;
            assert_int_equal(tree.member[r], inside);
            check_cover(&tree, r, run->start, run->stop);
            for (int i = 0; i < 40; i++) {
                const int64_t start = run->start + ats_rng_below(&rng, run->stop - run->start);
                check_cover(&tree, r, start, start + 1 + ats_rng_below(&rng, run->stop - start));
            }
        }
        ats_arena_fini(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(covers_are_exact)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

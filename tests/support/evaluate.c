#include "support/evaluate.h"

#include <string.h>

#include "kernels/stats.h"
#include "support/check.h"

static ats_code keep_copy(void *ctx, int64_t variant, int worker, const ats_stats *base,
                          const ats_stats *stats, ats_err *err)
{
    stats_set *set = ctx;
    if (worker < 0 || variant < -1 || variant >= set->n_variants)
        return ats_fail(err, ATS_E_INTERNAL, "emit of variant %lld by worker %d",
                        (long long)variant, worker);
    if (variant < 0 ? stats != base : set->emitted[0] != 1)
        return ats_fail(err, ATS_E_INTERNAL, "the base must come first and be its own base");
    set->emitted[variant + 1]++;
    ats_stats_copy(set->problem, stats, variant < 0 ? &set->base : &set->variants[variant]);
    return ATS_OK;
}

void evaluate_all(ats_arena *arena, const ats_backend *backend, const ats_problem *problem,
                  const ats_edit *edits, int64_t count, stats_set *out)
{
    ats_err err = {.code = ATS_OK};
    stats_set set = {.problem = problem, .n_variants = count};
    assert_ok(ATS_NEW0(arena, count, &set.variants, &err), &err);
    assert_ok(ATS_NEW0(arena, count + 1, &set.emitted, &err), &err);
    assert_ok(ats_stats_new(arena, problem, false, &set.base, &err), &err);
    for (int64_t i = 0; i < count; i++)
        assert_ok(ats_stats_new(arena, problem, true, &set.variants[i], &err), &err);
    assert_ok(backend->supports(problem, &err), &err);
    assert_ok(backend->evaluate(problem, edits, count, keep_copy, &set, &err), &err);
    for (int64_t i = 0; i <= count; i++) assert_int_equal(set.emitted[i], 1);
    *out = set;
}

const char *stats_difference(const ats_problem *problem, const ats_stats *x, const ats_stats *y)
{
    ats_stats a = *x, b = *y;
    ats_stats_array in_a[ATS_STATS_ARRAYS], in_b[ATS_STATS_ARRAYS];
    const bool pair = a.pair.tv != NULL && b.pair.tv != NULL;
    const int64_t count = ats_stats_list(problem, &a, pair, in_a);
    ats_stats_list(problem, &b, pair, in_b);
    for (int64_t i = 0; i < count; i++) {
        const size_t bytes = (size_t)(problem->n_rows * in_a[i].per_row) *
                             (in_a[i].type == ATS_ARRAY_F32 ? sizeof(float) : sizeof(double));
        if (bytes > 0 && memcmp(*in_a[i].place, *in_b[i].place, bytes) != 0) return in_a[i].name;
    }
    return NULL;
}

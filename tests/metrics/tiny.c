#include "metrics/tiny.h"

#include "kernels/reference.h"
#include "metrics/metric.h"
#include "support/check.h"

void tiny_problem(const float *logits, const float *values, int64_t n_keys, ats_problem *out)
{
    static const ats_range ranges[TINY_REGIONS] = {{1, 2}, {0, 0}, {0, 1}, {2, 3}, {3, 4}};
    static const ats_region regions[TINY_REGIONS] = {
        {1, &ranges[0]}, {0, NULL}, {1, &ranges[2]}, {1, &ranges[3]}, {1, &ranges[4]}};
    static const int64_t positions[] = {0, 1, 2, 3, 4, 5, 6, 7}, own = 100;
    static const float one = 1;
    *out = (ats_problem){.contract = {.scale = 1, .temperature = 1, .causal = true},
                         .n_keys = n_keys,
                         .d_qk = 1,
                         .d_v = 2,
                         .k = logits,
                         .v = values,
                         .key_pos = positions,
                         .n_rows = 1,
                         .n_probes = 1,
                         .q = &one,
                         .q_pos = &own,
                         .n_regions = n_keys > 3 ? TINY_REGIONS : 2,
                         .regions = regions,
                         .top_k = TINY_TOP};
}

void tiny_edit(ats_arena *arena, const ats_problem *problem, int64_t start, int64_t stop,
               const float *logits, const float *values, int64_t n_rows, ats_edit *out)
{
    ats_err err;
    ats_segment *segments = NULL;
    int64_t *position = NULL, n = 0;
    assert_ok(ATS_NEW0(arena, 4, &segments, &err), &err);
    assert_ok(ATS_NEW0(arena, n_rows + 1, &position, &err), &err);
    for (int64_t i = 0; i < n_rows; i++) position[i] = problem->n_keys - 1;
    if (start > 0) segments[n++] = (ats_segment){.kind = ATS_SEG_KEEP, .start = 0, .stop = start};
    if (stop > start)
        segments[n++] = (ats_segment){.kind = ATS_SEG_HIDE, .start = start, .stop = stop};
    if (stop < problem->n_keys)
        segments[n++] = (ats_segment){.kind = ATS_SEG_KEEP, .start = stop, .stop = problem->n_keys};
    if (n_rows > 0) segments[n++] = (ats_segment){.kind = ATS_SEG_ROWS, .stop = n_rows};
    *out = (ats_edit){.n_segments = n,
                      .segments = segments,
                      .side = {.count = n_rows, .k = logits, .v = values, .position = position},
                      .temperature = 1};
}

typedef struct run {
    const ats_problem *problem;
    tiny_check check;
} run;

static ats_code emit(void *ctx, int64_t variant, int worker, const ats_stats *base,
                     const ats_stats *stats, ats_err *err)
{
    (void)worker, (void)err;
    const run *r = ctx;
    if (variant >= 0) r->check(r->problem, base, stats);
    return ATS_OK;
}

void tiny_run(const ats_problem *problem, const ats_edit *edit, tiny_check check)
{
    ats_err err = {.code = ATS_OK};
    run r = {problem, check};
    assert_ok(ats_backend_reference.evaluate(problem, edit, 1, emit, &r, &err), &err);
}

double tiny_value(const ats_problem *problem, const ats_stats *base, const ats_stats *variant,
                  const char *name, int64_t span, int64_t part)
{
    const ats_metric *metric = ats_metric_find(name);
    assert_non_null(metric);
    const ats_cell cell = {.problem = problem,
                           .base = &base->route,
                           .route = &variant->route,
                           .pair = variant == base ? NULL : &variant->pair,
                           .span = span,
                           .part = part};
    return metric->value(&cell);
}

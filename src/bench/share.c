/* Sharing: many variants from one pass, against one pass for each of them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "bench/bench.h"
#include "metrics/record.h"

typedef struct sharing {
    const ats_backend *cpu;
    ats_problem problem;
    ats_problem longer; /* a perturbed sequence as a problem of its own */
    int64_t n_edits;
    ats_edit *edits, *apart; /* the same; evaluated each by a pass of its own */
    int64_t n_apart;         /* passes that are timed */
    ats_recorder *recorder;  /* NULL: statistics alone */
    ats_record_place place;
} sharing;

static ats_code keep(void *ctx, int64_t variant, int worker, const ats_stats *base,
                     const ats_stats *stats, ats_err *err)
{
    const sharing *s = ctx;
    (void)worker;
    if (s->recorder == NULL) return ATS_OK;
    ats_record_place place = s->place;
    place.case_index = variant;
    return ats_record(s->recorder, &place, &s->problem, base, stats, err);
}

static ats_code run_shared(void *ctx, ats_err *err)
{
    const sharing *s = ctx;
    return s->cpu->evaluate(&s->problem, s->edits, s->n_edits, keep, ctx, err);
}

static ats_code run_base(void *ctx, ats_err *err)
{
    const sharing *s = ctx;
    return s->cpu->evaluate(&s->problem, NULL, 0, ats_bench_ignore, ctx, err);
}

static ats_code run_apart(void *ctx, ats_err *err)
{
    const sharing *s = ctx;
    return s->cpu->evaluate(&s->problem, s->apart, s->n_apart, keep, ctx, err);
}

/* A pass over a sequence of its own: the statistics of one route, no comparison with the base. */
static ats_code run_longer(void *ctx, ats_err *err)
{
    const sharing *s = ctx;
    return s->cpu->evaluate(&s->longer, NULL, 0, ats_bench_ignore, ctx, err);
}

static bool is_route(const ats_metric *metric)
{
    return metric->needs == ATS_NEEDS_NOTHING && metric->shape != ATS_SHAPE_VECTOR &&
           metric->shape != ATS_SHAPE_PART && strstr(metric->name, "contribution") == NULL &&
           strstr(metric->name, "output") == NULL && strstr(metric->name, "cancellation") == NULL;
}

static ats_code make_recorder(ats_arena *arena, sharing *s, ats_err *err)
{
    int64_t n = 0, used = 0;
    const ats_metric *const *all = ats_metrics(&n);
    const ats_metric **chosen = NULL;
    int64_t *head = NULL;
    const ats_problem *p = &s->problem;
    const ats_record_shape shape = {.n_cases = s->n_edits,
                                    .n_heads = p->n_rows / p->n_probes,
                                    .n_probes = p->n_probes,
                                    .n_spans = p->n_regions + 1,
                                    .n_top = p->top_k,
                                    .d_v = p->d_v,
                                    .target_span = 0};
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, n, &chosen, err));
    ATS_TRY(ATS_NEW(arena, shape.n_heads, &head, err));
    for (int64_t i = 0; i < n; i++)
        if (is_route(all[i])) chosen[used++] = all[i];
    for (int64_t i = 0; i < shape.n_heads; i++) head[i] = i;
    ATS_TRY(ATS_NEW0(arena, 1, &s->recorder, err));
    ATS_TRY(ats_recorder_new(arena, &shape, chosen, used, s->recorder, err));
    s->place = (ats_record_place){.head = head};
out:
    return rc;
}

static ats_code make(ats_arena *arena, const ats_bench_shape *shape, int64_t variants, int64_t rows,
                     sharing *s, ats_err *err)
{
    ats_bench_shape longer = *shape;
    ats_code rc;
    longer.n_keys += rows;
    s->n_edits = variants;
    ATS_TRY(ats_backend_find("cpu", &s->cpu, err));
    ATS_TRY(ats_bench_problem(arena, shape, &s->problem, err));
    ATS_TRY(ats_bench_problem(arena, &longer, &s->longer, err));
    ATS_TRY(ATS_NEW(arena, variants, &s->edits, err));
    ATS_TRY(ATS_NEW(arena, variants, &s->apart, err));
    ATS_TRY(ats_bench_edits(arena, &s->problem, variants, rows, s->edits, err));
    for (int64_t i = 0; i < variants; i++) {
        s->apart[i] = s->edits[i];
        s->apart[i].apart = true;
    }
out:
    return rc;
}

static ats_code add(ats_bench *bench, const char *key, const char *what, double value, double must,
                    double goal, const char *note, ats_err *err)
{
    ats_bench_row row = {
        .key = key, .group = "bars", .value = value, .unit = "x", .must = must, .goal = goal};
    snprintf(row.what, sizeof row.what, "%s", what);
    snprintf(row.note, sizeof row.note, "%s", note);
    return ats_bench_add(bench, &row, err);
}

/* The fallback passes run in parallel over variants, as the shared ones do: a few of them stand for
 * all, the base pass that they need too taken off. */
static ats_code measure(ats_bench *bench, sharing *s, const char *key, const char *what,
                        double must, double goal, ats_err *err)
{
    char text[96], note[200];
    ats_bench_timed things[] = {
        {run_shared, s, 0}, {run_apart, s, 0}, {run_base, s, 0}, {run_longer, s, 0}};
    ats_code rc;
    s->n_apart = 2 * bench->threads;
    if (s->n_apart > s->n_edits) s->n_apart = s->n_edits;
    ATS_TRY(ats_bench_time(bench, things, 4, err));
    const double shared = things[0].best, base = things[2].best;
    const double pass = (things[1].best - base) / (double)s->n_apart;
    const double variant = (shared - base) / (double)s->n_edits;
    const double count = (double)s->n_edits;
    snprintf(note, sizeof note,
             "shared %.1f ms = base %.1f ms + %.0f us a variant; a pass with comparison %.2f ms",
             1e3 * shared, 1e3 * base, 1e6 * variant, 1e3 * pass);
    ATS_TRY(add(bench, key, what, count * pass / shared, must, goal, note, err));
    snprintf(text, sizeof text, "%s_plain", key);
    snprintf(note, sizeof note, "a pass over one sequence, without a comparison: %.2f ms",
             1e3 * things[3].best);
    ATS_TRY(add(bench, strcmp(key, "share_64") == 0 ? "share_64_plain" : "share_256_plain",
                "the same against passes without comparison with the base",
                count * things[3].best / shared, (double)NAN, (double)NAN, note, err));
out:
    return rc;
}

ats_code ats_bench_sharing(ats_bench *bench, ats_err *err)
{
    const ats_bench_shape small = {16384, 4, 16, 128, ATS_BF16};
    const ats_bench_shape large = {32768, 4, 16, 128, ATS_BF16};
    sharing s = {0};
    ats_arena arena;
    ats_code rc;
    ats_arena_init(&arena, false);
    ATS_TRY(make(&arena, &small, 64, 32, &s, err));
    ATS_TRY(measure(bench, &s, "share_64", "sharing, 64 variants, 16k keys, 32 rows each", 30, 50,
                    err));
    ats_arena_reset(&arena);
    s = (sharing){0};
    ATS_TRY(make(&arena, &large, 256, 32, &s, err));
    ATS_TRY(make_recorder(&arena, &s, err));
    ATS_TRY(measure(bench, &s, "share_256",
                    "sharing, 256 variants, 32k keys, every metric of the route", 60, 150, err));
out:
    ats_arena_fini(&arena);
    return rc;
}

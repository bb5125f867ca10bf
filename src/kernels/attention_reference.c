#include "kernels/attention_reference.h"

#include <stdlib.h>

#include "base/parallel.h"
#include "kernels/reference.h"
#include "kernels/stats.h"

int64_t ats_reference_length(const ats_problem *problem, const ats_edit *edit)
{
    return ref_length(problem, edit);
}

static ats_code fetch_row(ats_arena *arena, const ats_problem *problem, const ats_edit *edit,
                          int64_t row, ref_sequence *sequence, ref_route *route, ats_err *err)
{
    ats_code rc;
    ref_scratch scratch;
    if (row < 0 || row >= problem->n_rows)
        return ats_fail(err, ATS_E_INTERNAL, "row %lld was asked for; the problem has %lld",
                        (long long)row, (long long)problem->n_rows);
    ATS_TRY(ats_problem_check(problem, err));
    if (edit != NULL) ATS_TRY(ats_edit_check(problem, edit, err));
    ATS_TRY(ref_sequence_make(arena, problem, edit, sequence, err));
    ATS_TRY(ref_scratch_make(arena, problem, &scratch, err));
    ATS_TRY(ref_route_make(arena, sequence->length, route, err));
    ATS_TRY(ref_route_compute(sequence, row, &scratch, route, err));
out:
    return rc;
}

ats_code ats_reference_row(const ats_problem *problem, const ats_edit *edit, int64_t row,
                           int64_t *key, int64_t *position, double *logit, double *weight,
                           double *lse, ats_err *err)
{
    ats_arena arena;
    ats_arena_init(&arena, false);
    ref_sequence sequence;
    ref_route route;
    const ats_code rc = fetch_row(&arena, problem, edit, row, &sequence, &route, err);
    for (int64_t t = 0; rc == ATS_OK && t < sequence.length; t++) {
        if (key != NULL) key[t] = sequence.entries[t].key;
        if (position != NULL) position[t] = sequence.entries[t].position;
        if (logit != NULL) logit[t] = route.z[t];
        if (weight != NULL) weight[t] = route.defined ? route.w[t] : 0.0;
    }
    if (rc == ATS_OK && lse != NULL) *lse = route.lse;
    ats_arena_fini(&arena);
    return rc;
}

static ats_code reference_probe(ats_err *err)
{
    (void)err;
    return ATS_OK;
}

static ats_code reference_supports(const ats_problem *problem, ats_err *err)
{
    const ats_code rc = ats_problem_check(problem, err);
    if (rc != ATS_OK) return rc;
    if (problem->n_keys > 0 && problem->n_rows > ATS_REFERENCE_MAX_CELLS / problem->n_keys)
        return ats_fail(err, ATS_E_UNSUPPORTED,
                        "backend reference takes at most %lld rows x keys, this problem has %lld x "
                        "%lld; use cpu, or fewer probes",
                        (long long)ATS_REFERENCE_MAX_CELLS, (long long)problem->n_rows,
                        (long long)problem->n_keys);
    return ATS_OK;
}

static size_t reference_workspace(const ats_problem *problem, int64_t n_variants)
{
    (void)n_variants;
    /* Two routes of three doubles and a list of entries per thread and key, and the statistics. */
    ats_arena count;
    ats_arena_init(&count, true);
    ats_stats stats;
    size_t bytes = SIZE_MAX;
    if (ats_stats_new(&count, problem, false, &stats, NULL) == ATS_OK &&
        ats_stats_new(&count, problem, true, &stats, NULL) == ATS_OK)
        bytes = count.used + (size_t)problem->n_keys * (6 * sizeof(double) * (size_t)ats_threads() +
                                                        2 * sizeof(ref_entry) + 2 * sizeof(double));
    ats_arena_fini(&count);
    return bytes;
}

/* What one pass over all rows needs: the base, and one variant or none. */
typedef struct ref_pass {
    const ref_sequence *base, *variant; /* variant NULL: the base is measured */
    ref_scratch *scratch;               /* [threads] */
    ref_route *base_route, *route;      /* [threads] */
    ats_stats *stats;
} ref_pass;

static ats_code measure_row(void *ctx, int64_t row, int worker, ats_err *err)
{
    const ref_pass *pass = ctx;
    ref_scratch *scratch = &pass->scratch[worker];
    ref_route *base = &pass->base_route[worker], *route = &pass->route[worker];
    ats_code rc = ref_route_compute(pass->base, row, scratch, base, err);
    if (rc != ATS_OK) return rc;
    if (pass->variant == NULL) {
        ref_route_stats(base, row, scratch, &pass->stats->route);
        return ATS_OK;
    }
    rc = ref_route_compute(pass->variant, row, scratch, route, err);
    if (rc != ATS_OK) return rc;
    ref_route_stats(route, row, scratch, &pass->stats->route);
    ref_pair_stats(base, route, row, scratch, &pass->stats->pair);
    return ATS_OK;
}

/* Measures the base (edit NULL) or one variant into stats. */
static ats_code measure(const ats_problem *problem, const ats_edit *edit, ats_stats *stats,
                        ats_err *err)
{
    ats_code rc;
    ats_arena arena;
    ats_arena_init(&arena, false);
    ref_sequence base, variant;
    ref_pass pass = {.base = &base, .variant = edit != NULL ? &variant : NULL, .stats = stats};
    const int threads = ats_threads();
    if (edit != NULL) ATS_TRY(ats_edit_check(problem, edit, err));
    ATS_TRY(ref_sequence_make(&arena, problem, NULL, &base, err));
    if (edit != NULL) ATS_TRY(ref_sequence_make(&arena, problem, edit, &variant, err));
    ATS_TRY(ATS_NEW(&arena, threads, &pass.scratch, err));
    ATS_TRY(ATS_NEW(&arena, threads, &pass.base_route, err));
    ATS_TRY(ATS_NEW(&arena, threads, &pass.route, err));
    for (int i = 0; i < threads; i++) {
        ATS_TRY(ref_scratch_make(&arena, problem, &pass.scratch[i], err));
        ATS_TRY(ref_route_make(&arena, base.length, &pass.base_route[i], err));
        if (edit != NULL) ATS_TRY(ref_route_make(&arena, variant.length, &pass.route[i], err));
    }
    ats_stats_clear(problem, stats);
    ATS_TRY(ats_parallel_for(problem->n_rows, measure_row, &pass, err));
out:
    ats_arena_fini(&arena);
    return rc;
}

static ats_code reference_evaluate(const ats_problem *problem, const ats_edit *variants,
                                   int64_t n_variants, ats_emit_fn emit, void *ctx, ats_err *err)
{
    ats_code rc;
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_stats base, stats;
    ATS_TRY(reference_supports(problem, err));
    ATS_TRY(ats_stats_new(&arena, problem, false, &base, err));
    ATS_TRY(ats_stats_new(&arena, problem, true, &stats, err));
    ATS_TRY(measure(problem, NULL, &base, err));
    ATS_TRY(emit(ctx, -1, 0, &base, &base, err));
    for (int64_t i = 0; i < n_variants; i++) {
        ATS_TRY(measure(problem, &variants[i], &stats, err));
        ATS_TRY(emit(ctx, i, 0, &base, &stats, err));
    }
out:
    ats_arena_fini(&arena);
    return rc;
}

static const char *reference_detail(void) { return "double, materialised"; }

const ats_backend ats_backend_reference = {
    .name = "reference",
    .summary = "double arithmetic from the definitions, one variant at a time",
    .streams = true,
    .probe = reference_probe,
    .supports = reference_supports,
    .workspace_bytes = reference_workspace,
    .evaluate = reference_evaluate,
    .detail = reference_detail,
};

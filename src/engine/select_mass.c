#include <math.h>

#include "engine/select.h"

typedef struct mass_sum {
    int64_t n_heads, n_probes, n_regions, span;
    double *sum;      /* [n_heads of the group] */
    int64_t *defined; /* [n_heads of the group] probes counted */
} mass_sum;

static ats_code add_base(void *ctx, int64_t variant, int worker, const ats_stats *base,
                         const ats_stats *stats, ats_err *err)
{
    (void)worker, (void)stats, (void)err;
    if (variant >= 0) return ATS_OK;
    mass_sum *sum = ctx;
    const int64_t rows = sum->n_heads * sum->n_probes;
    for (int64_t row = 0; row < rows; row++) {
        if (isinf(base->route.lse[row])) continue;
        const double lse = base->route.region_lse[row * sum->n_regions + sum->span];
        sum->sum[row / sum->n_probes] += exp(lse - base->route.lse[row]);
        sum->defined[row / sum->n_probes]++;
    }
    return ATS_OK;
}

/* Sums of one sample and layer, added to mass and defined [n_heads of the axis]. */
static ats_code sum_sample(const ats_suite *suite, const ats_span_axis *axis, int64_t span,
                           const ats_backend *backend, const ats_selection *selection,
                           const ats_chosen *chosen, int64_t at, ats_arena *arena, double *mass,
                           int64_t *defined, ats_err *err)
{
    const ats_capture *capture = selection->captures[chosen->capture];
    const ats_layer *layer = &capture->layers[selection->layers[at]];
    ats_attention attention = {0};
    ats_group *groups = NULL;
    int64_t n_groups = 0;
    ats_code rc;
    ATS_TRY(ats_attention_load(capture, chosen->index, selection->layers[at], &attention, err));
    ATS_TRY(ats_select_groups(arena, selection, at, &groups, &n_groups, err));
    for (int64_t g = 0; g < n_groups; g++) {
        const ats_pick pick = {groups[g].n_heads, groups[g].heads, chosen->n_probes,
                               chosen->probes};
        ats_problem problem;
        mass_sum sum = {.n_heads = pick.n_heads,
                        .n_probes = pick.n_probes,
                        .n_regions = axis->count,
                        .span = span};
        ATS_TRY(ATS_NEW0(arena, pick.n_heads, &sum.sum, err));
        ATS_TRY(ATS_NEW0(arena, pick.n_heads, &sum.defined, err));
        ATS_TRY(ats_problem_make(arena, layer, chosen->sample, &attention, groups[g].kv_head, &pick,
                                 axis, suite->temperature, 1, &problem, err));
        ATS_TRY(backend->evaluate(&problem, NULL, 0, add_base, &sum, err));
        for (int64_t h = 0; h < pick.n_heads; h++) {
            mass[groups[g].place[h]] += sum.sum[h];
            defined[groups[g].place[h]] += sum.defined[h];
        }
    }
out:
    ats_attention_fini(&attention);
    return rc;
}

ats_code ats_select_by_mass(const ats_suite *suite, const ats_span_axis *axis,
                            const ats_backend *backend, ats_selection *selection, ats_err *err)
{
    const ats_select *select = &suite->select;
    if (select->heads_by_span == NULL) return ATS_OK;
    const int64_t span = ats_span_axis_find(axis, select->heads_by_span);
    if (span < 0 || span >= axis->count)
        return ats_fail(err, ATS_E_SUITE, "%s: select.heads.span: no chosen sample has a span '%s'",
                        suite->path, select->heads_by_span);
    const int64_t n = selection->n_heads;
    int64_t on = 0;
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_code rc = ATS_OK;
    for (int64_t l = 0; l < selection->n_layers; l++) {
        double *mass = NULL;
        int64_t *defined = NULL;
        ats_arena_reset(&arena);
        ATS_TRY(ATS_NEW0(&arena, n, &mass, err));
        ATS_TRY(ATS_NEW0(&arena, n, &defined, err));
        for (int64_t s = 0; s < selection->n_samples; s++)
            if (ats_span_axis_has(axis, selection->samples[s].sample, span))
                ATS_TRY(sum_sample(suite, axis, span, backend, selection, &selection->samples[s], l,
                                   &arena, mass, defined, err));
        for (int64_t h = 0; h < n; h++) {
            const bool enough =
                defined[h] > 0 && mass[h] / (double)defined[h] >= select->heads_min_mass;
            if (!enough) selection->head_on[l * n + h] = 0;
            on += selection->head_on[l * n + h];
        }
    }
    if (on == 0)
        ATS_TRY(ats_fail(err, ATS_E_SUITE,
                         "%s: select.heads: no head has a mean mass of %g on span '%s'; lower min",
                         suite->path, select->heads_min_mass, select->heads_by_span));
out:
    ats_arena_fini(&arena);
    return rc;
}

#include <math.h>
#include <string.h>

#include "engine/curve.h"
#include "engine/interrupt.h"
#include "engine/plan.h"
#include "engine/tensors_plan.h"
#include "metrics/threshold.h"

static const double real_tolerance = 0.01; /* a real dose is found to 1 % */

/* Margins of the target at one dose, mean over probes: [n_heads of the group]. */
typedef struct seen_dose {
    double dose;
    double *margin;
} seen_dose;

enum { MOST_DOSES = 256 };

/* One key head's search: doses that were evaluated serve all of its heads. */
typedef struct search {
    const ats_plan *plan;
    const ats_curve_group *group;
    const ats_group *heads;
    const ats_problem *problem;
    ats_build build; /* of the curve's first variant */
    ats_arena *arena;
    int64_t n_seen;
    seen_dose seen[MOST_DOSES];
    int64_t head; /* whose flip is looked for */
} search;

typedef struct margins {
    const search *s;
    double *out;
} margins;

static ats_code take_margins(void *ctx, int64_t variant, int worker, const ats_stats *base,
                             const ats_stats *stats, ats_err *err)
{
    const margins *m = ctx;
    const ats_problem *p = m->s->problem;
    (void)worker, (void)base, (void)err;
    if (variant < 0) return ATS_OK;
    for (int64_t h = 0; h < m->s->heads->n_heads; h++) {
        double sum = 0;
        int64_t n = 0;
        for (int64_t probe = 0; probe < p->n_probes; probe++) {
            const int64_t at = (h * p->n_probes + probe) * p->n_regions + m->s->plan->target_span;
            const double margin = stats->route.region_max[at] - stats->route.region_max_out[at];
            if (!isfinite(margin)) continue;
            sum += margin;
            n++;
        }
        m->out[h] = n > 0 ? sum / (double)n : (double)NAN;
    }
    return ATS_OK;
}

static ats_code evaluate(search *s, double dose, double *out, ats_err *err)
{
    const int64_t param = s->plan->curves.dose_param[s->group->perturbation],
                  n = s->build.family->n_params;
    ats_build build = s->build;
    ats_built built = {.dose = NAN};
    ats_param *params = NULL;
    margins m = {s, out};
    ats_code rc;
    ATS_TRY(ATS_NEW(s->arena, n, &params, err));
    memcpy(params, s->build.params, (size_t)n * sizeof *params);
    params[param].number = dose;
    build.params = params;
    build.arena = s->arena;
    ATS_TRY(
        ats_arena_printf(s->arena, &build.variant_id, err, "%s/search/%.17g", s->group->id, dose));
    ATS_TRY(ats_perturb_build(&build, &built, err));
    for (int64_t h = 0; h < s->heads->n_heads; h++) out[h] = (double)NAN;
    if (!built.skipped)
        rc = s->plan->backend->evaluate(s->problem, &built.edit, 1, take_margins, &m, err);
out:
    return rc;
}

static ats_code holds(void *ctx, double dose, bool *out, ats_err *err)
{
    search *s = ctx;
    ats_code rc;
    int64_t at = 0;
    while (at < s->n_seen && s->seen[at].dose != dose) at++;
    if (at == s->n_seen) {
        if (ats_interrupted()) return ats_fail(err, ATS_E_INTERRUPTED, "interrupted");
        if (at == MOST_DOSES)
            return ats_fail(err, ATS_E_INTERNAL, "more than %d doses searched", MOST_DOSES);
        ATS_TRY(ATS_NEW(s->arena, s->heads->n_heads, &s->seen[at].margin, err));
        ATS_TRY(evaluate(s, dose, s->seen[at].margin, err));
        s->seen[at].dose = dose;
        s->n_seen++;
    }
    /* an undefined margin does not hold: the target cannot be seen */
    *out = s->seen[at].margin[s->head] >= 0;
    rc = ATS_OK;
out:
    return rc;
}

static void range_of(const ats_plan *plan, const ats_curve_group *group, double *low, double *high)
{
    const int64_t param = plan->curves.dose_param[group->perturbation];
    *low = (double)INFINITY;
    *high = -(double)INFINITY;
    for (int64_t i = 0; i < group->n_variants; i++) {
        const double dose = plan->suite->variants[group->variants[i]].params[param].number;
        if (dose < *low) *low = dose;
        if (dose > *high) *high = dose;
    }
}

/* One curve, layer and key head into [n_heads of the axis]. */
static ats_code search_group(search *s, double *dose, int8_t *censored, ats_err *err)
{
    const ats_perturbation *p = &s->plan->suite->perturbations[s->group->perturbation];
    const int64_t param = s->plan->curves.dose_param[s->group->perturbation];
    const bool integer = p->family->params[param].type == ATS_PARAM_INT;
    double low, high;
    ats_code rc = ATS_OK;
    range_of(s->plan, s->group, &low, &high);
    if (!(low > 0)) return ATS_OK; /* the search halves the logarithm */
    s->n_seen = 0;
    for (s->head = 0; s->head < s->heads->n_heads; s->head++) {
        ats_breakdown found;
        ATS_TRY(ats_breakdown_search(low, high, integer, real_tolerance, holds, s, &found, err));
        dose[s->heads->place[s->head]] = found.dose;
        censored[s->heads->place[s->head]] = (int8_t)found.censored;
    }
out:
    return rc;
}

typedef struct job {
    const ats_plan *plan;
    ats_tensors *tensors;
    ats_arena groups, work;
    ats_breakdowns *out;
} job;

/* One key head of a sample and layer, every curve. */
static ats_code search_head(job *j, int64_t sample, int64_t l, const ats_group *heads,
                            const ats_donor *donors, int64_t n_donors, ats_err *err)
{
    const ats_plan *plan = j->plan;
    const ats_chosen *chosen = &plan->selection.samples[sample];
    const ats_layer *layer = &plan->captures[chosen->capture]->layers[plan->selection.layers[l]];
    const ats_pick pick = {heads->n_heads, heads->heads, chosen->n_probes, chosen->probes};
    const int64_t cells = plan->shape.n_layers * plan->shape.n_heads;
    ats_code rc = ATS_OK;
    for (int64_t g = 0; g < plan->curves.count; g++) {
        const ats_curve_group *group = &plan->curves.items[g];
        ats_problem problem;
        if (!plan->suite->perturbations[group->perturbation].breakdown_search) continue;
        ats_arena_reset(&j->work);
        search s = {
            .plan = plan, .group = group, .heads = heads, .problem = &problem, .arena = &j->work};
        ATS_TRY(ats_problem_make(&j->work, layer, chosen->sample, donors[0].attention,
                                 heads->kv_head, &pick, &plan->axis, plan->suite->temperature, 1,
                                 &problem, err));
        problem.memory = plan->workspace_limit;
        s.build = ats_plan_build(plan, sample, l, group->variants[0], donors, n_donors, &j->work);
        s.build.kv_head = heads->kv_head;
        s.build.n_heads = heads->n_heads;
        s.build.heads = heads->heads;
        const int64_t at = (sample * plan->curves.count + g) * cells + l * plan->shape.n_heads;
        ATS_TRY(search_group(&s, j->out->dose + at, j->out->censored + at, err));
    }
out:
    return rc;
}

static ats_code search_layer(job *j, int64_t sample, int64_t l, ats_err *err)
{
    const ats_plan *plan = j->plan;
    const int64_t all = ats_plan_layer(plan, l)->n_kv_heads;
    ats_donor donors[2];
    ats_group *groups = NULL;
    int64_t n_groups = 0, n_donors = 0;
    ats_code rc;
    ats_arena_reset(&j->groups);
    ATS_TRY(ats_select_groups(&j->groups, &plan->selection, l, &groups, &n_groups, err));
    if (!plan->by_head)
        ATS_TRY(ats_tensors_donors(j->tensors, plan, sample, l, 0, all, donors, &n_donors, err));
    for (int64_t k = 0; k < n_groups; k++) {
        if (plan->by_head)
            ATS_TRY(ats_tensors_donors(j->tensors, plan, sample, l, groups[k].kv_head, 1, donors,
                                       &n_donors, err));
        ATS_TRY(search_head(j, sample, l, &groups[k], donors, n_donors, err));
    }
out:
    return rc;
}

ats_code ats_breakdowns_make(ats_arena *arena, const ats_plan *plan, ats_tensors *tensors,
                             ats_breakdowns *out, ats_err *err)
{
    const int64_t n = plan->shape.n_curves * plan->shape.n_layers * plan->shape.n_heads;
    ats_breakdowns made = {.count = 0};
    job j = {.plan = plan, .tensors = tensors, .out = &made};
    bool asked = false;
    ats_code rc = ATS_OK;
    for (int64_t p = 0; p < plan->suite->n_perturbations; p++)
        asked |= plan->suite->perturbations[p].breakdown_search;
    if (!asked || n == 0) goto done;
    ATS_TRY(ATS_NEW(arena, n, &made.dose, err));
    ATS_TRY(ATS_NEW0(arena, n, &made.censored, err));
    for (int64_t i = 0; i < n; i++) made.dose[i] = (double)NAN;
    made.count = n;
    for (int64_t s = 0; s < plan->selection.n_samples; s++)
        for (int64_t l = 0; l < plan->selection.n_layers; l++) ATS_TRY(search_layer(&j, s, l, err));
done:
    *out = made;
out:
    ats_arena_fini(&j.groups);
    ats_arena_fini(&j.work);
    return rc;
}

ats_code ats_breakdowns_write(ats_arena *arena, const ats_breakdowns *found, ats_results *results,
                              ats_err *err)
{
    float *dose = NULL;
    int32_t *flag = NULL;
    ats_code rc = ATS_OK;
    if (found->count == 0) return ATS_OK;
    ATS_TRY(ATS_NEW(arena, found->count, &dose, err));
    ATS_TRY(ATS_NEW(arena, found->count, &flag, err));
    for (int64_t i = 0; i < found->count; i++) {
        dose[i] = (float)found->dose[i];
        flag[i] = isnan(found->dose[i]) ? ATS_INTEGER_UNDEFINED : found->censored[i];
    }
    const ats_curve_variable variables[] = {
        {"breakdown_search", "1", "dose at which the target leaves the top, found by bisection",
         "smallest dose seen with a margin below 0 (mean over probes) while bisecting between the "
         "least and the largest dose of the suite: whole numbers to the next, real doses to 1 %",
         dose, NULL},
        {"breakdown_search_censored", "1", "does the range hold the flip",
         "-1: broken at the least dose, 0: found, 1: it holds at the largest", NULL, flag},
    };
    rc = ats_results_curves(results, variables, 2, err);
out:
    return rc;
}

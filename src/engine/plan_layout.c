#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "engine/plan_private.h"

typedef struct layout_job {
    ats_plan *plan;
    ats_arena *arenas;     /* [2 * ats_threads()] */
    ats_plan_case *cases;  /* [n_samples, n_variants] */
    char (*reasons)[256];  /* [n_samples, n_variants] */
    int64_t *rows;         /* [n_samples] side rows over layers and key heads */
    double *effort;        /* [n_samples] of building beyond side rows */
    int64_t *shifts;       /* [n_samples] distinct query moves */
    ats_share_sum *shares; /* [n_samples] over layers and key heads */
} layout_job;

/* The accounts of one sample, by layer. */
typedef struct layer_shares {
    ats_problem *problems; /* [n_layers] shapes */
    ats_share *at;         /* [n_layers] */
    int64_t *heads;        /* [n_layers] key heads that are evaluated */
} layer_shares;

static ats_code begin_shares(const ats_plan *plan, int64_t s, ats_arena *arena, layer_shares *out,
                             ats_err *err)
{
    const ats_chosen *chosen = &plan->selection.samples[s];
    const ats_capture *capture = plan->captures[chosen->capture];
    const int64_t n = plan->selection.n_layers;
    layer_shares shares;
    ats_code rc;
    ATS_TRY(ATS_NEW0(arena, n, &shares.problems, err));
    ATS_TRY(ATS_NEW0(arena, n, &shares.at, err));
    ATS_TRY(ATS_NEW0(arena, n, &shares.heads, err));
    for (int64_t l = 0; l < n; l++) {
        ats_group *groups = NULL;
        ats_pick pick = {.n_probes = chosen->n_probes, .probes = chosen->probes};
        ATS_TRY(ats_select_groups(arena, &plan->selection, l, &groups, &shares.heads[l], err));
        for (int64_t g = 0; g < shares.heads[l]; g++)
            if (groups[g].n_heads > pick.n_heads) pick.n_heads = groups[g].n_heads;
        ATS_TRY(ats_problem_shape(arena, &capture->layers[plan->selection.layers[l]],
                                  chosen->sample, &pick, &plan->axis, 1, plan->suite->top_k, false,
                                  &shares.problems[l], err));
        ATS_TRY(ats_share_begin(arena, &shares.problems[l], &shares.at[l], err));
    }
    *out = shares;
out:
    return rc;
}

/* A layout that changes nothing changes the queries once there are some. */
static ats_code add_share(ats_share *share, const ats_edit *layout, ats_err *err)
{
    ats_share_edit look;
    ats_edit edit = *layout;
    ats_share_look(share->problem, &edit, &look);
    const bool idle = look.hidden + look.values + look.turned + look.renewed + look.inserted == 0;
    if (idle && edit.q == NULL) edit.q = share->problem->q;
    return ats_share_add(share, &edit, err);
}

static ats_code place_error(const ats_suite *suite, const ats_variant *variant, ats_code code,
                            ats_err *err)
{
    const ats_perturbation *p = &suite->perturbations[variant->perturbation];
    return ats_prepend(err, code, "%s:%lld:%lld: error: perturbation '%s'",
                       p->place.file != NULL ? p->place.file : suite->path,
                       (long long)p->place.line, (long long)p->place.column, p->name);
}

static void note_shift(int64_t *seen, int64_t *count, int64_t shift)
{
    if (shift == 0) return;
    for (int64_t i = 0; i < *count; i++)
        if (seen[i] == shift) return;
    seen[(*count)++] = shift;
}

/* One sample: every layer, every variant. A variant is skipped when every layer skips it. */
static ats_code layout_sample(void *ctx, int64_t s, int worker, ats_err *err)
{
    layout_job *job = ctx;
    ats_plan *plan = job->plan;
    const ats_suite *suite = plan->suite;
    const ats_chosen *chosen = &plan->selection.samples[s];
    const ats_capture *capture = plan->captures[chosen->capture];
    ats_arena *arena = &job->arenas[2 * worker], *mine = &job->arenas[2 * worker + 1];
    ats_donor donors[2] = {{.sample = chosen->sample}};
    if (chosen->donor >= 0) donors[1].sample = &capture->samples[chosen->donor];
    int64_t *seen = NULL;
    layer_shares shares;
    ats_code rc;
    ats_arena_reset(mine);
    ATS_TRY(begin_shares(plan, s, mine, &shares, err));
    ATS_TRY(ATS_NEW(mine, suite->n_variants, &seen, err));
    for (int64_t v = 0; v < suite->n_variants; v++) {
        const int64_t at = s * suite->n_variants + v;
        ats_plan_case *out = &job->cases[at];
        int64_t ran = 0;
        for (int64_t l = 0; l < plan->selection.n_layers; l++) {
            ats_arena_reset(arena);
            const ats_build build =
                ats_plan_build(plan, s, l, v, donors, chosen->donor >= 0 ? 2 : 1, arena);
            ats_built built = {.dose = NAN};
            rc = ats_perturb_build(&build, &built, err);
            if (rc != ATS_OK) {
                rc = place_error(suite, &suite->variants[v], rc, err);
                goto out;
            }
            if (built.skipped) {
                memcpy(job->reasons[at], built.reason, sizeof built.reason);
                continue;
            }
            ran++;
            out->dose = built.dose;
            if (built.edit.side.count > out->rows) out->rows = built.edit.side.count;
            job->rows[s] += built.edit.side.count * ats_plan_layer(plan, l)->n_kv_heads;
            job->effort[s] += ats_perturb_effort(&build, &built) * (double)shares.heads[l];
            ATS_TRY(add_share(&shares.at[l], &built.edit, err));
            note_shift(seen, &job->shifts[s], built.edit.query_delta);
        }
        if (ran == 0) out->reason = job->reasons[at]; /* keep_cases copies it */
    }
    for (int64_t l = 0; l < plan->selection.n_layers; l++) {
        ats_share_sum sum;
        ats_share_finish(&shares.at[l], &sum);
        ats_share_sum_add(&sum, shares.heads[l], &job->shares[s]);
    }
    rc = ATS_OK;
out:
    return rc;
}

/* A perturbation that no sample can run is a mistake in the suite, not a skipped case. */
static ats_code refuse_dead(const ats_plan *plan, const layout_job *job, ats_err *err)
{
    const ats_suite *suite = plan->suite;
    for (int64_t p = 0; p < suite->n_perturbations; p++) {
        int64_t runs = 0, last = -1;
        for (int64_t c = 0; c < plan->n_cases; c++) {
            if (suite->variants[c % suite->n_variants].perturbation != p) continue;
            if (job->cases[c].reason == NULL)
                runs++;
            else if (last < 0)
                last = c;
        }
        if (runs > 0 || last < 0) continue;
        const ats_place *place = &suite->perturbations[p].place;
        return ats_fail(err, ATS_E_SUITE,
                        "%s:%lld:%lld: error: perturbation '%s' can run on none of the %lld chosen "
                        "samples; sample %s: %s",
                        place->file != NULL ? place->file : suite->path, (long long)place->line,
                        (long long)place->column, suite->perturbations[p].name,
                        (long long)plan->selection.n_samples,
                        plan->selection.samples[last / suite->n_variants].sample->id,
                        job->cases[last].reason);
    }
    return ATS_OK;
}

/* The room for a reason of every case is given back, what was said stays. */
static ats_code keep_cases(ats_plan *plan, const ats_plan_case *cases, ats_err *err)
{
    ats_plan_case *kept = NULL;
    ats_code rc = ATS_NEW(&plan->arena, plan->n_cases, &kept, err);
    for (int64_t c = 0; c < plan->n_cases && rc == ATS_OK; c++) {
        kept[c] = cases[c];
        if (cases[c].reason == NULL) continue;
        rc = ats_arena_strdup(&plan->arena, cases[c].reason, &kept[c].reason, err);
        plan->n_skipped++;
    }
    plan->cases = kept;
    return rc;
}

ats_code ats_plan_layouts(ats_plan *plan, ats_err *err)
{
    const int64_t n_samples = plan->selection.n_samples;
    const int workers = 2 * ats_threads();
    layout_job job = {.plan = plan};
    ats_arena here = {.blocks = NULL};
    ats_code rc;
    ATS_TRY(ATS_NEW0(&here, workers, &job.arenas, err));
    ATS_TRY(ATS_NEW0(&here, plan->n_cases, &job.cases, err));
    ATS_TRY(ATS_NEW0(&here, plan->n_cases, &job.reasons, err));
    ATS_TRY(ATS_NEW0(&here, n_samples, &job.rows, err));
    ATS_TRY(ATS_NEW0(&here, n_samples, &job.effort, err));
    ATS_TRY(ATS_NEW0(&here, n_samples, &job.shifts, err));
    ATS_TRY(ATS_NEW0(&here, n_samples, &job.shares, err));
    for (int64_t c = 0; c < plan->n_cases; c++) job.cases[c].dose = NAN;
    ATS_TRY(ats_parallel_for(n_samples, layout_sample, &job, err));
    ATS_TRY(refuse_dead(plan, &job, err));
    ATS_TRY(keep_cases(plan, job.cases, err));
    for (int64_t s = 0; s < n_samples; s++) {
        plan->rows += job.rows[s];
        plan->effort += job.effort[s];
        ats_share_sum_add(&job.shares[s], 1, &plan->share);
        if (job.shifts[s] > plan->distinct_shifts) plan->distinct_shifts = job.shifts[s];
    }
out:
    for (int w = 0; job.arenas != NULL && w < workers; w++) ats_arena_fini(&job.arenas[w]);
    ats_arena_fini(&here);
    return rc;
}

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/parallel.h"
#include "engine/interrupt.h"
#include "engine/run_private.h"

void ats_case_fail(case_state *state, const char *message)
{
    if (state->status == ATS_CASE_FAILED) return;
    state->status = ATS_CASE_FAILED;
    snprintf(state->message, sizeof state->message, "%s", message);
}

typedef struct build_job {
    evaluation *work;
    const case_state *cases; /* [count] of the batch */
    int64_t *order;          /* [count] of the batch, most side rows first */
} build_job;

/* The longest builds first, so that no thread is left with one at the end; equal ones in order. */
static void order_by_rows(const evaluation *work, int64_t *order)
{
    const ats_plan_case *cases =
        work->plan->cases + work->sample * work->plan->suite->n_variants + work->first;
    for (int64_t i = 0; i < work->count; i++) {
        int64_t at = i;
        for (; at > 0 && cases[order[at - 1]].rows < cases[i].rows; at--) order[at] = order[at - 1];
        order[at] = i;
    }
}

static ats_code build_one(void *ctx, int64_t index, int worker, ats_err *err)
{
    build_job *job = ctx;
    evaluation *work = job->work;
    const int64_t i = job->order[index];
    work->built[i] = (ats_built){.dose = NAN};
    work->failed[i] = NULL;
    if (ats_interrupted()) return ats_fail(err, ATS_E_INTERRUPTED, "interrupted");
    if (job->cases[i].status != ATS_CASE_OK) {
        work->built[i].skipped = true;
        return ATS_OK;
    }
    ats_build build = ats_plan_build(work->plan, work->sample, work->layer, work->first + i,
                                     work->donors, work->n_donors, &work->arenas[worker]);
    build.kv_head = work->group->kv_head;
    build.n_heads = work->group->n_heads;
    build.heads = work->group->heads;
    build.cache = &work->caches[worker];
    ats_err mine = {.code = ATS_OK};
    const ats_code rc = ats_perturb_build(&build, &work->built[i], &mine);
    if (rc == ATS_OK) return ATS_OK;
    if (rc == ATS_E_MEMORY) {
        *err = mine;
        return rc;
    }
    ats_code made = ATS_NEW(&work->arenas[worker], 1, &work->failed[i], err);
    if (made == ATS_OK) *work->failed[i] = mine;
    return made;
}

static void add_mean(double value, double *sum, int64_t *n)
{
    if (isnan(value)) return;
    *sum += value;
    *n += 1;
}

/* What the batch's builds say about the cases; one thread, in case order. */
static void note_built(const evaluation *work, case_state *cases)
{
    for (int64_t i = 0; i < work->count; i++) {
        case_state *state = &cases[i];
        const ats_built *built = &work->built[i];
        if (state->status != ATS_CASE_OK) continue;
        if (work->failed[i] != NULL) {
            ats_case_fail(state, work->failed[i]->text);
            continue;
        }
        if (built->skipped) {
            const ats_chosen *chosen = &work->plan->selection.samples[work->sample];
            const int64_t layer = work->plan->selection.layers[work->layer];
            if (state->message[0] == '\0')
                snprintf(state->message, sizeof state->message, "skipped in layer %lld: %s",
                         (long long)work->plan->captures[chosen->capture]->layers[layer].index,
                         built->reason);
            continue;
        }
        state->ran = true;
        state->dose = built->dose;
        if (built->edit.side.count > state->rows) state->rows = built->edit.side.count;
        add_mean(built->realised.cosine, &state->cosine, &state->n_cosine);
        add_mean(built->realised.norm_ratio, &state->norm_ratio, &state->n_norm_ratio);
        add_mean(built->realised.logit, &state->logit, &state->n_logit);
    }
}

ats_code ats_run_build(evaluation *work, case_state *cases, ats_arena *arena, ats_err *err)
{
    build_job job = {.work = work, .cases = cases};
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, work->count, &job.order, err));
    order_by_rows(work, job.order);
    ATS_TRY(ATS_NEW(arena, work->count, &work->built, err));
    ATS_TRY(ATS_NEW0(arena, work->count, &work->failed, err));
    ATS_TRY(ATS_NEW(arena, work->count, &work->edits, err));
    ATS_TRY(ATS_NEW(arena, work->count, &work->edit_of, err));
    ATS_TRY(ats_parallel_for(work->count, build_one, &job, err));
    note_built(work, cases);
    work->n_edits = 0;
    for (int64_t i = 0; i < work->count; i++) {
        if (work->built[i].skipped || work->failed[i] != NULL) continue;
        work->edits[work->n_edits] = work->built[i].edit;
        work->edit_of[work->n_edits++] = i;
    }
out:
    return rc;
}

typedef struct emit_job {
    const evaluation *work;
    int64_t first; /* edit that variant 0 of this evaluation is */
} emit_job;

static ats_code record_stats(void *ctx, int64_t variant, int worker, const ats_stats *base,
                             const ats_stats *stats, ats_err *err)
{
    const emit_job *job = ctx;
    const evaluation *work = job->work;
    if (ats_interrupted()) return ats_fail(err, ATS_E_INTERRUPTED, "interrupted");
    const double start = ats_clock();
    const ats_plan *plan = work->plan;
    const ats_chosen *chosen = &plan->selection.samples[work->sample];
    const ats_capture *capture = plan->captures[chosen->capture];
    const ats_record_place place = {
        .case_index = variant < 0 ? -1 : work->edit_of[job->first + variant],
        .head = work->group->place,
        .w_o = work->w_o,
        .diagnoses = work->diagnoses,
        .d_model = capture->layers[plan->selection.layers[work->layer]].d_model,
        .readouts = plan->shape.n_readouts > 0 && work->w_o != NULL ? capture->readouts : NULL,
    };
    ats_code rc = ats_record(work->recorder, &place, work->problem, base, stats, err);
    work->measured[worker] += ats_clock() - start;
    return rc;
}

static ats_code evaluate_edits(evaluation *work, int64_t first, int64_t count, ats_err *err)
{
    emit_job job = {.work = work, .first = first};
    return work->plan->backend->evaluate(work->problem, work->edits + first, count, record_stats,
                                         &job, err);
}

static bool ends_the_run(ats_code rc)
{
    return rc == ATS_E_INTERRUPTED || rc == ATS_E_MEMORY || rc == ATS_E_DEVICE ||
           rc == ATS_E_INTERNAL;
}

/* Each variant by itself: a bad one must not take the others with it. */
static ats_code evaluate_apart(evaluation *work, case_state *cases, ats_err *err)
{
    for (int64_t e = 0; e < work->n_edits; e++) {
        ats_err mine = {.code = ATS_OK};
        const ats_code rc = evaluate_edits(work, e, 1, &mine);
        if (rc == ATS_OK) continue;
        if (ends_the_run(rc)) {
            *err = mine;
            return rc;
        }
        ats_case_fail(&cases[work->edit_of[e]], mine.text);
    }
    return ATS_OK;
}

/* The account of the edits that really run. */
ats_code ats_run_share(const evaluation *work, ats_arena *arena, ats_share_sum *sum, ats_err *err)
{
    ats_share share;
    ats_share_sum one;
    ats_code rc;
    ATS_TRY(ats_share_begin(arena, work->problem, &share, err));
    for (int64_t e = 0; e < work->n_edits; e++)
        ATS_TRY(ats_share_add(&share, &work->edits[e], err));
    ats_share_finish(&share, &one);
    ats_share_sum_add(&one, 1, sum);
out:
    return rc;
}

ats_code ats_run_evaluate(evaluation *work, case_state *cases, ats_err *err)
{
    ats_err first = {.code = ATS_OK};
    ats_code rc = evaluate_edits(work, 0, work->n_edits, &first);
    if (rc == ATS_OK) return ATS_OK;
    if (!ends_the_run(rc)) {
        ats_err alone = {.code = ATS_OK};
        rc = evaluate_edits(work, 0, 0, &alone);
        if (rc == ATS_OK) return evaluate_apart(work, cases, err);
        first = alone;
    }
    *err = first;
    return rc;
}

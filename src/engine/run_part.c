/* One part of a run: its sample through every layer, and what becomes of it handed over. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/parallel.h"
#include "engine/interrupt.h"
#include "engine/run_private.h"
#include "engine/sharpness.h"
#include "engine/tensors_plan.h"

static ats_code make_recorders(ats_run_common *common, const ats_plan *plan, ats_err *err)
{
    const ats_record_shape shape = {
        .n_cases = plan->batch,
        .n_heads = plan->shape.n_heads,
        .n_probes = plan->shape.n_probes,
        .n_spans = plan->shape.n_spans,
        .n_top = plan->shape.n_top,
        .n_readouts = plan->shape.n_readouts,
        .d_v = plan->shape.d_v,
        .target_span = plan->target_span,
        .detail_head = plan->shape.detail_head,
    };
    ats_code rc;
    for (int i = 0; i < ATS_RUN_RECORDERS; i++) {
        ats_written *written = &common->written[i];
        written->number = -1;
        ATS_TRY(ats_recorder_new(&common->arena, &shape, plan->metrics, plan->n_metrics,
                                 &written->recorder, err));
        ATS_TRY(ATS_NEW(&common->arena, 2 * plan->n_metrics + 3, &written->blocks, err));
    }
out:
    return rc;
}

ats_code ats_run_common_init(ats_run_common *common, const ats_plan *plan, ats_err *err)
{
    ats_code rc;
    common->plan = plan;
    common->tensors.budget = (size_t)plan->tensor_cache;
    for (int64_t c = 0; c < plan->n_captures; c++)
        ats_capture_share(plan->captures[c], &common->io);
    ATS_TRY(ATS_NEW0(&common->arena, ats_threads(), &common->workers, err));
    ATS_TRY(ATS_NEW0(&common->arena, ats_threads(), &common->caches, err));
    ATS_TRY(ATS_NEW0(&common->arena, ats_threads(), &common->measured, err));
    ATS_TRY(make_recorders(common, plan, err));
    rc = ats_behind_new(&common->behind, err);
out:
    return rc;
}

void ats_run_common_fini(ats_run_common *common)
{
    ats_behind_free(common->behind);
    ats_tensors_fini(&common->tensors);
    for (int64_t c = 0; common->plan != NULL && c < common->plan->n_captures; c++)
        ats_capture_share(common->plan->captures[c], NULL);
    for (int w = 0; w < ats_threads(); w++) {
        if (common->workers != NULL) ats_arena_fini(&common->workers[w]);
        if (common->caches != NULL) ats_build_cache_fini(&common->caches[w]);
    }
    ats_arena_fini(&common->group);
    ats_arena_fini(&common->arena);
}

static ats_code start(ats_part_run *r, ats_err *err)
{
    const ats_plan *plan = &r->plan;
    ats_code rc;
    for (int w = 0; w < ats_threads(); w++) r->common->measured[w] = 0;
    ATS_TRY(ATS_NEW0(&r->arena, plan->n_cases, &r->cases, err));
    for (int64_t c = 0; c < plan->n_cases; c++) {
        r->cases[c].dose = NAN;
        if (plan->cases[c].reason == NULL) continue;
        r->cases[c].status = ATS_CASE_SKIPPED;
        snprintf(r->cases[c].message, sizeof r->cases[c].message, "%s", plan->cases[c].reason);
    }
    ATS_TRY(ats_tables_make(&r->outcome.arena, plan, &r->outcome.tables, err));
    rc = ats_write_open(r, err);
out:
    return rc;
}

static ats_code head_w_o(ats_part_run *r, const ats_layer *layer, evaluation *work, ats_err *err)
{
    const float **w_o = NULL;
    work->w_o = NULL;
    const char *residual = r->plan.suite->residual;
    if (layer->w_o == NULL || (residual != NULL && strcmp(residual, "off") == 0)) return ATS_OK;
    ats_code rc = ATS_NEW(&r->common->group, work->group->n_heads, &w_o, err);
    if (rc != ATS_OK) return rc;
    for (int64_t h = 0; h < work->group->n_heads; h++)
        w_o[h] = layer->w_o + work->group->heads[h] * layer->d_v * layer->d_model;
    work->w_o = w_o;
    return ATS_OK;
}

static ats_code load(ats_part_run *r, int64_t first, int64_t count, evaluation *work, ats_err *err)
{
    const double t = ats_clock();
    const ats_code rc = ats_tensors_donors(&r->common->tensors, &r->plan, work->sample, work->layer,
                                           first, count, work->donors, &work->n_donors, err);
    r->outcome.read += ats_clock() - t;
    return rc;
}

/* The next layer, or the next sample's first one, is read while this one is evaluated. */
static void read_ahead(ats_part_run *r, int64_t s, int64_t l)
{
    ats_tensor_want want[2];
    const int64_t next_l = l + 1 < r->plan.selection.n_layers ? l + 1 : 0;
    const int64_t next_s = next_l > 0 ? s : s + 1;
    if (!r->plan.read_ahead || next_s >= r->plan.selection.n_samples) return;
    const int n = ats_tensors_wanted(&r->plan, next_s, next_l, 0,
                                     ats_plan_layer(&r->plan, next_l)->n_kv_heads, want);
    ats_tensors_ahead(&r->common->tensors, want, n);
}

/* Why each base row is sharp; with the first batch, as the base's numbers are written then. */
static ats_code diagnose(ats_part_run *r, evaluation *work, const ats_sample *sample,
                         const ats_pick *pick, ats_err *err)
{
    uint8_t *sinks = NULL;
    ats_diagnosis *made = NULL;
    ats_code rc;
    ATS_TRY(ats_sharpness_sinks(&r->common->group, sample, &sinks, err));
    ATS_TRY(ATS_NEW(&r->common->group, work->problem->n_rows, &made, err));
    const ats_sharpness sharpness = {.problem = work->problem,
                                     .pick = pick,
                                     .sample = sample,
                                     .sinks = sinks,
                                     .seed = r->plan.suite->seed,
                                     .arenas = r->common->workers};
    ATS_TRY(ats_sharpness_rows(&sharpness, made, err));
    work->diagnoses = made;
out:
    return rc;
}

static void reset_workers(ats_part_run *r)
{
    for (int w = 0; w < ats_threads(); w++) ats_arena_reset(&r->common->workers[w]);
}

/* One key head: problem, edits, statistics. */
static ats_code run_group(ats_part_run *r, evaluation *work, const ats_group *group,
                          case_state *cases, ats_err *err)
{
    const ats_plan *plan = &r->plan;
    const ats_chosen *chosen = &plan->selection.samples[work->sample];
    const ats_layer *layer =
        &plan->captures[chosen->capture]->layers[plan->selection.layers[work->layer]];
    const ats_pick pick = {group->n_heads, group->heads, chosen->n_probes, chosen->probes};
    ats_problem problem;
    ats_code rc;
    ats_arena_reset(&r->common->group);
    work->group = group;
    work->problem = &problem;
    work->diagnoses = NULL;
    if (plan->by_head) ATS_TRY(load(r, group->kv_head, 1, work, err));
    const double t0 = ats_clock();
    ATS_TRY(head_w_o(r, layer, work, err));
    ATS_TRY(ats_problem_make(&r->common->group, layer, chosen->sample, work->donors[0].attention,
                             group->kv_head, &pick, &plan->axis, plan->suite->temperature,
                             plan->suite->top_k, &problem, err));
    problem.memory = plan->workspace_limit;
    problem.account = &r->outcome.account;
    ATS_TRY(plan->backend->supports(&problem, err));
    if (plan->diagnoses && work->first == 0) ATS_TRY(diagnose(r, work, chosen->sample, &pick, err));
    reset_workers(r);
    ATS_TRY(ats_run_build(work, cases, &r->common->group, err));
    ATS_TRY(ats_run_share(work, &r->common->group, &r->outcome.share, err));
    const double t1 = ats_clock();
    rc = ats_run_evaluate(work, cases, err);
    if (rc == ATS_E_DEVICE)
        rc = ats_prepend(err, rc, "sample %s, layer %lld, key head %lld", chosen->sample->id,
                         (long long)layer->index, (long long)group->kv_head);
    ATS_TRY(rc);
    r->outcome.build += t1 - t0;
    r->outcome.evaluate += ats_clock() - t1;
out:
    return rc;
}

/* A recorder whose numbers are written already. */
static ats_code next_recorder(ats_part_run *r, evaluation *work, ats_err *err)
{
    ats_run_common *common = r->common;
    common->turn = (common->turn + 1) % ATS_RUN_RECORDERS;
    ats_written *next = &common->written[common->turn];
    const double t = ats_clock();
    const ats_code rc = ats_behind_wait(common->behind, next->number, err);
    r->outcome.write += ats_clock() - t;
    if (rc != ATS_OK) return rc;
    next->recorder.shape.d_v = ats_plan_layer(&r->plan, work->layer)->d_v;
    ats_recorder_clear(&next->recorder);
    work->recorder = &next->recorder;
    return ATS_OK;
}

/* All key heads of one batch of variants in one layer, then its place in the file. */
static ats_code run_batch(ats_part_run *r, evaluation *work, const ats_group *groups,
                          int64_t n_groups, ats_err *err)
{
    case_state *cases = r->cases + work->sample * r->plan.suite->n_variants + work->first;
    ats_code rc;
    ATS_TRY(next_recorder(r, work, err));
    for (int64_t g = 0; g < n_groups; g++) ATS_TRY(run_group(r, work, &groups[g], cases, err));
    for (int64_t i = 0; i < work->count; i++) cases[i].undefined += work->recorder->undefined[i];
    ats_tables_take(&r->outcome.tables, &r->plan, work->recorder, work->sample, work->layer,
                    work->first, work->count);
    ATS_TRY(ats_write_batch(r, work, err));
    r->done += work->count;
    const int64_t all = r->plan.n_cases * r->plan.selection.n_layers;
    ats_progress(r->common->done + r->done, r->common->total, "cases x layers",
                 r->plan.backend->name);
    ats_interrupt_expect(r->start, (double)r->done / (double)all);
out:
    return rc;
}

static ats_code run_layer(ats_part_run *r, int64_t s, int64_t l, ats_err *err)
{
    evaluation work = {.plan = &r->plan,
                       .sample = s,
                       .layer = l,
                       .arenas = r->common->workers,
                       .caches = r->common->caches,
                       .measured = r->common->measured};
    ats_arena arena;
    ats_group *groups = NULL;
    int64_t n_groups = 0;
    ats_arena_init(&arena, false);
    ats_code rc;
    ATS_TRY(ats_select_groups(&arena, &r->plan.selection, l, &groups, &n_groups, err));
    if (!r->plan.by_head) ATS_TRY(load(r, 0, ats_plan_layer(&r->plan, l)->n_kv_heads, &work, err));
    read_ahead(r, s, l);
    for (work.first = 0; work.first < r->plan.suite->n_variants; work.first += r->plan.batch) {
        work.count = r->plan.suite->n_variants - work.first;
        if (work.count > r->plan.batch) work.count = r->plan.batch;
        ATS_TRY(run_batch(r, &work, groups, n_groups, err));
    }
out:
    ats_arena_fini(&arena);
    return rc;
}

static bool fails_cases(ats_code rc) { return rc == ATS_E_INPUT; }

/* Bad tensors fail the sample's cases; anything else ends the run. */
static ats_code run_sample(ats_part_run *r, int64_t s, ats_err *err)
{
    const int64_t n = r->plan.suite->n_variants;
    for (int64_t l = 0; l < r->plan.selection.n_layers; l++) {
        ats_code rc = run_layer(r, s, l, err);
        if (rc == ATS_OK) continue;
        if (!fails_cases(rc)) return rc;
        if (r->first_failure.code == ATS_OK) r->first_failure = *err;
        for (int64_t v = 0; v < n; v++)
            if (r->cases[s * n + v].status == ATS_CASE_OK)
                ats_case_fail(&r->cases[s * n + v], err->text);
        r->done += n * (r->plan.selection.n_layers - l);
        return ATS_OK;
    }
    return ATS_OK;
}

static ats_code run_samples(ats_part_run *r, ats_err *err)
{
    ats_code rc;
    ATS_TRY(start(r, err));
    for (int64_t s = 0; s < r->plan.selection.n_samples; s++) ATS_TRY(run_sample(r, s, err));
    const double t = ats_clock();
    ATS_TRY(ats_breakdowns_make(&r->arena, &r->plan, &r->common->tensors, &r->breakdowns, err));
    r->outcome.evaluate += ats_clock() - t;
    for (int w = 0; w < ats_threads(); w++)
        r->outcome.measure += r->common->measured[w] / ats_threads();
    r->outcome.evaluate -= r->outcome.measure;
    rc = ats_write_end(r, err);
out:
    return rc;
}

ats_code ats_part_run_begin(const ats_plan *plan, const char *path, ats_run_common *common,
                            ats_part_run **out, ats_err *err)
{
    ats_part_run *r = calloc(1, sizeof *r);
    if (r == NULL) return ats_fail(err, ATS_E_MEMORY, "%s: out of memory", path);
    *r = (ats_part_run){.plan = *plan, .path = path, .common = common, .start = ats_clock()};
    const ats_code rc = run_samples(r, err);
    if (rc == ATS_OK)
        *out = r;
    else
        ats_part_run_free(r);
    return rc;
}

/* Time also of a part that was not finished. */
static void note_part(ats_part_run *r, bool finished)
{
    ats_run_account *sum = &r->common->account;
    const ats_outcome *o = &r->outcome;
    const char *id = r->plan.selection.samples[0].sample->id; /* a part holds one sample */
    r->noted = true;
    sum->read += o->read;
    sum->build += o->build;
    sum->evaluate += o->evaluate;
    sum->measure += o->measure;
    sum->write += o->write;
    if (!finished) return;
    sum->n_made++;
    sum->n_ok += o->n_ok;
    sum->n_skipped += o->n_skipped;
    sum->n_failed += o->n_failed;
    const ats_log_field fields[] = {
        {.key = "sample", .text = id},
        {.key = "part", .number = (double)r->plan.part},
        {.key = "samples", .number = (double)r->plan.part_count},
        {.key = "ok", .number = (double)o->n_ok},
        {.key = "skipped", .number = (double)o->n_skipped},
        {.key = "failed", .number = (double)o->n_failed},
        {.key = "seconds", .number = ats_clock() - r->start},
    };
    ats_event("sample", fields, sizeof fields / sizeof *fields, "sample %s is sealed", id);
}

ats_code ats_part_run_end(ats_part_run *r, ats_outcome *out, ats_err *failure, ats_err *err)
{
    const double t = ats_clock();
    const ats_code rc = ats_behind_wait(r->common->behind, r->last, err);
    r->outcome.write += ats_clock() - t;
    if (rc != ATS_OK) return rc;
    note_part(r, true);
    *out = r->outcome;
    *failure = r->first_failure;
    r->outcome = (ats_outcome){.n_cases = 0};
    return ATS_OK;
}

void ats_part_run_free(ats_part_run *r)
{
    if (r == NULL) return;
    ats_behind_settle(r->common->behind);
    if (!r->noted) note_part(r, false);
    ats_write_abort(r);
    ats_outcome_fini(&r->outcome);
    ats_arena_fini(&r->writing);
    ats_arena_fini(&r->arena);
    free(r);
}

void ats_outcome_fini(ats_outcome *outcome)
{
    ats_arena_fini(&outcome->arena);
    *outcome = (ats_outcome){0};
}

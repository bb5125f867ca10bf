#include "engine/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/parallel.h"
#include "engine/interrupt.h"
#include "engine/run_private.h"
#include "engine/sharpness.h"

typedef struct run {
    const ats_plan *plan;
    ats_outcome *outcome;
    ats_results *results;
    ats_recorder recorder;
    ats_tensors *tensors;    /* outlives the part */
    ats_arena arena;         /* whole run */
    ats_arena group;         /* one key head of one batch */
    ats_arena *workers;      /* [ats_threads()] edits of one key head */
    ats_build_cache *caches; /* [ats_threads()] */
    ats_block *blocks;       /* [2 * n_metrics + 3] */
    double *measured;        /* [ats_threads()] */
    case_state *cases;       /* [n_samples, n_variants] */
    ats_err first_failure;
    ats_run_progress *progress;
    int64_t done; /* cases x layers of this part */
    double start;
} run;

static ats_code make_recorder(run *r, ats_err *err)
{
    const ats_plan *plan = r->plan;
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
    return ats_recorder_new(&r->arena, &shape, plan->metrics, plan->n_metrics, &r->recorder, err);
}

static ats_code open_results(run *r, const char *path, ats_err *err)
{
    const ats_plan *plan = r->plan;
    const ats_suite *suite = plan->suite;
    ats_coordinates coordinates = {0};
    ats_attribute *attributes = NULL;
    int64_t n_attributes = 0;
    ats_code rc;
    ATS_TRY(ats_coordinates_before(plan, &r->arena, &coordinates, err));
    ATS_TRY(ats_attributes_make(plan, &r->arena, &attributes, &n_attributes, err));
    const ats_results_options options = {
        .compression = suite->compression,
        .level = (int)suite->level,
        .vectors = suite->vectors,
        .n_metrics = plan->n_metrics,
        .metrics = plan->metrics,
        .n_coordinates = coordinates.count,
        .coordinates = coordinates.items,
        .n_attributes = n_attributes,
        .attributes = attributes,
        .suite_text = suite->resolved,
        .sealed = plan->part_count > 0,
    };
    ATS_TRY(ats_results_create(path, &plan->shape, &options, &r->results, err));
out:
    return rc;
}

static ats_code start(run *r, const char *path, ats_err *err)
{
    const ats_plan *plan = r->plan;
    ats_code rc;
    r->tensors->budget = (size_t)plan->tensor_cache;
    for (int64_t c = 0; c < plan->n_captures; c++)
        ats_capture_share(plan->captures[c], &r->progress->io);
    ATS_TRY(ATS_NEW0(&r->arena, ats_threads(), &r->workers, err));
    ATS_TRY(ATS_NEW0(&r->arena, ats_threads(), &r->caches, err));
    ATS_TRY(ATS_NEW0(&r->arena, ats_threads(), &r->measured, err));
    ATS_TRY(ATS_NEW(&r->arena, 2 * plan->n_metrics + 3, &r->blocks, err));
    ATS_TRY(ATS_NEW0(&r->arena, plan->n_cases, &r->cases, err));
    for (int64_t c = 0; c < plan->n_cases; c++) {
        r->cases[c].dose = NAN;
        if (plan->cases[c].reason == NULL) continue;
        r->cases[c].status = ATS_CASE_SKIPPED;
        snprintf(r->cases[c].message, sizeof r->cases[c].message, "%s", plan->cases[c].reason);
    }
    ATS_TRY(ats_tables_make(&r->outcome->arena, plan, &r->outcome->tables, err));
    ATS_TRY(make_recorder(r, err));
    ATS_TRY(open_results(r, path, err));
out:
    return rc;
}

/* Base blocks go with the first batch only. */
static ats_code write_batch(run *r, const evaluation *work, ats_err *err)
{
    const ats_recorder *recorder = &r->recorder;
    int64_t n = 0;
    for (int64_t m = 0; m < recorder->n_metrics; m++) {
        const bool integer = recorder->metrics[m]->integer;
        if (integer ? recorder->integers[m] != NULL : recorder->values[m] != NULL)
            r->blocks[n++] = (ats_block){.metric = m,
                                         .values = integer ? NULL : recorder->values[m],
                                         .integers = integer ? recorder->integers[m] : NULL};
        if (work->first > 0) continue;
        if (integer ? recorder->base_integers[m] != NULL : recorder->base_values[m] != NULL)
            r->blocks[n++] = (ats_block){.metric = m,
                                         .base = true,
                                         .values = integer ? NULL : recorder->base_values[m],
                                         .integers = integer ? recorder->base_integers[m] : NULL};
    }
    r->blocks[n++] = (ats_block){.metric = ATS_BLOCK_UNDEFINED, .counts = recorder->undefined};
    if (recorder->shape.detail_head) {
        r->blocks[n++] =
            (ats_block){.metric = ATS_BLOCK_WORST_PROBE, .integers = recorder->worst_probe};
        r->blocks[n++] =
            (ats_block){.metric = ATS_BLOCK_WORST_VALUE, .values = recorder->worst_value};
    }
    const int64_t start_case = work->sample * r->plan->suite->n_variants + work->first;
    return ats_results_write(r->results, work->sample, work->layer, start_case, work->count,
                             r->blocks, n, err);
}

static ats_code head_w_o(run *r, const ats_layer *layer, evaluation *work, ats_err *err)
{
    const float **w_o = NULL;
    work->w_o = NULL;
    const char *residual = r->plan->suite->residual;
    if (layer->w_o == NULL || (residual != NULL && strcmp(residual, "off") == 0)) return ATS_OK;
    ats_code rc = ATS_NEW(&r->group, work->group->n_heads, &w_o, err);
    if (rc != ATS_OK) return rc;
    for (int64_t h = 0; h < work->group->n_heads; h++)
        w_o[h] = layer->w_o + work->group->heads[h] * layer->d_v * layer->d_model;
    work->w_o = w_o;
    return ATS_OK;
}

/* Key heads [first, first + count) of the sample and of its donor in a layer. */
static int wanted(const ats_plan *plan, int64_t s, int64_t l, int64_t first, int64_t count,
                  ats_tensor_want out[2])
{
    const ats_chosen *chosen = &plan->selection.samples[s];
    out[0] = (ats_tensor_want){.capture = plan->captures[chosen->capture],
                               .sample = chosen->index,
                               .layer = plan->selection.layers[l],
                               .first = first,
                               .count = count};
    out[1] = out[0];
    out[1].sample = chosen->donor;
    return chosen->donor >= 0 ? 2 : 1;
}

static int64_t key_heads(const ats_plan *plan, int64_t l)
{
    return plan->captures[0]->layers[plan->selection.layers[l]].n_kv_heads;
}

static ats_code load(run *r, int64_t first, int64_t count, evaluation *work, ats_err *err)
{
    const double t = ats_clock();
    ats_tensor_want want[2];
    ats_code rc = ATS_OK;
    work->n_donors = wanted(r->plan, work->sample, work->layer, first, count, want);
    for (int64_t i = 0; i < work->n_donors; i++) {
        work->donors[i].sample = &want[i].capture->samples[want[i].sample];
        ATS_TRY(ats_tensors_get(r->tensors, &want[i], &work->donors[i].attention, err));
    }
    r->outcome->read += ats_clock() - t;
out:
    return rc;
}

/* The next layer, or the next sample's first one, is read while this one is evaluated. */
static void read_ahead(run *r, int64_t s, int64_t l)
{
    ats_tensor_want want[2];
    const int64_t next_l = l + 1 < r->plan->selection.n_layers ? l + 1 : 0;
    const int64_t next_s = next_l > 0 ? s : s + 1;
    if (!r->plan->read_ahead || next_s >= r->plan->selection.n_samples) return;
    const int n = wanted(r->plan, next_s, next_l, 0, key_heads(r->plan, next_l), want);
    ats_tensors_ahead(r->tensors, want, n);
}

/* Why each base row is sharp; with the first batch, as the base's numbers are written then. */
static ats_code diagnose(run *r, evaluation *work, const ats_sample *sample, const ats_pick *pick,
                         ats_err *err)
{
    uint8_t *sinks = NULL;
    ats_diagnosis *made = NULL;
    ats_code rc;
    ATS_TRY(ats_sharpness_sinks(&r->group, sample, &sinks, err));
    ATS_TRY(ATS_NEW(&r->group, work->problem->n_rows, &made, err));
    const ats_sharpness sharpness = {.problem = work->problem,
                                     .pick = pick,
                                     .sample = sample,
                                     .sinks = sinks,
                                     .seed = r->plan->suite->seed,
                                     .arenas = r->workers};
    ATS_TRY(ats_sharpness_rows(&sharpness, made, err));
    work->diagnoses = made;
out:
    return rc;
}

static void reset_workers(run *r)
{
    for (int w = 0; w < ats_threads(); w++) ats_arena_reset(&r->workers[w]);
}

/* One key head: problem, edits, statistics. */
static ats_code run_group(run *r, evaluation *work, const ats_group *group, case_state *cases,
                          ats_err *err)
{
    const ats_plan *plan = r->plan;
    const ats_chosen *chosen = &plan->selection.samples[work->sample];
    const ats_layer *layer =
        &plan->captures[chosen->capture]->layers[plan->selection.layers[work->layer]];
    const ats_pick pick = {group->n_heads, group->heads, chosen->n_probes, chosen->probes};
    ats_problem problem;
    ats_code rc;
    ats_arena_reset(&r->group);
    work->group = group;
    work->problem = &problem;
    work->diagnoses = NULL;
    if (plan->by_head) ATS_TRY(load(r, group->kv_head, 1, work, err));
    const double t0 = ats_clock();
    ATS_TRY(head_w_o(r, layer, work, err));
    ATS_TRY(ats_problem_make(&r->group, layer, chosen->sample, work->donors[0].attention,
                             group->kv_head, &pick, &plan->axis, plan->suite->temperature,
                             plan->suite->top_k, &problem, err));
    problem.memory = plan->workspace_limit;
    problem.account = &r->outcome->account;
    ATS_TRY(plan->backend->supports(&problem, err));
    if (plan->diagnoses && work->first == 0) ATS_TRY(diagnose(r, work, chosen->sample, &pick, err));
    reset_workers(r);
    ATS_TRY(ats_run_build(work, cases, &r->group, err));
    ATS_TRY(ats_run_share(work, &r->group, &r->outcome->share, err));
    const double t1 = ats_clock();
    ATS_TRY(ats_run_evaluate(work, cases, err));
    r->outcome->build += t1 - t0;
    r->outcome->evaluate += ats_clock() - t1;
out:
    return rc;
}

/* All key heads of one batch of variants in one layer, then its place in the file. */
static ats_code run_batch(run *r, evaluation *work, const ats_group *groups, int64_t n_groups,
                          ats_err *err)
{
    case_state *cases = r->cases + work->sample * r->plan->suite->n_variants + work->first;
    ats_code rc = ATS_OK;
    ats_recorder_clear(&r->recorder);
    for (int64_t g = 0; g < n_groups; g++) ATS_TRY(run_group(r, work, &groups[g], cases, err));
    for (int64_t i = 0; i < work->count; i++) cases[i].undefined += r->recorder.undefined[i];
    ats_tables_take(&r->outcome->tables, r->plan, &r->recorder, work->sample, work->layer,
                    work->first, work->count);
    const double t = ats_clock();
    pthread_mutex_lock(&r->progress->io);
    rc = write_batch(r, work, err);
    pthread_mutex_unlock(&r->progress->io);
    ATS_TRY(rc);
    r->outcome->write += ats_clock() - t;
    r->done += work->count;
    const int64_t all = r->plan->n_cases * r->plan->selection.n_layers;
    ats_progress(r->progress->done + r->done, r->progress->total, "cases x layers",
                 r->plan->backend->name);
    ats_interrupt_expect(r->start, (double)r->done / (double)all);
out:
    return rc;
}

static ats_code run_layer(run *r, int64_t s, int64_t l, ats_err *err)
{
    evaluation work = {.plan = r->plan,
                       .recorder = &r->recorder,
                       .sample = s,
                       .layer = l,
                       .arenas = r->workers,
                       .caches = r->caches,
                       .measured = r->measured};
    ats_arena arena;
    ats_group *groups = NULL;
    int64_t n_groups = 0;
    ats_arena_init(&arena, false);
    ats_code rc;
    r->recorder.shape.d_v = r->plan->captures[0]->layers[r->plan->selection.layers[l]].d_v;
    ATS_TRY(ats_select_groups(&arena, &r->plan->selection, l, &groups, &n_groups, err));
    if (!r->plan->by_head) ATS_TRY(load(r, 0, key_heads(r->plan, l), &work, err));
    read_ahead(r, s, l);
    for (work.first = 0; work.first < r->plan->suite->n_variants; work.first += r->plan->batch) {
        work.count = r->plan->suite->n_variants - work.first;
        if (work.count > r->plan->batch) work.count = r->plan->batch;
        ATS_TRY(run_batch(r, &work, groups, n_groups, err));
    }
out:
    ats_arena_fini(&arena);
    return rc;
}

static bool fails_cases(ats_code rc) { return rc == ATS_E_INPUT; }

/* Bad tensors fail the sample's cases; anything else ends the run. */
static ats_code run_sample(run *r, int64_t s, ats_err *err)
{
    const int64_t n = r->plan->suite->n_variants;
    for (int64_t l = 0; l < r->plan->selection.n_layers; l++) {
        ats_code rc = run_layer(r, s, l, err);
        if (rc == ATS_OK) continue;
        if (!fails_cases(rc)) return rc;
        if (r->first_failure.code == ATS_OK) r->first_failure = *err;
        for (int64_t v = 0; v < n; v++)
            if (r->cases[s * n + v].status == ATS_CASE_OK)
                ats_case_fail(&r->cases[s * n + v], err->text);
        r->done += n * (r->plan->selection.n_layers - l);
        return ATS_OK;
    }
    return ATS_OK;
}

static double mean(double sum, int64_t n) { return n > 0 ? sum / (double)n : (double)NAN; }

static ats_code settle_cases(run *r, ats_err *err)
{
    const int64_t n = r->plan->n_cases;
    ats_outcome *outcome = r->outcome;
    ats_case *cases = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW0(&outcome->arena, n, &cases, err));
    for (int64_t c = 0; c < n; c++) {
        case_state *state = &r->cases[c];
        ats_case *out = &cases[c];
        if (state->status == ATS_CASE_OK && !state->ran) state->status = ATS_CASE_SKIPPED;
        out->status = state->status;
        ATS_TRY(ats_arena_strdup(&outcome->arena, state->message, &out->message, err));
        out->rows = state->rows;
        out->dose = state->ran ? state->dose : r->plan->cases[c].dose;
        out->cosine = mean(state->cosine, state->n_cosine);
        out->norm_ratio = mean(state->norm_ratio, state->n_norm_ratio);
        out->logit = mean(state->logit, state->n_logit);
        out->undefined = state->undefined;
        outcome->n_ok += state->status == ATS_CASE_OK;
        outcome->n_skipped += state->status == ATS_CASE_SKIPPED;
        outcome->n_failed += state->status == ATS_CASE_FAILED;
        outcome->n_undefined += state->undefined;
    }
    outcome->cases = cases;
    outcome->n_cases = n;
out:
    return rc;
}

static ats_code finish(run *r, ats_err *err)
{
    ats_coordinates late = {0};
    ats_code rc;
    ats_tensors_settle(r->tensors); /* nobody else uses HDF5 from here on */
    ATS_TRY(settle_cases(r, err));
    ATS_TRY(ats_coordinates_after(r->plan, r->outcome->cases, &r->arena, &late, err));
    const double t = ats_clock();
    ATS_TRY(ats_results_coordinates(r->results, late.items, late.count, err));
    ATS_TRY(ats_curves_make(&r->outcome->arena, r->plan, r->outcome, &r->outcome->curves, err));
    ATS_TRY(ats_curves_write(&r->arena, r->plan, &r->outcome->curves, r->results, err));
    ats_breakdowns breakdowns = {.count = 0};
    ATS_TRY(ats_breakdowns_make(&r->arena, r->plan, &breakdowns, err));
    ATS_TRY(ats_breakdowns_write(&r->arena, &breakdowns, r->results, err));
    ATS_TRY(ats_interactions_write(&r->arena, r->plan, r->outcome, r->results, err));
    const ats_attribute counts[] = {
        {.name = "cases_ok", .type = ATS_TYPE_I64, .i64 = r->outcome->n_ok},
        {.name = "cases_skipped", .type = ATS_TYPE_I64, .i64 = r->outcome->n_skipped},
        {.name = "cases_failed", .type = ATS_TYPE_I64, .i64 = r->outcome->n_failed},
    };
    ats_results *results = r->results;
    r->results = NULL;
    ATS_TRY(ats_results_finish(results, counts, sizeof counts / sizeof *counts, err));
    r->outcome->write += ats_clock() - t;
out:
    return rc;
}

static ats_code run_all(run *r, const char *path, ats_err *err)
{
    ats_code rc;
    ATS_TRY(start(r, path, err));
    for (int64_t s = 0; s < r->plan->selection.n_samples; s++) ATS_TRY(run_sample(r, s, err));
    ATS_TRY(finish(r, err));
out:
    return rc;
}

void ats_run_progress_fini(ats_run_progress *progress) { ats_tensors_fini(&progress->tensors); }

/* Time also of a part that was not finished. */
static void note_part(const run *r, bool finished)
{
    ats_run_account *sum = &r->progress->account;
    const ats_outcome *o = r->outcome;
    const char *id = r->plan->selection.samples[0].sample->id; /* a part holds one sample */
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
        {.key = "part", .number = (double)r->plan->part},
        {.key = "samples", .number = (double)r->plan->part_count},
        {.key = "ok", .number = (double)o->n_ok},
        {.key = "skipped", .number = (double)o->n_skipped},
        {.key = "failed", .number = (double)o->n_failed},
        {.key = "seconds", .number = ats_clock() - r->start},
    };
    ats_event("sample", fields, sizeof fields / sizeof *fields, "sample %s is sealed", id);
}

ats_code ats_run_part(const ats_plan *plan, const char *path, ats_run_progress *progress,
                      ats_outcome *out, ats_err *failure, ats_err *err)
{
    ats_outcome outcome = {.n_cases = 0};
    run r = {.plan = plan,
             .outcome = &outcome,
             .tensors = &progress->tensors,
             .progress = progress,
             .start = ats_clock()};
    ats_code rc = run_all(&r, path, err);
    ats_tensors_settle(&progress->tensors);
    for (int64_t c = 0; c < plan->n_captures; c++) ats_capture_share(plan->captures[c], NULL);
    if (r.results != NULL) ats_results_abort(r.results);
    for (int w = 0; w < ats_threads(); w++) {
        if (r.measured != NULL) outcome.measure += r.measured[w] / ats_threads();
        if (r.workers != NULL) ats_arena_fini(&r.workers[w]);
        if (r.caches != NULL) ats_build_cache_fini(&r.caches[w]);
    }
    outcome.evaluate -= outcome.measure;
    note_part(&r, rc == ATS_OK);
    ats_arena_fini(&r.group);
    ats_arena_fini(&r.arena);
    outcome.total = ats_clock() - r.start;
    if (rc == ATS_OK) {
        *out = outcome;
        *failure = r.first_failure;
    } else {
        ats_outcome_fini(&outcome);
    }
    return rc;
}

void ats_outcome_fini(ats_outcome *outcome)
{
    ats_arena_fini(&outcome->arena);
    *outcome = (ats_outcome){0};
}

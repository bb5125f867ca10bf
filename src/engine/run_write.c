/* What a part writes, as jobs behind the evaluation. Nobody else uses HDF5 while one has the io
 * mutex. */
#include <math.h>

#include "base/log.h"
#include "engine/run_private.h"

static ats_code open_results(ats_part_run *r, ats_err *err)
{
    const ats_plan *plan = &r->plan;
    const ats_suite *suite = plan->suite;
    ats_coordinates coordinates = {0};
    ats_attribute *attributes = NULL;
    int64_t n_attributes = 0;
    ats_code rc;
    ATS_TRY(ats_coordinates_before(plan, &r->writing, &coordinates, err));
    ATS_TRY(ats_attributes_make(plan, &r->writing, &attributes, &n_attributes, err));
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
    ATS_TRY(ats_results_create(r->path, &plan->shape, &options, &r->results, err));
out:
    return rc;
}

static ats_code open_job(void *ctx, ats_err *err)
{
    ats_part_run *r = ctx;
    pthread_mutex_lock(&r->common->io);
    const ats_code rc = open_results(r, err);
    pthread_mutex_unlock(&r->common->io);
    return rc;
}

static ats_code give(ats_part_run *r, ats_behind_fn job, void *ctx, ats_err *err)
{
    const double t = ats_clock();
    const ats_code rc = ats_behind_do(r->common->behind, job, ctx, &r->last, err);
    r->outcome.write += ats_clock() - t;
    return rc;
}

ats_code ats_write_open(ats_part_run *r, ats_err *err) { return give(r, open_job, r, err); }

/* Base blocks go with the first batch only. */
static ats_code put_batch(ats_written *batch, ats_err *err)
{
    const ats_recorder *recorder = &batch->recorder;
    ats_block *blocks = batch->blocks;
    int64_t n = 0;
    for (int64_t m = 0; m < recorder->n_metrics; m++) {
        const bool integer = recorder->metrics[m]->integer;
        if (integer ? recorder->integers[m] != NULL : recorder->values[m] != NULL)
            blocks[n++] = (ats_block){.metric = m,
                                      .values = integer ? NULL : recorder->values[m],
                                      .integers = integer ? recorder->integers[m] : NULL};
        if (batch->first > 0) continue;
        if (integer ? recorder->base_integers[m] != NULL : recorder->base_values[m] != NULL)
            blocks[n++] = (ats_block){.metric = m,
                                      .base = true,
                                      .values = integer ? NULL : recorder->base_values[m],
                                      .integers = integer ? recorder->base_integers[m] : NULL};
    }
    blocks[n++] = (ats_block){.metric = ATS_BLOCK_UNDEFINED, .counts = recorder->undefined};
    if (recorder->shape.detail_head) {
        blocks[n++] =
            (ats_block){.metric = ATS_BLOCK_WORST_PROBE, .integers = recorder->worst_probe};
        blocks[n++] = (ats_block){.metric = ATS_BLOCK_WORST_VALUE, .values = recorder->worst_value};
    }
    const ats_part_run *r = batch->part;
    const int64_t start_case = batch->sample * r->plan.suite->n_variants + batch->first;
    return ats_results_write(r->results, batch->sample, batch->layer, start_case, batch->count,
                             blocks, n, err);
}

static ats_code batch_job(void *ctx, ats_err *err)
{
    ats_written *batch = ctx;
    pthread_mutex_t *io = &batch->part->common->io;
    pthread_mutex_lock(io);
    const ats_code rc = put_batch(batch, err);
    pthread_mutex_unlock(io);
    return rc;
}

ats_code ats_write_batch(ats_part_run *r, const evaluation *work, ats_err *err)
{
    ats_written *batch = &r->common->written[r->common->turn];
    batch->part = r;
    batch->sample = work->sample;
    batch->layer = work->layer;
    batch->first = work->first;
    batch->count = work->count;
    const ats_code rc = give(r, batch_job, batch, err);
    batch->number = r->last;
    return rc;
}

static double mean(double sum, int64_t n) { return n > 0 ? sum / (double)n : (double)NAN; }

static ats_code settle_cases(ats_part_run *r, ats_err *err)
{
    const int64_t n = r->plan.n_cases;
    ats_outcome *outcome = &r->outcome;
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
        out->dose = state->ran ? state->dose : r->plan.cases[c].dose;
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

static ats_code end_results(ats_part_run *r, ats_err *err)
{
    ats_coordinates late = {0};
    ats_code rc;
    ATS_TRY(settle_cases(r, err));
    ATS_TRY(ats_coordinates_after(&r->plan, r->outcome.cases, &r->writing, &late, err));
    ATS_TRY(ats_results_coordinates(r->results, late.items, late.count, err));
    ATS_TRY(ats_curves_make(&r->outcome.arena, &r->plan, &r->outcome, &r->outcome.curves, err));
    ATS_TRY(ats_curves_write(&r->writing, &r->plan, &r->outcome.curves, r->results, err));
    ATS_TRY(ats_breakdowns_write(&r->writing, &r->breakdowns, r->results, err));
    ATS_TRY(ats_interactions_write(&r->writing, &r->plan, &r->outcome, r->results, err));
    const ats_attribute counts[] = {
        {.name = "cases_ok", .type = ATS_TYPE_I64, .i64 = r->outcome.n_ok},
        {.name = "cases_skipped", .type = ATS_TYPE_I64, .i64 = r->outcome.n_skipped},
        {.name = "cases_failed", .type = ATS_TYPE_I64, .i64 = r->outcome.n_failed},
    };
    rc = ats_results_end(r->results, counts, sizeof counts / sizeof *counts, err);
out:
    return rc;
}

static ats_code end_job(void *ctx, ats_err *err)
{
    ats_part_run *r = ctx;
    pthread_mutex_lock(&r->common->io);
    ats_code rc = end_results(r, err);
    pthread_mutex_unlock(&r->common->io);
    if (rc != ATS_OK) return rc;
    ats_results *results = r->results;
    r->results = NULL;
    return ats_results_commit(results, err);
}

ats_code ats_write_end(ats_part_run *r, ats_err *err) { return give(r, end_job, r, err); }

void ats_write_abort(ats_part_run *r)
{
    pthread_mutex_lock(&r->common->io);
    if (r->results != NULL) ats_results_abort(r->results);
    r->results = NULL;
    pthread_mutex_unlock(&r->common->io);
}

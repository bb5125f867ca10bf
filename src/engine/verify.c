#include "engine/verify.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "engine/verify_unit.h"

enum { TOP_K = 8 };

/* "overlay.tv" of a variant labelled "duplicates" is reported as "duplicates.tv"; laws that every
 * variant must obey keep their name. */
static ats_code law_name(ats_verify_unit *unit, const char *label, ats_law_kind kind, int64_t index,
                         int64_t n_any, const ats_law *law, const char **out, ats_err *err)
{
    const char *dot = strchr(law->name, '.');
    if (kind == ATS_LAWS_ANY || index < n_any || dot == NULL) {
        *out = law->name;
        return ATS_OK;
    }
    return ats_arena_printf(unit->arena, out, err, "%s%s", label, dot);
}

static ats_code emit_laws(void *ctx, int64_t variant, int worker, const ats_stats *base,
                          const ats_stats *stats, ats_err *err)
{
    (void)worker;
    ats_verify_unit *unit = ctx;
    ats_code rc = ATS_OK;
    if (variant < 0) {
        ATS_TRY(ats_law_bars_make(unit->arena, &unit->problem, base, &unit->bars, err));
        ATS_TRY(ats_verify_parity(unit, &base->route, err));
    }
    if (unit->n_edits == 0) goto out;
    ats_law *laws = unit->laws[variant + 1];
    const ats_verify_edit *edit = variant < 0 ? NULL : &unit->edits[variant];
    int64_t n = ats_laws_check(edit == NULL ? ATS_LAWS_ANY : edit->kind, &unit->problem,
                               &unit->bars, base, stats, edit == NULL ? NULL : &edit->edit, laws);
    if (edit != NULL && edit->duplicated >= 0)
        laws[n++] =
            ats_law_duplicates(&unit->problem, &unit->bars, base, stats, edit->duplicated, 1);
    unit->n_laws[variant + 1] = n;
out:
    return rc;
}

/* Emissions of variants are concurrent and the arena is not: routes are kept in a second,
 * sequential evaluation only where something is compared with them. */
static ats_code emit_routes(void *ctx, int64_t variant, int worker, const ats_stats *base,
                            const ats_stats *stats, ats_err *err)
{
    (void)worker, (void)base;
    ats_verify_unit *unit = ctx;
    ats_code rc;
#pragma omp critical(ats_verify_routes)
    rc = ats_verify_keep(unit, stats, &unit->routes[variant + 1], err);
    return rc;
}

static ats_code emit_both(void *ctx, int64_t variant, int worker, const ats_stats *base,
                          const ats_stats *stats, ats_err *err)
{
    ats_verify_unit *unit = ctx;
    ats_code rc = emit_laws(ctx, variant, worker, base, stats, err);
    if (rc == ATS_OK && unit->n_edits > 0) rc = emit_routes(ctx, variant, worker, base, stats, err);
    return rc;
}

static ats_code report_laws(ats_verify_unit *unit, ats_err *err)
{
    ats_code rc = ATS_OK;
    const int64_t n_any = unit->n_laws[0];
    for (int64_t i = 0; i <= unit->n_edits; i++)
        for (int64_t l = 0; l < unit->n_laws[i]; l++) {
            const ats_law *law = &unit->laws[i][l];
            const ats_verify_edit *edit = i > 0 ? &unit->edits[i - 1] : NULL;
            const char *name = NULL;
            ATS_TRY(law_name(unit, edit ? edit->label : "", edit ? edit->kind : ATS_LAWS_ANY, l,
                             n_any, law, &name, err));
            ATS_TRY(ats_verify_add(unit, name, law->statement, law, err));
        }
out:
    return rc;
}

static ats_code run_unit(ats_verify_unit *unit, const ats_backend *backend, bool laws,
                         const char *target, ats_err *err)
{
    ats_edit edits[ATS_VERIFY_EDITS];
    ats_code rc;
    ATS_TRY(ats_problem_make(unit->arena, unit->layer, unit->sample, unit->attention, unit->kv_head,
                             &unit->pick, unit->axis, 1, TOP_K, &unit->problem, err));
    ATS_TRY(backend->supports(&unit->problem, err));
    if (laws) ATS_TRY(ats_verify_edits(unit, target, err));
    ATS_TRY(ATS_NEW0(unit->arena, unit->n_edits + 1, &unit->laws, err));
    for (int64_t i = 0; i < unit->n_edits; i++) edits[i] = unit->edits[i].edit;
    ATS_TRY(backend->evaluate(&unit->problem, edits, unit->n_edits, emit_both, unit, err));
    ATS_TRY(report_laws(unit, err));
    if (!laws) goto out;
    ATS_TRY(ats_verify_agreement(unit, err));
    ATS_TRY(ats_verify_relations(unit, backend, err));
out:
    return rc;
}

/* The first span of that name or role; NULL: none. */
static const char *find_span(const ats_sample *sample, const char *word)
{
    for (int64_t i = 0; i < sample->n_spans; i++)
        if (strcmp(sample->spans[i].role, word) == 0 || strcmp(sample->spans[i].name, word) == 0)
            return sample->spans[i].name;
    return NULL;
}

/* A target that no sample has is a slip of the pen: the laws would run on another span. */
static ats_code check_target(const ats_capture *capture, int64_t n_samples, const char *wanted,
                             ats_err *err)
{
    if (wanted == NULL) return ATS_OK;
    for (int64_t s = 0; s < n_samples; s++)
        if (find_span(&capture->samples[s], wanted) != NULL) return ATS_OK;
    return ats_fail(err, ATS_E_USAGE,
                    "no sample that the laws run on has a span of name or role '%s'; `attnstress "
                    "inspect %s` lists them",
                    wanted, capture->path);
}

/* The span that edits aim at: the one asked for, else gold, else the first that is neither sink
 * nor question. NULL: none. */
static const char *choose_target(const ats_sample *sample, const char *wanted)
{
    const char *names[] = {wanted, "gold"};
    for (size_t w = wanted == NULL; w < 2; w++) {
        const char *found = find_span(sample, names[w]);
        if (found != NULL) return found;
    }
    for (int64_t i = 0; i < sample->n_spans; i++)
        if (strcmp(sample->spans[i].role, "sink") != 0 &&
            strcmp(sample->spans[i].role, "question") != 0)
            return sample->spans[i].name;
    return NULL;
}

static ats_code run_layer(const ats_capture *capture, int64_t s, int64_t l, bool laws,
                          const ats_backend *backend, const ats_span_axis *axis, const char *wanted,
                          ats_arena *arena, ats_verify_report *report, ats_err *err)
{
    const ats_layer *layer = &capture->layers[l];
    ats_attention attention = {0};
    ats_code rc = ats_attention_load(capture, s, l, &attention, err);
    if (rc != ATS_OK) goto out;
    for (int64_t kv = 0; kv < layer->n_kv_heads; kv++) {
        ats_verify_unit unit = {.arena = arena,
                                .report = report,
                                .capture = capture,
                                .sample = &capture->samples[s],
                                .layer = layer,
                                .attention = &attention,
                                .kv_head = kv,
                                .axis = axis};
        rc = ats_pick_group(arena, layer, unit.sample, kv, &unit.pick, err);
        if (rc == ATS_OK)
            rc = run_unit(&unit, backend, laws, choose_target(unit.sample, wanted), err);
        ats_arena_reset(arena);
        if (rc != ATS_OK) {
            rc = ats_prepend(err, rc, "sample %s, layer %lld, key head %lld", unit.sample->id,
                             (long long)layer->index, (long long)kv);
            goto out;
        }
    }
out:
    ats_attention_fini(&attention);
    return rc;
}

static int64_t limit(int64_t wanted, int64_t have)
{
    return wanted > 0 && wanted < have ? wanted : have;
}

static ats_code make_axis(const ats_capture *capture, ats_verify_report *report,
                          ats_span_axis *axis, ats_err *err)
{
    int64_t *samples = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(&report->arena, report->n_samples, &samples, err));
    for (int64_t i = 0; i < report->n_samples; i++) samples[i] = i;
    ATS_TRY(
        ats_span_axis_make(&report->arena, capture, samples, report->n_samples, false, axis, err));
out:
    return rc;
}

ats_code ats_verify_run(const ats_capture *capture, const ats_verify_options *options,
                        ats_verify_report *out, ats_err *err)
{
    ats_verify_report report = {.n_samples = limit(options->n_samples, capture->n_samples),
                                .n_layers = limit(options->n_layers, capture->n_layers)};
    ats_arena work = {0};
    ats_span_axis axis = {.count = 0};
    const ats_backend *backend = NULL;
    int64_t d_qk = 1, d_v = 1; /* of the widest head: `auto` asks */
    ats_code rc;
    report.law_samples = limit(options->law_samples, report.n_samples);
    ATS_TRY(check_target(capture, report.law_samples, options->target, err));
    for (int64_t l = 0; l < report.n_layers; l++) {
        d_qk = capture->layers[l].d_qk > d_qk ? capture->layers[l].d_qk : d_qk;
        d_v = capture->layers[l].d_v > d_v ? capture->layers[l].d_v : d_v;
    }
    ATS_TRY(ats_backend_find_for(options->backend ? options->backend : "auto", d_qk, d_v, &backend,
                                 err));
    ATS_TRY(ATS_NEW0(&report.arena, ATS_VERIFY_CHECKS, &report.checks, err));
    ATS_TRY(make_axis(capture, &report, &axis, err));
    for (int64_t s = 0; s < report.n_samples; s++)
        for (int64_t l = 0; l < report.n_layers; l++) {
            ATS_TRY(run_layer(capture, s, l, s < report.law_samples, backend, &axis,
                              options->target, &work, &report, err));
            ats_progress(s * report.n_layers + l + 1, report.n_samples * report.n_layers, "layers",
                         backend->name);
        }
    report.backend = backend->name;
    report.detail = backend->detail();
    ats_verify_close(&report);
    *out = report;
    report = (ats_verify_report){.n_checks = 0};
out:
    ats_progress(0, 0, "", "");
    ats_arena_fini(&work);
    ats_verify_fini(&report);
    return rc;
}

void ats_verify_fini(ats_verify_report *report)
{
    ats_arena_fini(&report->arena);
    *report = (ats_verify_report){.n_checks = 0};
}

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "h5/clone.h"
#include "report/page_private.h"
#include "report/results_private.h"

/* Texts and numbers along the case axis that group cases. */
static ats_code read_text(ats_page_reader *r, const char *name, int64_t n, const char ***out,
                          ats_err *err)
{
    char **texts = NULL;
    int64_t count = 0;
    ats_code rc = ats_result_texts(r->file, name, &texts, &count, err);
    if (rc != ATS_OK) return rc;
    if (n >= 0 && count != n)
        rc = ats_fail(err, ATS_E_INPUT, "%s: %s has %lld entries, should be %lld", r->result->path,
                      name, (long long)count, (long long)n);
    if (rc == ATS_OK) rc = ATS_NEW0(r->arena, count, out, err);
    for (int64_t i = 0; i < count && rc == ATS_OK; i++)
        rc = ats_arena_strdup(r->arena, texts[i], &(*out)[i], err);
    ats_result_free_texts(texts, count);
    return rc;
}

static ats_code read_number(ats_page_reader *r, const char *name, int64_t n, double **out,
                            ats_err *err)
{
    ats_result_variable variable = {.values = NULL};
    ats_code rc;
    ATS_TRY(ATS_NEW(r->arena, n, out, err));
    for (int64_t i = 0; i < n; i++) (*out)[i] = (double)NAN;
    if (!ats_result_has(r->file, name)) goto out;
    ATS_TRY(ats_result_read(r->file, name, &variable, err));
    if (variable.rank != 1 || variable.extent[0] != n) {
        rc = ats_fail(err, ATS_E_INPUT, "%s: %s has another shape than its axis", r->result->path,
                      name);
        goto out;
    }
    memcpy(*out, variable.values, (size_t)n * sizeof **out);
out:
    free(variable.values);
    return rc;
}

static ats_code attribute(ats_page_reader *r, const char *name, const char **out, ats_err *err)
{
    ats_err ignored;
    if (ats_h5_attr_words(&r->file->file, "/", name, r->arena, out, &ignored) == ATS_OK)
        return ATS_OK;
    return ats_arena_strdup(r->arena, "", out, err);
}

static ats_code read_head(ats_page_reader *r, ats_err *err)
{
    ats_page_result *x = r->result;
    const struct {
        const char *name, **out;
    } texts[] = {{"suite_name", &x->suite},  {"suite_hash", &x->suite_hash},
                 {"model_id", &x->model},    {"checkpoint", &x->checkpoint},
                 {"captures", &x->captures}, {"backend", &x->backend},
                 {"target", &x->target},     {"tool_version", &x->version}};
    ats_code rc = ATS_OK;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && rc == ATS_OK; i++)
        rc = attribute(r, texts[i].name, texts[i].out, err);
    return rc;
}

static ats_code read_axes(ats_page_reader *r, ats_err *err)
{
    ats_page_result *x = r->result;
    ats_result_variable shape = {.values = NULL};
    double *numbers = NULL;
    ats_code rc;
    if (!ats_result_has(r->file, "log_mass_shift")) {
        rc = ats_fail(err, ATS_E_INPUT,
                      "%s: holds no log_mass_shift, which the page draws; run the suite with it in "
                      "metrics.keep, or with keep: all",
                      x->path);
        goto out;
    }
    ATS_TRY(ats_result_shape(r->file, "log_mass_shift", &shape, err));
    const bool probes = shape.rank == 5;
    if (shape.rank != 4 && !probes) {
        rc = ats_fail(err, ATS_E_INPUT, "%s: log_mass_shift has rank %d, should be 4 or 5", x->path,
                      shape.rank);
        goto out;
    }
    x->n_cases = shape.extent[0];
    x->n_layers = shape.extent[1];
    x->n_heads = shape.extent[2];
    x->n_probes = probes ? shape.extent[3] : 1;
    x->n_spans = shape.extent[shape.rank - 1];
    ATS_TRY(read_text(r, "span", x->n_spans, &x->spans, err));
    x->target_span = -1;
    for (int64_t s = 0; s < x->n_spans; s++)
        if (strcmp(x->spans[s], x->target) == 0) x->target_span = s;
    const struct {
        const char *name;
        int64_t n, **out;
    } axes[] = {{"layer", x->n_layers, &x->layers}, {"head", x->n_heads, &x->heads}};
    for (size_t a = 0; a < sizeof axes / sizeof *axes; a++) {
        ATS_TRY(read_number(r, axes[a].name, axes[a].n, &numbers, err));
        ATS_TRY(ATS_NEW(r->arena, axes[a].n, axes[a].out, err));
        for (int64_t i = 0; i < axes[a].n; i++) (*axes[a].out)[i] = (int64_t)numbers[i];
    }
out:
    return rc;
}

static ats_code read_cases(ats_page_reader *r, ats_err *err)
{
    static const char *const swept[ATS_PAGE_N_CURVES] = {"dose", "depth", "at"};
    ats_page_result *x = r->result;
    const int64_t n = x->n_cases;
    ats_result_variable shape = {.values = NULL};
    ats_code rc;
    ATS_TRY(ats_result_shape(r->file, "sample_id", &shape, err));
    const int64_t n_samples = shape.rank == 1 ? shape.extent[0] : 0;
    ATS_TRY(read_text(r, "perturbation", n, &r->perturbation, err));
    ATS_TRY(read_text(r, "kind", n, &r->kind, err));
    ATS_TRY(read_text(r, "arm", n, &r->arm, err));
    ATS_TRY(read_text(r, "variant", n, &r->variant, err));
    ATS_TRY(read_text(r, "sample_id", n_samples, &r->sample_id, err));
    ATS_TRY(read_number(r, "status", n, &r->status, err));
    ATS_TRY(read_number(r, "sample_index", n, &r->sample, err));
    ATS_TRY(read_number(r, "pair_case", n, &r->pair, err));
    ATS_TRY(read_number(r, "rows", n, &r->rows, err));
    for (int k = 0; k < ATS_PAGE_N_CURVES; k++)
        ATS_TRY(read_number(r, swept[k], n, &r->swept[k], err));
    for (int64_t c = 0; c < n; c++) {
        x->n_skipped += r->status[c] == 1;
        x->n_failed += r->status[c] == 2;
        if (!(r->sample[c] >= 0 && r->sample[c] < (double)n_samples)) {
            rc = ats_fail(err, ATS_E_INPUT, "%s: sample_index of case %lld is none of %lld samples",
                          x->path, (long long)c, (long long)n_samples);
            goto out;
        }
        x->n_samples =
            r->sample[c] >= (double)x->n_samples ? (int64_t)r->sample[c] + 1 : x->n_samples;
    }
out:
    return rc;
}

ats_code ats_page_base_map(ats_page_reader *r, const char *name, int64_t inner, int64_t place,
                           bool log_mean, double *out, ats_err *err)
{
    const ats_page_result *x = r->result;
    const int64_t cells = x->n_layers * x->n_heads;
    ats_result_variable variable = {.values = NULL};
    ats_code rc = ATS_OK;
    for (int64_t i = 0; i < cells; i++) out[i] = (double)NAN;
    if (!ats_result_has(r->file, name)) return ATS_OK;
    ATS_TRY(ats_result_read(r->file, name, &variable, err));
    int64_t count = 1;
    for (int i = 0; i < variable.rank; i++) count *= variable.extent[i];
    const int64_t row = cells * x->n_probes * inner;
    for (int64_t i = 0; i < cells && row > 0; i++) {
        double sum = 0;
        int64_t defined = 0;
        for (int64_t s = 0; s < count / row; s++)
            for (int64_t p = 0; p < x->n_probes; p++) {
                const double v = variable.values[s * row + (i * x->n_probes + p) * inner + place];
                if (!isfinite(v) || (log_mean && v <= 0)) continue;
                sum += log_mean ? log(v) : v;
                defined++;
            }
        if (defined > 0) out[i] = log_mean ? exp(sum / (double)defined) : sum / (double)defined;
    }
out:
    free(variable.values);
    return rc;
}

static ats_code read_base(ats_page_reader *r, ats_err *err)
{
    ats_page_result *x = r->result;
    const int64_t cells = x->n_layers * x->n_heads;
    ats_code rc;
    ATS_TRY(ATS_NEW(r->arena, cells, &x->target_mass, err));
    ATS_TRY(ATS_NEW(r->arena, cells, &x->sink_mass, err));
    ATS_TRY(ats_page_base_map(r, x->target_span < 0 ? "" : "base_mass", x->n_spans,
                              x->target_span < 0 ? 0 : x->target_span, true, x->target_mass, err));
    ATS_TRY(ats_page_base_map(r, "base_sink_mass", 1, 0, false, x->sink_mass, err));
    if (x->target_span < 0 || !ats_result_has(r->file, "base_distractor_tolerance")) goto out;
    ATS_TRY(ATS_NEW(r->arena, cells, &x->tolerance, err));
    ATS_TRY(ats_page_base_map(r, "base_distractor_tolerance", x->n_spans, x->target_span, true,
                              x->tolerance, err));
out:
    return rc;
}

ats_code ats_page_read(ats_arena *arena, ats_result_file *file, const char *path,
                       ats_page_result *out, ats_err *err)
{
    ats_page_result result = {.path = path};
    ats_page_reader reader = {.arena = arena, .file = file, .result = &result};
    ats_code rc;
    ATS_TRY(read_head(&reader, err));
    ATS_TRY(read_axes(&reader, err));
    ATS_TRY(read_cases(&reader, err));
    ATS_TRY(read_base(&reader, err));
    ATS_TRY(ats_page_causes(&reader, err));
    ATS_TRY(ats_page_reduce(&reader, err));
    ATS_TRY(ats_page_doses(&reader, err));
    *out = result;
out:
    return rc;
}

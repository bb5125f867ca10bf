#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/explain_private.h"

static const char *const part_names[ATS_N_PARTS] = {"removal", "intrusion", "dilution", "reroute",
                                                    "payload"};

/* Which laws a script obeys can be read off the script. */
static ats_law_kind laws_of(const ats_edit *edit)
{
    bool moved = edit->query_delta != 0 || edit->q != NULL || edit->scale > 0, rows = false,
         hidden = false, swapped = false;
    for (int64_t i = 0; i < edit->n_segments; i++) {
        const ats_segment *segment = &edit->segments[i];
        moved = moved || segment->delta != 0 || segment->swap_key;
        rows = rows || segment->kind == ATS_SEG_ROWS;
        hidden = hidden || segment->kind == ATS_SEG_HIDE;
        swapped = swapped || segment->kind == ATS_SEG_SWAP;
    }
    const bool heated = edit->temperature > 0 && edit->temperature != 1;
    if (moved || rows + hidden + swapped + heated > 1) return ATS_LAWS_ANY;
    if (rows) return ATS_LAWS_OVERLAY;
    if (hidden) return ATS_LAWS_MASK;
    if (swapped) return ATS_LAWS_PAYLOAD_SWAP;
    return heated ? ATS_LAWS_TEMPERATURE : ATS_LAWS_ANY;
}

static double norm(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

static void fill_payload(ats_explain_cell *cell, const ats_stats *base, const ats_stats *stats,
                         double *rest)
{
    ats_explanation *out = cell->out;
    const int64_t row = cell->row, d = cell->problem.d_v;
    const float *o = base->route.output + row * d, *moved = stats->route.output + row * d;
    const double square = dot(o, o, d);
    out->tv = stats->pair.tv[row];
    out->intrusion = stats->pair.intrusion[row];
    out->removal = stats->pair.removal[row];
    out->null_base = base->route.null_weight[row];
    out->null_variant = stats->route.null_weight[row];
    out->output_norm_base = sqrt(square);
    out->output_norm = sqrt(dot(moved, moved, d));
    out->output_cosine = dot(o, moved, d) / (out->output_norm_base * out->output_norm);
    for (int64_t j = 0; j < d; j++) rest[j] = (double)moved[j] - (double)o[j];
    out->output_change = norm(rest, d) / out->output_norm_base;
    for (int64_t p = 0; p < ATS_N_PARTS; p++) {
        const float *part = stats->pair.delta + (row * ATS_N_PARTS + p) * d;
        out->parts[p] = (ats_explain_part){.name = part_names[p],
                                           .norm = sqrt(dot(part, part, d)),
                                           .share = dot(part, o, d) / square};
        for (int64_t j = 0; j < d; j++) rest[j] -= (double)part[j];
    }
    out->parts_residual = norm(rest, d);
}

typedef struct comparison {
    ats_explain_cell *cell;
    const ats_stats *base, *stats;
    const ats_law_bars *bars;
    bool detail_head;
} comparison;

/* Flat index of this case, layer, head, probe (and x) in a variable of the result; -1: no such
 * cell. */
static int64_t flat_index(const ats_explain_case *found, const ats_result_variable *variable,
                          int64_t x)
{
    int64_t at = 0;
    for (int axis = 0; axis < variable->rank; axis++) {
        const char *name = variable->axis[axis];
        int64_t index = x;
        if (strcmp(name, "case") == 0)
            index = found->result_case;
        else if (strcmp(name, "layer") == 0)
            index = found->result_layer;
        else if (strcmp(name, "head") == 0)
            index = found->result_head;
        else if (strcmp(name, "probe") == 0)
            index = found->result_probe;
        if (index < 0 || index >= variable->extent[axis]) return -1;
        at = at * variable->extent[axis] + index;
    }
    return at;
}

/* Two evaluations within the bars and one rounding to float32. Numbers that are logarithms or
 * ratios of masses inherit the relative bar of both; norms that of the output. */
static double bound_of(const comparison *c, const ats_metric *metric, double value)
{
    const int64_t row = c->cell->row;
    const double size = fabs(value) > 1 ? fabs(value) : 1;
    double bar = 2 * c->bars->mass[row] + 2 * c->bars->lse[row];
    if (strcmp(metric->unit, "nat") == 0) bar += 2 * c->bars->entropy[row];
    if (c->bars->output[row] > bar) bar = c->bars->output[row];
    return 2 * bar * size + 0x1p-22 * size;
}

static ats_code add_stored(comparison *c, const ats_metric *metric, const char *suffix,
                           double stored, double computed, ats_err *err)
{
    ats_explanation *out = c->cell->out;
    ats_explain_stored *item = &out->stored[out->n_stored];
    const double bound = bound_of(c, metric, computed);
    ats_code rc = ats_arena_printf(&out->arena, &item->name, err, "%s%s", metric->name, suffix);
    if (rc != ATS_OK) return rc;
    item->stored = stored;
    item->computed = computed;
    item->bound = bound;
    const bool same = (isnan(stored) && isnan(computed)) || stored == computed ||
                      fabs(stored - computed) <= bound;
    out->n_differ += !same;
    out->n_stored++;
    return ATS_OK;
}

static ats_cell cell_of(const comparison *c, int64_t span, int64_t part)
{
    return (ats_cell){.problem = &c->cell->problem,
                      .base = &c->base->route,
                      .route = &c->stats->route,
                      .pair = &c->stats->pair,
                      .row = c->cell->row,
                      .span = span,
                      .part = part};
}

/* One metric of the result against the reference: the scalar, the target span's, or every part's.
 */
static ats_code compare_metric(comparison *c, const ats_metric *metric, ats_err *err)
{
    const ats_explain_case *found = c->cell->found;
    const ats_explain_texts *spans = &found->spans;
    const ats_span_axis *axis = &found->plan->axis;
    ats_result_variable variable = {0};
    char suffix[96] = "";
    ats_code rc = ats_result_read(found->file, metric->name, &variable, err);
    if (rc != ATS_OK) goto out;
    const bool span_axis = metric->shape == ATS_SHAPE_SPAN, parts = metric->shape == ATS_SHAPE_PART;
    const int64_t count = span_axis ? spans->count : parts ? ATS_N_PARTS : 1;
    for (int64_t x = 0; x < count; x++) {
        int64_t span = 0;
        if (span_axis) {
            span = ats_span_axis_find(axis, spans->items[x]);
            if (span < 0) continue;
            if (span < axis->count && c->cell->problem.regions[span].n_ranges == 0) continue;
            if (span == axis->count) span = ATS_SPAN_INSERTED;
            snprintf(suffix, sizeof suffix, "[%s]", spans->items[x]);
        } else if (parts)
            snprintf(suffix, sizeof suffix, "[%s]", part_names[x]);
        const int64_t at = flat_index(found, &variable, x);
        if (at < 0) continue;
        const ats_cell cell = cell_of(c, span, x);
        ATS_TRY(add_stored(c, metric, suffix, variable.values[at], metric->value(&cell), err));
    }
out:
    free(variable.values);
    return rc;
}

/* The numbers people ask about first; those the result does not keep are left out. */
static ats_code compare_stored(comparison *c, ats_err *err)
{
    static const char *const names[] = {
        "lse_shift",      "tv",     "js",   "entropy",       "mass",
        "log_mass_shift", "margin", "rank", "output_change", "delta_norm"};
    const ats_plan *plan = c->cell->found->plan;
    const int64_t room = 10 * (c->cell->found->spans.count + ATS_N_PARTS);
    ats_code rc = ATS_NEW(&c->cell->out->arena, room, &c->cell->out->stored, err);
    for (size_t i = 0; rc == ATS_OK && i < sizeof names / sizeof *names; i++)
        for (int64_t m = 0; rc == ATS_OK && m < plan->n_metrics; m++)
            if (strcmp(plan->metrics[m]->name, names[i]) == 0)
                rc = compare_metric(c, plan->metrics[m], err);
    return rc;
}

static ats_code emit(void *ctx, int64_t variant, int worker, const ats_stats *base,
                     const ats_stats *stats, ats_err *err)
{
    (void)worker;
    ats_explain_cell *cell = ctx;
    ats_explanation *out = cell->out;
    ats_law_bars bars = {.lse = NULL};
    double *rest = NULL;
    char detail[16] = "";
    ats_code rc = ATS_OK;
    if (variant < 0) goto out;
    ATS_TRY(ats_law_bars_make(&out->arena, &cell->problem, base, &bars, err));
    ATS_TRY(ATS_NEW(&out->arena, cell->problem.d_v, &rest, err));
    fill_payload(cell, base, stats, rest);
    out->n_laws = ats_laws_check(laws_of(&cell->built.edit), &cell->problem, &bars, base, stats,
                                 &cell->built.edit, out->laws);
    ATS_TRY(ats_result_attribute(cell->found->file, "detail", detail, sizeof detail, err));
    if (strcmp(detail, "head") == 0) goto out; /* means over probes say nothing about one probe */
    comparison c = {.cell = cell, .base = base, .stats = stats, .bars = &bars};
    ATS_TRY(compare_stored(&c, err));
out:
    return rc;
}

ats_code ats_explain_numbers(ats_explain_cell *cell, ats_err *err)
{
    const ats_backend *reference = NULL;
    ats_code rc;
    ATS_TRY(ats_backend_find("reference", &reference, err));
    ATS_TRY(reference->supports(&cell->problem, err));
    ATS_TRY(reference->evaluate(&cell->problem, &cell->built.edit, 1, emit, cell, err));
out:
    return rc;
}

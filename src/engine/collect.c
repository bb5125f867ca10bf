#include "engine/collect.h"

#include <math.h>
#include <string.h>

static int64_t part_index(const char *name)
{
    static const char *const names[ATS_N_PARTS] = {"removal", "intrusion", "dilution", "reroute",
                                                   "payload"};
    for (int64_t i = 0; i < ATS_N_PARTS; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

static int64_t metric_index(const ats_plan *plan, const char *name)
{
    for (int64_t m = 0; m < plan->n_metrics; m++)
        if (strcmp(plan->metrics[m]->name, name) == 0) return m;
    return -1;
}

static ats_table table_of_gate(const ats_plan *plan, const ats_gate *gate)
{
    ats_table table = {.metric = metric_index(plan, gate->metric)};
    if (table.metric < 0 && strncmp(gate->metric, "base_", 5) == 0) {
        table.metric = metric_index(plan, gate->metric + 5);
        table.base = true;
    }
    if (table.metric >= 0 && plan->metrics[table.metric]->base_only) table.base = true;
    if (gate->span != NULL) table.x = ats_span_axis_find(&plan->axis, gate->span);
    if (gate->part != NULL) table.x = part_index(gate->part);
    return table;
}

int64_t ats_curve_table_index(const ats_plan *plan, ats_curve_table which)
{
    return which == ATS_CURVE_SHIFT ? 0 : plan->suite->n_gates + (int64_t)which;
}

/* Without doses there is no curve to feed. */
static ats_table table_of_curve(const ats_plan *plan, ats_curve_table which)
{
    static const char *const names[] = {[ATS_CURVE_LAW] = "law_log_mass_shift",
                                        [ATS_CURVE_ODDS] = "inserted_log_odds",
                                        [ATS_CURVE_MARGIN] = "margin",
                                        [ATS_CURVE_BASE_MARGIN] = "margin"};
    const bool of_target = which == ATS_CURVE_MARGIN || which == ATS_CURVE_BASE_MARGIN;
    ats_table table = {.metric = -1};
    if (plan->shape.n_curves == 0 || plan->target_span < 0) return table;
    table.metric = metric_index(plan, names[which]);
    table.x = of_target ? plan->target_span : 0;
    table.base = which == ATS_CURVE_BASE_MARGIN;
    return table;
}

/* The target's shift for the summary, then one for each gate, then the curves'. */
static ats_table table_at(const ats_plan *plan, int64_t t)
{
    if (t == 0)
        return (ats_table){.metric =
                               plan->target_span < 0 ? -1 : metric_index(plan, "log_mass_shift"),
                           .x = plan->target_span};
    if (t <= plan->suite->n_gates) return table_of_gate(plan, &plan->suite->gates[t - 1]);
    return table_of_curve(plan, (ats_curve_table)(t - plan->suite->n_gates));
}

ats_code ats_tables_make(ats_arena *arena, const ats_plan *plan, ats_tables *out, ats_err *err)
{
    ats_tables made = {.count = plan->suite->n_gates + ATS_CURVE_TABLES};
    ats_code rc;
    ATS_TRY(ATS_NEW0(arena, made.count, &made.items, err));
    for (int64_t t = 0; t < made.count; t++) {
        ats_table *table = &made.items[t];
        *table = table_at(plan, t);
        if (table->metric < 0) continue;
        const int64_t rows = table->base ? plan->selection.n_samples : plan->n_cases;
        const int64_t n = rows * plan->shape.n_layers * plan->shape.n_heads;
        ATS_TRY(ATS_NEW(arena, n, &table->values, err));
        for (int64_t i = 0; i < n; i++) table->values[i] = NAN;
    }
    *out = made;
out:
    return rc;
}

static double number_at(const ats_metric *metric, const float *values, const int32_t *integers,
                        int64_t at)
{
    if (values != NULL) return (double)values[at];
    return integers[at] == metric->fill || integers[at] == ATS_INTEGER_UNDEFINED
               ? (double)NAN
               : (double)integers[at];
}

float ats_probe_mean(const ats_metric *metric, const float *values, const int32_t *integers,
                     int64_t cell, int64_t n_probes, int64_t width, int64_t x)
{
    double sum = 0;
    int64_t defined = 0;
    for (int64_t p = 0; p < n_probes; p++) {
        const double value = number_at(metric, values, integers, (cell + p) * width + x);
        if (isnan(value)) continue;
        sum += metric->log_mean ? log(value) : value;
        defined++;
    }
    if (defined == 0) return NAN;
    const double mean = sum / (double)defined;
    return (float)(metric->log_mean ? exp(mean) : mean);
}

static float probe_mean(const ats_table *table, const ats_recorder *recorder, int64_t row,
                        int64_t head)
{
    const ats_record_shape *shape = &recorder->shape;
    const int64_t m = table->metric, n_probes = shape->detail_head ? 1 : shape->n_probes;
    const float *values = table->base ? recorder->base_values[m] : recorder->values[m];
    const int32_t *integers = table->base ? recorder->base_integers[m] : recorder->integers[m];
    return ats_probe_mean(recorder->metrics[m], values, integers,
                          (row * shape->n_heads + head) * n_probes, n_probes,
                          ats_metric_width(recorder->metrics[m], shape), table->x);
}

void ats_tables_take(ats_tables *tables, const ats_plan *plan, const ats_recorder *recorder,
                     int64_t sample, int64_t layer, int64_t first, int64_t count)
{
    const int64_t n_heads = plan->shape.n_heads, n_layers = plan->shape.n_layers;
    for (int64_t t = 0; t < tables->count; t++) {
        ats_table *table = &tables->items[t];
        if (table->metric < 0 || (table->base && first > 0)) continue;
        const int64_t start = table->base ? sample : sample * plan->suite->n_variants + first;
        const int64_t rows = table->base ? 1 : count;
        for (int64_t row = 0; row < rows; row++)
            for (int64_t h = 0; h < n_heads; h++)
                table->values[((start + row) * n_layers + layer) * n_heads + h] =
                    probe_mean(table, recorder, row, h);
    }
}

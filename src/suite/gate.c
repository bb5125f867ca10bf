#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "metrics/metric.h"
#include "suite/draft.h"

bool ats_gate_compares(const ats_gate *gate)
{
    return !isnan(gate->max_drop) || !isnan(gate->max_rise) || !isnan(gate->equivalence);
}

static bool read_one(ats_reader *reader, const ats_node *node, ats_gate_draft *out)
{
    ats_gate *gate = &out->gate;
    gate->min = gate->max = gate->max_drop = gate->max_rise = gate->equivalence = (double)NAN;
    out->better = NULL;
    gate->place =
        (ats_place){.file = node->source->name, .line = node->line, .column = node->column};
    out->node = node;
    bool good = ats_fields_read(reader, &ats_gate_table, node, out);
    const ats_node *where = ats_node_get(node, "where");
    out->where = (ats_filter){.count = 0};
    if (where != NULL) good &= ats_filter_read(reader, where, "where", &out->where);
    if (!good) return false;
    gate->n_where = out->where.count;
    gate->where = out->where.clauses;
    gate->reduce = ATS_REDUCE_MEAN;
    if (strcmp(out->reduce, "median") == 0) gate->reduce = ATS_REDUCE_MEDIAN;
    if (strcmp(out->reduce, "min") == 0) gate->reduce = ATS_REDUCE_MIN;
    if (strcmp(out->reduce, "max") == 0) gate->reduce = ATS_REDUCE_MAX;
    if (isnan(gate->min) && isnan(gate->max) && !ats_gate_compares(gate))
        ats_issue_at(reader->issues, node, "E-gate",
                     "gate '%.60s' demands nothing; give min, max, max_drop, max_rise or "
                     "equivalence",
                     gate->name);
    if (gate->min > gate->max)
        ats_issue_at(reader->issues, node, "E-gate",
                     "gate '%.60s' can never pass: min is above max", gate->name);
    return true;
}

bool ats_gates_read(ats_reader *reader, const ats_node *node, const ats_field *field, void *target)
{
    ats_draft *draft = target;
    if (node->kind != ATS_NODE_LIST) {
        ats_issue_at(reader->issues, node, "E-kind", "%s: a list is wanted here, this is %s",
                     field->name, ats_node_kind_name(node->kind));
        return false;
    }
    if (!ATS_READ_NEW0(reader, node->count, &draft->gates)) return false;
    draft->n_gates = 0; /* a key given twice is read twice */
    bool good = true;
    for (int64_t i = 0; i < node->count; i++) {
        const bool read = read_one(reader, node->items[i], &draft->gates[draft->n_gates]);
        if (read) draft->n_gates++;
        good &= read;
    }
    for (int64_t i = 1; i < draft->n_gates; i++)
        for (int64_t j = 0; j < i; j++) {
            const ats_gate_draft *a = &draft->gates[i], *b = &draft->gates[j];
            if (strcmp(a->gate.name, b->gate.name) != 0) continue;
            ats_issue_at(reader->issues, a->node, "E-duplicate-name",
                         "gate '%.60s' is there twice: lines %lld and %lld; give each a name of "
                         "its own",
                         a->gate.name, (long long)b->node->line, (long long)a->node->line);
            break;
        }
    return good;
}

/* The metric of a variable name; a base twin counts when the metric has one. */
static const ats_metric *find_variable(const char *name)
{
    const bool base = strncmp(name, "base_", 5) == 0;
    const ats_metric *metric = ats_metric_find(base ? name + 5 : name);
    if (metric == NULL) return NULL;
    return (base ? metric->has_base || metric->base_only : !metric->base_only) ? metric : NULL;
}

static const char *nearest_metric(const char *name)
{
    enum { MOST = 255 };
    const char *names[MOST + 1] = {NULL};
    int64_t count;
    const ats_metric *const *metrics = ats_metrics(&count);
    for (int64_t i = 0; i < count && i < MOST; i++) names[i] = metrics[i]->name;
    return ats_nearest(name, names);
}

static void refuse_metric(ats_reader *reader, const ats_node *node, const char *name)
{
    const char *near = nearest_metric(name);
    const ats_metric *known = ats_metric_find(name);
    if (known != NULL && known->base_only) {
        ats_issue_at(reader->issues, node, "E-metric",
                     "'%.60s' is a number of the base alone: write 'base_%.60s'", name, name);
        return;
    }
    ats_issue_at(reader->issues, node, "E-metric", "there is no metric '%.60s'%s%s%s", name,
                 near != NULL ? "; did you mean '" : "; docs/metrics.md lists them",
                 near != NULL ? near : "", near != NULL ? "'?" : "");
}

static const char *const part_words[] = {"removal", "intrusion", "dilution",
                                         "reroute", "payload",   NULL};

/* Where a field is written, or the gate itself where it is not (refused before, or a default). */
static const ats_node *field_node(const ats_gate_draft *draft, const char *key)
{
    const ats_node *node = ats_node_get(draft->node, key);
    return node != NULL ? node : draft->node;
}

static void check_axes(ats_reader *reader, const ats_gate_draft *draft, const ats_metric *metric)
{
    const ats_gate *gate = &draft->gate;
    const bool span = metric->shape == ATS_SHAPE_SPAN, part = metric->shape == ATS_SHAPE_PART;
    const ats_node *node = field_node(draft, "metric");
    const ats_node *part_node = field_node(draft, "part");
    const char *word = NULL;
    if (!span && !part && metric->shape != ATS_SHAPE_SCALAR)
        ats_issue_at(reader->issues, node, "E-metric",
                     "%s is a list in every cell, and a gate judges one number; take a metric with "
                     "a single value, a span or a part",
                     gate->metric);
    else if (metric->flag_meanings != NULL)
        ats_issue_at(reader->issues, node, "E-metric",
                     "%s is a code (%s), and a gate judges a number; take a metric with a value",
                     gate->metric, metric->flag_meanings);
    else if (span && gate->span == NULL)
        ats_issue_at(reader->issues, node, "E-missing-key",
                     "%s has a value for every span; say which with 'span:'", gate->metric);
    else if (part && gate->part == NULL)
        ats_issue_at(reader->issues, node, "E-missing-key",
                     "%s has a value for every part; say which with 'part:'", gate->metric);
    if (!span && gate->span != NULL)
        ats_issue_at(reader->issues, field_node(draft, "span"), "E-gate",
                     "%s has no span axis; take 'span' away", gate->metric);
    if (!part && gate->part != NULL)
        ats_issue_at(reader->issues, part_node, "E-gate", "%s has no part axis; take 'part' away",
                     gate->metric);
    else if (gate->part != NULL)
        ats_read_word(reader, part_node, "part", part_words, &word);
}

static int64_t matches(const ats_suite *suite, const ats_gate *gate)
{
    int64_t count = 0;
    for (int64_t i = 0; i < suite->n_variants; i++)
        count += ats_gate_matches(suite, gate, &suite->variants[i]);
    return count;
}

/* A filter that meets nothing would make a gate that always passes. */
static void refuse_idle(ats_reader *reader, const ats_suite *suite, const ats_gate_draft *draft)
{
    if (matches(suite, &draft->gate) > 0) return;
    for (int64_t i = 0; i < draft->where.count; i++) {
        const ats_gate one = {.n_where = 1, .where = &draft->where.clauses[i]};
        if (matches(suite, &one) > 0) continue;
        ats_issue_at(reader->issues, draft->where.node->entries[i].value, "E-no-match",
                     "gate '%.60s' judges no case: no variant has such a '%s'; correct it or take "
                     "the gate away",
                     draft->gate.name, draft->where.clauses[i].key);
        return;
    }
    ats_issue_at(reader->issues, draft->where.node, "E-no-match",
                 "gate '%.60s' judges no case: no variant meets all these clauses together; "
                 "correct them or take the gate away",
                 draft->gate.name);
}

static void check_keep(ats_reader *reader, const ats_draft *draft)
{
    const ats_node *node = draft->keep_node;
    for (int64_t i = 0; !draft->suite.keep_all && i < draft->suite.keep.count; i++) {
        const char *name = draft->suite.keep.items[i];
        if (ats_metric_find(name) != NULL) continue;
        refuse_metric(reader, node->kind == ATS_NODE_LIST ? node->items[i] : node, name);
    }
}

bool ats_suite_keeps(const ats_suite *suite, const ats_metric *metric)
{
    if (metric->needs == ATS_NEEDS_DIAGNOSIS && (suite->sharpness || suite->keep_all))
        return suite->sharpness;
    if (suite->keep_all) return true;
    for (int64_t i = 0; i < suite->keep.count; i++)
        if (strcmp(suite->keep.items[i], metric->name) == 0) return true;
    return false;
}

/* Which way is better, and a gate whose only limit is on the way to the better, which every loss
 * would pass. */
static void settle_better(ats_reader *reader, const ats_draft *draft, const ats_metric *metric,
                          ats_gate_draft *gate_draft)
{
    ats_gate *gate = &gate_draft->gate;
    gate->better = ats_metric_better(metric, gate->span, draft->suite.target);
    for (int b = ATS_BETTER_NEITHER; b <= ATS_BETTER_LESS && gate_draft->better != NULL; b++)
        if (strcmp(gate_draft->better, ats_better_name((ats_better)b)) == 0)
            gate->better = (ats_better)b;
    const bool more = gate->better == ATS_BETTER_MORE, less = gate->better == ATS_BETTER_LESS;
    if (!isnan(gate->equivalence)) return;
    if ((more && isnan(gate->max_drop) && !isnan(gate->max_rise)) ||
        (less && isnan(gate->max_rise) && !isnan(gate->max_drop)))
        ats_issue_at(
            reader->issues, field_node(gate_draft, more ? "max_rise" : "max_drop"), "E-gate",
            "gate '%.60s' would pass every loss: %s of %.60s is better, and it limits the "
            "%s alone; write %s, or 'better: %s' if you mean it so",
            gate->name, ats_better_name(gate->better), gate->metric, more ? "rise" : "fall",
            more ? "max_drop" : "max_rise", more ? "less" : "more");
}

/* A gate on a variable that `metrics` leaves out could not be judged. */
static void check_kept(ats_reader *reader, const ats_draft *draft, const ats_gate_draft *gate,
                       const ats_metric *metric)
{
    if (ats_suite_keeps(&draft->suite, metric)) return;
    ats_issue_at(reader->issues, field_node(gate, "metric"), "E-metric",
                 metric->needs == ATS_NEEDS_DIAGNOSIS
                     ? "%s is written with `metrics: {sharpness: true}` alone"
                     : "%s is not among the metrics that are kept; add it to metrics.keep",
                 gate->gate.metric);
}

ats_code ats_gates_check(ats_reader *reader, ats_draft *draft, bool expanded)
{
    ats_code rc;
    ats_gate *gates = NULL;
    check_keep(reader, draft);
    for (int64_t i = 0; i < draft->n_gates; i++) {
        ats_gate_draft *gate = &draft->gates[i];
        const ats_metric *metric = find_variable(gate->gate.metric);
        if (metric == NULL) {
            refuse_metric(reader, field_node(gate, "metric"), gate->gate.metric);
        } else {
            check_axes(reader, gate, metric);
            check_kept(reader, draft, gate, metric);
            settle_better(reader, draft, metric, gate);
        }
        if (!expanded || gate->where.node == NULL) continue;
        if (ats_filter_check(reader, draft, &gate->where, NULL, "where"))
            refuse_idle(reader, &draft->suite, gate);
    }
    ATS_TRY(ATS_NEW(reader->arena, draft->n_gates, &gates, reader->err));
    for (int64_t i = 0; i < draft->n_gates; i++) gates[i] = draft->gates[i].gate;
    draft->suite.n_gates = draft->n_gates;
    draft->suite.gates = gates;
out:
    return rc;
}

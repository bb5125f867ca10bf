#include <math.h>
#include <string.h>

#include "engine/plan_private.h"

static const char *const part_names[ATS_N_PARTS] = {"removal", "intrusion", "dilution", "reroute",
                                                    "payload"};

static bool is_part(const char *name)
{
    for (int i = 0; i < ATS_N_PARTS; i++)
        if (strcmp(part_names[i], name) == 0) return true;
    return false;
}

/* The metric behind a variable's name, "base_" taken off; NULL: not in this run. */
static const ats_metric *written_metric(const ats_plan *plan, const char *name)
{
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1 && strncmp(name, "base_", 5) != 0) break;
        const char *wanted = pass == 1 ? name + 5 : name;
        for (int64_t m = 0; m < plan->n_metrics; m++)
            if (strcmp(plan->metrics[m]->name, wanted) == 0) return plan->metrics[m];
    }
    return NULL;
}

static ats_code fail_gate(const ats_plan *plan, const ats_gate *gate, ats_err *err, const char *fmt,
                          const char *word)
{
    ats_code rc = ats_fail(err, ATS_E_SUITE, fmt, word);
    return ats_prepend(err, rc, "%s:%lld:%lld: error: gate '%s'",
                       gate->place.file != NULL ? gate->place.file : plan->suite->path,
                       (long long)gate->place.line, (long long)gate->place.column, gate->name);
}

static ats_code check_gate(const ats_plan *plan, const ats_gate *gate, ats_err *err)
{
    const ats_metric *metric = written_metric(plan, gate->metric);
    if (metric == NULL)
        return fail_gate(plan, gate, err,
                         "metric %s is not written by this run; add it to metrics.keep, or check "
                         "that the capture has what it needs (w_o, readouts)",
                         gate->metric);
    const bool spans = metric->shape == ATS_SHAPE_SPAN;
    const bool parts = metric->shape == ATS_SHAPE_PART;
    if (!spans && !parts && metric->shape != ATS_SHAPE_SCALAR)
        return fail_gate(plan, gate, err,
                         "metric %s is a list, and a gate judges one number; use a scalar, span or "
                         "part metric",
                         gate->metric);
    if (spans && gate->span == NULL)
        return fail_gate(plan, gate, err, "metric %s has a span axis; say which with `span:`",
                         gate->metric);
    if (!spans && gate->span != NULL)
        return fail_gate(plan, gate, err, "metric %s has no span axis; take `span:` away",
                         gate->metric);
    if (spans && ats_span_axis_find(&plan->axis, gate->span) < 0)
        return fail_gate(plan, gate, err, "no chosen sample has a span '%s'", gate->span);
    if (parts != (gate->part != NULL))
        return fail_gate(plan, gate, err,
                         parts ? "metric %s has a part axis; say which with `part:`"
                               : "metric %s has no part axis; take `part:` away",
                         gate->metric);
    if (parts && !is_part(gate->part))
        return fail_gate(
            plan, gate, err,
            "'%s' is no part; parts are removal, intrusion, dilution, reroute, payload",
            gate->part);
    for (int64_t v = 0; v < plan->suite->n_variants; v++)
        if (ats_gate_matches(plan->suite, gate, &plan->suite->variants[v])) return ATS_OK;
    return fail_gate(plan, gate, err,
                     "`where` matches no variant of the suite%s; `attnstress plan` lists them", "");
}

ats_code ats_plan_gates(const ats_plan *plan, ats_err *err)
{
    for (int64_t g = 0; g < plan->suite->n_gates; g++) {
        ats_code rc = check_gate(plan, &plan->suite->gates[g], err);
        if (rc != ATS_OK) return rc;
    }
    return ATS_OK;
}

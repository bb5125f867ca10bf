#include "engine/gates.h"

#include <math.h>

#include "base/text.h"

typedef struct judge {
    ats_arena *arena;
    const ats_plan *plan;
    const ats_outcome *outcome;
    double *heads, *layers, *cases, *samples; /* room for one reduction each */
} judge;

/* One row of a table: heads, then layers. */
static double row_value(judge *j, const ats_gate *gate, const ats_table *table, int64_t row)
{
    const int64_t n_layers = j->plan->shape.n_layers, n_heads = j->plan->shape.n_heads;
    for (int64_t l = 0; l < n_layers; l++) {
        for (int64_t h = 0; h < n_heads; h++)
            j->heads[h] = (double)table->values[(row * n_layers + l) * n_heads + h];
        j->layers[l] = ats_reduce(gate->reduce, j->heads, n_heads);
    }
    return ats_reduce(gate->reduce, j->layers, n_layers);
}

/* Cases of one sample that the gate is about, into one number; counts go to the verdict. */
static double sample_value(judge *j, const ats_gate *gate, const ats_table *table, int64_t sample,
                           ats_gate_verdict *verdict)
{
    const ats_suite *suite = j->plan->suite;
    int64_t n = 0;
    for (int64_t v = 0; v < suite->n_variants; v++) {
        const int64_t c = sample * suite->n_variants + v;
        if (!ats_gate_matches(suite, gate, &suite->variants[v])) continue;
        verdict->n_cases++;
        if (j->outcome->cases[c].status == ATS_CASE_SKIPPED) {
            verdict->n_skipped++;
            continue;
        }
        if (j->outcome->cases[c].status == ATS_CASE_FAILED) {
            verdict->n_failed++;
            continue;
        }
        j->cases[n] = row_value(j, gate, table, table->base ? sample : c);
        verdict->n_undefined += isnan(j->cases[n]);
        n++;
    }
    return ats_reduce(gate->reduce, j->cases, n);
}

static ats_code say(judge *j, ats_gate_verdict *verdict, ats_err *err)
{
    const ats_gate *gate = verdict->gate;
    const char *bound = "", *why = "";
    ats_code rc = ATS_OK;
    if (!verdict->judged)
        return ats_arena_printf(j->arena, &verdict->sentence, err,
                                "gate '%s': for `compare` only (no min, no max)", gate->name);
    if (!isnan(gate->min)) ATS_TRY(ats_arena_printf(j->arena, &bound, err, "min %g", gate->min));
    if (!isnan(gate->max))
        ATS_TRY(ats_arena_printf(j->arena, &bound, err, "%s%smax %g", bound,
                                 bound[0] != '\0' ? ", " : "", gate->max));
    if (verdict->n_failed > 0)
        ATS_TRY(ats_arena_printf(j->arena, &why, err, "; %lld of %lld cases failed",
                                 (long long)verdict->n_failed, (long long)verdict->n_cases));
    else if (isnan(verdict->value))
        why = "; no case gave a defined number";
    else if (verdict->n_undefined > 0)
        ATS_TRY(ats_arena_printf(j->arena, &why, err, "; %lld of %lld cases are undefined",
                                 (long long)verdict->n_undefined, (long long)verdict->n_cases));
    if (verdict->n_skipped > 0)
        ATS_TRY(ats_arena_printf(j->arena, &why, err, "%s; %lld of %lld cases skipped", why,
                                 (long long)verdict->n_skipped, (long long)verdict->n_cases));
    const char *of = gate->span != NULL ? gate->span : gate->part;
    ATS_TRY(ats_arena_printf(
        j->arena, &verdict->sentence, err, "gate '%s' %s: %s%s%s%s = %.6g, %s%s", gate->name,
        verdict->passed ? "passed" : "FAILED", gate->metric, of != NULL ? "[" : "",
        of != NULL ? of : "", of != NULL ? "]" : "", verdict->value, bound, why));
out:
    return rc;
}

static ats_code judge_gate(judge *j, int64_t g, ats_gate_verdict *out, ats_err *err)
{
    const ats_gate *gate = &j->plan->suite->gates[g];
    const ats_table *table = &j->outcome->tables.items[1 + g];
    ats_gate_verdict verdict = {
        .gate = gate, .judged = !isnan(gate->min) || !isnan(gate->max), .value = NAN};
    ATS_ASSERT(table->metric >= 0);
    for (int64_t s = 0; s < j->plan->selection.n_samples; s++)
        j->samples[s] = sample_value(j, gate, table, s, &verdict);
    verdict.value = ats_reduce(gate->reduce, j->samples, j->plan->selection.n_samples);
    /* written so that NaN fails */
    verdict.passed = verdict.n_failed == 0 && verdict.n_undefined == 0 && !isnan(verdict.value) &&
                     (isnan(gate->min) || verdict.value >= gate->min) &&
                     (isnan(gate->max) || verdict.value <= gate->max);
    ats_code rc = say(j, &verdict, err);
    if (rc == ATS_OK) *out = verdict;
    return rc;
}

ats_code ats_gates_json(ats_arena *arena, const ats_verdict *verdict, const char **out,
                        ats_err *err)
{
    ats_text text = {.arena = arena, .err = err};
    ats_text_add(&text, "[");
    for (int64_t g = 0; g < verdict->n_gates; g++) {
        const ats_gate_verdict *v = &verdict->gates[g];
        ats_text_add(&text, "%s{\"name\": ", g > 0 ? ", " : "");
        ats_text_json(&text, v->gate->name);
        ats_text_add(&text, ", \"verdict\": \"%s\", \"value\": ",
                     !v->judged  ? "not judged"
                     : v->passed ? "passed"
                                 : "failed");
        if (isfinite(v->value))
            ats_text_add(&text, "%.9g", v->value);
        else
            ats_text_add(&text, "null");
        ats_text_add(&text, ", \"sentence\": ");
        ats_text_json(&text, v->sentence);
        ats_text_add(&text, "}");
    }
    ats_text_add(&text, "]");
    return ats_text_done(&text, out);
}

ats_code ats_verdict_code(int64_t failed, int64_t broken)
{
    if (failed > 0) return ATS_E_GATE;
    return broken > 0 ? ATS_E_INCONCLUSIVE : ATS_OK;
}

ats_code ats_gates_judge(ats_arena *arena, const ats_plan *plan, const ats_outcome *outcome,
                         ats_verdict *out, ats_err *err)
{
    judge j = {.arena = arena, .plan = plan, .outcome = outcome};
    ats_verdict verdict = {.n_gates = plan->suite->n_gates};
    ats_gate_verdict *gates = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, plan->shape.n_heads, &j.heads, err));
    ATS_TRY(ATS_NEW(arena, plan->shape.n_layers, &j.layers, err));
    ATS_TRY(ATS_NEW(arena, plan->suite->n_variants, &j.cases, err));
    ATS_TRY(ATS_NEW(arena, plan->selection.n_samples, &j.samples, err));
    ATS_TRY(ATS_NEW(arena, verdict.n_gates, &gates, err));
    for (int64_t g = 0; g < verdict.n_gates; g++) {
        ATS_TRY(judge_gate(&j, g, &gates[g], err));
        verdict.n_judged += gates[g].judged;
        verdict.n_failed += gates[g].judged && !gates[g].passed;
    }
    verdict.gates = gates;
    verdict.code = ats_verdict_code(verdict.n_failed, outcome->n_failed);
    *out = verdict;
out:
    return rc;
}

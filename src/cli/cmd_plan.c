#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "cli/session.h"

static const ats_option options[] = {
    ATS_SESSION_OPTIONS,
    {"json", 0, ATS_OPT_FLAG, NULL, "the plan as JSON", false},
};

/* Over the samples that run it: how many, rows of one key head at most, dose of the first. */
typedef struct variant_line {
    int64_t runs, skipped, rows;
    double dose;
    const char *reason; /* of the first skipped case */
} variant_line;

static variant_line line_of(const ats_plan *plan, int64_t v)
{
    variant_line out = {.dose = NAN};
    for (int64_t s = 0; s < plan->selection.n_samples; s++) {
        const ats_plan_case *c = &plan->cases[s * plan->suite->n_variants + v];
        if (c->reason != NULL) {
            if (out.skipped++ == 0) out.reason = c->reason;
            continue;
        }
        if (out.runs++ == 0) out.dose = c->dose;
        if (c->rows > out.rows) out.rows = c->rows;
    }
    return out;
}

static void print_variants(const ats_plan *plan)
{
    const ats_suite *suite = plan->suite;
    int width = 7;
    for (int64_t v = 0; v < suite->n_variants; v++) {
        const int length = (int)strlen(suite->variants[v].id);
        if (length > width && length <= 100) width = length;
    }
    printf("\n%5s  %-*s  %-9s %6s %10s %6s\n", "no", width, "variant", "arm", "rows", "dose",
           "cases");
    for (int64_t v = 0; v < suite->n_variants; v++) {
        const ats_variant *variant = &suite->variants[v];
        const variant_line x = line_of(plan, v);
        char dose[32] = "-";
        if (!isnan(x.dose)) snprintf(dose, sizeof dose, "%g", x.dose);
        printf("%5lld  %-*s  %-9s %6lld %10s %6lld", (long long)v + 1, width, variant->id,
               variant->arm == ATS_ARM_CONTROL ? "control" : "treatment", (long long)x.rows, dose,
               (long long)x.runs);
        if (x.skipped > 0) printf("  %lld skipped: %s", (long long)x.skipped, x.reason);
        putchar('\n');
    }
}

static int64_t variable_bytes(const ats_plan *plan, const ats_metric *metric, bool base)
{
    return ats_results_bytes(&plan->shape, metric, base, plan->suite->vectors);
}

static void print_bytes(const ats_plan *plan)
{
    char text[32];
    printf("\nbytes per variable (uncompressed, detail %s):\n",
           plan->shape.detail_head ? "head" : "probe");
    for (int64_t m = 0; m < plan->n_metrics; m++) {
        const ats_metric *metric = plan->metrics[m];
        if (!metric->base_only)
            printf("  %-28s %12s\n", metric->name,
                   ats_human_bytes(variable_bytes(plan, metric, false), text, sizeof text));
        if (metric->base_only || metric->has_base)
            printf("  base_%-23s %12s\n", metric->name,
                   ats_human_bytes(variable_bytes(plan, metric, true), text, sizeof text));
    }
}

static void print_head(const ats_plan *plan)
{
    const ats_selection *selection = &plan->selection;
    printf("suite %s (hash %s), seed %llu, backend %s\n", plan->suite->name, plan->suite->hash,
           (unsigned long long)plan->suite->seed, plan->backend->name);
    for (int64_t c = 0; c < plan->n_captures; c++)
        printf("capture %s: %s, %lld samples\n", plan->captures[c]->path,
               plan->captures[c]->model_id, (long long)plan->captures[c]->n_samples);
    printf("samples %lld:", (long long)selection->n_samples);
    for (int64_t s = 0; s < selection->n_samples && s < 16; s++)
        printf(" %s", selection->samples[s].sample->id);
    printf("%s\nlayers", selection->n_samples > 16 ? " ..." : "");
    for (int64_t l = 0; l < selection->n_layers; l++)
        printf(" %lld", (long long)ats_plan_layer(plan, l)->index);
    printf("\nheads");
    for (int64_t h = 0; h < selection->n_heads; h++)
        printf(" %lld", (long long)selection->heads[h]);
    printf("\nprobes up to %lld a sample\nspans", (long long)selection->n_probes);
    for (int64_t i = 0; i < plan->shape.n_spans; i++) printf(" %s", plan->shape.span_names[i]);
    putchar('\n');
    for (int64_t i = 0; i < selection->n_left_out; i++)
        printf("left out: sample %s has none of the wanted probes\n", selection->left_out[i]);
}

/* Over all samples, layers and key heads; a pass is one attention over a key head's keys. */
static void print_share(const ats_plan *plan)
{
    const ats_share_sum *s = &plan->share;
    char text[32];
    printf("cuts %lld, turns of the queries %lld, %lld of them in several variants\n",
           (long long)s->cuts, (long long)s->turns, (long long)s->common_turns);
    printf(
        "passes %.1f, %.1f less than one a variant (%.0f); %lld of %lld variants touch most keys\n",
        s->passes, s->passes_alone - s->passes, s->passes_alone, (long long)s->apart,
        (long long)s->edits);
    printf("%.3g multiplications, %s of keys and values read\n", s->flops / 2,
           ats_human_bytes((int64_t)s->bytes, text, sizeof text));
}

static void print_memory(const ats_plan *plan)
{
    char a[32], b[32];
    printf("memory at most %s", ats_human_bytes(plan->peak_bytes, a, sizeof a));
    if (plan->memory > 0)
        printf(" of %s (%s)", ats_human_bytes(plan->memory, b, sizeof b),
               plan->memory_given      ? "--memory"
               : plan->memory_of_group ? "80 % of what the control group leaves"
                                       : "80 % of what the machine has left");
    printf(", %lld variants together%s%s\n", (long long)plan->batch,
           plan->by_head ? ", key heads one at a time" : "",
           plan->read_ahead ? ", the next layer read ahead" : "");
    if (plan->streams)
        printf("keys and values of a head do not fit: through a file of %s in %s, %s of it in "
               "memory\n",
               ats_human_bytes(plan->scratch_bytes, a, sizeof a), plan->stream.folder,
               ats_human_bytes(plan->stream.resident, b, sizeof b));
}

static void print_time(const ats_plan *plan)
{
    const ats_plan_time *t = &plan->time;
    char all[32], read[32], build[32], evaluate[32], write[32];
    printf("time about %s on %d thread%s: reading %s, building edits %s, evaluating %s, measuring "
           "and writing %s\n",
           ats_human_seconds(plan->seconds, all, sizeof all), ats_threads(),
           ats_threads() == 1 ? "" : "s", ats_human_seconds(t->read, read, sizeof read),
           ats_human_seconds(t->build, build, sizeof build),
           ats_human_seconds(t->evaluate, evaluate, sizeof evaluate),
           ats_human_seconds(t->write, write, sizeof write));
}

static json_t *json_time(const ats_plan_time *t)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "start", t->start, "read", t->read, "build",
                     t->build, "evaluate", t->evaluate, "write", t->write);
}

static json_t *json_share(const ats_plan *plan)
{
    const ats_share_sum *s = &plan->share;
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f}", "variants",
                     (json_int_t)s->edits, "touch_most", (json_int_t)s->apart, "cuts",
                     (json_int_t)s->cuts, "turns", (json_int_t)s->turns, "common_turns",
                     (json_int_t)s->common_turns, "touched_keys", (json_int_t)s->touched, "passes",
                     s->passes, "passes_saved", s->passes_alone - s->passes, "flops", s->flops,
                     "bytes_read", s->bytes);
}

static json_t *json_memory(const ats_plan *plan)
{
    return json_pack("{s:I, s:b, s:b, s:I, s:I, s:b, s:b, s:I}", "budget", (json_int_t)plan->memory,
                     "given", (int)plan->memory_given, "of_control_group",
                     (int)plan->memory_of_group, "backend", (json_int_t)plan->workspace_bytes,
                     "tensor_cache", (json_int_t)plan->tensor_cache, "by_head", (int)plan->by_head,
                     "read_ahead", (int)plan->read_ahead, "scratch",
                     (json_int_t)(plan->streams ? plan->scratch_bytes : 0));
}

static void print_totals(const ats_plan *plan)
{
    char a[32], b[32];
    printf("\ncases %lld (%lld samples x %lld variants), %lld of them skipped\n",
           (long long)plan->n_cases, (long long)plan->selection.n_samples,
           (long long)plan->suite->n_variants, (long long)plan->n_skipped);
    printf("side rows %lld, distinct shifts %lld\n", (long long)plan->rows,
           (long long)plan->distinct_shifts);
    print_share(plan);
    printf("result %s with every probe, %s with detail: head (uncompressed)\n",
           ats_human_bytes(plan->bytes_probe, a, sizeof a),
           ats_human_bytes(plan->bytes_head, b, sizeof b));
    print_memory(plan);
    print_time(plan);
    if (plan->detail_undecided)
        printf("\ndecision needed: over 2 GiB, so `run` refuses until the suite says\n"
               "  output: {detail: head}    means over probes and the worst probe\n"
               "  output: {detail: probe}   every probe\n");
}

static json_t *json_variants(const ats_plan *plan)
{
    json_t *list = json_array();
    for (int64_t v = 0; v < plan->suite->n_variants; v++) {
        const ats_variant *variant = &plan->suite->variants[v];
        const variant_line x = line_of(plan, v);
        json_t *one = json_pack("{s:I, s:s, s:s, s:s, s:I, s:o, s:I, s:I}", "number",
                                (json_int_t)v + 1, "id", variant->id, "perturbation",
                                plan->suite->perturbations[variant->perturbation].name, "arm",
                                variant->arm == ATS_ARM_CONTROL ? "control" : "treatment", "rows",
                                (json_int_t)x.rows, "dose", ats_json_real(x.dose), "cases",
                                (json_int_t)x.runs, "skipped", (json_int_t)x.skipped);
        if (x.reason != NULL) json_object_set_new(one, "reason", json_string(x.reason));
        json_array_append_new(list, one);
    }
    return list;
}

static json_t *json_bytes(const ats_plan *plan)
{
    json_t *table = json_object();
    for (int64_t m = 0; m < plan->n_metrics; m++) {
        const ats_metric *metric = plan->metrics[m];
        char name[96];
        snprintf(name, sizeof name, "base_%s", metric->name);
        if (!metric->base_only)
            json_object_set_new(table, metric->name,
                                json_integer(variable_bytes(plan, metric, false)));
        if (metric->base_only || metric->has_base)
            json_object_set_new(table, name, json_integer(variable_bytes(plan, metric, true)));
    }
    return table;
}

static json_t *json_strings(const char *const *items, int64_t n)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < n; i++) json_array_append_new(list, json_string(items[i]));
    return list;
}

static json_t *json_axes(const ats_plan *plan)
{
    const ats_selection *selection = &plan->selection;
    json_t *samples = json_array(), *layers = json_array(), *heads = json_array();
    for (int64_t s = 0; s < selection->n_samples; s++)
        json_array_append_new(samples, json_string(selection->samples[s].sample->id));
    for (int64_t l = 0; l < selection->n_layers; l++)
        json_array_append_new(layers, json_integer(ats_plan_layer(plan, l)->index));
    for (int64_t h = 0; h < selection->n_heads; h++)
        json_array_append_new(heads, json_integer(selection->heads[h]));
    return json_pack("{s:o, s:o, s:o, s:I, s:o}", "sample", samples, "layer", layers, "head", heads,
                     "probe", (json_int_t)selection->n_probes, "span",
                     json_strings(plan->shape.span_names, plan->shape.n_spans));
}

static ats_code print_json(const ats_plan *plan, ats_err *err)
{
    json_t *captures = json_array();
    for (int64_t c = 0; c < plan->n_captures; c++)
        json_array_append_new(captures, json_string(plan->captures[c]->path));
    return ats_json_print(
        json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
                  "s:f, s:o, s:s, s:b, s:o, s:o, s:o}",
                  "suite", plan->suite->name, "suite_hash", plan->suite->hash, "backend",
                  plan->backend->name, "captures", captures, "axes", json_axes(plan), "left_out",
                  json_strings(plan->selection.left_out, plan->selection.n_left_out), "variants",
                  json_variants(plan), "cases", (json_int_t)plan->n_cases, "skipped",
                  (json_int_t)plan->n_skipped, "rows", (json_int_t)plan->rows, "distinct_shifts",
                  (json_int_t)plan->distinct_shifts, "bytes_probe", (json_int_t)plan->bytes_probe,
                  "bytes_head", (json_int_t)plan->bytes_head, "peak_bytes",
                  (json_int_t)plan->peak_bytes, "batch", (json_int_t)plan->batch, "seconds",
                  plan->seconds, "time", json_time(&plan->time), "detail",
                  plan->shape.detail_head ? "head" : "probe", "detail_undecided",
                  (int)plan->detail_undecided, "bytes", json_bytes(plan), "share", json_share(plan),
                  "memory", json_memory(plan)),
        err);
}

static ats_code run_plan(const ats_args *args, ats_err *err)
{
    ats_session session = {0};
    ats_code rc;
    ATS_TRY(ats_session_open(args, &session, err));
    if (ats_args_flag(args, "json")) {
        ATS_TRY(print_json(session.plan, err));
    } else {
        print_head(session.plan);
        print_variants(session.plan);
        print_bytes(session.plan);
        print_totals(session.plan);
    }
out:
    ats_session_close(&session);
    return rc;
}

const ats_command ats_cmd_plan = {
    .name = "plan",
    .operands = "SUITE",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "check everything a run needs and print the work",
    .examples = "attnstress plan suites/quickstart.yaml\n"
                "attnstress plan suites/nightly.yaml --capture big.h5 --json",
    .details = "No attention is computed, unless heads are chosen by mass. What a sample lacks is\n"
               "listed as skipped, with the reason.\n",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run_plan,
};

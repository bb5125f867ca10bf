#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "cli/session.h"
#include "engine/digest.h"
#include "engine/interrupt.h"

static const ats_option options[] = {
    {"output", 'o', ATS_OPT_VALUE, "OUT.h5", "result file; default: the suite's name, here", false},
    ATS_SESSION_OPTIONS,
    {"json", 0, ATS_OPT_FLAG, NULL, "the summary as JSON", false},
};

/* <suite name>.h5, with what a file name should not hold replaced. */
static ats_code default_output(ats_arena *arena, const ats_suite *suite, const char **out,
                               ats_err *err)
{
    char *name = NULL;
    const size_t length = strlen(suite->name);
    ats_code rc = ATS_NEW(arena, length + 4, &name, err);
    if (rc != ATS_OK) return rc;
    for (size_t i = 0; i < length; i++)
        name[i] = suite->name[i] == '/' || suite->name[i] == '\\' || suite->name[i] == ' '
                      ? '_'
                      : suite->name[i];
    if (length > 0 && name[0] == '.') name[0] = '_';
    memcpy(name + length, ".h5", 4);
    *out = name;
    return ATS_OK;
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static ats_code refuse_inputs(const ats_plan *plan, const char *output, ats_err *err)
{
    for (int64_t c = 0; c < plan->n_captures; c++)
        if (same_file(output, plan->captures[c]->path))
            return ats_fail(err, ATS_E_USAGE,
                            "--output %s is a capture of this run; it would be overwritten, so "
                            "give another name",
                            output);
    if (same_file(output, plan->suite->path))
        return ats_fail(err, ATS_E_USAGE, "--output %s is the suite itself; give another name",
                        output);
    return ATS_OK;
}

static json_t *json_gates(const ats_verdict *verdict)
{
    json_t *list = json_array();
    for (int64_t g = 0; g < verdict->n_gates; g++) {
        const ats_gate_verdict *v = &verdict->gates[g];
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:s}", "name", v->gate->name, "verdict",
                      !v->judged  ? "not judged"
                      : v->passed ? "passed"
                                  : "failed",
                      "value", ats_json_real(v->value), "cases", (json_int_t)v->n_cases, "skipped",
                      (json_int_t)v->n_skipped, "failed", (json_int_t)v->n_failed, "undefined",
                      (json_int_t)v->n_undefined, "sentence", v->sentence));
    }
    return list;
}

static json_t *json_heads(const ats_summary_weakest *weakest)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < weakest->n_heads; i++) {
        const ats_summary_head *h = &weakest->heads[i];
        json_array_append_new(list, json_pack("{s:I, s:I, s:o}", "layer", (json_int_t)h->layer,
                                              "head", (json_int_t)h->head, "treatment",
                                              ats_json_real(h->treatment)));
    }
    return list;
}

static json_t *json_weakest(const ats_summary *s)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < s->n_weakest; i++) {
        const ats_summary_weakest *w = &s->weakest[i];
        json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:o, s:o, s:o}", "perturbation",
                                              w->perturbation, "layer", (json_int_t)w->layer,
                                              "head", (json_int_t)w->head, "treatment",
                                              ats_json_real(w->treatment), "control",
                                              ats_json_real(w->control), "heads", json_heads(w)));
    }
    return list;
}

static json_t *json_reasons(const ats_summary *s)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < s->n_reasons; i++)
        json_array_append_new(list, json_pack("{s:s, s:I, s:s}", "what", s->reasons[i].what,
                                              "count", (json_int_t)s->reasons[i].count, "reason",
                                              s->reasons[i].text));
    return list;
}

static ats_code print_json(const ats_summary *s, const ats_verdict *verdict, ats_err *err)
{
    return ats_json_print(
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:o, s:o, s:o, s:i, s:s}", "suite",
                  s->suite, "model", s->model, "backend", s->backend, "result", s->path, "ok",
                  (json_int_t)s->n_ok, "skipped", (json_int_t)s->n_skipped, "failed",
                  (json_int_t)s->n_failed, "undefined_cells", (json_int_t)s->n_undefined, "seconds",
                  s->seconds, "reasons", json_reasons(s), "weakest", json_weakest(s), "gates",
                  json_gates(verdict), "exit_status", ats_code_exit(verdict->code), "next",
                  s->next),
        err);
}

/* What was shared and how memory was kept, over samples, layers, key heads and batches. */
static void print_work(const ats_plan *plan, const ats_outcome *o)
{
    const ats_share_sum *s = &o->share;
    ats_verbose("shared: %lld cuts, %lld turns (%lld in several variants), %.1f passes instead of "
                "%.0f, %lld of %lld variants touch most keys, %.3g GFLOP",
                (long long)s->cuts, (long long)s->turns, (long long)s->common_turns, s->passes,
                s->passes_alone, (long long)s->apart, (long long)s->edits, s->flops / 1e9);
    ats_verbose("memory: at most %.2f GiB planned%s, %lld evaluations in %lld blocks of rows%s",
                (double)plan->peak_bytes / 1073741824.0, plan->by_head ? ", by key head" : "",
                (long long)o->account.problems, (long long)o->account.blocks,
                plan->read_ahead ? ", the next layer read ahead" : "");
}

static void print_timings(const ats_outcome *o)
{
    ats_verbose("time: read %.2f s, build %.2f s, evaluate %.2f s, measure %.2f s, write %.2f s "
                "(%.1f %%), total %.2f s",
                o->read, o->build, o->evaluate, o->measure, o->write,
                o->total > 0 ? 100 * o->write / o->total : 0.0, o->total);
}

/* Summary, JSON or (quiet) failed gates on stderr; the verdict is the code. */
static ats_code report(const ats_args *args, const ats_plan *plan, const ats_outcome *outcome,
                       const char *path, ats_arena *arena, ats_err *err)
{
    ats_verdict verdict;
    ats_summary summary;
    const char *text = NULL;
    ats_code rc;
    ATS_TRY(ats_gates_judge(arena, plan, outcome, &verdict, err));
    ATS_TRY(ats_digest(arena, plan, outcome, &verdict, ats_cli_program(), path, &summary, err));
    print_work(plan, outcome);
    print_timings(outcome);
    if (ats_args_flag(args, "json")) {
        ATS_TRY(print_json(&summary, &verdict, err));
    } else if (ats_args_flag(args, "quiet")) {
        for (int64_t g = 0; g < summary.n_gates; g++)
            if (summary.gates[g].judged && !summary.gates[g].passed)
                fprintf(stderr, "%s\n", summary.gates[g].sentence);
    } else {
        ATS_TRY(ats_summary_text(arena, &summary, &text, err));
        fputs(text, stdout);
    }
    rc = verdict.code;
    if (rc != ATS_OK) rc = ats_fail(err, rc, "%s", ""); /* no older sentence may be printed */
out:
    return rc;
}

static ats_code run_run(const ats_args *args, ats_err *err)
{
    ats_session session = {0};
    ats_outcome outcome = {0};
    ats_arena arena;
    const char *output = ats_args_value(args, "output");
    ats_code rc;
    ats_interrupt_watch();
    ats_arena_init(&arena, false);
    ATS_TRY(ats_session_open(args, &session, err));
    if (output == NULL) ATS_TRY(default_output(&arena, session.suite, &output, err));
    ATS_TRY(refuse_inputs(session.plan, output, err));
    ats_verbose("%lld cases, %lld variants in one batch, about %.0f s",
                (long long)session.plan->n_cases, (long long)session.plan->batch,
                session.plan->seconds);
    for (int64_t i = 0; i < session.plan->selection.n_left_out; i++)
        ats_warn("sample %s is left out: it has none of the wanted probes",
                 session.plan->selection.left_out[i]);
    ATS_TRY(ats_run(session.plan, output, &outcome, err));
    ATS_TRY(report(args, session.plan, &outcome, output, &arena, err));
out:
    ats_outcome_fini(&outcome);
    ats_session_close(&session);
    ats_arena_fini(&arena);
    ats_interrupt_unwatch();
    return rc;
}

const ats_command ats_cmd_run = {
    .name = "run",
    .operands = "SUITE",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "run a suite, write the result, judge its gates",
    .examples = "attnstress run suites/quickstart.yaml\n"
                "attnstress run suites/nightly.yaml -o tonight.h5 --capture 'captures/*.h5'\n"
                "attnstress run suites/quickstart.yaml --set perturbations.rivals.count=[1,16,64]",
    .details =
        "The result appears under its name when it is complete, never before. Gates with min\n"
        "or max are judged: exit status 1 when any fails, 2 when cases failed but no gate\n"
        "did. SIGINT and SIGTERM end the run without a result, exit status 75.\n",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run_run,
};

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/session.h"
#include "engine/digest.h"
#include "engine/interrupt.h"

static const ats_option options[] = {
    {"output", 'o', ATS_OPT_VALUE, "OUT.h5", "result file; default: the suite's name, here", false},
    ATS_SESSION_OPTIONS,
    {"json", 0, ATS_OPT_FLAG, NULL, "the summary as JSON", false},
    {"shard", 0, ATS_OPT_VALUE, "I/N", "compute one of N shards, from 1; or auto", false},
    {"shards", 0, ATS_OPT_VALUE, "N", "number of shards, where auto cannot know it", false},
    {"force", 0, ATS_OPT_FLAG, NULL, "replace the result or parts of another run", false},
    {"grace", 0, ATS_OPT_VALUE, "SECONDS", "time to end a sample after a signal; default 10",
     false},
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

static ats_code refuse_inputs(const ats_plan *plan, const char *output, ats_err *err)
{
    for (int64_t c = 0; c < plan->n_captures; c++)
        if (ats_output_same(output, plan->captures[c]->path))
            return ats_fail(err, ATS_E_USAGE,
                            "--output %s is a capture of this run; it would be overwritten, so "
                            "give another name",
                            output);
    if (ats_output_same(output, plan->suite->path))
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

static ats_code shard_of(const ats_args *args, ats_shard *out, ats_err *err)
{
    const char *text = ats_args_value(args, "shard");
    int64_t count = 0;
    ats_code rc = ats_args_int(args, "shards", 0, 1, 1000000, &count, err);
    if (rc != ATS_OK) return rc;
    *out = (ats_shard){.count = 0};
    if (text != NULL) return ats_shard_parse(text, count, getenv, out, err);
    if (count > 0)
        return ats_fail(err, ATS_E_USAGE,
                        "--shards alone does not say which shard this is; add --shard auto or "
                        "--shard I/%lld",
                        (long long)count);
    return ATS_OK;
}

/* What a shard leaves behind, and how it becomes a result. */
static ats_code report_shard(const ats_args *args, const ats_shard *shard,
                             const ats_outcome *outcome, const char *path, ats_arena *arena,
                             ats_err *err)
{
    ats_text text = {.arena = arena, .err = err};
    const char *next = NULL;
    print_timings(outcome);
    ats_text_add(&text, "attnstress merge ");
    ats_text_shell(&text, path);
    ats_text_add(&text, ".parts -o ");
    ats_text_shell(&text, path);
    ats_code rc = ats_text_done(&text, &next);
    if (rc != ATS_OK) return rc;
    if (ats_args_flag(args, "json"))
        return ats_json_print(
            json_pack("{s:s, s:I, s:I, s:I, s:I, s:f, s:i, s:s}", "parts", path, "shard",
                      (json_int_t)shard->index + 1, "shards", (json_int_t)shard->count, "samples",
                      (json_int_t)outcome->n_mine, "kept", (json_int_t)outcome->n_kept, "seconds",
                      outcome->total, "exit_status", 0, "next", next),
            err);
    if (!ats_args_flag(args, "quiet"))
        printf("shard %lld/%lld: %lld samples in %s.parts (%lld were there) in %.1f s\n"
               "when every shard is done: %s\n",
               (long long)shard->index + 1, (long long)shard->count, (long long)outcome->n_mine,
               path, (long long)outcome->n_kept, outcome->total, next);
    return ATS_OK;
}

static ats_code run_run(const ats_args *args, ats_err *err)
{
    ats_session session = {0};
    ats_outcome outcome = {0};
    ats_run_options how = {.job = NULL};
    char job[160];
    ats_arena arena;
    const char *output = ats_args_value(args, "output");
    ats_code rc;
    ats_interrupt_watch(10);
    ats_arena_init(&arena, false);
    ATS_TRY(shard_of(args, &how.shard, err));
    ATS_TRY(ats_args_real(args, "grace", 10, 0, 86400, &how.grace, err));
    ATS_TRY(ats_session_open(args, &session, err));
    if (output == NULL) ATS_TRY(default_output(&arena, session.suite, &output, err));
    ATS_TRY(refuse_inputs(session.plan, output, err));
    ats_verbose("%lld cases, %lld variants in one batch, about %.0f s",
                (long long)session.plan->n_cases, (long long)session.plan->batch,
                session.plan->seconds);
    for (int64_t i = 0; i < session.plan->selection.n_left_out; i++)
        ats_warn("sample %s is left out: it has none of the wanted probes",
                 session.plan->selection.left_out[i]);
    ats_shard_job(getenv, job, sizeof job);
    how.path = output;
    how.job = job;
    how.force = ats_args_flag(args, "force");
    ATS_TRY(ats_run_with(session.plan, &how, &outcome, err));
    if (outcome.finished_before)
        ats_info("%s is complete already, of this suite and these captures; nothing was computed",
                 output);
    if (!outcome.whole) {
        rc = report_shard(args, &how.shard, &outcome, output, &arena, err);
        goto out;
    }
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
                "attnstress run suites/nightly.yaml -o tonight.h5 --shard 2/8\n"
                "attnstress run suites/quickstart.yaml --set perturbations.rivals.count=[1,16,64]",
    .details =
        "The result appears under its name when it is complete, never before. Until then every\n"
        "finished sample lies in OUT.h5.parts; the same command again computes what is missing.\n"
        "Gates with min or max are judged: exit status 1 when any fails, 2 when cases failed but\n"
        "no gate did. SIGINT, SIGTERM and SIGUSR1 end the run with exit status 75 after the\n"
        "sample in flight, if that ends within --grace seconds; a second SIGINT ends at once.\n"
        "--shard splits the samples over processes: `attnstress merge` joins their parts. auto\n"
        "takes the place from SLURM_ARRAY_TASK_ID, OMPI_COMM_WORLD_RANK, SLURM_PROCID or, with\n"
        "--shards N, from JOB_COMPLETION_INDEX.\n",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run_run,
};

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cli/ending.h"
#include "cli/output.h"
#include "cli/session.h"
#include "engine/digest.h"
#include "engine/interrupt.h"
#include "engine/journal.h"

static const ats_option options[] = {
    {"output", 'o', ATS_OPT_VALUE, "OUT.h5", "result file; default: the suite's name, here", false},
    ATS_SESSION_OPTIONS,
    ATS_ENDING_OPTIONS,
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

/* What was shared and how memory was kept, over samples, layers, key heads and batches. */
static void print_work(const ats_plan *plan, const ats_outcome *o)
{
    const ats_share_sum *s = &o->share;
    ats_verbose("shared: %lld cuts, %lld turns (%lld in several variants), %.1f passes instead of "
                "%.0f, %lld of %lld variants touch most keys, %.3g GFLOP",
                (long long)s->cuts, (long long)s->turns, (long long)s->common_turns, s->passes,
                s->passes_alone, (long long)s->apart, (long long)s->edits, s->flops / 1e9);
    ats_verbose("memory: at most %.2f GiB planned%s%s, %lld evaluations in %lld blocks of rows%s",
                (double)plan->peak_bytes / 1073741824.0, plan->by_head ? ", by key head" : "",
                plan->streams ? ", keys and values through a file" : "",
                (long long)o->account.problems, (long long)o->account.blocks,
                plan->read_ahead ? ", the next layer read ahead" : "");
}

static void print_timings(const ats_outcome *o)
{
    ats_verbose("time: read %.2f s, build %.2f s, evaluate %.2f s, measure %.2f s, write %.2f s "
                "(%.1f %%), total %.2f s; written meanwhile: %.2f s",
                o->read, o->build, o->evaluate, o->measure, o->write,
                o->total > 0 ? 100 * o->write / o->total : 0.0, o->total, o->behind);
}

typedef struct one_run {
    const ats_args *args;
    ats_arena arena;
    ats_session session;
    ats_outcome outcome;
    ats_verdict verdict;
    ats_summary summary;
    ats_ending ending;
    ats_run_options how;
    const char *output;
} one_run;

/* Text, or (quiet) failed gates on stderr; the verdict is the code. JSON is told at the end. */
static ats_code report(one_run *r, ats_err *err)
{
    const ats_plan *plan = r->session.plan;
    const ats_outcome *o = &r->outcome;
    const char *text = NULL;
    ats_code rc;
    ATS_TRY(ats_gates_judge(&r->arena, plan, o, &r->verdict, err));
    ATS_TRY(ats_digest(&r->arena, plan, o, &r->verdict, ats_cli_program(), r->output, &r->summary,
                       err));
    r->ending.verdict = &r->verdict;
    r->ending.summary = &r->summary;
    r->ending.next = r->summary.next;
    r->ending.n_undefined = o->n_undefined;
    print_work(plan, o);
    print_timings(o);
    if (ats_args_flag(r->args, "quiet")) {
        for (int64_t g = 0; g < r->summary.n_gates; g++)
            if (r->summary.gates[g].judged && !r->summary.gates[g].passed)
                ats_log_failure("ATS_E_GATE", "", r->summary.gates[g].sentence);
    } else if (!ats_args_flag(r->args, "json")) {
        ATS_TRY(ats_summary_text(&r->arena, &r->summary, &text, err));
        fputs(text, stdout);
    }
    rc = r->verdict.code;
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
static ats_code report_shard(one_run *r, ats_err *err)
{
    const ats_shard *shard = &r->how.shard;
    const ats_outcome *o = &r->outcome;
    ats_text text = {.arena = &r->arena, .err = err};
    print_timings(o);
    ats_text_add(&text, "attnstress merge ");
    ats_text_shell(&text, r->output);
    ats_text_add(&text, ".parts -o ");
    ats_text_shell(&text, r->output);
    ats_code rc = ats_text_done(&text, &r->ending.next);
    if (rc != ATS_OK) return rc;
    if (!ats_args_flag(r->args, "quiet") && !ats_args_flag(r->args, "json"))
        printf("shard %lld/%lld: %lld samples in %s.parts (%lld were there) in %.1f s\n"
               "when every shard is done: %s\n",
               (long long)shard->index + 1, (long long)shard->count, (long long)o->n_mine,
               r->output, (long long)o->n_kept, o->total, r->ending.next);
    return ATS_OK;
}

static ats_code make_ready(one_run *r, ats_err *err)
{
    const char *inputs[] = {r->args->operands[0], ats_args_value(r->args, "output")};
    ats_code rc;
    ATS_TRY(shard_of(r->args, &r->how.shard, err));
    r->ending.shard = r->how.shard;
    ATS_TRY(ats_args_real(r->args, "grace", 10, 0, 86400, &r->how.grace, err));
    ATS_TRY(ats_ending_check(r->args, &r->ending, 2, inputs, err));
    ATS_TRY(ats_session_open(r->args, &r->session, err));
    r->ending.plan_seconds = ats_clock() - r->ending.start;
    r->output = inputs[1];
    if (r->output == NULL) ATS_TRY(default_output(&r->arena, r->session.suite, &r->output, err));
    ATS_TRY(refuse_inputs(r->session.plan, r->output, err));
    r->ending.result = r->output;
    r->ending.suite = r->session.suite->name;
    r->ending.suite_hash = r->session.suite->hash;
    r->ending.model = r->session.plan->captures[0]->model_id;
    r->ending.backend = r->session.plan->backend->name;
    r->ending.n_planned = r->session.plan->n_cases;
out:
    return rc;
}

static void say_plan(const ats_plan *plan)
{
    char time[32];
    const ats_log_field fields[] = {
        {.key = "cases", .number = (double)plan->n_cases},
        {.key = "samples", .number = (double)plan->selection.n_samples},
        {.key = "variants", .number = (double)plan->suite->n_variants},
        {.key = "layers", .number = (double)plan->selection.n_layers},
        {.key = "backend", .text = plan->backend->name},
        {.key = "peak_memory_bytes", .number = (double)plan->peak_bytes},
        {.key = "estimated_seconds", .number = plan->seconds},
    };
    ats_event("plan", fields, sizeof fields / sizeof *fields, "suite %s is planned",
              plan->suite->name);
    ats_verbose("%lld cases, %lld variants in one batch, about %s", (long long)plan->n_cases,
                (long long)plan->batch, ats_human_seconds(plan->seconds, time, sizeof time));
    for (int64_t i = 0; i < plan->selection.n_left_out; i++)
        ats_warn("sample %s is left out: it has none of the wanted probes",
                 plan->selection.left_out[i]);
}

static ats_code compute(one_run *r, ats_err *err)
{
    char job[160];
    say_plan(r->session.plan);
    ats_shard_job(getenv, job, sizeof job);
    r->how.path = r->output;
    r->how.job = job;
    r->how.force = ats_args_flag(r->args, "force");
    r->how.account = &r->ending.account;
    ats_code rc = ats_run_with(r->session.plan, &r->how, &r->outcome, err);
    r->how.job = NULL;
    return rc;
}

/* Cases of the whole result where there is one, else of the samples this process computed. */
static void count_cases(one_run *r)
{
    const ats_outcome *o = &r->outcome;
    const ats_run_account *a = &r->ending.account;
    r->ending.n_ok = o->whole ? o->n_ok : a->n_ok;
    r->ending.n_skipped = o->whole ? o->n_skipped : a->n_skipped;
    r->ending.n_failed = o->whole ? o->n_failed : a->n_failed;
    if (o->finished_before) r->ending.account.n_kept = a->n_mine;
}

/* A line for this process; never a reason to fail. A run that found its result adds none, but puts
 * in place what one that died at the end left behind. */
static ats_code keep_journal(one_run *r, const char *line, ats_err *err)
{
    if (!r->outcome.whole) return ats_journal_add(&r->arena, r->output, line, err);
    return ats_journal_move(&r->arena, r->output, r->outcome.finished_before ? NULL : line, err);
}

static void note_process(one_run *r)
{
    ats_err fault;
    if (r->output == NULL || r->ending.suite_hash == NULL) return;
    char *line = ats_ending_line(&r->ending);
    if (line != NULL && keep_journal(r, line, &fault) != ATS_OK)
        ats_warn("%s; the journal lacks this process", fault.text);
    free(line);
}

static ats_code run_run(const ats_args *args, ats_err *err)
{
    one_run r = {.args = args};
    ats_err fault = {.code = ATS_OK};
    ats_code rc;
    ats_interrupt_watch(10);
    ats_arena_init(&r.arena, false);
    ats_ending_begin(args, "run", &r.ending);
    ATS_TRY(make_ready(&r, err));
    ATS_TRY(compute(&r, err));
    if (r.outcome.finished_before)
        ats_info("%s is complete already, of this suite and these captures; nothing was computed",
                 r.output);
    rc = r.outcome.whole ? report(&r, err) : report_shard(&r, err);
out:
    count_cases(&r);
    r.ending.code = rc;
    r.ending.error = rc != ATS_OK ? err->text : "";
    note_process(&r);
    if (ats_ending_tell(args, &r.ending, &fault) != ATS_OK && rc == ATS_OK)
        rc = ats_fail(err, fault.code, "%s", fault.text);
    ats_outcome_fini(&r.outcome);
    ats_session_close(&r.session);
    ats_arena_fini(&r.arena);
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
                "attnstress run suites/nightly.yaml -o tonight.h5 --log-format json"
                " --metrics-file /var/lib/node_exporter/nightly.prom\n"
                "attnstress run suites/quickstart.yaml --set perturbations.rivals.count=[1,16,64]",
    .details =
        "The result appears under its name when it is complete, never before. Until then every\n"
        "finished sample lies in OUT.h5.parts; the same command again computes what is missing.\n"
        "Gates with min or max are judged: exit status 1 when any fails, 2 when cases failed but\n"
        "no gate did. SIGINT, SIGTERM and SIGUSR1 end the run with exit status 75 after the\n"
        "sample in flight, if that ends within --grace seconds; a second SIGINT ends at once.\n"
        "--shard splits the samples over processes: `attnstress merge` joins their parts. auto\n"
        "takes the place from SLURM_ARRAY_TASK_ID, OMPI_COMM_WORLD_RANK, SLURM_PROCID or, with\n"
        "--shards N, from JOB_COMPLETION_INDEX.\n"
        "--json, --summary and --metrics-file tell how it ended, also after a failure or a "
        "signal:\n"
        "exit status, verdict, cases, time per phase, peak memory. OUT.h5.run.jsonl has a line "
        "for\n"
        "every process that worked on the result.\n",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run_run,
};

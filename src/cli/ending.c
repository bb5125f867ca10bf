#include "cli/ending.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/parallel.h"
#include "cli/output.h"
#include "engine/version.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void ats_ending_begin(const ats_args *args, const char *command, ats_ending *out)
{
    *out = (ats_ending){.command = command,
                        .operand = args->operands[0],
                        .began = now(),
                        .start = ats_clock(),
                        .n_planned = -1,
                        .n_undefined = -1,
                        .error = ""};
}

ats_code ats_ending_check(const ats_args *args, ats_ending *ending, int64_t n_inputs,
                          const char *const *inputs, ats_err *err)
{
    static const char *const names[][2] = {{"summary", "--summary"},
                                           {"metrics-file", "--metrics-file"}};
    for (int i = 0; i < 2; i++) {
        const char *path = ats_args_value(args, names[i][0]);
        if (path == NULL) continue;
        ats_code rc = ats_output_check(names[i][1], path, n_inputs, inputs, err);
        if (rc != ATS_OK) return rc;
    }
    ending->checked = true;
    return ATS_OK;
}

const char *ats_ending_word(ats_code code)
{
    if (code == ATS_E_INTERRUPTED) return "interrupted";
    return code == ATS_OK || code == ATS_E_GATE || code == ATS_E_INCONCLUSIVE ? "finished"
                                                                              : "failed";
}

static const char *verdict_word(const ats_ending *e)
{
    if (e->verdict == NULL) return NULL;
    return e->code == ATS_OK ? "passed" : e->code == ATS_E_GATE ? "failed" : "inconclusive";
}

static json_t *json_gates(const ats_verdict *verdict)
{
    json_t *list = json_array();
    for (int64_t g = 0; g < verdict->n_gates; g++) {
        const ats_gate_verdict *v = &verdict->gates[g];
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:o}", "name", v->gate->name, "verdict",
                      !v->judged  ? "not judged"
                      : v->passed ? "passed"
                                  : "failed",
                      "value", ats_json_real(v->value), "cases", (json_int_t)v->n_cases, "skipped",
                      (json_int_t)v->n_skipped, "failed", (json_int_t)v->n_failed, "undefined",
                      (json_int_t)v->n_undefined, "sentence", ats_json_text(v->sentence)));
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

/* Heads by label; empty where the suite did not ask. */
static json_t *json_sharpness(const ats_summary *s)
{
    json_t *heads = json_object();
    for (int c = 0; c < ATS_N_LABELS; c++)
        if (s->sharpness[c] > 0)
            json_object_set_new(heads, ats_cause_name((ats_cause)c),
                                json_integer((json_int_t)s->sharpness[c]));
    return heads;
}

static json_t *json_reasons(const ats_summary *s)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < s->n_reasons; i++)
        json_array_append_new(list, json_pack("{s:s, s:I, s:o}", "what", s->reasons[i].what,
                                              "count", (json_int_t)s->reasons[i].count, "reason",
                                              ats_json_text(s->reasons[i].text)));
    return list;
}

static json_t *stamp(double seconds)
{
    const time_t whole = (time_t)seconds;
    struct tm parts;
    char text[40] = "";
    if (gmtime_r(&whole, &parts) != NULL) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return json_string(text);
}

static json_t *count(int64_t n) { return n < 0 ? json_null() : json_integer(n); }

/* Who did it, with what, and what it took. */
static void put_process(json_t *to, const ats_ending *e, const ats_usage *u)
{
    char host[256] = "";
    const ats_run_account *a = &e->account;
    const double seconds = ats_clock() - e->start;
    if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
    json_object_set_new(to, "began", stamp(e->began));
    json_object_set_new(to, "ended", stamp(e->began + seconds));
    json_object_set_new(to, "seconds", json_real(seconds));
    json_object_set_new(to, "phases",
                        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "plan", e->plan_seconds,
                                  "read", a->read, "build", a->build, "evaluate", a->evaluate,
                                  "measure", a->measure, "write", a->write, "join", a->join));
    json_object_set_new(to, "peak_memory_bytes", count(u->peak_bytes));
    json_object_set_new(
        to, "cpu_seconds",
        json_pack("{s:f, s:f}", "user", u->user_seconds, "system", u->system_seconds));
    json_object_set_new(to, "io_bytes",
                        json_pack("{s:o, s:o, s:o, s:o}", "read", count(u->read_bytes), "written",
                                  count(u->written_bytes), "read_from_storage",
                                  count(u->loaded_bytes), "written_to_storage",
                                  count(u->stored_bytes)));
    json_object_set_new(to, "threads", json_integer(ats_threads()));
    json_object_set_new(to, "host", ats_json_text(host));
    json_object_set_new(to, "pid", json_integer(getpid()));
    json_object_set_new(to, "version", json_string(ats_version()));
    json_object_set_new(to, "git", json_string(ats_git_hash()));
}

static void put_work(json_t *to, const ats_ending *e)
{
    const ats_run_account *a = &e->account;
    const bool merge = strcmp(e->command, "merge") == 0;
    json_object_set_new(to, "ok", json_integer(e->n_ok));
    json_object_set_new(to, "skipped", json_integer(e->n_skipped));
    json_object_set_new(to, "failed", json_integer(e->n_failed));
    if (e->shard.count > 0) {
        json_object_set_new(to, "parts", ats_json_text(e->result));
        json_object_set_new(to, "shard", json_integer(e->shard.index + 1));
        json_object_set_new(to, "shards", json_integer(e->shard.count));
    }
    if (merge) {
        json_object_set_new(to, "parts", json_integer(e->n_parts));
        json_object_set_new(to, "missing", json_integer(e->n_missing));
    } else {
        json_object_set_new(to, "planned", count(e->n_planned));
        json_object_set_new(to, "samples", json_integer(a->n_mine));
        json_object_set_new(to, "kept", json_integer(a->n_kept));
        json_object_set_new(to, "computed", json_integer(a->n_made));
    }
}

static json_t *start_object(const ats_ending *e)
{
    json_t *to = json_object();
    json_object_set_new(to, "command", json_string(e->command));
    json_object_set_new(to, "suite", ats_json_text(e->suite));
    json_object_set_new(to, "model", ats_json_text(e->model));
    json_object_set_new(to, "backend", ats_json_text(e->backend));
    json_object_set_new(to, "result", ats_json_text(e->shard.count > 0 ? NULL : e->result));
    json_object_set_new(to, "ended_as", json_string(ats_ending_word(e->code)));
    json_object_set_new(to, "exit_status", json_integer(ats_code_exit(e->code)));
    json_object_set_new(to, "error", e->error[0] != '\0' ? ats_json_text(e->error) : json_null());
    json_object_set_new(to, "verdict", ats_json_text(verdict_word(e)));
    return to;
}

json_t *ats_ending_json(const ats_ending *e, const ats_usage *usage)
{
    struct stat status;
    json_t *to = start_object(e);
    const bool file = e->shard.count == 0 && e->result != NULL && stat(e->result, &status) == 0;
    put_work(to, e);
    json_object_set_new(to, "undefined_cells", count(e->n_undefined));
    json_object_set_new(to, "bytes", file ? json_integer(status.st_size) : json_null());
    if (e->summary != NULL) {
        json_object_set_new(to, "reasons", json_reasons(e->summary));
        json_object_set_new(to, "weakest", json_weakest(e->summary));
        json_object_set_new(to, "sharpness", json_sharpness(e->summary));
    }
    if (e->verdict != NULL) json_object_set_new(to, "gates", json_gates(e->verdict));
    put_process(to, e, usage);
    json_object_set_new(to, "next", ats_json_text(e->next));
    return to;
}

char *ats_ending_line(const ats_ending *e)
{
    const ats_usage usage = ats_usage_read("");
    json_t *to = start_object(e);
    json_object_set_new(to, "suite_hash", ats_json_text(e->suite_hash));
    put_work(to, e);
    put_process(to, e, &usage);
    char *line = json_dumps(to, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(to);
    return line;
}

static ats_code write_summary(const char *path, json_t *value, ats_err *err)
{
    char *text = value != NULL ? json_dumps(value, JSON_INDENT(2)) : NULL;
    if (text == NULL) return ats_fail(err, ATS_E_MEMORY, "%s: out of memory", path);
    ats_arena arena;
    const char *line = NULL;
    ats_arena_init(&arena, false);
    ats_code rc = ats_arena_printf(&arena, &line, err, "%s\n", text);
    if (rc == ATS_OK) rc = ats_output_write(path, line, err);
    ats_arena_fini(&arena);
    free(text);
    return rc;
}

/* What is there already, for the times that outlive this run. */
static ats_code write_metrics(const char *path, const ats_ending *e, const ats_usage *usage,
                              ats_err *err)
{
    enum { LARGEST = 1 << 20 };
    ats_arena arena;
    char *old = NULL;
    const char *text = NULL;
    size_t got = 0;
    ats_code rc;
    ats_arena_init(&arena, false);
    ATS_TRY(ATS_NEW0(&arena, LARGEST + 1, &old, err));
    FILE *file = fopen(path, "rb");
    if (file != NULL) {
        got = fread(old, 1, LARGEST, file);
        fclose(file);
    }
    old[got] = '\0';
    ATS_TRY(ats_ending_metrics(&arena, e, usage, old, &text, err));
    ATS_TRY(ats_output_write(path, text, err));
out:
    ats_arena_fini(&arena);
    return rc;
}

ats_code ats_ending_tell(const ats_args *args, const ats_ending *e, ats_err *err)
{
    const char *summary = e->checked ? ats_args_value(args, "summary") : NULL;
    const char *metrics = e->checked ? ats_args_value(args, "metrics-file") : NULL;
    const ats_usage usage = ats_usage_read("");
    json_t *value = ats_ending_json(e, &usage);
    ats_code rc = ATS_OK, first = ATS_OK;
    ats_err fault = {.code = ATS_OK};
    if (ats_args_flag(args, "json")) first = ats_json_print(json_incref(value), err);
    if (summary != NULL && (rc = write_summary(summary, value, &fault)) != ATS_OK) {
        if (first == ATS_OK && e->code == ATS_OK)
            first = ats_fail(err, rc, "%s", fault.text);
        else
            ats_warn("%s", fault.text);
    }
    if (metrics != NULL && (rc = write_metrics(metrics, e, &usage, &fault)) != ATS_OK) {
        if (first == ATS_OK && e->code == ATS_OK)
            first = ats_fail(err, rc, "%s", fault.text);
        else
            ats_warn("%s", fault.text);
    }
    ats_log_object("summary", ats_ending_word(e->code), "summary", value);
    return first;
}

/* The text exposition format of Prometheus, version 0.0.4. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cli/ending.h"
#include "engine/version.h"

typedef struct page {
    ats_text text;
    const char *labels; /* every sample's own: command, suite, shard */
} page;

/* Backslash, quote and line feed are escaped in a label's value. */
static void add_label(ats_text *text, const char *name, const char *value)
{
    char *clean = ats_utf8(value != NULL ? value : "");
    ats_text_add(text, "%s%s=\"", text->length > 0 ? "," : "", name);
    for (const char *c = clean; c != NULL && *c != '\0'; c++) {
        if (*c == '\n')
            ats_text_add(text, "\\n");
        else
            ats_text_add(text, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    }
    ats_text_add(text, "\"");
    free(clean);
}

static void head(page *p, const char *name, const char *help)
{
    ats_text_add(&p->text, "# HELP attnstress_%s %s\n# TYPE attnstress_%s gauge\n", name, help,
                 name);
}

static void add_value(page *p, double value)
{
    if (isnan(value))
        ats_text_add(&p->text, "NaN\n");
    else
        ats_text_add(&p->text, "%.17g\n", value);
}

/* key NULL: no further label. */
static void sample(page *p, const char *name, const char *key, const char *word, double value)
{
    ats_text_add(&p->text, "attnstress_%s{%s", name, p->labels);
    if (key != NULL) ats_text_add(&p->text, ",%s=\"%s\"", key, word);
    ats_text_add(&p->text, "} ");
    add_value(p, value);
}

static void one(page *p, const char *name, const char *help, double value)
{
    head(p, name, help);
    sample(p, name, NULL, NULL, value);
}

/* A time of an earlier run with the same labels, -1: there is none. */
static double old_time(const page *p, const char *old, const char *name)
{
    const size_t n_name = strlen(name), n_labels = strlen(p->labels);
    for (const char *at = old; (at = strstr(at, name)) != NULL; at += n_name) {
        const char *rest = at + n_name;
        if (at < old + 11 || strncmp(at - 11, "attnstress_", 11) != 0) continue;
        if (at - 11 > old && at[-12] != '\n') continue;
        if (rest[0] != '{' || strncmp(rest + 1, p->labels, n_labels) != 0) continue;
        if (strncmp(rest + 1 + n_labels, "} ", 2) == 0) return strtod(rest + 3 + n_labels, NULL);
    }
    return -1;
}

static void lasting(page *p, const char *old, const char *name, const char *help, bool renewed,
                    double now)
{
    const double time = renewed ? now : old_time(p, old, name);
    if (time > 0) one(p, name, help, time);
}

static void add_times(page *p, const ats_ending *e, const char *old)
{
    const double now = e->began + (ats_clock() - e->start);
    const int status = ats_code_exit(e->code);
    one(p, "last_end_timestamp_seconds", "When the last run ended, in whatever way.", now);
    lasting(p, old, "last_finished_timestamp_seconds",
            "When a run last came to its end: exit status 0, 1 or 2.", status <= 2, now);
    lasting(p, old, "last_success_timestamp_seconds", "When a run last ended with exit status 0.",
            status == 0, now);
    one(p, "exit_status",
        "Of the last run: 0 pass, 1 a gate failed, 2 inconclusive, 3 bad input, 4 environment, "
        "5 internal, 75 interrupted.",
        status);
    one(p, "duration_seconds", "Wall time of the last run.", ats_clock() - e->start);
}

static void add_phases(page *p, const ats_ending *e)
{
    const ats_run_account *a = &e->account;
    const struct {
        const char *name;
        double seconds;
    } phases[] = {{"plan", e->plan_seconds}, {"read", a->read},       {"build", a->build},
                  {"evaluate", a->evaluate}, {"measure", a->measure}, {"write", a->write},
                  {"join", a->join}};
    head(p, "phase_seconds", "Time of the last run by phase; measure is processor time / threads.");
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++)
        sample(p, "phase_seconds", "phase", phases[i].name, phases[i].seconds);
}

static void add_work(page *p, const ats_ending *e)
{
    const ats_run_account *a = &e->account;
    head(p, "cases",
         "Cases by outcome: of the result, or of the samples computed if it did not "
         "come to one.");
    sample(p, "cases", "outcome", "ok", (double)e->n_ok);
    sample(p, "cases", "outcome", "skipped", (double)e->n_skipped);
    sample(p, "cases", "outcome", "failed", (double)e->n_failed);
    if (strcmp(e->command, "run") == 0) {
        head(p, "samples", "Samples of this process: computed, kept from before, still missing.");
        sample(p, "samples", "state", "computed", (double)a->n_made);
        sample(p, "samples", "state", "kept", (double)a->n_kept);
        sample(p, "samples", "state", "missing", (double)(a->n_mine - a->n_made - a->n_kept));
    }
    if (e->verdict == NULL) return;
    const ats_verdict *v = e->verdict;
    head(p, "gates", "Gates by verdict; not_judged: they belong to compare.");
    sample(p, "gates", "verdict", "passed", (double)(v->n_judged - v->n_failed));
    sample(p, "gates", "verdict", "failed", (double)v->n_failed);
    sample(p, "gates", "verdict", "not_judged", (double)(v->n_gates - v->n_judged));
}

static void add_usage(page *p, const ats_usage *u)
{
    if (u->peak_bytes >= 0)
        one(p, "peak_memory_bytes", "Largest resident memory of the last run.",
            (double)u->peak_bytes);
    head(p, "cpu_seconds", "Processor time of the last run.");
    sample(p, "cpu_seconds", "mode", "user", u->user_seconds);
    sample(p, "cpu_seconds", "mode", "system", u->system_seconds);
    if (u->read_bytes < 0 || u->loaded_bytes < 0) return;
    head(p, "read_bytes", "Bytes read by the last run: calls, caches included, or from storage.");
    sample(p, "read_bytes", "from", "calls", (double)u->read_bytes);
    sample(p, "read_bytes", "from", "storage", (double)u->loaded_bytes);
    head(p, "written_bytes", "Bytes written by the last run: by calls, or to storage.");
    sample(p, "written_bytes", "to", "calls", (double)u->written_bytes);
    sample(p, "written_bytes", "to", "storage", (double)u->stored_bytes);
}

static ats_code make_labels(ats_arena *arena, const ats_ending *e, const char **out, ats_err *err)
{
    ats_text text = {.arena = arena, .err = err};
    char shard[64] = "";
    if (e->shard.count > 0)
        snprintf(shard, sizeof shard, "%lld/%lld", (long long)e->shard.index + 1,
                 (long long)e->shard.count);
    add_label(&text, "command", e->command);
    add_label(&text, "suite", e->operand);
    if (shard[0] != '\0') add_label(&text, "shard", shard);
    return ats_text_done(&text, out);
}

ats_code ats_ending_metrics(ats_arena *arena, const ats_ending *e, const ats_usage *usage,
                            const char *old, const char **out, ats_err *err)
{
    page p = {.text = {.arena = arena, .err = err}};
    ats_text info = {.arena = arena, .err = err};
    const char *labels = NULL;
    ats_code rc;
    ATS_TRY(make_labels(arena, e, &p.labels, err));
    ats_text_add(&info, "%s", p.labels);
    add_label(&info, "name", e->suite);
    add_label(&info, "result", e->result);
    add_label(&info, "backend", e->backend);
    add_label(&info, "version", ats_version());
    ATS_TRY(ats_text_done(&info, &labels));
    head(&p, "info", "What ran last.");
    ats_text_add(&p.text, "attnstress_info{%s} 1\n", labels);
    add_times(&p, e, old);
    add_phases(&p, e);
    add_work(&p, e);
    add_usage(&p, usage);
    ATS_TRY(ats_text_done(&p.text, out));
out:
    return rc;
}

/* How a run or a merge ended, for machines. One record, told in four places: `--json` on stdout,
 * `--summary FILE`, the event "summary" of a JSON log, `--metrics-file FILE` of node_exporter, and
 * a line of the result's journal (engine/journal.h). It is told whether the command succeeded,
 * failed or was interrupted; what is not known then is null, or no metric. Ownership: an ending
 * points at what the command owns. */
#ifndef ATS_CLI_ENDING_H
#define ATS_CLI_ENDING_H

#include "base/usage.h"
#include "cli/json.h"
#include "cli/session.h"
#include "engine/digest.h"

#define ATS_ENDING_OPTIONS                                                                         \
    {"json", 0, ATS_OPT_FLAG, NULL, "the summary as JSON", false},                                 \
        {"summary", 0, ATS_OPT_VALUE, "FILE", "the same JSON in a file, whatever happens", false}, \
    {                                                                                              \
        "metrics-file", 0, ATS_OPT_VALUE, "FILE.prom", "metrics for node_exporter", false          \
    }

typedef struct ats_ending {
    const char *command; /* "run" */
    const char *operand; /* the suite as it was given */
    const char *result;  /* NULL: not known when it failed */
    const char *suite, *model, *backend;
    const char *suite_hash;
    ats_shard shard;
    double began;        /* seconds since 1970 */
    double start;        /* ats_clock */
    double plan_seconds; /* opening, hashing and planning */
    ats_run_account account;
    int64_t n_planned;                 /* cases; -1: not known */
    int64_t n_ok, n_skipped, n_failed; /* of the result, else of the samples computed */
    int64_t n_undefined;               /* cells; -1: not known */
    int64_t n_parts, n_missing;        /* of a merge */
    const ats_verdict *verdict;        /* NULL: not judged */
    const ats_summary *summary;        /* NULL: there is none */
    const char *next;                  /* the next command to type, or NULL */
    bool checked;                      /* the files may be written */
    ats_code code;
    const char *error; /* the failure's sentence, "" without one */
} ats_ending;

void ats_ending_begin(const ats_args *args, const char *command, ats_ending *out);
/* The names of the files are usable; before the work. Without it no file is written. */
ATS_MUST_CHECK ats_code ats_ending_check(const ats_args *args, ats_ending *ending, int64_t n_inputs,
                                         const char *const *inputs, ats_err *err);
/* Tells the ending wherever the options ask for it. A file that cannot be written is ATS_E_IO where
 * the command itself succeeded, else a warning: its own status is what counts. */
ATS_MUST_CHECK ats_code ats_ending_tell(const ats_args *args, const ats_ending *ending,
                                        ats_err *err);

/* The record as one object; NULL: out of memory. */
json_t *ats_ending_json(const ats_ending *ending, const ats_usage *usage);
/* One line for the journal: without gates and lists. Release with free; NULL: out of memory. */
char *ats_ending_line(const ats_ending *ending);
/* The text exposition of Prometheus; old: the file that it replaces, for the times that stay. */
ATS_MUST_CHECK ats_code ats_ending_metrics(ats_arena *arena, const ats_ending *ending,
                                           const ats_usage *usage, const char *old,
                                           const char **out, ats_err *err);

/* The processes that made a result, from its journal, a line each; nothing where it has none. */
ATS_MUST_CHECK ats_code ats_ending_print(const char *result, ats_arena *arena, ats_err *err);

/* "finished", "failed" or "interrupted" */
const char *ats_ending_word(ats_code code);

#endif

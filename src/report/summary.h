/* The morning summary: at most 25 lines of text from the numbers of a finished run.
 * Ownership: texts are the caller's; the result lives in the arena. */
#ifndef ATS_REPORT_SUMMARY_H
#define ATS_REPORT_SUMMARY_H

#include <stdint.h>

#include "base/arena.h"
#include "metrics/diagnose.h"

enum { ATS_SUMMARY_LINES = 25 };

typedef struct ats_summary_reason {
    const char *what; /* "skipped" or "failed" */
    int64_t count;
    const char *text;
} ats_summary_reason;

/* Weakest heads of one perturbation: lowest means over its treatment cases. */
enum { ATS_SUMMARY_HEADS = 5 };
typedef struct ats_summary_head {
    int64_t layer, head; /* the model's numbers */
    double treatment;    /* log_mass_shift of the target, nats */
} ats_summary_head;
typedef struct ats_summary_weakest {
    const char *perturbation;
    int64_t layer, head;       /* the model's numbers; -1: no defined number */
    double treatment, control; /* log_mass_shift of the target, nats; NaN: none */
    const char *curve;         /* its half dose in words, or NULL */
    int64_t n_heads;
    ats_summary_head heads[ATS_SUMMARY_HEADS]; /* weakest first, the one above included */
} ats_summary_weakest;

typedef struct ats_summary_gate {
    bool judged, passed;
    const char *sentence;
} ats_summary_gate;

typedef struct ats_summary {
    const char *suite, *model, *captures, *backend, *target, *path, *next;
    int64_t n_samples, n_layers, n_heads, n_ok, n_skipped, n_failed, n_undefined;
    double seconds;
    int64_t n_reasons;
    const ats_summary_reason *reasons; /* most frequent first */
    int64_t n_weakest;
    const ats_summary_weakest *weakest; /* weakest first */
    int64_t sharpness[ATS_N_LABELS];    /* heads by label; all 0: the suite did not ask */
    int64_t n_gates;
    const ats_summary_gate *gates; /* failed first */
} ats_summary;

/* Lists that are too long are cut with a count of what was left out. */
ATS_MUST_CHECK ats_code ats_summary_text(ats_arena *arena, const ats_summary *summary,
                                         const char **out, ats_err *err);

#endif

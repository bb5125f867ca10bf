/* verify: does this capture hold together, and do the laws hold on it?
 *
 * Parity: attention over the stored words against the model's own out and LSE, at every sample,
 * layer, head and probe. Laws: every identity of docs/metrics.md on edits of this very capture.
 * Agreement: the backend against the double-precision reference. Every check keeps its worst
 * residual, that residual's bound and its place.
 * Ownership: a report owns everything it points to; the capture stays with the caller. */
#ifndef ATS_ENGINE_VERIFY_H
#define ATS_ENGINE_VERIFY_H

#include "base/arena.h"
#include "capture/capture.h"

typedef struct ats_verify_options {
    int64_t n_samples;   /* first samples looked at; 0: all */
    int64_t n_layers;    /* 0: all */
    int64_t law_samples; /* laws and agreement run on the first so many of them; 0: all */
    const char *backend; /* NULL: auto */
    const char *target;  /* name or role of the span that edits aim at; NULL: gold, or the first */
} ats_verify_options;

typedef enum ats_verify_status {
    ATS_VERIFY_OK,
    ATS_VERIFY_FAIL,
    ATS_VERIFY_NOT_APPLICABLE
} ats_verify_status;

typedef struct ats_verify_check {
    const char *name;      /* "overlay.tv", "parity.lse" */
    const char *statement; /* what must hold */
    ats_verify_status status;
    double residual, bound; /* of the worst place; NaN residual: an undefined number */
    int64_t rows, broken;   /* comparisons made, comparisons over their bound */
    const char *where;      /* "s00 layer 5 head 2 probe 11" */
    const char *reason;     /* why not applicable (at the first such place), or NULL */
} ats_verify_check;

typedef struct ats_verify_report {
    ats_arena arena;
    const char *backend, *detail;
    int64_t n_samples, n_layers, law_samples;
    int64_t n_checks, n_ok, n_failed, n_not_applicable;
    ats_verify_check *checks;
} ats_verify_report;

/* A failing check is data, not an error. Zeroed reports are valid; release with fini. */
ATS_MUST_CHECK ats_code ats_verify_run(const ats_capture *capture,
                                       const ats_verify_options *options, ats_verify_report *out,
                                       ats_err *err);
void ats_verify_fini(ats_verify_report *report);

#endif

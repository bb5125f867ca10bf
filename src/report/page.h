/* The HTML report: one self-contained page about one result, or about a candidate beside its
 * baseline.
 *
 * page_read.c reduces a result to the small tables below, a block of cases at a time; page_*.c draw
 * them. The page holds no script and asks for nothing outside itself.
 * Ownership: tables live in the arena that the caller gave. One thread. */
#ifndef ATS_REPORT_PAGE_H
#define ATS_REPORT_PAGE_H

#include "base/text.h"
#include "kernels/backend.h"
#include "metrics/diagnose.h"
#include "report/results.h"

/* Means over the cases at each value of one swept number, in ascending order. */
typedef struct ats_page_curve {
    int64_t n;
    double *x;         /* [n] */
    double *treatment; /* [n] mean shift of the target's log mass, nats; NaN: no number */
    double *control;   /* [n] of the control twins */
    double *worst;     /* [n] mean of the head that is weakest there */
    double *change;    /* [n] mean relative change of the output, treatment */
} ats_page_curve;

/* The numbers that a curve may be swept over. */
enum { ATS_PAGE_DOSE, ATS_PAGE_DEPTH, ATS_PAGE_AT, ATS_PAGE_N_CURVES };

/* One perturbation of the suite. */
typedef struct ats_page_family {
    const char *name, *kind;
    int64_t n_treatment, n_control; /* cases that ran */
    int64_t n_lost;                 /* cells in which the target's mass vanished (shift -inf) */
    double *shift, *control;        /* [layers, heads] mean log mass shift, nats */
    double share[ATS_N_PARTS];      /* mean share of each part in the output's change */
    double change;                  /* mean relative change of the output */
    ats_page_curve curve[ATS_PAGE_N_CURVES]; /* n 0: not swept */
    double *law; /* [curve[ATS_PAGE_DOSE].n] mean of -log(1 + n r) at each dose, nats; NULL: none */
} ats_page_family;

/* A weakest cell: the two routes by span. */
typedef struct ats_page_cell {
    int64_t case_index, layer, head, probe; /* layer, head: places on the axes */
    double shift;
    const char *variant, *sample;
    double *before, *after; /* [n_spans] mass; NaN: no number */
} ats_page_cell;

typedef struct ats_page_result {
    const char *path, *suite, *suite_hash, *model, *checkpoint, *captures, *backend, *target,
        *version;
    int64_t n_cases, n_samples, n_layers, n_heads, n_probes, n_spans, n_failed, n_skipped;
    int64_t *layers, *heads;         /* the model's numbers */
    const char **spans;              /* [n_spans] */
    int64_t target_span;             /* -1: the suite names none */
    double *target_mass, *sink_mass; /* [layers, heads]; NaN where there is no number */
    double *shift;                   /* [layers, heads] over treatments that have a control twin */
    double *tolerance; /* [layers, heads] rows that halve all but the target: geometric mean */
    double
        *half_dose; /* [layers, heads] Kaplan-Meier median over samples and curves of distractors */
    int8_t *half_beyond; /* [layers, heads] 1: the median lies above the largest dose */
    double *label; /* [layers, heads] ats_cause that most base rows have, else mixed; NaN: no row */
    double *cause[ATS_N_CAUSES]; /* [layers, heads] mean nats explained; NULL: not in the result */
    int64_t n_families;
    ats_page_family *families;
    int64_t n_worst;
    ats_page_cell *worst; /* weakest first, one a perturbation at most */
} ats_page_result;

/* path: of the open file, for words. */
ATS_MUST_CHECK ats_code ats_page_read(ats_arena *arena, ats_result_file *file, const char *path,
                                      ats_page_result *out, ats_err *err);

/* A named stretch of one sample's context, with its text: from the capture, given by the caller. */
typedef struct ats_page_span {
    const char *name, *text; /* text NULL: the capture has no token text */
    double start, stop;      /* depths: shares of the rows that can be hidden */
} ats_page_span;

typedef struct ats_page_gate {
    const char *name, *verdict; /* "passed", "failed", "regressed", "inconclusive", ... */
    const char *sentence;
    const char *tone; /* "good", "bad" or "unsure" */
} ats_page_gate;

/* What the caller knows beside the result itself. */
typedef struct ats_page_options {
    const char *verdict; /* the headline: "pass", "2 of 9 gates failed", "regressed" */
    const char *tone;    /* of the headline: "good", "bad" or "unsure" */
    int64_t n_gates;
    const ats_page_gate *gates;
    const char *span_sample; /* whose spans these are; NULL: none known */
    int64_t n_spans;
    const ats_page_span *spans;
    const char *comparison; /* text table of `compare`, or NULL */
} ats_page_options;

/* The whole page. base: the baseline, or NULL. */
ATS_MUST_CHECK ats_code ats_page_text(ats_arena *arena, const ats_page_result *result,
                                      const ats_page_result *base, const ats_page_options *options,
                                      const char **out, ats_err *err);

/* Sections, in order of the page; internal to report/. A map costs so many bytes a cell, with
 * tooltips and a table of numbers, or as colours alone. */
enum { ATS_PAGE_SECTIONS = 16, ATS_PAGE_CELL = 150, ATS_PAGE_COLOUR = 7, ATS_PAGE_ROOM = 2200000 };
typedef struct ats_page {
    ats_text text; /* of the sections */
    int64_t n_sections;
    struct {
        const char *id, *title;
    } sections[ATS_PAGE_SECTIONS]; /* those drawn, for the list of links */
    const ats_page_result *result, *base;
    const ats_page_options *options;
    bool compact;     /* too many cells: maps are colours alone */
    int64_t room;     /* bytes left for maps */
    ats_text skipped; /* maps without room: "a, b" */
} ats_page;
extern const char *const ats_page_style[]; /* pieces, then NULL */
/* Opens <section> with its heading; closed by "</section>". */
void ats_page_section(ats_page *page, const char *id, const char *title);
void ats_page_maps(ats_page *page);
/* Takes the room of so many maps of layers and heads; without it the title is remembered. */
bool ats_page_takes(ats_page *page, const char *title, int64_t n_maps);
void ats_page_sharpness(ats_page *page);
void ats_page_families(ats_page *page);
void ats_page_profile(ats_page *page);
void ats_page_worst(ats_page *page);
/* <details> with a table: head cells, then rows of numbers with a name each. */
void ats_page_table(ats_page *page, const char *summary, int64_t n_columns,
                    const char *const *columns, int64_t n_rows, const char *const *rows,
                    const double *values);

#endif

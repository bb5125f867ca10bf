/* Comparing two results: one paired difference per cluster, gates, and where it happened.
 *
 * The same sample, variant, layer, head and probe of two checkpoints are paired; everything inside
 * a cluster (document) is averaged, and clusters are the n of every test. What cannot be paired is
 * a finding and never left out in silence. Files are read a sample at a time.
 * Ownership: a comparison owns all it points to but the options' texts; release it with
 * ats_comparison_free. */
#ifndef ATS_REPORT_COMPARE_H
#define ATS_REPORT_COMPARE_H

#include "base/arena.h"
#include "metrics/dose.h"
#include "metrics/metric.h"
#include "metrics/reduce.h"
#include "report/stat.h"

typedef struct ats_compare_gate {
    const char *name, *metric, *span, *part; /* span, part: NULL without such an axis */
    ats_reduction reduce;                    /* over heads, layers and the cases of a sample */
    ats_better better;                       /* which way is better */
    double max_drop, max_rise, equivalence;  /* NaN: not given; never all NaN */
    int64_t n_variants;
    const char *const *variants; /* ids of the variants that are judged */
    const char *file;            /* where it is written; NULL: in no file */
    int64_t line, column;
} ats_compare_gate;

typedef enum ats_finding_kind {
    ATS_FINDING_MISSING,   /* in the baseline only, or ran there only */
    ATS_FINDING_EXTRA,     /* in the candidate only, or ran there only */
    ATS_FINDING_UNDEFINED, /* a number on one side only, or infinities that differ */
    ATS_N_FINDING_KINDS
} ats_finding_kind;

typedef struct ats_compare_options {
    const char *base, *candidate;                       /* paths */
    struct ats_result_file *base_file, *candidate_file; /* open already; NULL: opened and closed */
    int64_t n_gates;
    const ats_compare_gate *gates;
    int64_t n_absolute; /* gates with min or max alone: named, not judged */
    double alpha;       /* 0: 0.05 */
    int64_t resamples;  /* 0: 10000 */
    uint64_t seed;      /* of the resamples; 0: 1 */
    double noise_floor; /* exact mode, |b - a| / max(1, |a|); negative: 0, or 4e-4 across builds */
    /* fnmatch patterns on a sample's id, a variant's id or "sample:variant", by ats_finding_kind */
    const char *const *allow[ATS_N_FINDING_KINDS];
    int64_t n_allow[ATS_N_FINDING_KINDS];
} ats_compare_options;

typedef enum ats_claim {
    ATS_CLAIM_UNCHANGED,
    ATS_CLAIM_IMPROVED,
    ATS_CLAIM_INCONCLUSIVE,
    ATS_CLAIM_REGRESSED
} ats_claim;
const char *ats_claim_name(ats_claim claim);

/* Means over clusters; difference = candidate - base. NaN where there is none. */
typedef struct ats_compare_numbers {
    int64_t n; /* clusters */
    double base, candidate, difference;
    double error; /* standard error of the difference: the differences' deviation / sqrt(n) */
    ats_stat_interval interval;
    double p; /* of `test` */
    ats_stat_test test;
} ats_compare_numbers;

typedef struct ats_compare_row {
    const ats_compare_gate *gate; /* NULL: a summary row, which claims nothing */
    const char *name;
    ats_compare_numbers numbers;
    double p_adjusted; /* Holm over the gates; summary rows: as p */
    ats_claim claim;
    int64_t n_cases;      /* pairs of cases behind it */
    const double *values; /* [n_clusters] differences, NaN: none */
    const char *sentence; /* "gate 'x' regressed: ..." */
} ats_compare_row;

/* A layer and head under one perturbation, or without any (what 0: log base mass of the target). */
typedef struct ats_compare_cell {
    int64_t what, l, h;          /* indices */
    ats_compare_numbers numbers; /* interval only among the worst */
    double q;                    /* Benjamini-Hochberg over every cell that has a p */
    int64_t case_index;          /* largest drop, case of the candidate; -1: none */
    const char *explain;         /* command; NULL but for the worst */
} ats_compare_cell;

typedef struct ats_compare_point {
    double dose;
    ats_compare_numbers numbers; /* log mass shift of the target, treatment arm */
} ats_compare_point;
typedef struct ats_compare_curve {
    const char *perturbation;
    int64_t n;
    const ats_compare_point *points; /* ascending dose */
    double half_base,
        half_candidate; /* dose of retention 1/2 of the mean curve; NaN: not crossed */
    /* From the results' own curves (samples, layers, heads), where both hold them. */
    bool measured;
    ats_dose_median half[2]; /* of baseline and candidate: Kaplan-Meier over the paired ones */
    /* Pairs whose half dose is surely lower or higher in the candidate, and those where censoring
     * hides which: both beyond the same end of the grid, or undefined. */
    int64_t n_lower, n_equal, n_higher, n_hidden;
    ats_compare_numbers strength; /* competition_strength, nats */
} ats_compare_curve;

typedef struct ats_compare_finding {
    ats_finding_kind kind;
    const char *sample, *variant; /* variant NULL: the whole sample */
    const char *text;
    int64_t count; /* cells or cases */
    bool allowed;
} ats_compare_finding;

/* Exact mode: a variable whose numbers differ by more than the floor somewhere. */
typedef struct ats_compare_difference {
    const char *variable, *place; /* "case 3, layer 0, head 1, probe 0" of the largest */
    double base, candidate, size; /* size: |b - a| / max(1, |a|), inf where one is no number */
    int64_t count;
} ats_compare_difference;

typedef struct ats_comparison {
    ats_arena arena;
    const char *base, *candidate;           /* paths */
    char base_hash[33], candidate_hash[33]; /* XXH3-128 of the files */
    const char *base_name, *candidate_name; /* checkpoint, or capture */
    const char *suite, *suite_hash, *target;
    double alpha;
    int64_t resamples;
    uint64_t seed;
    int64_t n_clusters, n_samples, n_cases, n_layers, n_heads, n_variants;
    const int64_t *layers, *heads; /* the model's numbers */
    int64_t n_undefined_both;      /* cells without a number on either side: equal */
    bool exact;
    double noise_floor;
    int64_t n_differences;
    const ats_compare_difference *differences; /* largest first */
    int64_t n_gates, n_absolute, n_rows;
    const ats_compare_row *rows; /* gates first, then summary rows */
    int64_t n_what;
    const char *const *what;       /* "base route", then perturbations */
    const ats_compare_cell *cells; /* [n_what, n_layers, n_heads] */
    int64_t n_worst;
    const ats_compare_cell *worst; /* at most 10, worst first */
    int64_t n_curves;
    const ats_compare_curve *curves;
    int64_t n_findings, n_stored;         /* stored: those in `findings` */
    int64_t of_kind[ATS_N_FINDING_KINDS]; /* all, allowed ones too */
    int64_t n_refused;                    /* not allowed */
    const ats_compare_finding *findings;
    const char *verdict;  /* regressed, failed, differs, inconclusive, improved, unchanged, equal */
    const char *sentence; /* why */
    ats_code code;        /* ATS_OK, ATS_E_GATE or ATS_E_INCONCLUSIVE */
} ats_comparison;

/* ATS_E_INPUT with a list: not comparable (suite, axes, tokens, spans, probes). ATS_E_SUITE: a gate
 * that these results cannot answer. */
ATS_MUST_CHECK ats_code ats_compare(const ats_compare_options *options, ats_comparison **out,
                                    ats_err *err);
void ats_comparison_free(ats_comparison *comparison);

/* Adjusted p, claims and sentences of gates whose numbers and values are known. */
ATS_MUST_CHECK ats_code ats_compare_judge(ats_arena *arena, const ats_compare_options *options,
                                          int64_t n_clusters, ats_compare_row *rows,
                                          int64_t n_gates, ats_err *err);

/* The forms of a comparison, as text in the arena. `style`: escape sequence of a style, or "". */
typedef const char *(*ats_compare_style)(const char *name);
ATS_MUST_CHECK ats_code ats_compare_text(ats_arena *arena, const ats_comparison *comparison,
                                         ats_compare_style style, const char **out, ats_err *err);
ATS_MUST_CHECK ats_code ats_compare_markdown(ats_arena *arena, const ats_comparison *comparison,
                                             const char **out, ats_err *err);
ATS_MUST_CHECK ats_code ats_compare_csv(ats_arena *arena, const ats_comparison *comparison,
                                        const char **out, ats_err *err);
ATS_MUST_CHECK ats_code ats_compare_json(ats_arena *arena, const ats_comparison *comparison,
                                         const char **out, ats_err *err);
/* JUnit XML: a test case per gate, one for what could not be paired; XML 1.0 whatever the texts. */
ATS_MUST_CHECK ats_code ats_compare_junit(ats_arena *arena, const ats_comparison *comparison,
                                          const char **out, ats_err *err);
/* Workflow commands, one a line: ::error file=...,line=... for what failed. */
ATS_MUST_CHECK ats_code ats_compare_github(ats_arena *arena, const ats_comparison *comparison,
                                           const char **out, ats_err *err);

#endif

/* What the files of compare share. Internal to report/. */
#ifndef ATS_REPORT_COMPARE_PRIVATE_H
#define ATS_REPORT_COMPARE_PRIVATE_H

#include "base/text.h"
#include "report/compare.h"
#include "report/results.h"

/* One of the two results. */
typedef struct ats_compare_side {
    const char *path, *role; /* "baseline", "candidate" */
    ats_result_file *file;
    bool borrowed; /* the caller closes it */
    int64_t n_cases, n_samples, n_layers, n_heads, n_probes, n_spans, n_variants;
    const char *suite, *suite_hash, *target, *detail, *captures, *capture_hashes, *checkpoint,
        *build;
    const char *const *sample_id,
        *const *cluster, *const *variant_of, *const *tokens, *const *spans,
                                                                 *const *probes; /* [n_samples] */
    const char *const *variant, *const *perturbation, *const *arm;               /* [n_cases] */
    const char *const *span;                                                     /* [n_spans] */
    const double *status, *dose;                                                 /* [n_cases] */
    const double *layer, *head; /* numbers of the model */
} ats_compare_side;

/* Both, paired. */
typedef struct ats_compare_pair {
    int64_t base, candidate; /* sample indices */
    int64_t cluster;
    const uint8_t *ran; /* [n_variants] on both sides */
} ats_compare_pair;

typedef struct ats_compare_state {
    ats_arena *arena;
    const ats_compare_options *options;
    ats_comparison *out;
    ats_err *err;
    ats_compare_side side[2];
    int64_t n_pairs;
    ats_compare_pair *pairs;
    int64_t *variant_what;         /* [n_variants] index of the perturbation among `what` */
    uint8_t *treatment;            /* [n_variants] */
    int64_t target;                /* on the span axis; -1 */
    ats_compare_finding *findings; /* [FINDINGS] */
    /* made by reading: */
    ats_compare_row *rows;   /* gates, then room for a summary row of every `what` */
    double *gate[2];         /* [n_gates, n_pairs] a sample's number */
    int64_t *gate_cases;     /* [n_gates] */
    double *cell[2];         /* [n_what, n_layers, n_heads, n_pairs] sums, then means */
    double *cell_n;          /* same: terms */
    double *worst;           /* [n_what, n_layers, n_heads] smallest difference of one case */
    int64_t *worst_case;     /* same: candidate's case */
    double *variant_mean[2]; /* [n_variants, n_pairs] mean over layers and heads */
} ats_compare_state;

enum { ATS_COMPARE_FINDINGS = 1000, ATS_COMPARE_WORST = 10 };

/* compare_open.c: coordinates and attributes of both files. */
ATS_MUST_CHECK ats_code ats_compare_open(ats_compare_state *s, ats_err *err);
void ats_compare_close(ats_compare_state *s);
/* compare_pair.c: comparable or refused with a list; pairs, clusters, findings, the head. */
ATS_MUST_CHECK ats_code ats_compare_pair_up(ats_compare_state *s, ats_err *err);
/* Counts the finding, keeps it while there is room, looks whether it is allowed. */
ATS_MUST_CHECK ats_code ats_compare_find(ats_compare_state *s, ats_finding_kind kind,
                                         const char *sample, const char *variant, int64_t count,
                                         const char *text);
/* compare_read.c */
ATS_MUST_CHECK ats_code ats_compare_read(ats_compare_state *s, ats_err *err);
/* compare_judge.c: one row of cluster means into numbers, with the resamples of that n; resamples
 * NULL: differences alone. */
typedef struct ats_compare_resamples {
    ats_arena *arena;
    uint64_t seed;
    int64_t resamples, count;
    double alpha;
    ats_stat_bootstrap made[64];
} ats_compare_resamples;
ATS_MUST_CHECK ats_code ats_compare_measure(ats_compare_resamples *resamples, const double *base,
                                            const double *candidate, int64_t n_clusters,
                                            bool interval, ats_compare_numbers *out, ats_err *err);
/* Gates of exact mode: the difference is no sample of anything. */
void ats_compare_judge_exact(const ats_compare_gate *gate, double floor, ats_compare_row *row);
ATS_MUST_CHECK ats_code ats_compare_sentence(ats_arena *arena, const ats_compare_options *options,
                                             int64_t n_gates, bool exact, ats_compare_row *row,
                                             ats_err *err);
/* compare_explore.c: summary rows, cells, worst heads, dose curves. */
ATS_MUST_CHECK ats_code ats_compare_explore(ats_compare_state *s, ats_compare_resamples *resamples,
                                            ats_err *err);
/* compare_curves.c: what the dose curves of both results say, into curves that are made. */
ATS_MUST_CHECK ats_code ats_compare_curves(ats_compare_state *s, ats_compare_resamples *resamples,
                                           ats_compare_curve *curves, int64_t count, ats_err *err);
/* compare_exact.c */
ATS_MUST_CHECK ats_code ats_compare_exact(ats_compare_state *s, ats_err *err);

/* Means of `values` [n_pairs] over the samples of each cluster; NaN samples are left out. */
void ats_compare_clusters(const ats_compare_state *s, const double *values, double *clusters);
/* At most 8 columns: "-0.1230", "-1.2e-05"; "-" for NaN. The bound of an interval: at most 7. */
const char *ats_compare_number(double value, char out[32]);
const char *ats_compare_bound(double value, char out[32]);
/* Is a difference beyond chance: the interval excludes 0 and the test rejects. */
bool ats_compare_claims(const ats_compare_numbers *numbers, double alpha);
/* Text of a file as a terminal, XML and JSON can carry it. */
void ats_compare_visible(ats_text *text, const char *value);

#endif

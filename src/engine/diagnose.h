/* diagnose: why is each head's route sharp, and which keys carry its output?
 *
 * Every chosen probe of every sample, layer and query head is taken apart by metrics/diagnose.h;
 * beside it stand the heaviest keys and the keys of the largest contributions, which need not be
 * the same.
 * Ownership: a report owns everything it points to; the capture stays with the caller. */
#ifndef ATS_ENGINE_DIAGNOSE_H
#define ATS_ENGINE_DIAGNOSE_H

#include "capture/capture.h"
#include "metrics/diagnose.h"

typedef struct ats_diagnose_options {
    int64_t n_samples, n_layers; /* first ones looked at; 0: all */
    const char *role;            /* probes of that role; NULL: the last probe */
    int64_t top;                 /* keys in the lists, at most ATS_DIAGNOSE_TOP */
    uint64_t seed;
} ats_diagnose_options;

enum { ATS_DIAGNOSE_TOP = 16 };

typedef struct ats_diagnose_row_report {
    int64_t sample, layer, head, probe; /* indices of the capture; probe of the sample */
    ats_diagnosis d;
    int64_t n_top; /* shorter where few keys have weight */
    int64_t by_weight[ATS_DIAGNOSE_TOP], by_contribution[ATS_DIAGNOSE_TOP]; /* key indices, -1 */
    double weight[ATS_DIAGNOSE_TOP], contribution[ATS_DIAGNOSE_TOP];        /* w; |w v| */
    double contribution_weight[ATS_DIAGNOSE_TOP]; /* w of by_contribution */
} ats_diagnose_row_report;

/* One head over all rows of its layer. */
typedef struct ats_diagnose_head {
    int64_t layer, head; /* indices of the capture */
    int64_t rows, labels[ATS_N_LABELS];
    ats_cause label;            /* held by more than half of the defined rows, else mixed */
    double share[ATS_N_CAUSES]; /* means, nats */
    double entropy, max_weight, top_stays, top_cosine, top_norm_ratio; /* means */
    double spread;         /* predicted logit sd, mean */
    int64_t first_differs; /* rows where the heaviest key is not the largest contribution */
    double overlap;        /* mean share of the lists that is common */
} ats_diagnose_head;

typedef struct ats_diagnose_report {
    ats_arena arena;
    int64_t n_samples, n_layers, n_skipped; /* samples without the wanted probes */
    int64_t n_rows;
    ats_diagnose_row_report *rows;
    int64_t n_heads;
    ats_diagnose_head *heads; /* by layer, then head */
} ats_diagnose_report;

ATS_MUST_CHECK ats_code ats_diagnose_run(const ats_capture *capture,
                                         const ats_diagnose_options *options,
                                         ats_diagnose_report *out, ats_err *err);
void ats_diagnose_fini(ats_diagnose_report *report);

/* What the lists may not be read as. */
extern const char *const ats_contribution_caution;

#endif

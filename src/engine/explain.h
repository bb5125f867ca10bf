/* explain: one cell of a result by hand, so that a person with a calculator can follow it.
 *
 * The suite stored in the result is read again, the case's edit is built again, and base and
 * variant are computed by the double-precision reference on one query head. Numbers stored in the
 * result stand beside the recomputed ones.
 * Ownership: an explanation owns everything it points to. */
#ifndef ATS_ENGINE_EXPLAIN_H
#define ATS_ENGINE_EXPLAIN_H

#include "base/arena.h"
#include "base/edit.h"
#include "metrics/laws.h"

typedef struct ats_explain_options {
    const char *result;
    const char *case_id; /* index on the case axis, or "<sample id>:<variant id>" */
    const char *capture; /* NULL: found by the name the result gives */
    int64_t layer, head; /* the model's numbers */
    int64_t probe;       /* place on the result's probe axis; -1: the last */
    int64_t top;         /* keys listed */
} ats_explain_options;

/* A route's view of a set of keys. */
typedef struct ats_explain_route {
    int64_t best_key; /* base index, -2 - side row, or -1: no legal key */
    double best;      /* nats, -inf: none */
    double lse;       /* nats, -inf: none */
    double mass;
} ats_explain_route;

typedef struct ats_explain_span {
    const char *name;
    int64_t rows; /* of the base */
    ats_explain_route base, variant;
    double log_mass_shift, own_logit_shift; /* nats */
} ats_explain_span;

typedef struct ats_explain_key {
    int64_t key;                    /* base index or -2 - side row */
    int64_t position;               /* in the variant; in the base for a hidden key */
    const char *text;               /* token, or "" */
    const char *span;               /* "" for none */
    double logit_base, weight_base; /* NaN: not in the base */
    double logit, weight;
    int64_t donor_row; /* inserted keys: row of the donor sample, -1: no donor */
    const char *donor; /* donor sample, or "" */
} ats_explain_key;

typedef struct ats_explain_part {
    const char *name;
    double norm, share;
} ats_explain_part;

typedef struct ats_explain_stored {
    const char *name;               /* "mass[gold]" */
    double stored, computed, bound; /* |stored - computed| must not exceed bound */
} ats_explain_stored;

typedef struct ats_explanation {
    ats_arena arena;
    const char *suite, *capture, *sample, *variant, *kind, *arm, *mode, *model;
    int64_t case_index, layer, head, probe, probe_index, probe_position;
    int64_t n_keys, length; /* rows of the base and of the perturbed sequence */
    double scale, softcap, temperature, dose;
    int64_t window, chunk;
    double sink; /* NaN: none */
    const char *script;
    ats_edit edit;     /* of this head's key head; edit.q: the explained row alone */
    int64_t d_qk, d_v;
    int64_t query_delta;
    double lse_base, lse, null_base, null_variant;
    int64_t legal_base, legal;
    int64_t n_spans, target; /* target: index of the span that shifts are spelled out for */
    ats_explain_span *spans; /* the span axis, then inserted */
    int64_t n_top;
    ats_explain_key *top; /* heaviest keys of either route, by the larger weight */
    int64_t n_inserted;
    ats_explain_key *inserted;
    double tv, intrusion, removal, output_norm_base, output_norm, output_cosine, output_change;
    ats_explain_part parts[ATS_N_PARTS];
    double parts_residual; /* |sum of parts - (o' - o)| */
    int64_t n_laws;
    ats_law laws[ATS_LAWS_MAX];
    int64_t n_stored;
    ats_explain_stored *stored;
    int64_t n_differ; /* stored numbers outside their bound */
} ats_explanation;

ATS_MUST_CHECK ats_code ats_explain_run(const ats_explain_options *options, ats_explanation *out,
                                        ats_err *err);
void ats_explain_fini(ats_explanation *explanation);

#endif

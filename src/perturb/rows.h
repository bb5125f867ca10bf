/* Content of side rows: keys by source, values by payload, norms of the twin, what came out.
 *
 * Content space is a key rotated back to position 0 (layers without RoPE: the key itself).
 * Private to perturb/. Everything lives in ctx->arena. */
#ifndef ATS_PERTURB_ROWS_H
#define ATS_PERTURB_ROWS_H

#include "perturb/pool.h"

typedef struct ats_rows {
    const ats_build *ctx;
    int64_t n, d, dv;
    float *k;                          /* [n, d], at `position` */
    float *v;                          /* [n, dv] */
    const int64_t *position;           /* [n] */
    const ats_donor *base;             /* the sample itself */
    int64_t *target;                   /* [n] base row that side row j competes with */
    int64_t *from;                     /* [n] base row that side row j is made from */
    const ats_pool_row *donors;        /* [n] or NULL until drawn */
    int64_t *donor_sample, *donor_row; /* [n], -1: not a donor */
} ats_rows;

/* Zeroed rows for out->edit.side; target and from are start + j % (stop - start). */
ATS_MUST_CHECK ats_code ats_rows_begin(const ats_build *ctx, const ats_built *out, int64_t start,
                                       int64_t stop, ats_rows *rows, ats_err *err);
ATS_MUST_CHECK ats_code ats_rows_draw(ats_rows *rows, const char *purpose, ats_err *err);

/* Keys. All rows at once. */
void ats_keys_donor(ats_rows *rows); /* moved from the donor's position; the donor is recorded */
void ats_keys_copy(ats_rows *rows);  /* of `from`, moved */
/* k' = ratio |k| (cos k/|k| + sin u), u orthogonal to k = key of `from`, both in content space;
 * u in the span of real key differences, or of all directions. */
ATS_MUST_CHECK ats_code ats_keys_similar(ats_rows *rows, const char *purpose, double cosine,
                                         double ratio, bool isotropic, ats_err *err);
/* Donor keys moved along the mean query of the group at the last probe until that query's logit
 * is `margin` nats above its best logit on [start, stop) of the edited sequence. */
ATS_MUST_CHECK ats_code ats_keys_targeted(ats_rows *rows, const ats_built *out, double margin,
                                          int64_t start, int64_t stop, ats_err *err);
/* What parameter source and its numbers say, after ats_rows_draw where donors are needed. */
ATS_MUST_CHECK ats_code ats_keys_by_source(ats_rows *rows, const ats_built *out,
                                           const char *purpose, int64_t start, int64_t stop,
                                           ats_err *err);

/* Values. */
bool ats_payload_needs_donor(const char *payload);
ATS_MUST_CHECK ats_code ats_values_payload(ats_rows *rows, const char *payload, ats_err *err);
/* v' = |v| (cos v/|v| + sin u), u in the span of real value differences. */
ATS_MUST_CHECK ats_code ats_values_similar(ats_rows *rows, const char *purpose, double cosine,
                                           ats_err *err);

/* Norms of all rows: [n] each, and rows scaled to such norms (a zero row stays zero). */
ATS_MUST_CHECK ats_code ats_rows_norms(const ats_rows *rows, double **key, double **value,
                                       ats_err *err);
void ats_rows_scale(ats_rows *rows, const double *key, const double *value);

/* Hands the rows to out->edit.side; the record holds their number and donors. */
void ats_rows_hand_over(ats_rows *rows, ats_built *out);
/* The same with cosine and norm ratio against `target`. */
ATS_MUST_CHECK ats_code ats_rows_compare(ats_rows *rows, ats_built *out, ats_err *err);
/* The same with the mean logit over rows, evaluated heads and probes. */
ATS_MUST_CHECK ats_code ats_rows_finish(ats_rows *rows, ats_built *out, ats_err *err);
/* The control twin of inserted rows: other donors with these rows' key and value norms. */
ATS_MUST_CHECK ats_code ats_rows_decoy(ats_rows *rows, ats_err *err);

/* Rows that a pool must have for this family's parameters source, basis and payload. */
int64_t ats_donors_needed(const ats_build *ctx, int64_t rows);

/* A direction orthogonal to `axis` [d], unit norm, drawn in the span of the differences:
 * diffs [n_diffs, d], or of all directions with n_diffs 0. False: there is none. */
bool ats_orthogonal(ats_rng *rng, const double *axis, const double *diffs, int64_t n_diffs,
                    int64_t d, double *out);
/* [*count, d] differences of 2 * *count random pool rows: keys in content space, or values. */
ATS_MUST_CHECK ats_code ats_differences(const ats_build *ctx, const char *purpose, bool values,
                                        double **out, int64_t *count, ats_err *err);

double ats_vector_norm(const float *x, int64_t n);
/* Summed from the first element to the last: rows are made with it. */
double ats_vector_dot(const float *a, const float *b, int64_t n);
/* The same sum in eight strands: for what is recorded of an edit. */
double ats_vector_dot_any(const float *a, const float *b, int64_t n);

#endif

/* Small results with known numbers for the tests of compare: one metric of a span, one scalar, one
 * base metric, written by the product's own writer. */
#ifndef ATS_TESTS_REPORT_PLANTED_H
#define ATS_TESTS_REPORT_PLANTED_H

#include <stdbool.h>

#include "report/results.h"

enum { PLANTED_VARIANTS = 4, PLANTED_MOST = 64 };
/* Variants: "near/1" and "near/4" (treatment, dose 1 and 4), "near/4!" (control), "far" (dose NaN).
 */
extern const char *const planted_variants[PLANTED_VARIANTS];

typedef struct planted {
    int64_t n_samples, n_layers, n_heads, n_probes;
    const char *ids[PLANTED_MOST], *clusters[PLANTED_MOST]; /* clusters NULL: none is said */
    const char *tokens, *spans, *probes, *suite_hash, *capture_hash, *checkpoint, *suite_name,
        *target_name, *build; /* NULL: a standard one */
    int64_t other_sample;     /* that alone has these tokens, spans, probes; -1: all */
    bool detail_head;
    int64_t skipped; /* case that did not run, -1: none */
    /* log_mass_shift[gold] of a cell; retention[gold] is its exp, tv is minus it */
    double (*value)(const struct planted *p, int64_t sample, int64_t variant, int64_t layer,
                    int64_t head, int64_t probe);
    double shift;         /* for value */
    const double *values; /* likewise */
} planted;

/* Eight samples s0..s7 in eight clusters, 2 layers (4, 9), 3 heads, 2 probes, noise of `value`. */
planted planted_standard(void);
/* A number in (-1, 1) that belongs to a place. */
double planted_noise(int64_t a, int64_t b, int64_t c, int64_t d);
/* A `value`: noise around -1 that differs by layer and head, and `shift` at layer 9, head 1 alone:
 * the mean over 2 x 3 heads moves by a sixth of it. */
double planted_one_head(const planted *p, int64_t sample, int64_t variant, int64_t layer,
                        int64_t head, int64_t probe);
/* Where a group of tests puts its two results: set-up and tear-down of a cmocka group. */
extern char planted_folder[], planted_base[64], planted_cand[64];
int planted_make_folder(void **state);
int planted_remove_folder(void **state);
ats_code planted_write(const char *path, const planted *p, ats_err *err);

#endif

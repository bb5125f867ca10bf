/* Reading a result for the page: coordinates of the cases, then one pass over the numbers.
 * Internal to report/. */
#ifndef ATS_REPORT_PAGE_PRIVATE_H
#define ATS_REPORT_PAGE_PRIVATE_H

#include "report/page.h"

typedef struct ats_page_reader {
    ats_arena *arena;
    ats_result_file *file;
    ats_page_result *result;
    const char **perturbation, **kind, **arm, **variant; /* [n_cases] */
    const char **sample_id;                              /* [n_samples] */
    double *status, *sample, *pair, *rows;               /* [n_cases] */
    double *swept[ATS_PAGE_N_CURVES];                    /* [n_cases] NaN: does not apply */
} ats_page_reader;

/* Fills families, shift and worst. */
ATS_MUST_CHECK ats_code ats_page_reduce(ats_page_reader *reader, ats_err *err);

/* Fills cause and label, where the result has them. */
ATS_MUST_CHECK ats_code ats_page_causes(ats_page_reader *reader, ats_err *err);
/* Mean over samples and probes of a base variable [sample, layer, head, probe, inner] at `place`,
 * of its logarithm where `log_mean`: out [layers, heads]. */
ATS_MUST_CHECK ats_code ats_page_base_map(ats_page_reader *reader, const char *name, int64_t inner,
                                          int64_t place, bool log_mean, double *out, ats_err *err);

/* Fills what dose curves say: the law of each family, half doses. After the reduction. */
ATS_MUST_CHECK ats_code ats_page_doses(ats_page_reader *reader, ats_err *err);

#endif

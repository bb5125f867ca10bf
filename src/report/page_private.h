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

/* Fills what dose curves say: the law of each family, half doses. After the reduction. */
ATS_MUST_CHECK ats_code ats_page_doses(ats_page_reader *reader, ats_err *err);

#endif

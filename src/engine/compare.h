/* From a suite's gates and two results to a comparison: what `compare` and `report --against` call.
 * Ownership: a compared owns suite, gates and comparison; release it with ats_compared_close. */
#ifndef ATS_ENGINE_COMPARE_H
#define ATS_ENGINE_COMPARE_H

#include "report/compare.h"
#include "suite/suite.h"

typedef struct ats_compared {
    ats_arena arena;
    ats_suite *suite; /* whose gates these are */
    ats_comparison *comparison;
} ats_compared;

/* gates: a suite file, or NULL for the suite stored in the baseline. Of options the gates are not
 * looked at; seed 0: the suite's. */
ATS_MUST_CHECK ats_code ats_compare_run(const char *gates, const ats_compare_options *options,
                                        ats_compared *out, ats_err *err);
void ats_compared_close(ats_compared *compared);

#endif

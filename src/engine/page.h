/* report: the HTML page of a result, with what only the capture knows (spans and their text).
 *
 * Ownership: the page's text lives in the caller's arena. */
#ifndef ATS_ENGINE_PAGE_H
#define ATS_ENGINE_PAGE_H

#include "base/arena.h"
#include "report/compare.h"

typedef struct ats_page_request {
    const char *result;
    const char *against; /* the baseline's result, or NULL */
    const char *capture; /* NULL: looked for beside the result and here; its lack is no error */
    /* What may lack a partner in `against`, as for compare, by ats_finding_kind. */
    const char *const *allow[ATS_N_FINDING_KINDS];
    int64_t n_allow[ATS_N_FINDING_KINDS];
} ats_page_request;

ATS_MUST_CHECK ats_code ats_page_make(ats_arena *arena, const ats_page_request *request,
                                      const char **out, ats_err *err);

#endif

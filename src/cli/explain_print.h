/* An explanation as text for people (80 columns) and as JSON.
 * Ownership: nothing is kept; the explanation is only read. */
#ifndef ATS_CLI_EXPLAIN_PRINT_H
#define ATS_CLI_EXPLAIN_PRINT_H

#include <stdio.h>

#include "engine/explain.h"

void ats_explain_text(FILE *stream, const ats_explanation *e);
ATS_MUST_CHECK ats_code ats_explain_json(FILE *stream, const ats_explanation *e, ats_err *err);

#endif

/* An explanation as text for people (80 columns) and as JSON.
 * Ownership: nothing is kept; the explanation is only read. */
#ifndef ATS_CLI_EXPLAIN_PRINT_H
#define ATS_CLI_EXPLAIN_PRINT_H

#include <stdio.h>

#include "engine/explain.h"

void ats_explain_text(FILE *stream, const ats_explanation *e);
/* rows: also the keys, values and queries of the edit, so that others can compute the cell. */
ATS_MUST_CHECK ats_code ats_explain_json(FILE *stream, const ats_explanation *e, bool rows,
                                         ats_err *err);
/* The edit script as JSON; NULL when memory ran out. */
struct json_t *ats_explain_edit_json(const ats_explanation *e, bool rows);

#endif

/* The steps of explain: the case in the result, the routes, the comparison with what is stored.
 * Private to engine/explain*.c. */
#ifndef ATS_ENGINE_EXPLAIN_PRIVATE_H
#define ATS_ENGINE_EXPLAIN_PRIVATE_H

#include "engine/explain.h"
#include "engine/plan.h"

/* Texts of one coordinate of the result. */
typedef struct ats_explain_texts {
    char **items;
    int64_t count;
} ats_explain_texts;

/* A cell of a result, found: the suite, the capture and the indices on every side. */
typedef struct ats_explain_case {
    ats_result_file *file;
    ats_suite *suite;
    ats_plan *plan;                     /* of the sample's capture alone */
    int64_t result_case, result_sample; /* indices on the result's axes */
    int64_t result_layer, result_head, result_probe;
    int64_t sample, layer, variant; /* indices of the plan's selection and suite */
    int64_t probe;                  /* index of the sample's probe */
    ats_explain_texts spans;        /* the result's span axis */
} ats_explain_case;

ATS_MUST_CHECK ats_code ats_explain_find(const ats_explain_options *options, ats_explain_case *out,
                                         ats_err *err);
void ats_explain_case_fini(ats_explain_case *found);

/* One head's problem with every chosen probe; row is the probe explained. */
typedef struct ats_explain_cell {
    const ats_explain_case *found;
    const ats_layer *layer;
    const ats_sample *sample;
    ats_problem problem;
    ats_built built;
    int64_t row;
    ats_explanation *out;
} ats_explain_cell;

/* Fills spans, top keys and inserted rows from the materialised rows of both routes. */
ATS_MUST_CHECK ats_code ats_explain_routes(ats_explain_cell *cell, int64_t top, ats_err *err);
/* Fills outputs, parts, laws and the comparison with the result, from the statistics. */
ATS_MUST_CHECK ats_code ats_explain_numbers(ats_explain_cell *cell, ats_err *err);

#endif

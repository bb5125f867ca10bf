/* Parameter rows that several families share, and access to a variant's values by name.
 * Private to perturb/. Pure functions. */
#ifndef ATS_PERTURB_PARAMS_H
#define ATS_PERTURB_PARAMS_H

#include <math.h>

#include "perturb/family.h"

#define ATS_COUNT(array) ((int64_t)(sizeof(array) / sizeof *(array)))
#define ATS_ROWS_MAX 1e9

extern const char *const ats_words_source[],
    *const ats_words_basis[], *const ats_words_payload[], *const ats_words_placement[];

#define ATS_PARAM_SPAN                                                                             \
    {                                                                                              \
        .name = "span", .type = ATS_PARAM_TEXT, .unit = "1",                                       \
        .doc = "Name or role of the span that is meant; absent: the suite's target."               \
    }
#define ATS_PARAM_SOURCES                                                                          \
    {.name = "source",                                                                             \
     .type = ATS_PARAM_WORD,                                                                       \
     .unit = "1",                                                                                  \
     .doc = "Where keys come from: real rows, keys at a cosine to the span's, keys at a logit.",   \
     .text = "donor",                                                                              \
     .words = ats_words_source},                                                                   \
        {.name = "cosine",                                                                         \
         .type = ATS_PARAM_REAL,                                                                   \
         .unit = "1",                                                                              \
         .doc = "Cosine to the span's key in content space (both rotated back to position 0).",    \
         .number = NAN,                                                                            \
         .min = -1,                                                                                \
         .max = 1,                                                                                 \
         .group = "source",                                                                        \
         .group_word = "similar"},                                                                 \
        {.name = "norm_ratio",                                                                     \
         .type = ATS_PARAM_REAL,                                                                   \
         .unit = "1",                                                                              \
         .doc = "Key norm as a multiple of the span's key norm.",                                  \
         .number = 1,                                                                              \
         .min = 0,                                                                                 \
         .max = 1e6,                                                                               \
         .group = "source",                                                                        \
         .group_word = "similar"},                                                                 \
        {.name = "basis",                                                                          \
         .type = ATS_PARAM_WORD,                                                                   \
         .unit = "1",                                                                              \
         .doc =                                                                                    \
             "The orthogonal part comes from differences of real keys, or from all directions.",   \
         .text = "real",                                                                           \
         .words = ats_words_basis,                                                                 \
         .group = "source",                                                                        \
         .group_word = "similar"},                                                                 \
    {                                                                                              \
        .name = "margin", .type = ATS_PARAM_REAL, .unit = "nats",                                  \
        .doc = "Logit above the span's best logit, for the mean query of the last probe.",         \
        .number = NAN, .min = -1e4, .max = 1e4, .group = "source", .group_word = "targeted"        \
    }
#define ATS_PARAM_PAYLOAD(standard)                                                                \
    {                                                                                              \
        .name = "payload", .type = ATS_PARAM_WORD, .unit = "1",                                    \
        .doc = "Value of an inserted row: a real row's, the span's own, orthogonal to it, its "    \
               "negative, or zero.",                                                               \
        .text = standard, .words = ats_words_payload                                               \
    }
#define ATS_PARAM_PLACES                                                                           \
    {.name = "placement",                                                                          \
     .type = ATS_PARAM_WORD,                                                                       \
     .unit = "1",                                                                                  \
     .doc = "Where rows go: next to the span, at a depth of the context, or at random.",           \
     .text = "after",                                                                              \
     .words = ats_words_placement},                                                                \
        {.name = "depth",                                                                          \
         .type = ATS_PARAM_REAL,                                                                   \
         .unit = "1",                                                                              \
         .doc = "Share of the context before the insertion point, up to the first probe.",         \
         .number = NAN,                                                                            \
         .min = 0,                                                                                 \
         .max = 1,                                                                                 \
         .group = "placement",                                                                     \
         .group_word = "depth"},                                                                   \
    {                                                                                              \
        .name = "free_zone", .type = ATS_PARAM_INT, .unit = "rows",                                \
        .doc = "Rows on either side of the span that nothing is inserted into or written over.",   \
        .number = 0, .min = 0, .max = ATS_ROWS_MAX                                                 \
    }

/* Values of this variant. A name that the table lacks is a programmer's mistake. */
double ats_arg(const ats_build *ctx, const char *name);           /* NaN when not set */
int64_t ats_arg_int(const ats_build *ctx, const char *name);      /* must be set */
const char *ats_arg_text(const ats_build *ctx, const char *name); /* NULL when not set */
bool ats_arg_is(const ats_build *ctx, const char *name, const char *word);

/* The same before a build exists, for `check`. */
double ats_table_number(const ats_family *family, const ats_param *params, const char *name);
const char *ats_table_text(const ats_family *family, const ats_param *params, const char *name);

/* source: similar needs cosine, targeted needs margin; placement: depth needs depth. */
ATS_MUST_CHECK ats_code ats_check_source(const ats_family *family, const ats_param *params,
                                         ats_err *err);
ATS_MUST_CHECK ats_code ats_check_depth(const ats_family *family, const ats_param *params,
                                        ats_err *err);

#endif

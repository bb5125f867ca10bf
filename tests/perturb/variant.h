/* A family's parameters and build for the tests of perturb/: defaults from the table, then
 * settings by name. */
#ifndef ATS_TESTS_PERTURB_VARIANT_H
#define ATS_TESTS_PERTURB_VARIANT_H

#include "perturb/family.h"
#include "support/check.h"
#include "support/tiny.h"

enum { VARIANT_PARAMS = 16 };

typedef struct variant {
    ats_arena arena;
    ats_param params[VARIANT_PARAMS];
    ats_donor donors[TINY_SAMPLES];
    ats_build build;
    ats_built built;
    ats_err err;
} variant;

/* Defaults of the family on samples[0] of t, key head 0, all donors, target gold. */
void variant_begin(variant *v, const tiny *t, const char *kind, ats_position_mode mode);
void variant_number(variant *v, const char *name, double number);
void variant_word(variant *v, const char *name, const char *text);
/* The family's own check, then the build. */
ats_code variant_try(variant *v);
void variant_build(variant *v); /* must succeed and not be skipped */
void variant_free(variant *v);

#endif

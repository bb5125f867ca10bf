/* A fixture of tests/golden/fixtures as a backend problem, edit scripts and expected statistics.
 * Ownership: the arena. A malformed fixture is a cmocka failure. */
#ifndef ATS_TESTS_GOLDEN_LOAD_FIXTURE_H
#define ATS_TESTS_GOLDEN_LOAD_FIXTURE_H

#include "support/evaluate.h"

typedef struct fixture {
    ats_problem problem;
    ats_edit *edits;
    const char **names;
    stats_set expected;
} fixture;

void fixture_load(ats_arena *arena, const char *path, fixture *out);

#endif

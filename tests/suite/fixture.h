/* Suites from text for the tests of suite/. */
#ifndef ATS_TESTS_SUITE_FIXTURE_H
#define ATS_TESTS_SUITE_FIXTURE_H

#include <stdio.h>
#include <string.h>

#include "suite/suite.h"
#include "support/check.h"

static inline ats_suite *must_load(const char *text)
{
    ats_suite *suite = NULL;
    ats_err err = {.code = ATS_OK};
    assert_ok(ats_suite_parse("s.yaml", text, NULL, 0, &suite, &err), &err);
    return suite;
}

static inline ats_suite *must_load_set(const char *text, const char *override)
{
    ats_suite *suite = NULL;
    ats_err err = {.code = ATS_OK};
    assert_ok(ats_suite_parse("s.yaml", text, &override, 1, &suite, &err), &err);
    return suite;
}

/* The report of a suite that must not load. */
static inline void must_refuse(const char *text, const char *override, ats_err *err)
{
    ats_suite *suite = NULL;
    *err = (ats_err){.code = ATS_OK};
    const ats_code rc = ats_suite_parse("s.yaml", text, &override, override != NULL, &suite, err);
    if (rc == ATS_OK) fprintf(stderr, "loaded, and should not:\n%s\n", text);
    assert_int_equal(rc, ATS_E_SUITE);
    assert_null(suite);
}

#define HEAD "suite: t\nperturbations:\n"
#define WARM HEAD "  - {name: warm, kind: temperature, tau: [2, 4]}\n"

#endif

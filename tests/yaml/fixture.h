/* One parsed text with its issues, for the tests of yaml/. */
#ifndef ATS_TESTS_YAML_FIXTURE_H
#define ATS_TESTS_YAML_FIXTURE_H

#include <string.h>

#include "support/check.h"
#include "yaml/field.h"

typedef struct fixture {
    ats_arena arena;
    ats_issues issues;
    ats_err err;
    ats_reader reader;
    const ats_node *root;
} fixture;

static inline void parse_bytes(fixture *f, const char *text, int64_t size)
{
    memset(f, 0, sizeof *f);
    f->reader = (ats_reader){.arena = &f->arena, .issues = &f->issues, .err = &f->err};
    assert_ok(ats_yaml_parse(&f->arena, "t.yaml", text, size, &f->issues, &f->root, &f->err),
              &f->err);
}

static inline void parse(fixture *f, const char *text)
{
    parse_bytes(f, text, (int64_t)strlen(text));
}

/* The report; "" when there are no issues. */
static inline const char *report(fixture *f)
{
    const ats_code rc = ats_issues_report(&f->issues, ATS_E_SUITE, &f->err);
    return rc == ATS_OK ? "" : f->err.text;
}

static inline void drop(fixture *f) { ats_arena_fini(&f->arena); }

#endif

#include <string.h>

#include "metrics/metric.h"
#include "suite/draft.h"

/* Capture globs are meant from the file that holds them. */
static ats_code place_captures(ats_reader *reader, ats_draft *draft)
{
    ats_code rc = ATS_OK;
    const ats_node *node = ats_node_get(draft->root, "captures");
    const char **items = NULL;
    ats_strings *captures = &draft->suite.captures;
    ATS_TRY(ATS_NEW(reader->arena, captures->count, &items, reader->err));
    for (int64_t i = 0; i < captures->count; i++) {
        const ats_node *at = node->kind == ATS_NODE_LIST ? node->items[i] : node;
        ATS_TRY(ats_document_path(reader, at, captures->items[i], &items[i]));
    }
    captures->items = items;
out:
    return rc;
}

/* `contributions: off` keeps every metric but those that tell what a span or key brings back. */
static ats_code drop_contributions(ats_reader *reader, ats_draft *draft)
{
    ats_code rc;
    int64_t count, kept = 0;
    const ats_metric *const *metrics = ats_metrics(&count);
    const char **items = NULL;
    ATS_TRY(ATS_NEW(reader->arena, count, &items, reader->err));
    for (int64_t i = 0; i < count; i++) {
        const bool wanted = metrics[i]->needs != ATS_NEEDS_DIAGNOSIS &&
                            strstr(metrics[i]->name, "contribution") == NULL &&
                            strcmp(metrics[i]->name, "cancellation") != 0;
        if (wanted) items[kept++] = metrics[i]->name;
    }
    draft->suite.keep_all = false;
    draft->suite.keep = (ats_strings){.count = kept, .items = items};
out:
    return rc;
}

static ats_code build(ats_reader *reader, const ats_source *source, const char *const *overrides,
                      int64_t n_overrides, ats_draft *draft)
{
    ats_code rc;
    ATS_TRY(ats_document_load(reader, source, overrides, n_overrides, &draft->root));
    if (draft->root == NULL) goto out;
    draft->suite.path = source->name;
    const bool good = ats_fields_read(reader, &ats_suite_table, draft->root, draft);
    ATS_TRY(reader->rc);
    const int64_t before = reader->issues->count;
    if (draft->suite.keep_all && draft->contributions != NULL &&
        strcmp(draft->contributions, "off") == 0)
        ATS_TRY(drop_contributions(reader, draft));
    bool expanded = good && before == 0;
    if (expanded) ATS_TRY(ats_suite_expand(reader, draft));
    expanded = expanded && reader->issues->count == before;
    ATS_TRY(ats_gates_check(reader, draft, expanded));
    ATS_TRY(reader->rc);
    if (reader->issues->count > 0) goto out;
    ATS_TRY(place_captures(reader, draft));
    ATS_TRY(ats_suite_resolve(reader, draft));
out:
    return rc;
}

/* Takes the arena over in every case. */
static ats_code load(ats_arena *arena, const ats_source *source, const char *const *overrides,
                     int64_t n_overrides, ats_suite **out, ats_err *err)
{
    ats_code rc;
    ats_draft *draft = NULL;
    ats_issues *issues = NULL;
    ATS_TRY(ATS_NEW0(arena, 1, &draft, err));
    ATS_TRY(ATS_NEW0(arena, 1, &issues, err));
    ats_reader reader = {.arena = arena, .issues = issues, .err = err, .user = draft};
    ATS_TRY(build(&reader, source, overrides, n_overrides, draft));
    ATS_TRY(ats_issues_report(issues, ATS_E_SUITE, err));
    draft->suite.arena = *arena;
    *out = &draft->suite;
out:
    if (rc != ATS_OK) ats_arena_fini(arena);
    return rc;
}

ats_code ats_suite_load(const char *path, const char *const *overrides, int64_t n_overrides,
                        ats_suite **out, ats_err *err)
{
    ats_arena arena;
    ats_source *source = NULL;
    ats_arena_init(&arena, false);
    const ats_code rc = ats_source_read(&arena, path, &source, err);
    if (rc == ATS_OK) return load(&arena, source, overrides, n_overrides, out, err);
    ats_arena_fini(&arena);
    return rc;
}

ats_code ats_suite_parse(const char *name, const char *text, const char *const *overrides,
                         int64_t n_overrides, ats_suite **out, ats_err *err)
{
    ats_arena arena;
    ats_source *source = NULL;
    ats_arena_init(&arena, false);
    const ats_code rc =
        ats_source_new(&arena, name, text, (int64_t)strlen(text), false, &source, err);
    if (rc == ATS_OK) return load(&arena, source, overrides, n_overrides, out, err);
    ats_arena_fini(&arena);
    return rc;
}

void ats_suite_free(ats_suite *suite)
{
    if (suite == NULL) return;
    ats_arena arena = suite->arena; /* the suite itself lives in it */
    ats_arena_fini(&arena);
}

#include <string.h>

#include "engine/run_private.h"
#include "engine/version.h"

enum { MAX_ATTRIBUTES = 32 };

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void put_text(ats_attribute *list, int64_t *n, const char *name, const char *text)
{
    ATS_ASSERT(*n < MAX_ATTRIBUTES);
    list[(*n)++] =
        (ats_attribute){.name = name, .type = ATS_TYPE_TEXT, .text = text != NULL ? text : ""};
}

static void put_i64(ats_attribute *list, int64_t *n, const char *name, int64_t value)
{
    ATS_ASSERT(*n < MAX_ATTRIBUTES);
    list[(*n)++] = (ats_attribute){.name = name, .type = ATS_TYPE_I64, .i64 = value};
}

/* "a.h5 b.h5" and "hash hash": one word a capture, in order. */
static ats_code capture_lists(const ats_plan *plan, ats_arena *arena, const char **names,
                              const char **hashes, ats_err *err)
{
    ats_code rc = ATS_OK;
    *names = *hashes = "";
    for (int64_t c = 0; c < plan->n_captures; c++) {
        const char *space = c > 0 ? " " : "";
        ATS_TRY(ats_arena_printf(arena, names, err, "%s%s%s", *names, space,
                                 base_name(plan->captures[c]->path)));
        ATS_TRY(ats_arena_printf(arena, hashes, err, "%s%s%s", *hashes, space,
                                 plan->captures[c]->hash));
    }
out:
    return rc;
}

/* Nothing here depends on the time, the place or the number of threads. */
ats_code ats_attributes_make(const ats_plan *plan, ats_arena *arena, ats_attribute **out,
                             int64_t *count, ats_err *err)
{
    const ats_suite *suite = plan->suite;
    const ats_capture *capture = plan->captures[0];
    const char *names, *hashes, *compression = NULL;
    ats_attribute *list = NULL;
    int64_t n = 0;
    ats_code rc;
    ATS_TRY(ATS_NEW0(arena, MAX_ATTRIBUTES, &list, err));
    ATS_TRY(capture_lists(plan, arena, &names, &hashes, err));
    ATS_TRY(ats_arena_printf(arena, &compression, err, "%s %lld",
                             suite->compression != NULL ? suite->compression : "zstd",
                             (long long)suite->level));
    put_text(list, &n, "format", "attnstress-result");
    put_i64(list, &n, "format_version", 1);
    put_text(list, &n, "tool_version", ats_version());
    put_text(list, &n, "tool_git", ats_git_hash());
    put_text(list, &n, "suite_name", suite->name);
    put_text(list, &n, "suite_hash", suite->hash);
    put_text(list, &n, "target", suite->target);
    put_i64(list, &n, "seed", (int64_t)suite->seed);
    put_text(list, &n, "captures", names);
    put_text(list, &n, "capture_hashes", hashes);
    put_text(list, &n, "model_id", capture->model_id);
    put_text(list, &n, "checkpoint", capture->checkpoint);
    put_text(list, &n, "weights_hash", capture->weights_hash);
    put_text(list, &n, "backend", plan->backend->name);
    put_text(list, &n, "backend_detail",
             plan->backend->detail != NULL ? plan->backend->detail() : "");
    put_text(list, &n, "precision", suite->precision);
    put_text(list, &n, "detail", plan->shape.detail_head ? "head" : "probe");
    put_text(list, &n, "compression", compression);
    put_text(list, &n, "counterfactual",
             "frozen upstream: later layers and tokens do not react to an edit");
    if (plan->part_count > 0) {
        put_i64(list, &n, "part", plan->part);
        put_i64(list, &n, "part_count", plan->part_count);
    }
    *out = list;
    *count = n;
out:
    return rc;
}

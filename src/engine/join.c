#include "engine/join.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/lock.h"
#include "base/log.h"
#include "h5/file.h"
#include "report/part.h"

ats_code ats_outcome_of_parts(const ats_plan *plan, ats_merge *merge, ats_outcome *outcome,
                              ats_err *err)
{
    int64_t n = 0;
    const ats_merge_part *parts = ats_merge_parts(merge, &n);
    ats_outcome made = {.n_cases = 0};
    ats_code rc;
    ATS_ASSERT(n == plan->selection.n_samples);
    ATS_TRY(ats_outcome_make(plan, &made, err));
    for (int64_t p = 0; p < n; p++) {
        ats_result_file *file = NULL;
        ATS_TRY(ats_merge_take(merge, p, &file, err));
        rc = ats_outcome_take(plan, file, p, 1, &made, err);
        ats_merge_give_back(merge, p);
        if (rc != ATS_OK) {
            rc = ats_prepend(err, rc, "%s", parts[p].path);
            goto out;
        }
    }
    ATS_TRY(ats_outcome_settle(plan, &made, err));
    made.read = outcome->read;
    made.build = outcome->build;
    made.evaluate = outcome->evaluate;
    made.measure = outcome->measure;
    made.write = outcome->write;
    made.behind = outcome->behind;
    made.account = outcome->account;
    made.share = outcome->share;
    *outcome = made;
    return ATS_OK;
out:
    ats_outcome_fini(&made);
    return rc;
}

static ats_code write_judged(ats_arena *arena, const ats_verdict *verdict, ats_merge *merge,
                             const char *path, ats_err *err)
{
    const char *gates = NULL;
    ats_code rc = ats_gates_json(arena, verdict, &gates, err);
    if (rc != ATS_OK) return rc;
    const ats_attribute late[] = {{.name = "gates", .type = ATS_TYPE_TEXT, .text = gates}};
    return ats_merge_write(merge, path, late, 1, err);
}

ats_code ats_merge_judged(ats_arena *arena, const ats_plan *plan, const ats_outcome *outcome,
                          ats_merge *merge, const char *path, ats_err *err)
{
    ats_verdict verdict;
    ats_code rc = ats_gates_judge(arena, plan, outcome, &verdict, err);
    return rc == ATS_OK ? write_judged(arena, &verdict, merge, path, err) : rc;
}

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

typedef struct joiner {
    ats_arena *arena;
    const ats_join_options *options;
    const char **paths;
    int64_t n, room;
} joiner;

static ats_code add_path(joiner *j, const char *path, ats_err *err)
{
    if (j->n == j->room) {
        const char **more = NULL;
        const int64_t room = 2 * j->room + 64;
        ats_code rc = ATS_NEW(j->arena, room, &more, err);
        if (rc != ATS_OK) return rc;
        if (j->n > 0) memcpy(more, j->paths, (size_t)j->n * sizeof *more);
        j->paths = more;
        j->room = room;
    }
    j->paths[j->n++] = path;
    return ATS_OK;
}

/* A folder stands for its parts; one that is still being written to is named. */
static ats_code list_paths(joiner *j, ats_err *err)
{
    ats_code rc = ATS_OK;
    for (int64_t i = 0; i < j->options->n_parts; i++) {
        const char *path = j->options->parts[i];
        const char *const *inside = NULL;
        int64_t n = 0;
        char who[2048];
        if (!is_folder(path)) {
            ATS_TRY(add_path(j, path, err));
            continue;
        }
        if (ats_lock_held(path, who, sizeof who))
            ats_warn("%s is still being written to: %s", path, who);
        ATS_TRY(ats_parts_list(j->arena, path, &inside, &n, err));
        for (int64_t k = 0; k < n; k++) ATS_TRY(add_path(j, inside[k], err));
    }
out:
    return rc;
}

/* A result of another run stays. */
static ats_code check_target(const joiner *j, ats_merge *merge, ats_err *err)
{
    static const char *const names[] = {"suite_hash", "capture_hashes", "backend"};
    const char *path = j->options->path, *why = "";
    ats_attribute expected[3];
    char texts[3][4096];
    ats_result_file *file = NULL;
    ats_part_state state;
    ats_code rc;
    ATS_TRY(ats_h5_target_check(path, err));
    ATS_TRY(ats_merge_take(merge, 0, &file, err));
    for (int i = 0; i < 3; i++) {
        ATS_TRY(ats_result_attribute(file, names[i], texts[i], sizeof texts[i], err));
        expected[i] = (ats_attribute){.name = names[i], .type = ATS_TYPE_TEXT, .text = texts[i]};
    }
    ATS_TRY(ats_result_check(j->arena, path, expected, 3, &state, &why, err));
    if (!j->options->force && (state == ATS_PART_OTHER || state == ATS_PART_DAMAGED))
        rc = ats_fail(err, ATS_E_INPUT,
                      "%s is there already and of another run: %s; nothing was overwritten: name "
                      "another --output, or say --force to replace it",
                      path, why);
out:
    if (file != NULL) ats_merge_give_back(merge, 0);
    return rc;
}

static ats_code judge(joiner *j, ats_merge *merge, ats_joined *out, ats_err *err)
{
    int64_t n = 0;
    const ats_merge_part *parts = ats_merge_parts(merge, &n);
    ats_result_file *file = NULL;
    ats_outcome outcome = {.n_cases = 0};
    char **texts = NULL;
    int64_t n_texts = 0;
    ats_plan plan;
    ats_code rc;
    ATS_TRY(ats_merge_take(merge, 0, &file, err));
    ATS_TRY(ats_result_texts(file, "suite", &texts, &n_texts, err));
    ATS_TRY(ats_suite_parse(parts[0].path, texts[0], NULL, 0, &out->suite, err));
    ATS_TRY(ats_plan_of_result(j->arena, out->suite, file, n, &plan, err));
    ATS_TRY(ats_outcome_of_parts(&plan, merge, &outcome, err));
    ATS_TRY(ats_gates_judge(j->arena, &plan, &outcome, &out->verdict, err));
    out->n_ok = outcome.n_ok;
    out->n_skipped = outcome.n_skipped;
    out->n_failed = outcome.n_failed;
out:
    ats_result_free_texts(texts, n_texts);
    if (file != NULL) ats_merge_give_back(merge, 0);
    ats_outcome_fini(&outcome);
    return rc;
}

ats_code ats_join(ats_arena *arena, const ats_join_options *options, ats_joined *out, ats_err *err)
{
    joiner j = {.arena = arena, .options = options};
    ats_joined joined = {.n_parts = 0};
    ats_merge *merge = NULL;
    struct stat status;
    ats_code rc;
    const double start = ats_clock();
    ATS_TRY(list_paths(&j, err));
    const ats_merge_options how = {j.n, j.paths, options->partial, false};
    ATS_TRY(ats_merge_open(&how, &merge, err));
    ats_merge_parts(merge, &joined.n_parts);
    joined.n_missing = ats_merge_missing(merge);
    ATS_TRY(check_target(&j, merge, err));
    ATS_TRY(judge(&j, merge, &joined, err));
    ATS_TRY(write_judged(arena, &joined.verdict, merge, options->path, err));
    if (stat(options->path, &status) == 0) joined.bytes = (int64_t)status.st_size;
    joined.seconds = ats_clock() - start;
    *out = joined;
    joined.suite = NULL;
out:
    ats_merge_free(merge);
    ats_suite_free(joined.suite);
    return rc;
}

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/text.h"
#include "cli/ending.h"
#include "engine/join.h"
#include "engine/journal.h"

static const ats_option options[] = {
    {"output", 'o', ATS_OPT_VALUE, "OUT.h5", "the joined result", true},
    {"partial", 0, ATS_OPT_FLAG, NULL, "join although parts are missing, and mark it", false},
    {"force", 0, ATS_OPT_FLAG, NULL, "replace a result of another run", false},
    ATS_ENDING_OPTIONS,
};

static ats_code print_text(const ats_joined *joined, const char *path, ats_arena *arena,
                           ats_err *err)
{
    ats_text text = {.arena = arena, .err = err};
    const char *file = NULL;
    char bytes[32];
    ats_text_shell(&text, path);
    ats_code rc = ats_text_done(&text, &file);
    if (rc != ATS_OK) return rc;
    for (int64_t g = 0; g < joined->verdict.n_gates; g++)
        printf("%s\n", joined->verdict.gates[g].sentence);
    printf("%lld cases ran, %lld skipped, %lld failed\n", (long long)joined->n_ok,
           (long long)joined->n_skipped, (long long)joined->n_failed);
    printf("%lld parts joined in %.2f s: %s, %s\n", (long long)joined->n_parts, joined->seconds,
           path, ats_human_bytes(joined->bytes, bytes, sizeof bytes));
    if (joined->n_missing > 0)
        printf("partial: %lld parts are missing, and no gate speaks for them: inconclusive\n",
               (long long)joined->n_missing);
    printf("next: attnstress report %s -o report.html\n", file);
    return ATS_OK;
}

/* The lines of every process whose parts lie in the folders given, and of this one. */
static void note_process(const ats_args *args, const ats_ending *ending, ats_arena *arena)
{
    const char **folders = NULL;
    struct stat status;
    int64_t n = 0;
    ats_err fault;
    char *line = ats_ending_line(ending);
    ats_code rc = line != NULL ? ATS_NEW(arena, args->n_operands, &folders, &fault)
                               : ats_fail(&fault, ATS_E_MEMORY, "out of memory");
    for (int64_t i = 0; rc == ATS_OK && i < args->n_operands; i++)
        if (stat(args->operands[i], &status) == 0 && S_ISDIR(status.st_mode))
            folders[n++] = args->operands[i];
    if (rc == ATS_OK) rc = ats_journal_gather(arena, ending->result, folders, n, line, &fault);
    if (rc != ATS_OK) ats_warn("%s; the result has no journal", fault.text);
    free(line);
}

static void fill_ending(const ats_joined *joined, ats_ending *ending)
{
    ending->suite = joined->suite->name;
    ending->suite_hash = joined->suite->hash;
    ending->verdict = &joined->verdict;
    ending->n_parts = joined->n_parts;
    ending->n_missing = joined->n_missing;
    ending->n_ok = joined->n_ok;
    ending->n_skipped = joined->n_skipped;
    ending->n_failed = joined->n_failed;
    ending->account.join = joined->seconds;
}

static ats_code run_merge(const ats_args *args, ats_err *err)
{
    ats_arena arena;
    ats_joined joined = {.n_parts = 0};
    ats_ending ending;
    ats_err fault = {.code = ATS_OK};
    const ats_join_options how = {.path = ats_args_value(args, "output"),
                                  .n_parts = args->n_operands,
                                  .parts = args->operands,
                                  .partial = ats_args_flag(args, "partial"),
                                  .force = ats_args_flag(args, "force")};
    ats_code rc;
    ats_arena_init(&arena, false);
    ats_ending_begin(args, "merge", &ending);
    ending.operand = ending.result = how.path;
    ATS_TRY(ats_ending_check(args, &ending, 1, &how.path, err));
    ATS_TRY(ats_join(&arena, &how, &joined, err));
    if (joined.verdict.code == ATS_OK && joined.n_missing > 0)
        joined.verdict.code = ATS_E_INCONCLUSIVE;
    fill_ending(&joined, &ending);
    ending.code = joined.verdict.code;
    note_process(args, &ending, &arena);
    if (!ats_args_flag(args, "quiet") && !ats_args_flag(args, "json"))
        ATS_TRY(print_text(&joined, how.path, &arena, err));
    rc = joined.verdict.code;
    if (rc != ATS_OK) rc = ats_fail(err, rc, "%s", ""); /* no older sentence may be printed */
out:
    ending.code = rc;
    ending.error = rc != ATS_OK ? err->text : "";
    if (ats_ending_tell(args, &ending, &fault) != ATS_OK && rc == ATS_OK)
        rc = ats_fail(err, fault.code, "%s", fault.text);
    ats_suite_free(joined.suite);
    ats_arena_fini(&arena);
    return rc;
}

const ats_command ats_cmd_merge = {
    .name = "merge",
    .operands = "PARTS...",
    .min_operands = 1,
    .max_operands = 1000000,
    .summary = "join the parts of shards into one result",
    .examples = "attnstress merge tonight.h5.parts -o tonight.h5\n"
                "attnstress merge node-1/tonight.h5.parts node-2/tonight.h5.parts -o tonight.h5\n"
                "attnstress merge *.parts/*.h5 -o tonight.h5 --partial",
    .details =
        "PARTS are files, or the folders that `attnstress run --shard` leaves. Parts of different\n"
        "suites, captures or builds are refused, so are damaged ones; missing ones are listed.\n"
        "The result is byte for byte the one that a single process writes, and its gates are\n"
        "judged: exit status as of `run`, 2 for a partial one. The parts stay; `attnstress gc` "
        "removes them.\n",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run_merge,
};

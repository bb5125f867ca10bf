#include <stdio.h>

#include "base/log.h"
#include "base/text.h"
#include "cli/session.h"
#include "engine/join.h"

static const ats_option options[] = {
    {"output", 'o', ATS_OPT_VALUE, "OUT.h5", "the joined result", true},
    {"partial", 0, ATS_OPT_FLAG, NULL, "join although parts are missing, and mark it", false},
    {"force", 0, ATS_OPT_FLAG, NULL, "replace a result of another run", false},
    {"json", 0, ATS_OPT_FLAG, NULL, "the summary as JSON", false},
};

static ats_code print_json(const ats_joined *joined, const char *path, ats_err *err)
{
    json_t *gates = json_array();
    for (int64_t g = 0; g < joined->verdict.n_gates; g++) {
        const ats_gate_verdict *v = &joined->verdict.gates[g];
        json_array_append_new(gates,
                              json_pack("{s:s, s:s, s:o, s:s}", "name", v->gate->name, "verdict",
                                        !v->judged  ? "not judged"
                                        : v->passed ? "passed"
                                                    : "failed",
                                        "value", ats_json_real(v->value), "sentence", v->sentence));
    }
    return ats_json_print(json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:o, s:i}", "result",
                                    path, "parts", (json_int_t)joined->n_parts, "missing",
                                    (json_int_t)joined->n_missing, "ok", (json_int_t)joined->n_ok,
                                    "skipped", (json_int_t)joined->n_skipped, "failed",
                                    (json_int_t)joined->n_failed, "bytes",
                                    (json_int_t)joined->bytes, "seconds", joined->seconds, "gates",
                                    gates, "exit_status", ats_code_exit(joined->verdict.code)),
                          err);
}

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

static ats_code run_merge(const ats_args *args, ats_err *err)
{
    ats_arena arena;
    ats_joined joined = {.n_parts = 0};
    const ats_join_options how = {.path = ats_args_value(args, "output"),
                                  .n_parts = args->n_operands,
                                  .parts = args->operands,
                                  .partial = ats_args_flag(args, "partial"),
                                  .force = ats_args_flag(args, "force")};
    ats_code rc;
    ats_arena_init(&arena, false);
    ATS_TRY(ats_join(&arena, &how, &joined, err));
    if (joined.verdict.code == ATS_OK && joined.n_missing > 0)
        joined.verdict.code = ATS_E_INCONCLUSIVE;
    if (ats_args_flag(args, "json"))
        ATS_TRY(print_json(&joined, how.path, err));
    else if (!ats_args_flag(args, "quiet"))
        ATS_TRY(print_text(&joined, how.path, &arena, err));
    rc = joined.verdict.code;
    if (rc != ATS_OK) rc = ats_fail(err, rc, "%s", ""); /* no older sentence may be printed */
out:
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

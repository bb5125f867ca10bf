#include <stdio.h>

#include "cli/session.h"
#include "engine/gc.h"

static const ats_option options[] = {
    {"older-than", 0, ATS_OPT_VALUE, "DAYS", "age of parts without a result; default 14", false},
    {"dry-run", 'n', ATS_OPT_FLAG, NULL, "say what would be removed", false},
};

static ats_code clear(const char *folder, double days, bool dry, int64_t *freed, ats_err *err)
{
    ats_arena arena;
    ats_gc_folder *list = NULL;
    int64_t n = 0;
    char bytes[32];
    ats_arena_init(&arena, false);
    ats_code rc = ats_gc(&arena, folder, days, !dry, &list, &n, err);
    for (int64_t i = 0; rc == ATS_OK && i < n; i++) {
        const bool goes = list[i].kind == ATS_GC_FINISHED || list[i].kind == ATS_GC_OLD;
        printf("%-8s %10s  %5.1f days  %s  (%s)\n",
               !goes ? "kept"
               : dry ? "would go"
                     : "removed",
               ats_human_bytes(list[i].bytes, bytes, sizeof bytes), list[i].days, list[i].path,
               ats_gc_name(list[i].kind));
        if (goes) *freed += list[i].bytes;
    }
    ats_arena_fini(&arena);
    return rc;
}

static ats_code run_gc(const ats_args *args, ats_err *err)
{
    const bool dry = ats_args_flag(args, "dry-run");
    double days = 14;
    int64_t freed = 0;
    char bytes[32];
    ats_code rc;
    ATS_TRY(ats_args_real(args, "older-than", 14, 0, 1e6, &days, err));
    if (args->n_operands == 0) ATS_TRY(clear(".", days, dry, &freed, err));
    for (int64_t i = 0; i < args->n_operands; i++)
        ATS_TRY(clear(args->operands[i], days, dry, &freed, err));
    if (!ats_args_flag(args, "quiet"))
        printf("%s %s\n", ats_human_bytes(freed, bytes, sizeof bytes),
               dry ? "would be freed" : "freed");
out:
    return rc;
}

const ats_command ats_cmd_gc = {
    .name = "gc",
    .operands = "[FOLDER...]",
    .min_operands = 0,
    .max_operands = 1000000,
    .summary = "remove parts of finished results, and old ones",
    .examples = "attnstress gc\n"
                "attnstress gc results --older-than 30\n"
                "attnstress gc results --dry-run",
    .details =
        "Looks for folders named *.parts in each FOLDER (default: this one). Parts go when their\n"
        "result is there and complete, or when nothing in them changed for --older-than days; a\n"
        "folder whose lock a living process holds stays, and so does every other file.\n",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run_gc,
};

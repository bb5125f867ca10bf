#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/output.h"
#include "engine/page.h"

static const ats_option options[] = {
    {"out", 'o', ATS_OPT_VALUE, "FILE", "The page (the result's name with .html).", false},
    {"against", 0, ATS_OPT_VALUE, "BASE", "Result of the baseline: maps and curves beside it.",
     false},
    {"capture", 0, ATS_OPT_VALUE, "FILE",
     "The capture the result was made from, for the text of the spans.", false},
    {"allow-missing", 0, ATS_OPT_LIST, "PATTERN", "With --against: as for compare.", false},
    {"allow-extra", 0, ATS_OPT_LIST, "PATTERN", "With --against: as for compare.", false},
    {"allow-undefined", 0, ATS_OPT_LIST, "PATTERN", "With --against: as for compare.", false},
};

/* result.h5 -> result.html */
static void default_path(const char *result, char *path, size_t size)
{
    const size_t length = strlen(result);
    const size_t stem = length > 3 && strcmp(result + length - 3, ".h5") == 0 ? length - 3 : length;
    snprintf(path, size, "%.*s.html", (int)stem, result);
}

static ats_code run(const ats_args *args, ats_err *err)
{
    ats_arena arena = {.blocks = NULL};
    ats_page_request request = {.result = args->operands[0],
                                .against = ats_args_value(args, "against"),
                                .capture = ats_args_value(args, "capture")};
    const char *text = NULL;
    char path[4096];
    ats_code rc;
    ats_args_allow(args, request.allow, request.n_allow);
    default_path(request.result, path, sizeof path);
    if (ats_args_value(args, "out") != NULL)
        snprintf(path, sizeof path, "%s", ats_args_value(args, "out"));
    const char *const inputs[] = {request.result, request.against, request.capture};
    ATS_TRY(ats_output_check("--out", path, 3, inputs, err));
    ATS_TRY(ats_page_make(&arena, &request, &text, err));
    ATS_TRY(ats_output_write(path, text, err));
    printf("%s\n", path);
out:
    ats_arena_fini(&arena);
    return rc;
}

const ats_command ats_cmd_report = {
    .name = "report",
    .operands = "RESULT",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "one self-contained HTML page with the plots of a result",
    .examples = "attnstress report out.h5\n"
                "attnstress report candidate.h5 --against baseline.h5 -o report.html",
    .details = "Layer x head maps, dose and position curves with their control twins, the parts\n"
               "of the output's change, the occlusion profile with the text of the spans where\n"
               "the capture is found, and the weakest cells with the command that spells each\n"
               "out. The file asks for nothing outside itself and holds no script.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};

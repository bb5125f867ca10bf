#include <string.h>

#include "cli/command.h"
#include "cli/explain_print.h"

static const ats_option options[] = {
    {"case", 0, ATS_OPT_VALUE, "ID", "Case number, or SAMPLE:VARIANT as the result names them.",
     true},
    {"layer", 0, ATS_OPT_VALUE, "L", "Layer, by the model's number.", true},
    {"head", 0, ATS_OPT_VALUE, "H", "Query head.", true},
    {"probe", 0, ATS_OPT_VALUE, "P", "Place on the probe axis of the result (the last).", false},
    {"capture", 0, ATS_OPT_VALUE, "FILE",
     "The capture the result was made from, where it is not found.", false},
    {"top", 0, ATS_OPT_VALUE, "N", "Number of keys listed (8).", false},
    {"json", 0, ATS_OPT_FLAG, NULL, "Print everything as JSON.", false},
    {"rows", 0, ATS_OPT_FLAG, NULL, "With --json: also the edit's keys, values and query.", false},
};

static ats_code run(const ats_args *args, ats_err *err)
{
    const int64_t many = (int64_t)1 << 40;
    ats_explain_options explain = {.result = args->operands[0],
                                   .case_id = ats_args_value(args, "case"),
                                   .capture = ats_args_value(args, "capture")};
    ats_explanation explanation = {.target = -1};
    ats_code rc;
    ATS_TRY(ats_args_int(args, "layer", 0, 0, many, &explain.layer, err));
    ATS_TRY(ats_args_int(args, "head", 0, 0, many, &explain.head, err));
    ATS_TRY(ats_args_int(args, "probe", -1, 0, many, &explain.probe, err));
    ATS_TRY(ats_args_int(args, "top", 8, 1, 1000, &explain.top, err));
    ATS_TRY(ats_explain_run(&explain, &explanation, err));
    if (ats_args_flag(args, "json"))
        rc = ats_explain_json(stdout, &explanation, ats_args_flag(args, "rows"), err);
    else
        ats_explain_text(stdout, &explanation);
out:
    ats_explain_fini(&explanation);
    return rc;
}

const ats_command ats_cmd_explain = {
    .name = "explain",
    .operands = "RESULT",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "spell out one cell of a result so that a calculator can follow",
    .examples = "attnstress explain out.h5 --case 12 --layer 5 --head 2\n"
                "attnstress explain out.h5 --case 's00:dup/overlay/span=gold,copies=4#0' \\\n"
                "    --layer 5 --head 2 --probe 0\n"
                "attnstress explain out.h5 --case 12 --layer 5 --head 2 \\\n"
                "    --capture moved/capture.h5 --json",
    .details = "The case's edit is built again from the suite stored in the result, and\n"
               "both routes are computed in double by the reference backend: the script,\n"
               "the log-sum-exp and mass of every span before and after, the split of the\n"
               "target's log mass into its own logits and the competition, the five parts\n"
               "of the change of the output, the heaviest keys with their tokens, the rows\n"
               "that were inserted, and the laws this edit obeys. Numbers stored in the\n"
               "result stand beside the ones computed here.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};

#include "cli/command.h"
#include "cli/man.h"

static const ats_option options[] = {
    {"man", 0, ATS_OPT_FLAG, NULL, "Print the manual page, in troff.", false},
    {"completion", 0, ATS_OPT_FLAG, NULL, "Print the completion script of bash.", false},
};

static ats_code run_help(const ats_args *args, ats_err *err)
{
    if (ats_args_flag(args, "man")) {
        ats_man_print(stdout);
        return ATS_OK;
    }
    if (ats_args_flag(args, "completion")) {
        ats_completion_print(stdout);
        return ATS_OK;
    }
    if (args->n_operands == 0) {
        ats_help_program(stdout);
        return ATS_OK;
    }
    const ats_command *command = ats_command_find(args->operands[0]);
    if (command == NULL)
        return ats_fail(err, ATS_E_USAGE, "there is no command %s; `attnstress help` lists them",
                        args->operands[0]);
    ats_help_long(stdout, command);
    return ATS_OK;
}

const ats_command ats_cmd_help = {
    .name = "help",
    .operands = "[COMMAND]",
    .max_operands = 1,
    .summary = "the commands, or one command with examples",
    .examples = "attnstress help run\n"
                "attnstress help --man | man -l -\n"
                "source <(attnstress help --completion)",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_help,
};

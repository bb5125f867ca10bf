#include "cli/command.h"

static ats_code run_help(const ats_args *args, ats_err *err)
{
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
    .examples = "attnstress help run",
    .run = run_help,
};

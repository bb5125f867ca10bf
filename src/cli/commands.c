#include <string.h>

#include "cli/command.h"

static const ats_command *const table[] = {
    &ats_cmd_run,     &ats_cmd_plan,   &ats_cmd_merge,  &ats_cmd_gc,       &ats_cmd_compare,
    &ats_cmd_explain, &ats_cmd_report, &ats_cmd_verify, &ats_cmd_fidelity, &ats_cmd_diagnose,
    &ats_cmd_inspect, &ats_cmd_synth,  &ats_cmd_import, &ats_cmd_bench,    &ats_cmd_doctor,
    &ats_cmd_schema,  &ats_cmd_help,
};

const ats_command *const *ats_commands(int64_t *count)
{
    *count = sizeof table / sizeof table[0];
    return table;
}

const ats_command *ats_command_find(const char *name)
{
    int64_t n = 0;
    const ats_command *const *all = ats_commands(&n);
    for (int64_t i = 0; i < n; i++)
        if (strcmp(all[i]->name, name) == 0) return all[i];
    return NULL;
}

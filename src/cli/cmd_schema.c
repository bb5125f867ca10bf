#include "cli/command.h"
#include "suite/suite.h"

static ats_code run_schema(const ats_args *args, ats_err *err)
{
    (void)args;
    ats_arena arena;
    const char *schema = NULL;
    ats_arena_init(&arena, false);
    ats_code rc = ats_suite_schema(&arena, &schema, err);
    if (rc == ATS_OK) fputs(schema, stdout);
    ats_arena_fini(&arena);
    return rc;
}

const ats_command ats_cmd_schema = {
    .name = "schema",
    .operands = "",
    .summary = "the JSON Schema (draft-07) of suite files",
    .examples = "attnstress schema > suite.schema.json",
    .details = "An editor checks a suite while it is written when its first line is\n"
               "  # yaml-language-server: $schema=suite.schema.json\n",
    .run = run_schema,
};

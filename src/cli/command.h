/* Commands and their option tables: one descriptor a command, in its own file cmd_<name>.c, and
 * one line in commands.c. The table drives parsing, -h, --help, suggestions and the man page.
 *
 * A command prints data on stdout and everything else through base/log.h. It returns a code:
 * a failure's sentence in err is printed by the caller as "attnstress: error: ..."; an empty
 * sentence prints nothing (ATS_E_GATE after a printed verdict).
 * Ownership: ats_args points into argv and its own arrays; it lives until the command returns. */
#ifndef ATS_CLI_COMMAND_H
#define ATS_CLI_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

typedef enum ats_option_type {
    ATS_OPT_FLAG,  /* --json */
    ATS_OPT_VALUE, /* --layer 5, --layer=5, -o FILE; given twice: refused */
    ATS_OPT_LIST   /* may be given several times */
} ats_option_type;

typedef struct ats_option {
    const char *name; /* long name without dashes */
    char letter;      /* short name, 0: none */
    ats_option_type type;
    const char *value; /* name of the value in help: "FILE"; NULL for flags */
    const char *doc;   /* one sentence */
    bool required;
} ats_option;

typedef struct ats_args {
    const struct ats_command *command;
    int64_t n_operands;
    const char *const *operands;
    struct ats_args_values *values; /* by option; args.c's own */
} ats_args;

typedef struct ats_command {
    const char *name;
    const char *operands; /* "SUITE", "RESULT.h5", "" */
    int64_t min_operands, max_operands;
    const char *summary;       /* one sentence */
    const char *examples;      /* lines of shell, one a line, first thing in --help */
    const char *details;       /* paragraphs for --help; NULL: none */
    const ats_option *options; /* [n_options]; the options every command has are not listed */
    int64_t n_options;
    ats_code (*run)(const ats_args *args, ats_err *err);
} ats_command;

/* Options every command has: -h, --help, -q/--quiet, -v/--verbose, --color WHEN,
 * --log-format FORMAT, --threads N. */
const ats_option *ats_common_options(int64_t *count);

/* The table, in the order of `attnstress help`. */
const ats_command *const *ats_commands(int64_t *count);
const ats_command *ats_command_find(const char *name); /* NULL: none */

extern const ats_command ats_cmd_run, ats_cmd_plan, ats_cmd_inspect, ats_cmd_doctor, ats_cmd_schema,
    ats_cmd_help, ats_cmd_verify, ats_cmd_explain, ats_cmd_report, ats_cmd_fidelity, ats_cmd_synth,
    ats_cmd_bench, ats_cmd_import, ats_cmd_diagnose, ats_cmd_compare, ats_cmd_merge, ats_cmd_gc;

/* By long name; the option must be in the command's table (or a common one). */
bool ats_args_flag(const ats_args *args, const char *name);
const char *ats_args_value(const ats_args *args, const char *name); /* NULL: not given */
int64_t ats_args_list(const ats_args *args, const char *name, const char *const **items);
/* --allow-missing, --allow-extra and --allow-undefined: patterns by ats_finding_kind. */
void ats_args_allow(const ats_args *args, const char *const **allow, int64_t *count);
/* Whole-string numbers in the C locale; `fallback` when not given; refused outside [min, max]. */
ATS_MUST_CHECK ats_code ats_args_int(const ats_args *args, const char *name, int64_t fallback,
                                     int64_t min, int64_t max, int64_t *out, ats_err *err);
ATS_MUST_CHECK ats_code ats_args_real(const ats_args *args, const char *name, double fallback,
                                      double min, double max, double *out, ats_err *err);

/* Parses argv after the command's name. Unknown options name the nearest one. */
ATS_MUST_CHECK ats_code ats_args_parse(const ats_command *command, int argc, char **argv,
                                       ats_args *out, ats_err *err);
void ats_args_fini(ats_args *args);

void ats_help_short(FILE *stream, const ats_command *command);
void ats_help_long(FILE *stream, const ats_command *command);
void ats_help_program(FILE *stream);
void ats_version_print(FILE *stream);

/* Escape sequence for a style on stdout ("bold", "red", "green", "yellow", "dim", "off"), or ""
 * when colour is off (--color, NO_COLOR, not a terminal). */
const char *ats_style(const char *name);

/* argv -> exit status; everything but exit(). */
int ats_cli_main(int argc, char **argv);

/* The program as it was called, for commands that a person may copy. */
const char *ats_cli_program(void);

#endif

#include "cli/man.h"

#include <string.h>

#include "cli/command.h"
#include "engine/version.h"

/* troff takes a leading dot or quote for a request, a backslash for an escape, and a bare hyphen
 * for a dash that cannot be copied. */
static void print_text(FILE *stream, const char *text)
{
    bool start = true;
    for (const char *c = text; *c != '\0'; c++) {
        if (start && (*c == '.' || *c == '\'')) fputs("\\&", stream);
        if (*c == '\\')
            fputs("\\e", stream);
        else if (*c == '-')
            fputs("\\-", stream);
        else
            fputc(*c, stream);
        start = *c == '\n';
    }
}

static void print_option(FILE *stream, const ats_option *option)
{
    fputs(".TP\n", stream);
    if (option->letter != 0) fprintf(stream, "\\fB\\-%c\\fR, ", option->letter);
    fputs("\\fB\\-\\-", stream);
    print_text(stream, option->name);
    fputs("\\fR", stream);
    if (option->value != NULL) fprintf(stream, " \\fI%s\\fR", option->value);
    fputs("\n", stream);
    print_text(stream, option->doc);
    if (option->required) fputs(" Required.", stream);
    if (option->type == ATS_OPT_LIST) fputs(" May be repeated.", stream);
    fputs("\n", stream);
}

/* Lines as they are, without filling. */
static void print_lines(FILE *stream, const char *text)
{
    fputs(".nf\n", stream);
    print_text(stream, text);
    if (text[0] != '\0' && text[strlen(text) - 1] != '\n') fputs("\n", stream);
    fputs(".fi\n", stream);
}

static void print_command(FILE *stream, const ats_command *command)
{
    fprintf(stream, ".SS attnstress %s %s\n", command->name, command->operands);
    print_text(stream, command->summary);
    fputs(".\n", stream);
    for (int64_t i = 0; i < command->n_options; i++) print_option(stream, &command->options[i]);
    if (command->details != NULL) {
        fputs(".PP\n", stream);
        print_lines(stream, command->details);
    }
    if (command->examples != NULL) {
        fputs(".PP\nExamples:\n.RS\n", stream);
        print_lines(stream, command->examples);
        fputs(".RE\n", stream);
    }
}

void ats_man_print(FILE *stream)
{
    int64_t n_commands = 0, n_common = 0;
    const ats_command *const *commands = ats_commands(&n_commands);
    const ats_option *common = ats_common_options(&n_common);
    fprintf(
        stream,
        ".TH ATTNSTRESS 1 \"\" \"attnstress %s\" \"User Commands\"\n"
        ".SH NAME\nattnstress \\- stress\\-test the routes of attention heads at long context\n"
        ".SH SYNOPSIS\n.B attnstress\n.I COMMAND\n[options]\n"
        ".SH DESCRIPTION\nRuns a YAML suite of perturbations over stored queries, keys and values "
        "of a model through an exact attention kernel and writes route and payload metrics to "
        "HDF5.\n.SH COMMANDS\n",
        ats_version());
    for (int64_t i = 0; i < n_commands; i++) print_command(stream, commands[i]);
    fputs(".SH COMMON OPTIONS\n", stream);
    for (int64_t i = 0; i < n_common; i++) print_option(stream, &common[i]);
    fputs(".SH EXIT STATUS\n0 pass; 1 a gate failed; 2 inconclusive; 3 bad command line, suite or "
          "input; 4 environment; 5 internal error; 75 interrupted, run again to continue.\n"
          ".SH ENVIRONMENT\n.TP\nATTNSTRESS_CPU\nInstruction set of the cpu backend: portable, "
          "avx2, avx512, avx512_bf16 or amx.\n.TP\nNO_COLOR\nNo colour, whatever the "
          "terminal.\n.TP\nHDF5_PLUGIN_PATH\nFolder of "
          "the zstd filter for other programs that read results; `attnstress doctor` prints it.\n",
          stream);
}

static void print_words(FILE *stream, const ats_option *options, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        fprintf(stream, " --%s", options[i].name);
        if (options[i].letter != 0) fprintf(stream, " -%c", options[i].letter);
    }
}

void ats_completion_print(FILE *stream)
{
    int64_t n_commands = 0, n_common = 0;
    const ats_command *const *commands = ats_commands(&n_commands);
    const ats_option *common = ats_common_options(&n_common);
    fputs("# bash completion of attnstress\n_attnstress() {\n"
          "  local word=${COMP_WORDS[COMP_CWORD]} words=\n"
          "  if ((COMP_CWORD == 1)); then\n    words='",
          stream);
    for (int64_t i = 0; i < n_commands; i++)
        fprintf(stream, "%s%s", i > 0 ? " " : "", commands[i]->name);
    fputs("'\n  elif [[ $word == -* ]]; then\n    case ${COMP_WORDS[1]} in\n", stream);
    for (int64_t i = 0; i < n_commands; i++) {
        fprintf(stream, "    %s) words='", commands[i]->name);
        print_words(stream, commands[i]->options, commands[i]->n_options);
        fputs("' ;;\n", stream);
    }
    fputs("    esac\n    words+='", stream);
    print_words(stream, common, n_common);
    fputs("'\n  fi\n  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\n"
          "complete -o default -F _attnstress attnstress\n",
          stream);
}

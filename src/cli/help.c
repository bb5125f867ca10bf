#include <string.h>

#include "cli/command.h"

static void print_option(FILE *stream, const ats_option *option, int width)
{
    char left[96];
    char letter[8] = "    ";
    if (option->letter != 0) snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, option->name,
             option->value != NULL ? " " : "", option->value != NULL ? option->value : "");
    fprintf(stream, "  %-*s  %s%s%s\n", width, left, option->doc,
            option->required ? " (required)" : "",
            option->type == ATS_OPT_LIST ? " (may be repeated)" : "");
}

static int option_width(const ats_option *options, int64_t n, int width)
{
    for (int64_t i = 0; i < n; i++) {
        const size_t value = options[i].value != NULL ? strlen(options[i].value) + 1 : 0;
        const int length = (int)(6 + strlen(options[i].name) + value);
        if (length > width) width = length;
    }
    return width;
}

static void print_options(FILE *stream, const ats_command *command)
{
    int64_t n_common = 0;
    const ats_option *common = ats_common_options(&n_common);
    const int width =
        option_width(common, n_common, option_width(command->options, command->n_options, 0));
    fputs("\noptions:\n", stream);
    for (int64_t i = 0; i < command->n_options; i++)
        print_option(stream, &command->options[i], width);
    for (int64_t i = 0; i < n_common; i++) print_option(stream, &common[i], width);
}

static void print_usage(FILE *stream, const ats_command *command)
{
    fprintf(stream, "usage: attnstress %s%s%s [options]\n", command->name,
            command->operands[0] != '\0' ? " " : "", command->operands);
}

void ats_help_short(FILE *stream, const ats_command *command)
{
    print_usage(stream, command);
    fprintf(stream, "%s\n", command->summary);
    print_options(stream, command);
}

/* Indented by two, line by line. */
static void print_block(FILE *stream, const char *text)
{
    while (*text != '\0') {
        const size_t length = strcspn(text, "\n");
        fprintf(stream, "%s%.*s\n", length > 0 ? "  " : "", (int)length, text);
        text += length;
        if (*text == '\n') text++;
    }
}

void ats_help_long(FILE *stream, const ats_command *command)
{
    if (command->examples != NULL) {
        fputs("examples:\n", stream);
        print_block(stream, command->examples);
        fputs("\n", stream);
    }
    ats_help_short(stream, command);
    if (command->details != NULL) {
        fputs("\n", stream);
        fputs(command->details, stream);
        if (command->details[strlen(command->details) - 1] != '\n') fputs("\n", stream);
    }
}

void ats_help_program(FILE *stream)
{
    int64_t n = 0;
    const ats_command *const *all = ats_commands(&n);
    fputs("usage: attnstress COMMAND [options]\n"
          "Stress-tests the routes of attention heads at long context, on captured queries, keys\n"
          "and values.\n\ncommands:\n",
          stream);
    for (int64_t i = 0; i < n; i++) fprintf(stream, "  %-9s %s\n", all[i]->name, all[i]->summary);
    fputs("\nstart with:\n"
          "  attnstress doctor\n"
          "  attnstress run suites/quickstart.yaml\n"
          "  attnstress COMMAND --help\n"
          "\nexit status: 0 pass; 1 a gate failed; 2 inconclusive; 3 bad command line, suite or\n"
          "input; 4 environment; 5 internal error; 75 interrupted\n",
          stream);
}

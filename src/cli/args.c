#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/nearest.h"
#include "cli/command.h"
#include "report/compare.h" /* ats_finding_kind */

static const ats_option common[] = {
    {"help", 'h', ATS_OPT_FLAG, NULL, "-h: this command in short; --help: with examples", false},
    {"quiet", 'q', ATS_OPT_FLAG, NULL, "errors only", false},
    {"verbose", 'v', ATS_OPT_FLAG, NULL, "where the time goes, and more", false},
    {"color", 0, ATS_OPT_VALUE, "WHEN", "auto, always or never; NO_COLOR is honoured", false},
    {"log-format", 0, ATS_OPT_VALUE, "FORMAT", "text, or json: an object a line on stderr", false},
    {"threads", 0, ATS_OPT_VALUE, "N", "threads; results do not depend on it", false},
};
enum { N_COMMON = sizeof common / sizeof common[0] };

const ats_option *ats_common_options(int64_t *count)
{
    *count = N_COMMON;
    return common;
}

struct ats_args_values {
    ats_arena arena;
    int64_t n_slots;
    int64_t *count;           /* [n_slots] times given */
    const char **const *text; /* [n_slots][times given] */
};

typedef struct parser {
    const ats_command *command;
    int argc;
    char **argv;
    int at;
    int64_t n_slots;
    int64_t *count;
    const char ***text; /* [n_slots][argc] */
    int64_t n_operands;
    const char **operands;
    ats_err *err;
} parser;

static const ats_option *slot_option(const ats_command *command, int64_t slot)
{
    return slot < command->n_options ? &command->options[slot] : &common[slot - command->n_options];
}

static int64_t find_slot(const ats_command *command, const char *name, size_t length)
{
    for (int64_t s = 0; s < command->n_options + N_COMMON; s++) {
        const char *own = slot_option(command, s)->name;
        if (strlen(own) == length && strncmp(own, name, length) == 0) return s;
    }
    return -1;
}

static int64_t find_letter(const ats_command *command, char letter)
{
    for (int64_t s = 0; s < command->n_options + N_COMMON; s++)
        if (slot_option(command, s)->letter == letter) return s;
    return -1;
}

static ats_code fail_unknown(const parser *p, const char *word, size_t length)
{
    enum { ROOM = 64 };
    const char *names[ROOM + 1];
    char name[128];
    int64_t n = 0;
    for (int64_t s = 0; s < p->n_slots && n < ROOM; s++)
        names[n++] = slot_option(p->command, s)->name;
    names[n] = NULL;
    if (length >= sizeof name) length = sizeof name - 1;
    memcpy(name, word, length);
    name[length] = '\0';
    const char *near = ats_nearest(name, names);
    if (near != NULL)
        return ats_fail(p->err, ATS_E_USAGE,
                        "%s has no option --%s; did you mean --%s? `attnstress %s -h` lists them",
                        p->command->name, name, near, p->command->name);
    return ats_fail(p->err, ATS_E_USAGE, "%s has no option --%s; `attnstress %s -h` lists them",
                    p->command->name, name, p->command->name);
}

static ats_code store(parser *p, int64_t slot, const char *value)
{
    const ats_option *option = slot_option(p->command, slot);
    if (option->type == ATS_OPT_VALUE && p->count[slot] > 0)
        return ats_fail(p->err, ATS_E_USAGE, "--%s is given twice (%s and %s); give it once",
                        option->name, p->text[slot][0], value);
    p->text[slot][p->count[slot]++] = value;
    return ATS_OK;
}

/* value: what follows "=", or NULL. */
static ats_code take(parser *p, int64_t slot, const char *value)
{
    const ats_option *option = slot_option(p->command, slot);
    if (option->type == ATS_OPT_FLAG) {
        if (value != NULL)
            return ats_fail(p->err, ATS_E_USAGE, "--%s takes no value, but %s is given",
                            option->name, value);
        return store(p, slot, "");
    }
    if (value == NULL && p->at + 1 < p->argc) value = p->argv[++p->at];
    if (value == NULL)
        return ats_fail(p->err, ATS_E_USAGE, "--%s needs a value: --%s %s", option->name,
                        option->name, option->value);
    return store(p, slot, value);
}

static ats_code take_long(parser *p, const char *word)
{
    const char *equals = strchr(word, '=');
    const size_t length = equals != NULL ? (size_t)(equals - word) : strlen(word);
    const int64_t slot = find_slot(p->command, word, length);
    if (slot < 0) return fail_unknown(p, word, length);
    return take(p, slot, equals != NULL ? equals + 1 : NULL);
}

/* -qv, -oFILE, -o FILE */
static ats_code take_letters(parser *p, const char *letters)
{
    for (const char *c = letters; *c != '\0'; c++) {
        const int64_t slot = find_letter(p->command, *c);
        if (slot < 0)
            return ats_fail(p->err, ATS_E_USAGE,
                            "%s has no option -%c; `attnstress %s -h` lists them", p->command->name,
                            *c, p->command->name);
        const bool flag = slot_option(p->command, slot)->type == ATS_OPT_FLAG;
        ats_code rc = take(p, slot, flag || c[1] == '\0' ? NULL : c + 1);
        if (rc != ATS_OK || !flag) return rc;
    }
    return ATS_OK;
}

static bool help_wanted(const parser *p) { return p->count[find_slot(p->command, "help", 4)] > 0; }

static ats_code check_complete(const parser *p)
{
    const ats_command *command = p->command;
    if (help_wanted(p)) return ATS_OK;
    if (p->n_operands < command->min_operands)
        return ats_fail(p->err, ATS_E_USAGE,
                        "%s needs %s: attnstress %s %s [options]; `attnstress %s -h` shows more",
                        command->name, command->operands, command->name, command->operands,
                        command->name);
    if (p->n_operands > command->max_operands)
        return ats_fail(p->err, ATS_E_USAGE, "%s: one argument too many: %s", command->name,
                        p->operands[command->max_operands]);
    for (int64_t s = 0; s < p->n_slots; s++) {
        const ats_option *option = slot_option(command, s);
        if (option->required && p->count[s] == 0)
            return ats_fail(p->err, ATS_E_USAGE, "%s needs --%s %s", command->name, option->name,
                            option->value);
    }
    return ATS_OK;
}

static ats_code parse(parser *p)
{
    bool only_operands = false;
    ats_code rc = ATS_OK;
    for (p->at = 0; p->at < p->argc && rc == ATS_OK; p->at++) {
        const char *word = p->argv[p->at];
        if (only_operands || word[0] != '-' || word[1] == '\0')
            p->operands[p->n_operands++] = word;
        else if (strcmp(word, "--") == 0)
            only_operands = true;
        else if (word[1] == '-')
            rc = take_long(p, word + 2);
        else
            rc = take_letters(p, word + 1);
    }
    return rc == ATS_OK ? check_complete(p) : rc;
}

ats_code ats_args_parse(const ats_command *command, int argc, char **argv, ats_args *out,
                        ats_err *err)
{
    parser p = {.command = command,
                .argc = argc,
                .argv = argv,
                .n_slots = command->n_options + N_COMMON,
                .err = err};
    ats_arena arena;
    struct ats_args_values *values = NULL;
    ats_code rc;
    ats_arena_init(&arena, false);
    ATS_TRY(ATS_NEW0(&arena, 1, &values, err));
    ATS_TRY(ATS_NEW0(&arena, p.n_slots, &p.count, err));
    ATS_TRY(ATS_NEW0(&arena, p.n_slots, &p.text, err));
    ATS_TRY(ATS_NEW0(&arena, argc + 1, &p.operands, err));
    for (int64_t s = 0; s < p.n_slots; s++) ATS_TRY(ATS_NEW0(&arena, argc + 1, &p.text[s], err));
    ATS_TRY(parse(&p));
    *values = (struct ats_args_values){arena, p.n_slots, p.count, p.text};
    *out = (ats_args){command, p.n_operands, p.operands, values};
out:
    if (rc != ATS_OK) ats_arena_fini(&arena);
    return rc;
}

void ats_args_fini(ats_args *args)
{
    if (args->values != NULL) {
        ats_arena arena = args->values->arena;
        ats_arena_fini(&arena);
    }
    *args = (ats_args){0};
}

int64_t ats_args_list(const ats_args *args, const char *name, const char *const **items)
{
    const int64_t slot = find_slot(args->command, name, strlen(name));
    ATS_ASSERT(slot >= 0);
    *items = args->values->text[slot];
    return args->values->count[slot];
}

bool ats_args_flag(const ats_args *args, const char *name)
{
    const char *const *items;
    return ats_args_list(args, name, &items) > 0;
}

const char *ats_args_value(const ats_args *args, const char *name)
{
    const char *const *items;
    return ats_args_list(args, name, &items) > 0 ? items[0] : NULL;
}

ats_code ats_args_int(const ats_args *args, const char *name, int64_t fallback, int64_t min,
                      int64_t max, int64_t *out, ats_err *err)
{
    const char *text = ats_args_value(args, name);
    char *end = NULL;
    if (text == NULL) {
        *out = fallback;
        return ATS_OK;
    }
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || strchr(" \t\n+", text[0]) != NULL)
        return ats_fail(err, ATS_E_USAGE, "--%s %s: not a whole number", name, text);
    if (value < min || value > max)
        return ats_fail(err, ATS_E_USAGE, "--%s %s: must be from %lld to %lld", name, text,
                        (long long)min, (long long)max);
    *out = value;
    return ATS_OK;
}

ats_code ats_args_real(const ats_args *args, const char *name, double fallback, double min,
                       double max, double *out, ats_err *err)
{
    const char *text = ats_args_value(args, name);
    char *end = NULL;
    if (text == NULL) {
        *out = fallback;
        return ATS_OK;
    }
    errno = 0;
    const double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value) || strchr(" \t\n+", text[0]) != NULL)
        return ats_fail(err, ATS_E_USAGE, "--%s %s: not a finite number", name, text);
    if (!(value >= min && value <= max))
        return ats_fail(err, ATS_E_USAGE, "--%s %s: must be from %g to %g", name, text, min, max);
    *out = value;
    return ATS_OK;
}

void ats_args_allow(const ats_args *args, const char *const **allow, int64_t *count)
{
    static const char *const names[ATS_N_FINDING_KINDS] = {"allow-missing", "allow-extra",
                                                           "allow-undefined"};
    for (int k = 0; k < ATS_N_FINDING_KINDS; k++)
        count[k] = ats_args_list(args, names[k], &allow[k]);
}

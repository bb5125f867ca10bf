#include <math.h>
#include <string.h>

#include "suite/draft.h"

static void write_value(ats_text *text, const ats_param_def *def)
{
    char low[32], high[32];
    switch (def->type) {
    case ATS_PARAM_INT:
    case ATS_PARAM_REAL:
        ats_format_real(def->min, low);
        ats_format_real(def->max, high);
        ats_text_add(text, "%s, %s to %s", def->type == ATS_PARAM_INT ? "whole number" : "number",
                     low, high);
        break;
    case ATS_PARAM_WORD:
        for (int64_t i = 0; def->words[i] != NULL; i++)
            ats_text_add(text, "%s`%s`", i > 0 ? ", " : "", def->words[i]);
        break;
    case ATS_PARAM_TEXT:
        ats_text_add(text, "text");
        break;
    }
}

static void write_default(ats_text *text, const ats_param_def *def)
{
    char value[32];
    const bool number = def->type == ATS_PARAM_INT || def->type == ATS_PARAM_REAL;
    if (def->required) {
        ats_text_add(text, "required");
    } else if (number && !isnan(def->number)) {
        ats_format_real(def->number, value);
        ats_text_add(text, "`%s`", value);
    } else if (!number && def->text != NULL) {
        ats_text_add(text, "`%s`", def->text);
    }
}

static void write_key(ats_text *text, const ats_param_def *def)
{
    if (def->group == NULL)
        ats_text_add(text, "`%s`", def->name);
    else if (strcmp(def->name, def->group_word) == 0)
        ats_text_add(text, "`%s: {%s: ...}`", def->group, def->name);
    else
        ats_text_add(text, "`%s: {%s: {%s: ...}}`", def->group, def->group_word, def->name);
}

static void write_family(ats_text *text, const ats_family *family)
{
    ats_text_add(text, "\n### `kind: %s`\n\n%s", family->kind, family->summary);
    if (family->dose != NULL) ats_text_add(text, " Dose: `%s`.", family->dose);
    ats_text_add(text, " Control twin: %s. Positions: %s.\n\n",
                 family->has_control ? "yes" : "none",
                 family->has_positions ? "required" : "do not apply");
    ats_text_add(text, "| key | value | default | unit | meaning |\n|---|---|---|---|---|\n");
    for (int64_t i = 0; i < family->n_params; i++) {
        const ats_param_def *def = &family->params[i];
        ats_text_add(text, "| ");
        write_key(text, def);
        ats_text_add(text, " | ");
        write_value(text, def);
        ats_text_add(text, " | ");
        write_default(text, def);
        ats_text_add(text, " | %s | %s |\n", def->unit, def->doc);
    }
}

ats_code ats_suite_reference(ats_arena *arena, const char **out, ats_err *err)
{
    ats_text text = {.arena = arena, .err = err};
    int64_t count;
    const ats_family *const *families = ats_families(&count);
    ats_fields_markdown(&text, &ats_suite_table, "");
    ats_fields_markdown(&text, &ats_gate_table, "gates");
    ats_fields_markdown(&text, &ats_perturbation_table, "perturbations");
    for (int64_t i = 0; i < count; i++) write_family(&text, families[i]);
    return ats_text_done(&text, out);
}

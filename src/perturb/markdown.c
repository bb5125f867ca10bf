#include <math.h>

#include "base/text.h"
#include "perturb/family.h"
#include "perturb/params.h"

static bool is_number(const ats_param_def *def)
{
    return def->type == ATS_PARAM_INT || def->type == ATS_PARAM_REAL;
}

static void write_values(ats_text *text, const ats_param_def *def)
{
    if (def->type == ATS_PARAM_TEXT) ats_text_add(text, "text");
    for (int64_t i = 0; def->type == ATS_PARAM_WORD && def->words[i] != NULL; i++)
        ats_text_add(text, "%s`%s`", i > 0 ? ", " : "", def->words[i]);
    if (!is_number(def)) return;
    ats_text_add(text, "%s ", def->type == ATS_PARAM_INT ? "integer" : "real");
    if (def->max >= ATS_ROWS_MAX)
        ats_text_add(text, ">= %g", def->min);
    else
        ats_text_add(text, "%g..%g", def->min, def->max);
    if (def->unit[0] != '1') ats_text_add(text, " %s", def->unit);
}

static void write_default(ats_text *text, const ats_param_def *def)
{
    if (def->required)
        ats_text_add(text, "required");
    else if (is_number(def) && !isnan(def->number))
        ats_text_add(text, "%g", def->number);
    else if (!is_number(def) && def->text != NULL)
        ats_text_add(text, "%s", def->text);
    else
        ats_text_add(text, "-");
}

static void write_param(ats_text *text, const ats_param_def *def)
{
    ats_text_add(text, "| `%s` | ", def->name);
    write_values(text, def);
    ats_text_add(text, " | ");
    write_default(text, def);
    ats_text_add(text, " | %s", def->doc);
    if (def->group != NULL)
        ats_text_add(text, " Written `%s: {%s: ...}`.", def->group, def->group_word);
    ats_text_add(text, " |\n");
}

static void write_family(ats_text *text, const ats_family *family)
{
    ats_text_add(text, "### `%s`\n\n%s\n\n", family->kind, family->summary);
    ats_text_add(text, "| parameter | values | default | meaning |\n|---|---|---|---|\n");
    for (int64_t i = 0; i < family->n_params; i++) write_param(text, &family->params[i]);
    if (family->dose != NULL)
        ats_text_add(text, "\nDose axis: `%s`.", family->dose);
    else
        ats_text_add(text, "\nNo dose axis.");
    ats_text_add(text, " Control twin: %s. `positions`: %s.\n\n",
                 family->has_control ? "yes" : "no", family->has_positions ? "required" : "none");
}

ats_code ats_families_markdown(ats_arena *arena, const char **out, ats_err *err)
{
    ats_text text = {.arena = arena, .err = err};
    int64_t count = 0;
    const ats_family *const *families = ats_families(&count);
    for (int64_t i = 0; i < count; i++) write_family(&text, families[i]);
    return ats_text_done(&text, out);
}

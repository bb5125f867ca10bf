#include <string.h>

#include "suite/draft.h"

/* Texts may hold what ids use themselves. */
static void add_text(ats_text *text, const char *value)
{
    for (const unsigned char *c = (const unsigned char *)value; *c != '\0'; c++)
        ats_text_add(text, "%c", *c <= ' ' || *c == 0x7f || strchr("/#~,=", *c) != NULL ? '_' : *c);
}

/* A group's word says nothing when one of the parameters inside it stands in the id too. */
static bool is_implied(const ats_family *family, const ats_variant *variant, const bool *given,
                       int64_t index)
{
    const ats_param_def *word = &family->params[index];
    for (int64_t i = 0; i < family->n_params; i++) {
        const ats_param_def *def = &family->params[i];
        if (!given[i] || def->group == NULL || strcmp(def->group, word->name) != 0) continue;
        if (strcmp(def->group_word, variant->params[index].text) == 0) return true;
    }
    return false;
}

ats_code ats_variant_id(ats_reader *reader, const ats_perturbation *perturbation,
                        const ats_variant *variant, const bool *given, const char **out)
{
    const ats_family *family = perturbation->family;
    ats_text text = {.arena = reader->arena, .err = reader->err};
    char number[32], between = '/';
    ats_text_add(&text, "%s", perturbation->name);
    if (variant->mode != ATS_MODE_NONE) ats_text_add(&text, "/%s", ats_mode_name(variant->mode));
    for (int64_t i = 0; i < family->n_params; i++) {
        const ats_param_def *def = &family->params[i];
        const ats_param *param = &variant->params[i];
        const bool is_text = def->type == ATS_PARAM_WORD || def->type == ATS_PARAM_TEXT;
        if (!given[i] || (is_text && is_implied(family, variant, given, i))) continue;
        ats_text_add(&text, "%c%s=", between, def->name);
        between = ',';
        if (is_text) {
            add_text(&text, param->text);
        } else {
            ats_format_real(param->number, number);
            ats_text_add(&text, "%s", number);
        }
    }
    ats_text_add(&text, "#%lld", (long long)variant->replicate);
    return ats_text_done(&text, out);
}

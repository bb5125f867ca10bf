#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "suite/draft.h"

static void write_scalar(ats_text *text, const ats_param_def *def)
{
    char low[32], high[32];
    switch (def->type) {
    case ATS_PARAM_INT:
    case ATS_PARAM_REAL:
        ats_format_real(def->min, low);
        ats_format_real(def->max, high);
        ats_text_add(text, "{\"type\": \"%s\", \"minimum\": %s, \"maximum\": %s}",
                     def->type == ATS_PARAM_INT ? "integer" : "number", low, high);
        break;
    case ATS_PARAM_WORD:
        ats_text_add(text, "{\"enum\": [");
        for (int64_t i = 0; def->words[i] != NULL; i++) {
            if (i > 0) ats_text_add(text, ", ");
            ats_text_json(text, def->words[i]);
        }
        ats_text_add(text, "]}");
        break;
    case ATS_PARAM_TEXT:
        ats_text_add(text, "{\"type\": \"string\"}");
        break;
    }
}

/* A value or a list of values. */
static void write_sweep(ats_text *text, const ats_param_def *def)
{
    ats_text_add(text, "{\"anyOf\": [");
    write_scalar(text, def);
    ats_text_add(text, ", {\"type\": \"array\", \"minItems\": 1, \"items\": ");
    write_scalar(text, def);
    ats_text_add(text, "}]}");
}

static bool is_inside(const ats_param_def *def, const char *group, const char *word)
{
    return def->group != NULL && strcmp(def->group, group) == 0 &&
           strcmp(def->group_word, word) == 0;
}

/* What stands behind a group's word: its parameters, or the value of the only one. */
static void write_word(ats_text *text, const ats_family *family, const char *group,
                       const char *word)
{
    const ats_param_def *single = NULL;
    int64_t count = 0;
    ats_text_json(text, word);
    ats_text_add(text, ": {\"anyOf\": [{\"type\": \"object\", \"additionalProperties\": false, "
                       "\"properties\": {");
    for (int64_t i = 0; i < family->n_params; i++) {
        const ats_param_def *def = &family->params[i];
        if (!is_inside(def, group, word)) continue;
        if (count++ > 0) ats_text_add(text, ", ");
        ats_text_json(text, def->name);
        ats_text_add(text, ": ");
        write_sweep(text, def);
        if (count == 1 || strcmp(def->name, word) == 0) single = def;
    }
    ats_text_add(text, "}}");
    if (single != NULL && (count == 1 || strcmp(single->name, word) == 0)) {
        ats_text_add(text, ", ");
        write_sweep(text, single);
    }
    ats_text_add(text, "]}");
}

/* A word, or {word: parameters}. */
static void write_choice(ats_text *text, const ats_family *family, const ats_param_def *group)
{
    ats_text_add(text, "{\"anyOf\": [");
    write_scalar(text, group);
    ats_text_add(text, ", {\"type\": \"object\", \"minProperties\": 1, "
                       "\"additionalProperties\": false, \"properties\": {");
    for (int64_t i = 0; group->words[i] != NULL; i++) {
        if (i > 0) ats_text_add(text, ", ");
        write_word(text, family, group->name, group->words[i]);
    }
    ats_text_add(text, "}}]}");
}

static void write_param(ats_text *text, const ats_family *family, const ats_param_def *def)
{
    ats_text_json(text, def->name);
    ats_text_add(text, ": {\"allOf\": [");
    if (ats_param_is_group(family, def)) {
        ats_text_add(text, "{\"anyOf\": [");
        write_choice(text, family, def);
        ats_text_add(text, ", {\"type\": \"array\", \"minItems\": 1, \"items\": ");
        write_choice(text, family, def);
        ats_text_add(text, "}]}");
    } else {
        write_sweep(text, def);
    }
    ats_text_add(text, "], \"description\": ");
    ats_text_json(text, def->doc);
    ats_text_add(text, "}");
}

static void write_family(ats_text *text, const ats_family *family)
{
    ats_text_json(text, family->kind);
    ats_text_add(text, ": {\"type\": \"object\", \"description\": ");
    ats_text_json(text, family->summary);
    ats_text_add(text, ", \"additionalProperties\": false, \"required\": [\"kind\"%s",
                 family->has_positions ? ", \"positions\"" : "");
    for (int64_t i = 0; i < family->n_params; i++)
        if (family->params[i].required && family->params[i].group == NULL)
            ats_text_add(text, ", \"%s\"", family->params[i].name);
    ats_text_add(text, "], \"properties\": {");
    for (int64_t i = 0, n = 0; i < ats_perturbation_table.count; i++) {
        const ats_field *field = &ats_perturbation_table.fields[i];
        if (strcmp(field->name, "positions") == 0 && !family->has_positions) continue;
        if (strcmp(field->name, "combine") == 0) continue;
        if (n++ > 0) ats_text_add(text, ", ");
        if (strcmp(field->name, "kind") == 0)
            ats_text_add(text, "\"kind\": {\"const\": \"%s\"}", family->kind);
        else
            ats_field_schema(text, field);
    }
    for (int64_t i = 0; i < family->n_params; i++) {
        if (family->params[i].group != NULL) continue;
        ats_text_add(text, ", ");
        write_param(text, family, &family->params[i]);
    }
    ats_text_add(text, "}}");
}

static void write_definitions(ats_text *text)
{
    int64_t count;
    const ats_family *const *families = ats_families(&count);
    ats_text_add(text,
                 "\"perturbation\": {\"type\": \"object\", \"anyOf\": [{\"required\": [\"kind\"]}, "
                 "{\"required\": [\"combine\"]}], "
                 "\"properties\": {\"kind\": {\"enum\": [");
    for (int64_t i = 0; i < count; i++)
        ats_text_add(text, "%s\"%s\"", i > 0 ? ", " : "", families[i]->kind);
    ats_text_add(text, "]}}, \"allOf\": [");
    for (int64_t i = 0; i < count; i++)
        ats_text_add(text,
                     "%s{\"if\": {\"required\": [\"kind\"], \"properties\": {\"kind\": {\"const\": "
                     "\"%s\"}}}, "
                     "\"then\": "
                     "{\"$ref\": \"#/definitions/%s\"}}",
                     i > 0 ? ", " : "", families[i]->kind, families[i]->kind);
    ats_text_add(text, ", {\"if\": {\"required\": [\"combine\"]}, \"then\": "
                       "{\"additionalProperties\": false, \"properties\": {\"name\": {\"type\": "
                       "\"string\"}, ");
    ats_field_schema(text, ats_field_find(&ats_perturbation_table, "combine"));
    ats_text_add(text, "}}}");
    ats_text_add(text, "]}, ");
    for (int64_t i = 0; i < count; i++) {
        write_family(text, families[i]);
        ats_text_add(text, ", ");
    }
    const char *value = "{\"type\": [\"string\", \"number\"]}";
    ats_text_add(text,
                 "\"clauses\": {\"type\": \"object\", \"minProperties\": 1, "
                 "\"additionalProperties\": {\"anyOf\": [%s, {\"type\": \"array\", "
                 "\"minItems\": 1, \"items\": %s}]}}, \"gate\": ",
                 value, value);
    ats_fields_schema(text, &ats_gate_table);
}

/* The same JSON, indented; also proves that it is JSON. */
static ats_code indent(ats_arena *arena, const char *compact, const char **out, ats_err *err)
{
    json_error_t fault;
    json_t *json = json_loads(compact, JSON_REJECT_DUPLICATES, &fault);
    if (json == NULL)
        return ats_fail(err, ATS_E_INTERNAL, "the suite's schema is no JSON: %s (byte %d)",
                        fault.text, fault.position);
    char *pretty = json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    json_decref(json);
    if (pretty == NULL) return ats_fail(err, ATS_E_MEMORY, "out of memory");
    const ats_code rc = ats_arena_printf(arena, out, err, "%s\n", pretty);
    free(pretty);
    return rc;
}

ats_code ats_suite_schema(ats_arena *arena, const char **out, ats_err *err)
{
    ats_code rc;
    ats_text fields = {.arena = arena, .err = err}, text = fields;
    const char *object = NULL, *compact = NULL;
    ats_fields_schema(&fields, &ats_suite_table);
    ATS_TRY(ats_text_done(&fields, &object));
    const int inner = (int)strlen(object) - 2; /* without its braces */
    ats_text_add(&text,
                 "{\"$schema\": \"http://json-schema.org/draft-07/schema#\", "
                 "\"title\": \"attnstress suite\", %.*s, \"definitions\": {",
                 inner, object + 1);
    write_definitions(&text);
    ats_text_add(&text, "}}");
    ATS_TRY(ats_text_done(&text, &compact));
    ATS_TRY(indent(arena, compact, out, err));
out:
    return rc;
}

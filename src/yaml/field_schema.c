#include "yaml/field.h"

#include <string.h>

static void write_words(ats_text *text, const char *const *words)
{
    ats_text_add(text, "\"enum\": [");
    for (int64_t i = 0; words[i] != NULL; i++) {
        if (i > 0) ats_text_add(text, ", ");
        ats_text_json(text, words[i]);
    }
    ats_text_add(text, "]");
}

static void write_bounds(ats_text *text, const ats_field *field)
{
    char number[32];
    if (field->min == 0 && field->max == 0) return;
    ats_format_real(field->min, number);
    ats_text_add(text, ", \"minimum\": %s", number);
    if (!(field->max < 9e18)) return;
    ats_format_real(field->max, number);
    ats_text_add(text, ", \"maximum\": %s", number);
}

static void write_type(ats_text *text, const ats_field *field)
{
    switch (field->type) {
    case ATS_FIELD_TEXT:
        ats_text_add(text, "{\"type\": \"string\"");
        break;
    case ATS_FIELD_WORD:
        ats_text_add(text, "{");
        write_words(text, field->words);
        break;
    case ATS_FIELD_BOOL:
        ats_text_add(text, "{\"type\": \"boolean\"");
        break;
    case ATS_FIELD_INT:
    case ATS_FIELD_REAL:
        ats_text_add(text, "{\"type\": \"%s\"",
                     field->type == ATS_FIELD_INT ? "integer" : "number");
        write_bounds(text, field);
        break;
    case ATS_FIELD_TEXTS:
        ats_text_add(text, "{\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"array\", \"items\": "
                           "{\"type\": \"string\"}}]");
        break;
    case ATS_FIELD_SECTION:
        ats_text_add(text, "{\"allOf\": [");
        ats_fields_schema(text, field->table);
        ats_text_add(text, "]");
        break;
    case ATS_FIELD_CUSTOM:
        ats_text_add(text, "{\"allOf\": [%s]", field->schema);
        break;
    }
}

void ats_field_schema(ats_text *text, const ats_field *field)
{
    ats_text_json(text, field->name);
    ats_text_add(text, ": ");
    write_type(text, field);
    ats_text_add(text, ", \"description\": ");
    ats_text_json(text, field->doc);
    ats_text_add(text, "}");
}

void ats_fields_schema(ats_text *text, const ats_table *table)
{
    ats_text_add(text, "{\"type\": \"object\", \"additionalProperties\": false, \"required\": [");
    for (int64_t i = 0, n = 0; i < table->count; i++) {
        if (!table->fields[i].required) continue;
        if (n++ > 0) ats_text_add(text, ", ");
        ats_text_json(text, table->fields[i].name);
    }
    ats_text_add(text, "], \"properties\": {");
    for (int64_t i = 0; i < table->count; i++) {
        if (i > 0) ats_text_add(text, ", ");
        ats_field_schema(text, &table->fields[i]);
    }
    ats_text_add(text, "}}");
}

static void write_form(ats_text *text, const ats_field *field)
{
    static const char *const names[] = {"text",   "word",  "true or false", "whole number",
                                        "number", "texts", "section",       ""};
    if (field->type == ATS_FIELD_WORD) {
        for (int64_t i = 0; field->words[i] != NULL; i++)
            ats_text_add(text, "%s`%s`", i > 0 ? ", " : "", field->words[i]);
    } else if (field->type == ATS_FIELD_CUSTOM) {
        ats_text_add(text, "%s", field->form);
    } else {
        ats_text_add(text, "%s", names[field->type]);
    }
    if (field->min == 0 && field->max == 0) return;
    char low[32], high[32];
    ats_format_real(field->min, low);
    ats_format_real(field->max, high);
    if (field->max < 9e18)
        ats_text_add(text, ", %s to %s", low, high);
    else
        ats_text_add(text, ", at least %s", low);
}

void ats_fields_markdown(ats_text *text, const ats_table *table, const char *path)
{
    if (path[0] != '\0') ats_text_add(text, "\n### `%s`\n\n", path);
    ats_text_add(text, "%s\n\n| key | value | default | meaning |\n|---|---|---|---|\n",
                 table->doc);
    for (int64_t i = 0; i < table->count; i++) {
        const ats_field *field = &table->fields[i];
        ats_text_add(text, "| `%s` | ", field->name);
        write_form(text, field);
        if (field->standard != NULL)
            ats_text_add(text, " | `%s` | ", field->standard);
        else
            ats_text_add(text, " | %s | ", field->required ? "required" : "");
        ats_text_add(text, "%s |\n", field->doc);
    }
    for (int64_t i = 0; i < table->count; i++)
        if (table->fields[i].type == ATS_FIELD_SECTION)
            ats_fields_markdown(text, table->fields[i].table, table->fields[i].name);
}

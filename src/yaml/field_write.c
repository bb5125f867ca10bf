#include "yaml/field.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Plain in flow style for every reader: no indicator, no blank. */
static bool is_safe_plain(const char *value)
{
    const char *safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
    return value[0] != '\0' && strspn(value, safe) == strlen(value) && strcmp(value, "-") != 0 &&
           strncmp(value, "---", 3) != 0;
}

void ats_node_write(ats_text *text, const ats_node *node)
{
    if (node->kind == ATS_NODE_SCALAR) {
        if (!node->quoted && is_safe_plain(node->text))
            ats_text_add(text, "%s", node->text);
        else
            ats_text_json(text, node->text);
        return;
    }
    const bool map = node->kind == ATS_NODE_MAP;
    ats_text_add(text, map ? "{" : "[");
    for (int64_t i = 0; i < node->count; i++) {
        if (i > 0) ats_text_add(text, ", ");
        if (map) {
            ats_node_write(text, node->entries[i].key);
            ats_text_add(text, ": ");
            ats_node_write(text, node->entries[i].value);
        } else {
            ats_node_write(text, node->items[i]);
        }
    }
    ats_text_add(text, map ? "}" : "]");
}

static void write_texts(ats_text *text, const ats_strings *strings)
{
    ats_text_add(text, "[");
    for (int64_t i = 0; i < strings->count; i++) {
        if (i > 0) ats_text_add(text, ", ");
        ats_text_scalar(text, strings->items[i]);
    }
    ats_text_add(text, "]");
}

/* False when there is nothing to write: absent and without a default. */
static bool write_value(ats_text *text, const ats_field *field, const ats_node *node,
                        const void *target)
{
    if (node == NULL && field->standard == NULL) return false;
    ats_text_add(text, "%s: ", field->name);
    switch (field->type) {
    case ATS_FIELD_TEXT:
    case ATS_FIELD_WORD:
        ats_text_scalar(text, *(const char *const *)target);
        break;
    case ATS_FIELD_BOOL:
        ats_text_add(text, "%s", *(const bool *)target ? "true" : "false");
        break;
    case ATS_FIELD_INT:
        ats_text_add(text, "%" PRId64, *(const int64_t *)target);
        break;
    case ATS_FIELD_REAL: {
        char number[32];
        ats_format_real(*(const double *)target, number);
        ats_text_add(text, "%s", number);
        break;
    }
    case ATS_FIELD_TEXTS:
        write_texts(text, target);
        break;
    case ATS_FIELD_SECTION:
    case ATS_FIELD_CUSTOM:
        if (node != NULL)
            ats_node_write(text, node);
        else
            ats_text_add(text, "%s", field->standard);
        break;
    }
    return true;
}

void ats_fields_write(ats_text *text, const ats_table *table, const ats_node *node,
                      const void *base, int indent, bool identity)
{
    for (int64_t i = 0; i < table->count; i++) {
        const ats_field *field = &table->fields[i];
        if (identity && field->outside_identity) continue;
        const ats_node *value = ats_node_get(node, field->name);
        const void *target = (const char *)base + field->offset;
        if (field->write != NULL) {
            field->write(text, base);
            continue;
        }
        const bool section = field->type == ATS_FIELD_SECTION;
        if (!section && value == NULL && field->standard == NULL) continue;
        ats_text_add(text, "%*s", indent, "");
        if (section) {
            ats_text_add(text, "%s:\n", field->name);
            ats_fields_write(text, field->table, value, target, indent + 2, identity);
        } else if (write_value(text, field, value, target)) {
            ats_text_add(text, "\n");
        }
    }
}

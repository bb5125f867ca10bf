#include "yaml/field.h"

#include <math.h>
#include <string.h>

#include "base/nearest.h"

const ats_field *ats_field_find(const ats_table *table, const char *name)
{
    for (int64_t i = 0; i < table->count; i++)
        if (strcmp(table->fields[i].name, name) == 0) return &table->fields[i];
    return NULL;
}

void ats_issue_unknown_key(ats_reader *reader, const ats_node *key, const char *section,
                           const char *const *names)
{
    const char *near = ats_nearest(key->text, names);
    if (near != NULL) {
        ats_issue_at(reader->issues, key, "E-unknown-key",
                     "unknown key '%.60s' in %s; did you mean '%s'?", key->text, section, near);
        return;
    }
    char known[300] = "";
    size_t used = 0;
    for (int64_t i = 0; names[i] != NULL; i++) {
        const size_t length = strlen(names[i]);
        if (used + length + 3 > sizeof known) break;
        if (i > 0) {
            memcpy(known + used, ", ", 2);
            used += 2;
        }
        memcpy(known + used, names[i], length + 1);
        used += length;
    }
    ats_issue_at(reader->issues, key, "E-unknown-key", "unknown key '%.60s' in %s; known: %s",
                 key->text, section, known);
}

static bool is_bounded(const ats_field *field) { return field->min != 0 || field->max != 0; }

static bool read_number(ats_reader *reader, const ats_field *field, const ats_node *node,
                        void *target)
{
    const bool bounded = is_bounded(field);
    if (field->type == ATS_FIELD_INT) {
        int64_t low = bounded ? (int64_t)field->min : INT64_MIN, high = INT64_MAX;
        if (bounded && field->max < 9e18) high = (int64_t)field->max;
        return ats_read_int(reader, node, field->name, low, high, target);
    }
    const double low = bounded ? field->min : (double)NAN,
                 high = bounded ? field->max : (double)NAN;
    return ats_read_real(reader, node, field->name, low, high, false, target);
}

bool ats_field_read(ats_reader *reader, const ats_field *field, const ats_node *node, void *base)
{
    void *target = (char *)base + field->offset;
    switch (field->type) {
    case ATS_FIELD_TEXT:
        return ats_read_text(reader, node, field->name, target);
    case ATS_FIELD_WORD:
        return ats_read_word(reader, node, field->name, field->words, target);
    case ATS_FIELD_BOOL:
        return ats_read_bool(reader, node, field->name, target);
    case ATS_FIELD_INT:
    case ATS_FIELD_REAL:
        return read_number(reader, field, node, target);
    case ATS_FIELD_TEXTS:
        return ats_read_texts(reader, node, field->name, target);
    case ATS_FIELD_SECTION:
        return ats_fields_read(reader, field->table, node, target);
    case ATS_FIELD_CUSTOM:
        break;
    }
    return field->read(reader, node, field, target);
}

static bool read_default(ats_reader *reader, const ats_field *field, void *base)
{
    if (field->type == ATS_FIELD_SECTION)
        return ats_fields_read(reader, field->table, NULL, (char *)base + field->offset);
    if (field->standard == NULL) return true;
    const ats_node *node = NULL;
    if (reader->rc == ATS_OK)
        reader->rc =
            ats_yaml_parse(reader->arena, "default", field->standard,
                           (int64_t)strlen(field->standard), reader->issues, &node, reader->err);
    return reader->rc == ATS_OK && node != NULL && ats_field_read(reader, field, node, base);
}

static bool read_known(ats_reader *reader, const ats_table *table, const ats_node *node, void *base)
{
    enum { MOST = 64 };
    const char *names[MOST + 1] = {NULL};
    ATS_ASSERT(table->count <= MOST);
    for (int64_t i = 0; i < table->count; i++) names[i] = table->fields[i].name;
    bool good = true;
    for (int64_t i = 0; i < node->count; i++) {
        const ats_entry *entry = &node->entries[i];
        const ats_field *field = ats_field_find(table, entry->key->text);
        if (field == NULL) {
            ats_issue_unknown_key(reader, entry->key, table->name, names);
            good = false;
        } else {
            good &= ats_field_read(reader, field, entry->value, base);
        }
    }
    return good;
}

bool ats_fields_read(ats_reader *reader, const ats_table *table, const ats_node *node, void *base)
{
    bool good = true;
    if (node != NULL && node->kind != ATS_NODE_MAP) {
        ats_issue_at(reader->issues, node, "E-kind", "%s: a mapping is wanted here, this is %s",
                     table->name, ats_node_kind_name(node->kind));
        return false;
    }
    for (int64_t i = 0; i < table->count; i++) {
        const ats_field *field = &table->fields[i];
        if (ats_node_get(node, field->name) != NULL) continue;
        if (field->required && node != NULL) {
            ats_issue_at(reader->issues, node, "E-missing-key", "%s lacks the key '%s': %s",
                         table->name, field->name, field->doc);
            good = false;
        }
        good &= read_default(reader, field, base);
    }
    return node == NULL ? good : read_known(reader, table, node, base) && good;
}

/* Field tables: one table of fields a section drives parsing, canonical text, JSON Schema and docs,
 * so that they cannot drift apart.
 *
 * A table describes a mapping; a field says its type, place in a struct, default and bounds. What
 * the types here cannot say is a CUSTOM field with functions of its own. Ownership: values live in
 * the reader's arena. */
#ifndef ATS_YAML_FIELD_H
#define ATS_YAML_FIELD_H

#include "yaml/scalar.h"
#include "base/text.h"

typedef enum ats_field_type {
    ATS_FIELD_TEXT,    /* const char * */
    ATS_FIELD_WORD,    /* const char *, one of words */
    ATS_FIELD_BOOL,    /* bool */
    ATS_FIELD_INT,     /* int64_t in [min, max] */
    ATS_FIELD_REAL,    /* double in [min, max] */
    ATS_FIELD_TEXTS,   /* ats_strings: a text or a list */
    ATS_FIELD_SECTION, /* struct of `table` */
    ATS_FIELD_CUSTOM   /* read by `read` */
} ats_field_type;

typedef struct ats_field ats_field;

typedef struct ats_table {
    const char *name; /* "select" */
    const char *doc;  /* one or two sentences */
    const ats_field *fields;
    int64_t count;
} ats_table;

struct ats_field {
    const char *name;
    ats_field_type type;
    size_t offset;        /* of the value in the section's struct */
    const char *doc;      /* one sentence */
    const char *standard; /* default as it would be written; NULL: none */
    bool required;
    bool outside_identity; /* changes nothing that is computed: kept out of the identity hash */
    double min, max;       /* INT, REAL; both 0: no bounds */
    const char *const *words;
    const ats_table *table;
    /* CUSTOM: target is base + offset. False after an issue. */
    bool (*read)(ats_reader *reader, const ats_node *node, const ats_field *field, void *target);
    /* CUSTOM: writes its lines of the canonical text; base: the struct. NULL: "name: node". */
    void (*write)(ats_text *text, const void *base);
    const char *schema; /* CUSTOM: its JSON Schema */
    const char *form;   /* CUSTOM: what may be written, for the docs */
};

/* Fills base from a mapping (NULL: defaults alone). Unknown keys and missing ones become issues. */
bool ats_fields_read(ats_reader *reader, const ats_table *table, const ats_node *node, void *base);
/* One field. */
bool ats_field_read(ats_reader *reader, const ats_field *field, const ats_node *node, void *base);
const ats_field *ats_field_find(const ats_table *table, const char *name);
/* Adds the issue of a key that none of names (NULL-terminated) is. */
void ats_issue_unknown_key(ats_reader *reader, const ats_node *key, const char *section,
                           const char *const *names);

/* Canonical YAML of a section that was read from node into base: fields in table order, defaults
 * written out. identity: without the fields outside the identity. */
void ats_fields_write(ats_text *text, const ats_table *table, const ats_node *node,
                      const void *base, int indent, bool identity);
/* A node in flow style. */
void ats_node_write(ats_text *text, const ats_node *node);

/* {"type": "object", ...}, unindented JSON. */
void ats_fields_schema(ats_text *text, const ats_table *table);
/* "a": {...}, for one field. */
void ats_field_schema(ats_text *text, const ats_field *field);
/* Markdown: heading, sentence, a table of the fields; then each subsection. path: "" or "select".
 */
void ats_fields_markdown(ats_text *text, const ats_table *table, const char *path);

#endif

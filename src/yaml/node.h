/* YAML text as a tree of nodes that remember their place; the only user of libyaml.
 *
 * libyaml events become nodes; nothing is typed here (types follow the field, scalar.h).
 * Refused with a place: depth over 64, over 100,000 node visits (an alias counts as all it stands
 * for), 16 MiB, alias cycles, unknown aliases, merge keys, tags, keys that are not scalars,
 * duplicate keys, tabs as indentation, a second document, NUL, bytes that are not UTF-8.
 * Ownership: nodes and sources live in the given arena and are never changed afterwards. */
#ifndef ATS_YAML_NODE_H
#define ATS_YAML_NODE_H

#include <stdbool.h>

#include "yaml/issue.h"

enum { ATS_YAML_DEPTH = 64, ATS_YAML_VISITS = 100000, ATS_YAML_BYTES = 16 << 20 };

typedef enum ats_node_kind { ATS_NODE_SCALAR, ATS_NODE_LIST, ATS_NODE_MAP } ats_node_kind;

typedef struct ats_node ats_node;

typedef struct ats_entry {
    const ats_node *key; /* a scalar */
    const ats_node *value;
} ats_entry;

struct ats_node {
    ats_node_kind kind;
    bool quoted; /* scalar in quotes or as a block: never a number or a boolean */
    const ats_source *source;
    int64_t line, column;         /* from 1 */
    const char *text;             /* scalar */
    int64_t count;                /* of a list or map */
    const ats_node *const *items; /* [count] of a list */
    const ats_entry *entries;     /* [count] of a map, in the order written */
    int64_t visits, height;       /* nodes and levels of the expanded subtree */
};

/* Parses text. A fault of the text becomes an issue; *out is NULL then, and for an empty document.
 * The code tells of memory only. */
ATS_MUST_CHECK ats_code ats_yaml_parse(ats_arena *arena, const char *name, const char *text,
                                       int64_t size, ats_issues *issues, const ats_node **out,
                                       ats_err *err);
ATS_MUST_CHECK ats_code ats_yaml_parse_source(ats_arena *arena, const ats_source *source,
                                              ats_issues *issues, const ats_node **out,
                                              ats_err *err);
/* Reads a whole file. ATS_E_INPUT with path and reason when it cannot be read. */
ATS_MUST_CHECK ats_code ats_source_read(ats_arena *arena, const char *path, ats_source **out,
                                        ats_err *err);
/* Reads and parses a file. A file that cannot be read gives ATS_E_INPUT with path and reason. */
ATS_MUST_CHECK ats_code ats_yaml_load(ats_arena *arena, const char *path, ats_issues *issues,
                                      const ats_node **out, ats_err *err);

/* Value of a map's key, or NULL (also when node is no map). */
const ats_node *ats_node_get(const ats_node *node, const char *key);
const char *ats_node_kind_name(ats_node_kind kind); /* "a single value", "a list", "a mapping" */
void ats_issue_at(ats_issues *issues, const ats_node *node, const char *code, const char *fmt, ...)
    ATS_PRINTF(4, 5);

#endif

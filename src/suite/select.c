#include <ctype.h>
#include <string.h>

#include "suite/draft.h"

enum { LONGEST = 65536 }; /* entries of a list of layers, heads or probes */

static bool is_word(const ats_node *node, const char *word)
{
    return node->kind == ATS_NODE_SCALAR && strcmp(node->text, word) == 0;
}

bool ats_select_read_samples(ats_reader *reader, const ats_node *node, const ats_field *field,
                             void *target)
{
    ats_select *select = target;
    select->all_samples = is_word(node, "all");
    select->samples = (ats_strings){.count = 0};
    if (select->all_samples) return true;
    if (!ats_read_texts(reader, node, field->name, &select->samples)) return false;
    if (select->samples.count > 0) return true;
    ats_issue_at(reader->issues, node, "E-empty", "samples: an empty list chooses nothing");
    return false;
}

/* "4-12": both ends are meant. */
static bool read_range(ats_reader *reader, const ats_node *node, const char *what, int64_t *first,
                       int64_t *last)
{
    const char *dash = node->kind == ATS_NODE_SCALAR ? strchr(node->text, '-') : NULL;
    char hint[160], low[32];
    if (dash == NULL || dash == node->text || dash - node->text >= (int64_t)sizeof low) {
        if (!ats_read_int(reader, node, what, -LONGEST, LONGEST, first)) return false;
        *last = *first;
        return true;
    }
    memcpy(low, node->text, (size_t)(dash - node->text));
    low[dash - node->text] = '\0';
    if (ats_parse_int(low, first, hint, sizeof hint) &&
        ats_parse_int(dash + 1, last, hint, sizeof hint) && *first >= 0 && *first <= *last &&
        *last - *first < LONGEST)
        return true;
    ats_issue_at(reader->issues, node, "E-range-text",
                 "%s: '%.60s' is no range; write it as first-last, for example 4-12", what,
                 node->text);
    return false;
}

static bool read_list(ats_reader *reader, const ats_node *node, const char *what,
                      ats_select_ints *out)
{
    const ats_node *const one[] = {node};
    const bool list = node->kind == ATS_NODE_LIST;
    const ats_node *const *nodes = list ? node->items : one;
    const int64_t n = list ? node->count : 1;
    int64_t first, last, count = 0, *items = NULL;
    bool good = true;
    for (int64_t i = 0; i < n; i++) {
        const bool read = read_range(reader, nodes[i], what, &first, &last);
        if (read) count += last - first + 1;
        good &= read;
    }
    if (good && count == 0)
        ats_issue_at(reader->issues, node, "E-empty", "%s: an empty list chooses nothing", what);
    if (good && count > LONGEST)
        ats_issue_at(reader->issues, node, "E-too-big", "%s: more than 65,536 entries", what);
    if (!good || count == 0 || count > LONGEST) return false;
    if (!ATS_READ_NEW(reader, count, &items)) return false;
    int64_t used = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!read_range(reader, nodes[i], what, &first, &last)) return false;
        for (int64_t x = first; x <= last; x++) items[used++] = x;
    }
    *out = (ats_select_ints){.count = count, .items = items};
    return true;
}

static const ats_field every_fields[] = {
    {.name = "every",
     .type = ATS_FIELD_INT,
     .offset = offsetof(ats_select_ints, every),
     .doc = "Take every n-th of the model's list.",
     .required = true,
     .min = 1,
     .max = LONGEST},
};
static const ats_table every_table = {"the choice", "Every n-th.", every_fields, 1};

bool ats_select_read_ints(ats_reader *reader, const ats_node *node, const ats_field *field,
                          void *target)
{
    ats_select_ints *ints = target;
    *ints = (ats_select_ints){.all = is_word(node, "all")};
    if (ints->all) return true;
    if (node->kind == ATS_NODE_MAP) {
        ints->all = true;
        return ats_fields_read(reader, &every_table, node, ints);
    }
    return read_list(reader, node, field->name, ints);
}

typedef struct by_mass {
    const char *by, *span;
    double min;
} by_mass;

static const char *const by_words[] = {"mass", NULL};
static const ats_field by_fields[] = {
    {.name = "by",
     .type = ATS_FIELD_WORD,
     .offset = offsetof(by_mass, by),
     .doc = "What heads are chosen by.",
     .required = true,
     .words = by_words},
    {.name = "span",
     .type = ATS_FIELD_TEXT,
     .offset = offsetof(by_mass, span),
     .doc = "Name or role of the span.",
     .required = true},
    {.name = "min",
     .type = ATS_FIELD_REAL,
     .offset = offsetof(by_mass, min),
     .doc = "Least mean base mass.",
     .required = true,
     .max = 1},
};
static const ats_table by_table = {"heads", "Heads by their base mass on a span.", by_fields, 3};

bool ats_select_read_heads(ats_reader *reader, const ats_node *node, const ats_field *field,
                           void *target)
{
    ats_select *select = target;
    select->heads_by_span = NULL;
    if (ats_node_get(node, "by") == NULL && ats_node_get(node, "span") == NULL)
        return ats_select_read_ints(reader, node, field, &select->heads);
    by_mass by = {.by = NULL};
    if (!ats_fields_read(reader, &by_table, node, &by)) return false;
    select->heads = (ats_select_ints){.all = true};
    select->heads_by_span = by.span;
    select->heads_min_mass = by.min;
    return true;
}

bool ats_select_read_probes(ats_reader *reader, const ats_node *node, const ats_field *field,
                            void *target)
{
    ats_select *select = target;
    static const ats_field fields[] = {
        {.name = "role", .type = ATS_FIELD_TEXT, .doc = "Role of the probes.", .required = true}};
    static const ats_table table = {"probes", "Probes of one role.", fields, 1};
    select->probe_role = NULL;
    if (node->kind == ATS_NODE_MAP) {
        select->probes = ATS_PROBES_ROLE;
        return ats_fields_read(reader, &table, node, &select->probe_role);
    }
    if (is_word(node, "last") || is_word(node, "all")) {
        select->probes = is_word(node, "last") ? ATS_PROBES_LAST : ATS_PROBES_ALL;
        return true;
    }
    if (node->kind == ATS_NODE_SCALAR && isalpha((unsigned char)node->text[0])) {
        ats_issue_at(reader->issues, node, "E-word",
                     "probes: '%.60s' is neither last nor all; a role is written {role: %.60s}",
                     node->text, node->text);
        return false;
    }
    select->probes = ATS_PROBES_INDEX;
    return read_list(reader, node, field->name, &select->probe_index);
}

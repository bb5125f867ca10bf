#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "suite/draft.h"

static bool read_kind(ats_reader *reader, const ats_node *node, ats_perturbation_draft *out)
{
    enum { MOST = 63 };
    const char *kinds[MOST + 1] = {NULL};
    int64_t count;
    const ats_family *const *families = ats_families(&count);
    for (int64_t i = 0; i < count && i < MOST; i++) kinds[i] = families[i]->kind;
    const ats_node *kind = ats_node_get(node, "kind");
    const char *word = NULL;
    if (kind == NULL && ats_node_get(node, "combine") != NULL) {
        out->built.family = ats_family_find("combine");
        return true;
    }
    if (kind == NULL) {
        ats_issue_at(reader->issues, node, "E-missing-key",
                     "this perturbation lacks the key 'kind', which names its family");
        return false;
    }
    if (!ats_read_word(reader, kind, "kind", kinds, &word)) return false;
    out->built.family = ats_family_find(word);
    return true;
}

/* Names end up in variant ids, where / # ~ , = have a meaning of their own. */
static bool check_name(ats_reader *reader, const ats_node *node, const char *name)
{
    for (const unsigned char *c = (const unsigned char *)name; *c != '\0'; c++) {
        if (*c > ' ' && *c != 0x7f && strchr("/#~,=:", *c) == NULL) continue;
        ats_issue_at(reader->issues, node, "E-name",
                     "name: '%.60s' holds '%c'; a name goes into variant ids, so use letters, "
                     "digits, '.', '_', '+' and '-'",
                     name, *c);
        return false;
    }
    return true;
}

/* A parameter that belongs into its group's mapping but stands beside it. */
static bool refuse_grouped(ats_reader *reader, const ats_family *family, const ats_node *key)
{
    const int64_t index = ats_family_param(family, key->text);
    const ats_param_def *def = index >= 0 ? &family->params[index] : NULL;
    if (def == NULL || def->group == NULL || strcmp(def->group, def->name) == 0) return false;
    if (strcmp(def->name, def->group_word) == 0)
        ats_issue_at(reader->issues, key, "E-group", "'%s' is written inside '%s': {%s: ...}",
                     def->name, def->group, def->name);
    else
        ats_issue_at(reader->issues, key, "E-group", "'%s' is written inside '%s': {%s: {%s: ...}}",
                     def->name, def->group, def->group_word, def->name);
    return true;
}

static void refuse_unknown(ats_reader *reader, const ats_family *family, const ats_node *key,
                           bool common)
{
    enum { MOST = 63 };
    const char *names[MOST + 1] = {NULL};
    char section[80];
    int64_t n = 0;
    for (int64_t i = 0; i < family->n_params && n < MOST; i++)
        if (family->params[i].group == NULL) names[n++] = family->params[i].name;
    for (int64_t i = 0; i < ats_perturbation_table.count && n < MOST; i++)
        if (common || strcmp(ats_perturbation_table.fields[i].name, "positions") == 0)
            names[n++] = ats_perturbation_table.fields[i].name;
    snprintf(section, sizeof section, "a perturbation of kind %s", family->kind);
    ats_issue_unknown_key(reader, key, section, names);
}

/* An axis from `positions` or a parameter; false after an issue. */
static bool read_axis(ats_reader *reader, const ats_family *family, const ats_entry *entry,
                      bool common, ats_axis *out)
{
    const ats_node *key = entry->key;
    const bool positions = strcmp(key->text, "positions") == 0;
    if (positions && !family->has_positions) {
        ats_issue_at(
            reader->issues, key, "E-positions",
            "kind %s inserts and moves no rows, so 'positions' does not apply; take it away",
            family->kind);
        return false;
    }
    if (!positions && refuse_grouped(reader, family, key)) return false;
    if (!positions && ats_family_param(family, key->text) < 0) {
        refuse_unknown(reader, family, key, common);
        return false;
    }
    return ats_sweep_axis(reader, family, entry, out);
}

/* `combine: [a, b]` is `kind: combine` with `first: a` and `second: b`. */
static bool read_combine(ats_reader *reader, ats_perturbation_draft *out)
{
    static const char *const keys[] = {"first", "second"};
    const ats_node *list = out->combine_node;
    if (list == NULL) return true;
    if (ats_node_get(out->node, "kind") != NULL || list->kind != ATS_NODE_LIST ||
        list->count != 2) {
        ats_issue_at(reader->issues, list, "E-combine",
                     "combine: two names are wanted, [first, second], and no 'kind' beside them");
        return false;
    }
    if (!ATS_READ_NEW(reader, out->node->count + 2, &out->grid.axes)) return false;
    for (int i = 0; i < 2; i++) {
        ats_assign *assign = NULL;
        ats_point *point = NULL;
        const char *name = NULL;
        if (!ats_read_text(reader, list->items[i], "combine", &name)) return false;
        if (!ATS_READ_NEW0(reader, 1, &assign) || !ATS_READ_NEW0(reader, 1, &point)) return false;
        *assign = (ats_assign){.param = ats_family_param(out->built.family, keys[i]),
                               .value = {.set = true, .text = name}};
        *point = (ats_point){1, assign};
        out->grid.axes[out->grid.count++] = (ats_axis){keys[i], list->items[i], 1, point};
    }
    return reader->rc == ATS_OK;
}

static bool read_grid(ats_reader *reader, ats_perturbation_draft *out)
{
    const ats_node *node = out->node;
    const ats_family *family = out->built.family;
    if (!ATS_READ_NEW(reader, node->count, &out->grid.axes)) return false;
    bool good = true;
    out->combine_node = ats_node_get(node, "combine");
    good &= read_combine(reader, out);
    for (int64_t i = 0; i < node->count; i++) {
        const ats_entry *entry = &node->entries[i];
        const char *key = entry->key->text;
        const ats_field *field = ats_field_find(&ats_perturbation_table, key);
        if (field != NULL) good &= ats_field_read(reader, field, entry->value, out);
        if (field != NULL && strcmp(key, "positions") != 0) continue;
        if (read_axis(reader, family, entry, true, &out->grid.axes[out->grid.count]))
            out->grid.count++;
        else
            good = false;
    }
    if (family->has_positions && out->positions_node == NULL) {
        ats_issue_at(reader->issues, node, "E-missing-key",
                     "kind %s inserts rows and lacks the key 'positions': overlay, replace, shift "
                     "or move (a list sweeps)",
                     family->kind);
        good = false;
    }
    const ats_node *control = ats_node_get(node, "control");
    if (control != NULL && out->control && !family->has_control) {
        ats_issue_at(reader->issues, control, "E-control",
                     "kind %s has no control twin; take 'control' away", family->kind);
        good = false;
    }
    if (out->built.breakdown_search && family->dose == NULL) {
        ats_issue_at(reader->issues, ats_node_get(node, "breakdown_search"), "E-dose",
                     "kind %s has no dose to search; take 'breakdown_search' away", family->kind);
        good = false;
    }
    out->built.control = out->control && family->has_control;
    out->built.replicates = out->replicates;
    return good;
}

static const ats_node *entries_of(ats_reader *reader, const ats_node *node, const char *what)
{
    if (node == NULL || node->kind == ATS_NODE_LIST) return node;
    ats_issue_at(reader->issues, node, "E-kind",
                 "%s: a list of mappings is wanted here, this is %s", what,
                 ats_node_kind_name(node->kind));
    return NULL;
}

static bool read_excludes(ats_reader *reader, ats_perturbation_draft *out)
{
    const ats_node *list = entries_of(reader, out->exclude_node, "exclude");
    ats_filter *filters = NULL;
    if (list == NULL) return out->exclude_node == NULL;
    if (!ATS_READ_NEW0(reader, list->count, &filters)) return false;
    bool good = true;
    for (int64_t i = 0; i < list->count; i++)
        good &= ats_filter_read(reader, list->items[i], "exclude", &filters[i]);
    out->exclude = filters;
    out->n_exclude = list->count;
    return good;
}

/* The grid with an include entry's axes in place of its own, or behind them. */
static bool read_include(ats_reader *reader, const ats_perturbation_draft *draft,
                         const ats_node *entry, ats_grid *out)
{
    if (entry->kind != ATS_NODE_MAP || entry->count == 0) {
        ats_issue_at(reader->issues, entry, "E-kind",
                     "include: a mapping is wanted here, for example {count: 64}");
        return false;
    }
    const ats_grid *grid = &draft->grid;
    if (!ATS_READ_NEW(reader, grid->count + entry->count, &out->axes)) return false;
    if (grid->count > 0) memcpy(out->axes, grid->axes, (size_t)grid->count * sizeof *out->axes);
    out->count = grid->count;
    bool good = true;
    for (int64_t i = 0; i < entry->count; i++) {
        ats_axis axis;
        if (!read_axis(reader, draft->built.family, &entry->entries[i], false, &axis)) {
            good = false;
            continue;
        }
        int64_t at = 0;
        while (at < out->count && strcmp(out->axes[at].key, axis.key) != 0) at++;
        out->axes[at] = axis;
        if (at == out->count) out->count++;
    }
    return good;
}

static bool read_includes(ats_reader *reader, ats_perturbation_draft *out)
{
    const ats_node *list = entries_of(reader, out->include_node, "include");
    ats_grid *grids = NULL;
    if (list == NULL) return out->include_node == NULL;
    if (!ATS_READ_NEW0(reader, list->count, &grids)) return false;
    bool good = true;
    for (int64_t i = 0; i < list->count; i++)
        good &= read_include(reader, out, list->items[i], &grids[i]);
    out->include = grids;
    out->n_include = list->count;
    return good;
}

static bool read_one(ats_reader *reader, const ats_node *node, ats_perturbation_draft *out)
{
    *out = (ats_perturbation_draft){.node = node, .control = true, .replicates = 1};
    out->built.place =
        (ats_place){.file = node->source->name, .line = node->line, .column = node->column};
    if (node->kind != ATS_NODE_MAP) {
        ats_issue_at(reader->issues, node, "E-kind",
                     "a perturbation is a mapping with 'kind' and parameters, this is %s",
                     ats_node_kind_name(node->kind));
        return false;
    }
    if (!read_kind(reader, node, out)) return false;
    bool good = read_grid(reader, out);
    const ats_node *name = ats_node_get(node, "name");
    if (name == NULL)
        out->built.name = out->built.family->kind;
    else if (out->built.name != NULL)
        good &= check_name(reader, name, out->built.name);
    good &= reader->rc == ATS_OK && read_excludes(reader, out);
    good &= reader->rc == ATS_OK && read_includes(reader, out);
    return good && reader->rc == ATS_OK;
}

/* RC-23: two cases with one id. */
static bool refuse_same_names(ats_reader *reader, const ats_perturbation_draft *items,
                              int64_t count)
{
    bool good = true;
    for (int64_t i = 1; i < count; i++)
        for (int64_t j = 0; j < i; j++) {
            const char *a = items[i].built.name, *b = items[j].built.name;
            if (a == NULL || b == NULL || strcmp(a, b) != 0) continue;
            const ats_node *name = ats_node_get(items[i].node, "name");
            ats_issue_at(reader->issues, name != NULL ? name : items[i].node, "E-duplicate-name",
                         "perturbation '%.60s' is there twice: lines %lld and %lld; give each a "
                         "'name' of its own",
                         a, (long long)items[j].node->line, (long long)items[i].node->line);
            good = false;
            break;
        }
    return good;
}

bool ats_perturbations_read(ats_reader *reader, const ats_node *node, const ats_field *field,
                            void *target)
{
    (void)field;
    ats_draft *draft = target;
    enum { MOST = 4096 };
    if (node->kind != ATS_NODE_LIST || node->count == 0 || node->count > MOST) {
        ats_issue_at(reader->issues, node, "E-kind",
                     node->kind == ATS_NODE_LIST && node->count > 0
                         ? "perturbations: more than 4,096 items"
                         : "perturbations: a list with at least one item is wanted here; a suite "
                           "without cases tests nothing");
        return false;
    }
    if (!ATS_READ_NEW0(reader, node->count, &draft->perturbations)) return false;
    draft->n_perturbations = node->count;
    bool good = true;
    for (int64_t i = 0; i < node->count && reader->rc == ATS_OK; i++)
        good &= read_one(reader, node->items[i], &draft->perturbations[i]);
    good &= refuse_same_names(reader, draft->perturbations, node->count);
    return good && reader->rc == ATS_OK;
}

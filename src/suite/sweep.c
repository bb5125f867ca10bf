#include <stdio.h>
#include <string.h>

#include "suite/draft.h"

typedef struct points {
    ats_reader *reader;
    const ats_family *family;
    int64_t count, room;
    ats_point *items;
} points;

bool ats_param_is_group(const ats_family *family, const ats_param_def *def)
{
    for (int64_t i = 0; i < family->n_params; i++)
        if (family->params[i].group != NULL && strcmp(family->params[i].group, def->name) == 0)
            return true;
    return false;
}

static bool out_of_memory(ats_reader *reader, ats_code code)
{
    if (reader->rc == ATS_OK) reader->rc = code;
    return reader->rc != ATS_OK;
}

static bool push(points *p, const ats_assign *assigns, int64_t count)
{
    ats_reader *reader = p->reader;
    if (p->count == p->room) {
        const int64_t room = p->room > 0 ? 2 * p->room : 8;
        ats_point *items = NULL;
        if (out_of_memory(reader, ATS_NEW(reader->arena, room, &items, reader->err))) return false;
        if (p->count > 0) memcpy(items, p->items, (size_t)p->count * sizeof *items);
        p->items = items;
        p->room = room;
    }
    ats_assign *copy = NULL;
    if (out_of_memory(reader, ATS_NEW(reader->arena, count, &copy, reader->err))) return false;
    memcpy(copy, assigns, (size_t)count * sizeof *copy);
    p->items[p->count++] = (ats_point){.count = count, .assigns = copy};
    return true;
}

static bool read_value(ats_reader *reader, const ats_family *family, int64_t index,
                       const ats_node *node, ats_assign *out)
{
    const ats_param_def *def = &family->params[index];
    ats_param value = {.set = true};
    int64_t integer = 0;
    bool good = false;
    switch (def->type) {
    case ATS_PARAM_INT:
        good =
            ats_read_int(reader, node, def->name, (int64_t)def->min, (int64_t)def->max, &integer);
        value.number = (double)integer;
        break;
    case ATS_PARAM_REAL:
        good = ats_read_real(reader, node, def->name, def->min, def->max, false, &value.number);
        break;
    case ATS_PARAM_WORD:
        good = ats_read_word(reader, node, def->name, def->words, &value.text);
        break;
    case ATS_PARAM_TEXT:
        good = ats_read_text(reader, node, def->name, &value.text);
        break;
    }
    *out = (ats_assign){.param = index, .value = value};
    return good;
}

/* A value or a list of values of one parameter, each behind the assigns of `prefix`. */
static bool plain_points(points *p, int64_t param, const ats_node *node, const ats_assign *prefix,
                         int64_t n_prefix)
{
    ats_assign assigns[2];
    const ats_node *const one[] = {node};
    const bool list = node->kind == ATS_NODE_LIST;
    const ats_node *const *items = list ? node->items : one;
    const int64_t count = list ? node->count : 1;
    if (n_prefix > 0) assigns[0] = *prefix;
    bool good = true;
    if (count == 0) {
        ats_issue_at(p->reader->issues, node, "E-empty",
                     "%s: an empty list leaves no variant; give a value or take the key away",
                     p->family->params[param].name);
        return false;
    }
    for (int64_t i = 0; i < count; i++)
        if (read_value(p->reader, p->family, param, items[i], &assigns[n_prefix]))
            good &= push(p, assigns, n_prefix + 1);
        else
            good = false;
    return good;
}

/* Parameters that stand inside `group: {word: ...}`; names gets them, NULL-terminated. */
static int64_t grouped(const ats_family *family, const char *group, const char *word,
                       const char **names, int64_t room)
{
    int64_t n = 0;
    for (int64_t i = 0; i < family->n_params; i++) {
        const ats_param_def *def = &family->params[i];
        if (def->group == NULL || strcmp(def->group, group) != 0) continue;
        if (strcmp(def->group_word, word) == 0 && n + 1 < room) names[n++] = def->name;
    }
    names[n] = NULL;
    return n;
}

enum { INSIDE = 32 };

/* Product of what was collected so far with one more inner key: later keys are faster. */
static bool multiply(points *p, int64_t first, const points *inner)
{
    points product = {.reader = p->reader, .family = p->family};
    ats_assign assigns[INSIDE];
    for (int64_t i = first; i < p->count; i++)
        for (int64_t j = 0; j < inner->count; j++) {
            const ats_point *a = &p->items[i], *b = &inner->items[j];
            if (product.count > ATS_VARIANTS_MAX || a->count + b->count > INSIDE) return false;
            memcpy(assigns, a->assigns, (size_t)a->count * sizeof *assigns);
            memcpy(assigns + a->count, b->assigns, (size_t)b->count * sizeof *assigns);
            if (!push(&product, assigns, a->count + b->count)) return false;
        }
    p->count = first;
    for (int64_t i = 0; i < product.count; i++)
        if (!push(p, product.items[i].assigns, product.items[i].count)) return false;
    return true;
}

/* `{cosine: [0.5, 0.8], norm_ratio: 1}` behind the group's word. */
static bool inner_points(points *p, const ats_node *map, const ats_assign *word,
                         const char *const *names)
{
    const int64_t first = p->count;
    char section[100];
    snprintf(section, sizeof section, "'%.60s'", word->value.text);
    bool good = push(p, word, 1);
    for (int64_t i = 0; i < map->count; i++) {
        const ats_entry *entry = &map->entries[i];
        bool known = false;
        for (int64_t j = 0; names[j] != NULL; j++) known |= strcmp(names[j], entry->key->text) == 0;
        if (!known) {
            if (names[0] != NULL)
                ats_issue_unknown_key(p->reader, entry->key, section, names);
            else
                ats_issue_at(p->reader->issues, entry->key, "E-unknown-key",
                             "%s takes no parameters; write the word alone", section);
            good = false;
            continue;
        }
        points inner = {.reader = p->reader, .family = p->family};
        const int64_t param = ats_family_param(p->family, entry->key->text);
        const bool read = plain_points(&inner, param, entry->value, NULL, 0);
        good &= read;
        if (good && !multiply(p, first, &inner)) {
            if (p->reader->rc == ATS_OK)
                ats_issue_at(p->reader->issues, map, "E-too-big", "more than 100,000 variants");
            good = false;
        }
    }
    return good;
}

/* One alternative of a group that is written with its parameters: `similar: {...}`. */
static bool keyed_points(points *p, const ats_param_def *group, const ats_entry *entry)
{
    const char *names[INSIDE + 1];
    ats_assign word;
    const int64_t index = ats_family_param(p->family, group->name);
    if (!read_value(p->reader, p->family, index, entry->key, &word)) return false;
    const int64_t n = grouped(p->family, group->name, word.value.text, names, INSIDE);
    if (entry->value->kind == ATS_NODE_MAP) return inner_points(p, entry->value, &word, names);
    int64_t single = n == 1 ? 0 : -1;
    for (int64_t i = 0; i < n; i++)
        if (strcmp(names[i], word.value.text) == 0) single = i;
    if (single >= 0)
        return plain_points(p, ats_family_param(p->family, names[single]), entry->value, &word, 1);
    ats_issue_at(p->reader->issues, entry->value, "E-group",
                 n == 0 ? "%s: '%s' takes no parameters; write the word alone"
                        : "%s: write {%s: {parameter: value}}",
                 group->name, word.value.text);
    return false;
}

static bool group_points(points *p, const ats_param_def *group, const ats_node *node)
{
    const int64_t index = ats_family_param(p->family, group->name);
    if (node->kind == ATS_NODE_SCALAR) return plain_points(p, index, node, NULL, 0);
    bool good = true;
    if (node->count == 0) {
        ats_issue_at(p->reader->issues, node, "E-empty", "%s: nothing stands here", group->name);
        return false;
    }
    for (int64_t i = 0; i < node->count; i++) {
        if (node->kind == ATS_NODE_MAP)
            good &= keyed_points(p, group, &node->entries[i]);
        else if (node->items[i]->kind == ATS_NODE_LIST)
            good =
                read_value(p->reader, p->family, index, node->items[i], &(ats_assign){.param = 0});
        else
            good &= group_points(p, group, node->items[i]);
    }
    return good;
}

static bool mode_points(points *p, const ats_node *node)
{
    const ats_node *const one[] = {node};
    const bool list = node->kind == ATS_NODE_LIST;
    const ats_node *const *items = list ? node->items : one;
    const int64_t count = list ? node->count : 1;
    bool good = true;
    if (count == 0)
        ats_issue_at(p->reader->issues, node, "E-empty",
                     "positions: an empty list leaves no variant");
    for (int64_t i = 0; i < count; i++) {
        const char *word = NULL;
        ats_assign assign = {.param = ATS_POSITIONS};
        if (ats_read_word(p->reader, items[i], "positions", ats_mode_words, &word) &&
            ats_mode_parse(word, &assign.mode))
            good &= push(p, &assign, 1);
        else
            good = false;
    }
    return good && count > 0;
}

bool ats_sweep_axis(ats_reader *reader, const ats_family *family, const ats_entry *entry,
                    ats_axis *out)
{
    points p = {.reader = reader, .family = family};
    const char *key = entry->key->text;
    bool good;
    if (strcmp(key, "positions") == 0) {
        good = mode_points(&p, entry->value);
    } else {
        const int64_t index = ats_family_param(family, key);
        const ats_param_def *def = &family->params[index];
        good = ats_param_is_group(family, def) ? group_points(&p, def, entry->value)
                                               : plain_points(&p, index, entry->value, NULL, 0);
    }
    *out = (ats_axis){.key = key, .node = entry->value, .count = p.count, .points = p.items};
    return good;
}

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "suite/draft.h"

bool ats_filter_read(ats_reader *reader, const ats_node *node, const char *what, ats_filter *out)
{
    if (node->kind != ATS_NODE_MAP || node->count == 0) {
        ats_issue_at(reader->issues, node, "E-kind",
                     "%s: a mapping of clauses is wanted here, for example {count: 8}", what);
        return false;
    }
    ats_clause *clauses = NULL;
    if (!ATS_READ_NEW(reader, node->count, &clauses)) return false;
    bool good = true;
    for (int64_t i = 0; i < node->count; i++) {
        const ats_entry *entry = &node->entries[i];
        clauses[i].key = entry->key->text;
        if (entry->value->kind == ATS_NODE_MAP) {
            ats_issue_at(reader->issues, entry->value, "E-kind",
                         "%s: a clause takes a value or a list; write the inner parameter as a "
                         "key of its own, for example {cosine: 0.8}",
                         entry->key->text);
            good = false;
        } else {
            good &= ats_read_texts(reader, entry->value, entry->key->text, &clauses[i].words);
        }
    }
    *out = (ats_filter){.node = node, .count = node->count, .clauses = clauses};
    return good;
}

static bool same_number(const char *word, double number)
{
    char hint[200];
    double value;
    return ats_parse_real(word, false, &value, hint, sizeof hint) && value == number;
}

static bool is_number(ats_param_type type)
{
    return type == ATS_PARAM_INT || type == ATS_PARAM_REAL;
}

static bool word_matches(const ats_perturbation *perturbation, const ats_variant *variant,
                         const char *key, const char *word)
{
    const ats_family *family = perturbation->family;
    if (strcmp(key, "perturbation") == 0) return strcmp(word, perturbation->name) == 0;
    if (strcmp(key, "kind") == 0) return strcmp(word, family->kind) == 0;
    if (strcmp(key, "arm") == 0)
        return strcmp(word, variant->arm == ATS_ARM_CONTROL ? "control" : "treatment") == 0;
    if (strcmp(key, "positions") == 0) return strcmp(word, ats_mode_name(variant->mode)) == 0;
    if (strcmp(key, "replicate") == 0) return same_number(word, (double)variant->replicate);
    const int64_t index = ats_family_param(family, key);
    if (index < 0 || !variant->params[index].set) return false;
    const ats_param *param = &variant->params[index];
    if (is_number(family->params[index].type)) return same_number(word, param->number);
    return param->text != NULL && strcmp(param->text, word) == 0;
}

bool ats_clause_matches(const ats_perturbation *perturbation, const ats_variant *variant,
                        const ats_clause *clause)
{
    for (int64_t i = 0; i < clause->words.count; i++)
        if (word_matches(perturbation, variant, clause->key, clause->words.items[i])) return true;
    return false;
}

bool ats_gate_matches(const ats_suite *suite, const ats_gate *gate, const ats_variant *variant)
{
    const ats_perturbation *perturbation = &suite->perturbations[variant->perturbation];
    for (int64_t i = 0; i < gate->n_where; i++)
        if (!ats_clause_matches(perturbation, variant, &gate->where[i])) return false;
    return true;
}

/* Names that a clause may use, NULL-terminated, each once. */
typedef struct names {
    int64_t count;
    const char *items[256];
} names;

static void add_name(names *list, const char *name)
{
    for (int64_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], name) == 0) return;
    if (list->count < (int64_t)(sizeof list->items / sizeof *list->items) - 1)
        list->items[list->count++] = name;
    list->items[list->count] = NULL;
}

static void add_params(names *keys, const ats_family *family)
{
    for (int64_t i = 0; i < family->n_params; i++) add_name(keys, family->params[i].name);
}

static void known_keys(const ats_draft *draft, const ats_family *family, names *keys)
{
    const char *const general[] = {"perturbation", "kind", "arm"};
    for (int i = 0; i < 3 && family == NULL; i++) add_name(keys, general[i]);
    add_name(keys, "positions");
    add_name(keys, "replicate");
    if (family != NULL) add_params(keys, family);
    for (int64_t i = 0; i < draft->n_perturbations && family == NULL; i++)
        if (draft->perturbations[i].built.family != NULL)
            add_params(keys, draft->perturbations[i].built.family);
}

/* What the words of a key may be; false: anything, or numbers. */
static bool known_words(const ats_draft *draft, const char *key, names *words)
{
    if (strcmp(key, "arm") == 0) {
        add_name(words, "treatment");
        add_name(words, "control");
    } else if (strcmp(key, "positions") == 0) {
        for (int64_t i = 0; ats_mode_words[i] != NULL; i++) add_name(words, ats_mode_words[i]);
        add_name(words, "none");
    } else {
        const bool name = strcmp(key, "perturbation") == 0, kind = strcmp(key, "kind") == 0;
        for (int64_t i = 0; i < draft->n_perturbations; i++) {
            const ats_perturbation *built = &draft->perturbations[i].built;
            if (name && built->name != NULL) add_name(words, built->name);
            if (kind && built->family != NULL) add_name(words, built->family->kind);
        }
        return name || kind;
    }
    return true;
}

/* Every family in use that has the parameter takes numbers for it. */
static bool wants_number(const ats_draft *draft, const ats_family *family, const char *key)
{
    int64_t numbers = 0, words = 0;
    for (int64_t i = 0; i < draft->n_perturbations; i++) {
        const ats_family *used = family != NULL ? family : draft->perturbations[i].built.family;
        const int64_t index = used != NULL ? ats_family_param(used, key) : -1;
        if (index >= 0) *(is_number(used->params[index].type) ? &numbers : &words) += 1;
    }
    return strcmp(key, "replicate") == 0 || (numbers > 0 && words == 0);
}

static bool check_word(ats_reader *reader, const ats_draft *draft, const ats_family *family,
                       const char *key, const ats_node *node)
{
    names words = {.count = 0};
    const char *word = NULL;
    double number;
    if (known_words(draft, key, &words))
        return ats_read_word(reader, node, key, words.items, &word);
    if (!wants_number(draft, family, key)) return true;
    return ats_read_real(reader, node, key, (double)NAN, (double)NAN, false, &number);
}

bool ats_filter_check(ats_reader *reader, const ats_draft *draft, const ats_filter *filter,
                      const ats_family *family, const char *what)
{
    names keys = {.count = 0};
    known_keys(draft, family, &keys);
    bool good = true;
    for (int64_t i = 0; i < filter->count; i++) {
        const ats_entry *entry = &filter->node->entries[i];
        const char *key = entry->key->text;
        bool known = false;
        for (int64_t j = 0; j < keys.count; j++) known |= strcmp(keys.items[j], key) == 0;
        if (!known) {
            ats_issue_unknown_key(reader, entry->key, what, keys.items);
            good = false;
            continue;
        }
        const ats_node *value = entry->value;
        if (value->kind == ATS_NODE_SCALAR) good &= check_word(reader, draft, family, key, value);
        for (int64_t j = 0; value->kind == ATS_NODE_LIST && j < value->count; j++)
            good &= check_word(reader, draft, family, key, value->items[j]);
    }
    return good;
}

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite/draft.h"

/* Variants of the whole suite as they are made. */
typedef struct maker {
    ats_reader *reader;
    ats_draft *draft;
    int64_t count, room;
    ats_variant *items;
    /* Of the perturbation at hand. */
    const ats_perturbation *perturbation;
    int64_t index;
    const ats_node *node; /* where messages point */
    const ats_filter *exclude;
    int64_t n_exclude;
    int64_t *excluded;         /* [n_exclude] variants that each entry took away */
    char told[ATS_ISSUE_TEXT]; /* last refusal: the same one is told once */
    bool full;
} maker;

static ats_code push(maker *m, const ats_variant *variant)
{
    ats_code rc = ATS_OK;
    if (m->count == m->room) {
        const int64_t room = m->room > 0 ? 2 * m->room : 64;
        ats_variant *items = NULL;
        ATS_TRY(ATS_NEW(m->reader->arena, room, &items, m->reader->err));
        if (m->count > 0) memcpy(items, m->items, (size_t)m->count * sizeof *items);
        m->items = items;
        m->room = room;
    }
    m->items[m->count++] = *variant;
out:
    return rc;
}

static bool has_default(const ats_param_def *def)
{
    if (def->required) return false;
    const bool number = def->type == ATS_PARAM_INT || def->type == ATS_PARAM_REAL;
    return number ? !isnan(def->number) : def->text != NULL;
}

static bool word_chosen(const ats_family *family, const ats_param *params, const ats_param_def *def)
{
    const int64_t group = ats_family_param(family, def->group);
    return group >= 0 && params[group].set && params[group].text != NULL &&
           strcmp(params[group].text, def->group_word) == 0;
}

/* Defaults where nothing was given. A grouped parameter applies under its own word alone. */
static void apply_defaults(const ats_family *family, const bool *given, ats_param *params)
{
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < family->n_params; i++) {
            const ats_param_def *def = &family->params[i];
            if (given[i] || (def->group != NULL) != (pass == 1) || !has_default(def)) continue;
            if (def->group != NULL && !word_chosen(family, params, def)) continue;
            params[i] = (ats_param){.set = true, .number = def->number, .text = def->text};
        }
}

static void refuse(maker *m, const char *code, const char *text)
{
    if (strcmp(m->told, text) == 0) return;
    snprintf(m->told, sizeof m->told, "%s", text);
    ats_issue_at(m->reader->issues, m->node, code, "%s: %s", m->perturbation->name, text);
}

/* Required parameters and the family's own check. */
static bool is_sound(maker *m, const ats_variant *variant)
{
    const ats_family *family = m->perturbation->family;
    char text[ATS_ISSUE_TEXT];
    bool good = true;
    for (int64_t i = 0; i < family->n_params; i++) {
        const ats_param_def *def = &family->params[i];
        if (!def->required || variant->params[i].set) continue;
        if (def->group != NULL && !word_chosen(family, variant->params, def)) continue;
        snprintf(text, sizeof text, "kind %s lacks the key '%s': %s", family->kind, def->name,
                 def->doc);
        refuse(m, "E-missing-key", text);
        good = false;
    }
    ats_err err = {.code = ATS_OK};
    if (!good || family->check == NULL) return good;
    if (family->check(variant->params, variant->mode, &err) == ATS_OK) return true;
    snprintf(text, sizeof text, "%.400s", err.text);
    refuse(m, "E-parameters", text);
    return false;
}

static bool is_excluded(maker *m, const ats_variant *variant)
{
    bool excluded = false;
    for (int64_t i = 0; i < m->n_exclude; i++) {
        const ats_filter *filter = &m->exclude[i];
        bool all = true;
        for (int64_t j = 0; j < filter->count; j++)
            all &= ats_clause_matches(m->perturbation, variant, &filter->clauses[j]);
        m->excluded[i] += all;
        excluded |= all;
    }
    return excluded;
}

/* One cell: its replicates, each followed by its control twin. */
static ats_code emit(maker *m, ats_position_mode mode, const ats_param *params, const bool *given)
{
    ats_code rc = ATS_OK;
    bool checked = false;
    for (int64_t replicate = 0; replicate < m->perturbation->replicates; replicate++) {
        ats_variant variant = {.perturbation = m->index,
                               .mode = mode,
                               .arm = ATS_ARM_TREATMENT,
                               .replicate = replicate,
                               .params = params};
        if (is_excluded(m, &variant)) continue;
        if (!checked && !is_sound(m, &variant)) goto out;
        checked = true;
        if (m->count + 2 > ATS_VARIANTS_MAX) {
            m->full = true;
            goto out;
        }
        ATS_TRY(ats_variant_id(m->reader, m->perturbation, &variant, given, &variant.id));
        variant.base_id = variant.id;
        ATS_TRY(push(m, &variant));
        if (!m->perturbation->control) continue;
        variant.arm = ATS_ARM_CONTROL;
        ATS_TRY(ats_arena_printf(m->reader->arena, &variant.id, m->reader->err, "%s~control",
                                 variant.base_id));
        ATS_TRY(push(m, &variant));
    }
out:
    return rc;
}

static int64_t perturbation_named(const maker *m, const char *name)
{
    for (int64_t i = 0; i < m->draft->n_perturbations; i++)
        if (strcmp(m->draft->perturbations[i].built.name, name) == 0) return i;
    return -1;
}

/* The perturbation that a part names; -1 after a refusal. */
static int64_t part_of(maker *m, const ats_param *param)
{
    char text[ATS_ISSUE_TEXT];
    const int64_t at = perturbation_named(m, param->text);
    if (at < 0)
        snprintf(text, sizeof text, "combine: no perturbation of this suite is called '%.100s'",
                 param->text);
    else if (m->draft->perturbations[at].built.family == m->perturbation->family)
        snprintf(text, sizeof text, "combine: '%.100s' is a combination itself", param->text);
    else
        return at;
    refuse(m, "E-combine", text);
    return -1;
}

static bool go_together(const maker *m, const ats_variant *a, const ats_variant *b)
{
    const int64_t one = m->draft->perturbations[a->perturbation].built.replicates;
    const int64_t other = m->draft->perturbations[b->perturbation].built.replicates;
    return one == 1 || other == 1 || a->replicate == b->replicate;
}

/* A combination's id, with what has a meaning in ids taken out of its parts' ids. */
static ats_code pair_id(maker *m, const ats_variant *a, const ats_variant *b, const char **out)
{
    char *text = NULL;
    const size_t room = strlen(m->perturbation->name) + strlen(a->id) + strlen(b->id) + 8;
    ats_code rc = ATS_NEW(m->reader->arena, room, &text, m->reader->err);
    if (rc != ATS_OK) return rc;
    const int head = snprintf(text, room, "%s/", m->perturbation->name);
    snprintf(text + head, room - (size_t)head, "%s+%s", a->id, b->id);
    for (char *c = text + head; *c != '\0'; c++)
        if (strchr("/#~,=", *c) != NULL) *c = *c == '#' ? '.' : ':';
    strcat(text, "#0");
    *out = text;
    return ATS_OK;
}

/* Treatment variants of a perturbation, which are there already. */
static ats_code treatments(maker *m, int64_t perturbation, int64_t **out, int64_t *count)
{
    int64_t *list = NULL, n = 0;
    ats_code rc = ATS_NEW(m->reader->arena, m->count, &list, m->reader->err);
    if (rc != ATS_OK) return rc;
    for (int64_t v = 0; v < m->count; v++)
        if (m->items[v].perturbation == perturbation && m->items[v].arm == ATS_ARM_TREATMENT)
            list[n++] = v;
    *out = list;
    *count = n;
    return ATS_OK;
}

/* Every variant of the first with every one of the second. */
static ats_code emit_pairs(maker *m, const ats_param *params)
{
    const int64_t first = part_of(m, &params[0]), second = part_of(m, &params[1]);
    int64_t *a = NULL, *b = NULL, n_a = 0, n_b = 0;
    ats_code rc = ATS_OK;
    if (first < 0 || second < 0) return ATS_OK;
    ATS_TRY(treatments(m, first, &a, &n_a));
    ATS_TRY(treatments(m, second, &b, &n_b));
    for (int64_t i = 0; i < n_a; i++)
        for (int64_t j = 0; j < n_b; j++) {
            if (!go_together(m, &m->items[a[i]], &m->items[b[j]])) continue;
            if (m->count + 1 > ATS_VARIANTS_MAX) {
                m->full = true;
                return ATS_OK;
            }
            ats_variant variant = {
                .perturbation = m->index, .params = params, .n_parts = 2, .part = {a[i], b[j]}};
            ATS_TRY(pair_id(m, &m->items[a[i]], &m->items[b[j]], &variant.id));
            variant.base_id = variant.id;
            ATS_TRY(push(m, &variant));
        }
out:
    return rc;
}

static bool is_combination(const ats_perturbation *perturbation)
{
    return strcmp(perturbation->family->kind, "combine") == 0;
}

static ats_code emit_cell(maker *m, const ats_grid *grid, const int64_t *at)
{
    ats_code rc;
    const ats_family *family = m->perturbation->family;
    ats_position_mode mode = ATS_MODE_NONE;
    ats_param *params = NULL;
    bool *given = NULL;
    ATS_TRY(ATS_NEW0(m->reader->arena, family->n_params, &params, m->reader->err));
    ATS_TRY(ATS_NEW0(m->reader->arena, family->n_params, &given, m->reader->err));
    for (int64_t i = 0; i < grid->count; i++) {
        const ats_point *point = &grid->axes[i].points[at[i]];
        for (int64_t j = 0; j < point->count; j++) {
            const ats_assign *assign = &point->assigns[j];
            if (assign->param == ATS_POSITIONS) {
                mode = assign->mode;
                continue;
            }
            params[assign->param] = assign->value;
            given[assign->param] = true;
        }
    }
    apply_defaults(family, given, params);
    if (is_combination(m->perturbation))
        ATS_TRY(emit_pairs(m, params));
    else
        ATS_TRY(emit(m, mode, params, given));
out:
    return rc;
}

/* All cells of a grid, the first axis slowest. */
static ats_code emit_grid(maker *m, const ats_grid *grid)
{
    ats_code rc;
    int64_t *at = NULL;
    ATS_TRY(ATS_NEW0(m->reader->arena, grid->count, &at, m->reader->err));
    int64_t cells = 1;
    for (int64_t i = 0; i < grid->count; i++)
        if (__builtin_mul_overflow(cells, grid->axes[i].count, &cells)) cells = INT64_MAX;
    if (cells > ATS_VARIANTS_MAX) m->full = true;
    for (int64_t cell = 0; cell < cells && !m->full; cell++) {
        ATS_TRY(emit_cell(m, grid, at));
        for (int64_t i = grid->count - 1; i >= 0; i--) {
            if (++at[i] < grid->axes[i].count) break;
            at[i] = 0;
        }
    }
out:
    return rc;
}

static void refuse_idle_excludes(maker *m)
{
    for (int64_t i = 0; i < m->n_exclude; i++)
        if (m->excluded[i] == 0)
            ats_issue_at(m->reader->issues, m->exclude[i].node, "E-no-match",
                         "this exclude entry meets no cell of '%s'; correct it or take it away",
                         m->perturbation->name);
}

static ats_code expand_one(maker *m, const ats_perturbation_draft *draft)
{
    ats_code rc = ATS_OK;
    const int64_t issues = m->reader->issues->count, before = m->count;
    m->told[0] = '\0';
    m->node = draft->node;
    m->exclude = draft->exclude;
    m->n_exclude = draft->n_exclude;
    bool good = true;
    for (int64_t i = 0; i < draft->n_exclude; i++)
        good &= ats_filter_check(m->reader, m->draft, &draft->exclude[i], draft->built.family,
                                 "exclude");
    if (!good) goto out;
    ATS_TRY(ATS_NEW0(m->reader->arena, m->n_exclude, &m->excluded, m->reader->err));
    ATS_TRY(emit_grid(m, &draft->grid));
    if (!m->full && issues == m->reader->issues->count) refuse_idle_excludes(m);
    m->n_exclude = 0;
    for (int64_t i = 0; i < draft->n_include && !m->full; i++) {
        m->node = draft->include_node->items[i];
        ATS_TRY(emit_grid(m, &draft->include[i]));
    }
    if (m->full)
        ats_issue_at(m->reader->issues, draft->node, "E-too-big",
                     "more than 100,000 variants, counted up to '%s'; sweep less",
                     m->perturbation->name);
    else if (m->count == before && issues == m->reader->issues->count)
        ats_issue_at(m->reader->issues, draft->node, "E-no-variant",
                     "'exclude' takes every variant of '%s' away", m->perturbation->name);
out:
    return rc;
}

static int by_id(const void *a, const void *b)
{
    const ats_variant *x = *(const ats_variant *const *)a, *y = *(const ats_variant *const *)b;
    const int order = strcmp(x->id, y->id);
    return order != 0 ? order : (x > y) - (x < y);
}

static ats_code refuse_same_ids(maker *m)
{
    ats_code rc;
    const ats_variant **sorted = NULL;
    int64_t last = -1;
    ATS_TRY(ATS_NEW(m->reader->arena, m->count, &sorted, m->reader->err));
    for (int64_t i = 0; i < m->count; i++) sorted[i] = &m->items[i];
    qsort(sorted, (size_t)m->count, sizeof *sorted, by_id);
    for (int64_t i = 1; i < m->count; i++) {
        const ats_variant *variant = sorted[i];
        if (strcmp(variant->id, sorted[i - 1]->id) != 0 || variant->perturbation == last) continue;
        last = variant->perturbation;
        ats_issue_at(m->reader->issues, m->draft->perturbations[last].node, "E-duplicate-variant",
                     "variant '%.200s' is there twice; a list repeats a value, or 'include' adds "
                     "what the grid has",
                     variant->id);
    }
out:
    return rc;
}

ats_code ats_suite_expand(ats_reader *reader, ats_draft *draft)
{
    ats_code rc;
    maker m = {.reader = reader, .draft = draft};
    ats_perturbation *built = NULL;
    ATS_TRY(ATS_NEW(reader->arena, draft->n_perturbations, &built, reader->err));
    for (int64_t i = 0; i < draft->n_perturbations; i++) built[i] = draft->perturbations[i].built;
    for (int pass = 0; pass < 2; pass++) /* combinations when their parts are there */
        for (int64_t i = 0; i < draft->n_perturbations && !m.full; i++) {
            m.perturbation = &built[i];
            m.index = i;
            if (is_combination(m.perturbation) == (pass == 1))
                ATS_TRY(expand_one(&m, &draft->perturbations[i]));
        }
    if (!m.full) ATS_TRY(refuse_same_ids(&m));
    draft->suite.n_perturbations = draft->n_perturbations;
    draft->suite.perturbations = built;
    draft->suite.n_variants = m.count;
    draft->suite.variants = m.items;
out:
    return rc;
}

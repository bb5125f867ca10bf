#include <stdlib.h>
#include <string.h>

#include "engine/curve.h"

typedef struct grouping {
    const ats_suite *suite;
    const int64_t *dose_param;
} grouping;

/* A variant with the hash of what its curve has in common. */
typedef struct item {
    uint64_t hash;
    int64_t variant;
} item;

static bool same_param(const ats_param *a, const ats_param *b)
{
    if (a->set != b->set) return false;
    if (!a->set) return true;
    if ((a->text == NULL) != (b->text == NULL)) return false;
    if (a->text != NULL) return strcmp(a->text, b->text) == 0;
    return memcmp(&a->number, &b->number, sizeof a->number) == 0;
}

static const ats_family *family_of(const ats_suite *suite, const ats_variant *v)
{
    return suite->perturbations[v->perturbation].family;
}

static bool same_curve(const grouping *g, const ats_variant *a, const ats_variant *b)
{
    if (a->perturbation != b->perturbation || a->mode != b->mode) return false;
    const int64_t dose = g->dose_param[a->perturbation];
    for (int64_t i = 0; i < family_of(g->suite, a)->n_params; i++)
        if (i != dose && !same_param(&a->params[i], &b->params[i])) return false;
    return true;
}

/* FNV-1a; equal hashes are compared in full. */
static void mix(uint64_t *hash, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < n; i++) *hash = (*hash ^ at[i]) * 1099511628211u;
}

static uint64_t hash_of(const grouping *g, const ats_variant *v)
{
    uint64_t hash = 14695981039346656037u;
    mix(&hash, &v->perturbation, sizeof v->perturbation);
    mix(&hash, &v->mode, sizeof v->mode);
    for (int64_t i = 0; i < family_of(g->suite, v)->n_params; i++) {
        const ats_param *p = &v->params[i];
        if (i == g->dose_param[v->perturbation] || !p->set) continue;
        mix(&hash, &i, sizeof i);
        if (p->text != NULL)
            mix(&hash, p->text, strlen(p->text));
        else
            mix(&hash, &p->number, sizeof p->number);
    }
    return hash;
}

static int by_hash(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return (x->variant > y->variant) - (x->variant < y->variant);
}

/* Does the parameter take two values in the perturbation's treatment arms? */
static bool swept(const ats_suite *suite, int64_t perturbation, int64_t param)
{
    const ats_param *first = NULL;
    for (int64_t v = 0; v < suite->n_variants; v++) {
        if (suite->variants[v].perturbation != perturbation) continue;
        const ats_param *p = &suite->variants[v].params[param];
        if (!p->set || p->text != NULL) continue;
        if (first == NULL) first = p;
        if (!same_param(first, p)) return true;
    }
    return false;
}

/* The family's dose; when it is fixed, the first of its other doses that the suite sweeps. */
static int64_t dose_of(const ats_suite *suite, int64_t perturbation)
{
    const ats_family *family = suite->perturbations[perturbation].family;
    if (family->dose == NULL) return -1;
    const int64_t standard = ats_family_param(family, family->dose);
    if (family->doses == NULL || swept(suite, perturbation, standard)) return standard;
    for (const char *const *name = family->doses; *name != NULL; name++) {
        const int64_t param = ats_family_param(family, *name);
        if (swept(suite, perturbation, param)) return param;
    }
    return standard;
}

/* The id without "<dose>=..." and "#replicate". */
static ats_code curve_id(ats_arena *arena, const char *id, const char *dose, const char **out,
                         ats_err *err)
{
    char *text = NULL;
    const char *hash = strrchr(id, '#');
    const size_t length = hash != NULL ? (size_t)(hash - id) : strlen(id), width = strlen(dose);
    ats_code rc = ATS_NEW(arena, length + 1, &text, err);
    if (rc != ATS_OK) return rc;
    memcpy(text, id, length);
    text[length] = '\0';
    for (char *at = text; (at = strstr(at, dose)) != NULL; at++) {
        if (at == text || (at[-1] != '/' && at[-1] != ',') || at[width] != '=') continue;
        const char *end = strchr(at, ',');
        if (end != NULL)
            memmove(at, end + 1, strlen(end + 1) + 1);
        else
            at[-1] = '\0';
        break;
    }
    *out = text;
    return ATS_OK;
}

static bool is_depth(const char *name)
{
    return strcmp(name, "depth") == 0 || strcmp(name, "to") == 0;
}

static ats_code make_group(ats_arena *arena, const grouping *g, const item *items, int64_t n,
                           ats_curve_group *out, ats_err *err)
{
    const ats_variant *first = &g->suite->variants[items[0].variant];
    int64_t *variants = NULL;
    ats_code rc;
    *out = (ats_curve_group){
        .perturbation = first->perturbation,
        .mode = first->mode,
        .dose_name = family_of(g->suite, first)->params[g->dose_param[first->perturbation]].name,
        .n_variants = n};
    out->depth = is_depth(out->dose_name);
    ATS_TRY(ATS_NEW(arena, n, &variants, err));
    for (int64_t i = 0; i < n; i++) variants[i] = items[i].variant;
    out->variants = variants;
    rc = curve_id(arena, first->id, out->dose_name, &out->id, err);
out:
    return rc;
}

static int by_first_variant(const void *a, const void *b)
{
    const ats_curve_group *x = a, *y = b;
    return (x->variants[0] > y->variants[0]) - (x->variants[0] < y->variants[0]);
}

/* Control twins follow their treatment and share its base_id. */
static void find_twins(const ats_suite *suite, int64_t *twin)
{
    for (int64_t v = 0; v < suite->n_variants; v++) twin[v] = -1;
    for (int64_t v = 0; v + 1 < suite->n_variants; v++) {
        const ats_variant *a = &suite->variants[v], *b = &suite->variants[v + 1];
        if (a->arm == b->arm || a->perturbation != b->perturbation ||
            strcmp(a->base_id, b->base_id) != 0)
            continue;
        twin[v] = v + 1;
        twin[v + 1] = v;
    }
}

static int64_t list_items(const grouping *g, item *items)
{
    int64_t n = 0;
    for (int64_t v = 0; v < g->suite->n_variants; v++) {
        const ats_variant *variant = &g->suite->variants[v];
        const int64_t dose = g->dose_param[variant->perturbation];
        if (dose < 0 || variant->arm != ATS_ARM_TREATMENT || !variant->params[dose].set) continue;
        items[n++] = (item){hash_of(g, variant), v};
    }
    qsort(items, (size_t)n, sizeof *items, by_hash);
    return n;
}

/* Rows that compete give a strength at one dose; anything else needs two for a curve. */
static bool is_curve(const grouping *g, const item *items, int64_t n)
{
    const ats_variant *first = &g->suite->variants[items[0].variant];
    const int64_t dose = g->dose_param[first->perturbation];
    if (family_of(g->suite, first)->has_positions) return true;
    for (int64_t i = 1; i < n; i++)
        if (!same_param(&first->params[dose], &g->suite->variants[items[i].variant].params[dose]))
            return true;
    return false;
}

ats_code ats_curve_groups_make(ats_arena *arena, const ats_suite *suite, ats_curve_groups *out,
                               ats_err *err)
{
    ats_curve_groups made = {.count = 0};
    ats_curve_group *groups = NULL;
    int64_t *of_variant = NULL, *twin = NULL, *dose_param = NULL;
    item *items = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, suite->n_variants, &of_variant, err));
    ATS_TRY(ATS_NEW(arena, suite->n_variants, &twin, err));
    ATS_TRY(ATS_NEW(arena, suite->n_variants, &items, err));
    ATS_TRY(ATS_NEW(arena, suite->n_variants, &groups, err));
    ATS_TRY(ATS_NEW(arena, suite->n_perturbations, &dose_param, err));
    for (int64_t p = 0; p < suite->n_perturbations; p++) dose_param[p] = dose_of(suite, p);
    find_twins(suite, twin);
    const grouping g = {suite, dose_param};
    const int64_t n = list_items(&g, items);
    for (int64_t i = 0, stop; i < n; i = stop) {
        const ats_variant *first = &suite->variants[items[i].variant];
        for (stop = i + 1; stop < n && items[stop].hash == items[i].hash &&
                           same_curve(&g, first, &suite->variants[items[stop].variant]);)
            stop++;
        if (is_curve(&g, items + i, stop - i))
            ATS_TRY(make_group(arena, &g, items + i, stop - i, &groups[made.count++], err));
    }
    if (made.count > 0) qsort(groups, (size_t)made.count, sizeof *groups, by_first_variant);
    for (int64_t v = 0; v < suite->n_variants; v++) of_variant[v] = -1;
    for (int64_t c = 0; c < made.count; c++)
        for (int64_t i = 0; i < groups[c].n_variants; i++) {
            const int64_t v = groups[c].variants[i];
            of_variant[v] = c;
            if (twin[v] >= 0) of_variant[twin[v]] = c;
        }
    made.items = groups;
    made.of_variant = of_variant;
    made.twin = twin;
    made.dose_param = dose_param;
    *out = made;
out:
    return rc;
}

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/run_private.h"
#include "engine/sample_words.h"
#include "engine/version.h"

enum { MAX_COORDINATES = 160 };

typedef struct maker {
    const ats_plan *plan;
    ats_arena *arena;
    ats_coordinates *out;
    ats_err *err;
} maker;

static const ats_variant *variant_of_case(const ats_plan *plan, int64_t c)
{
    return &plan->suite->variants[c % plan->suite->n_variants];
}

static ats_coordinate *next(maker *m, const char *name, const char *axis, const char *unit,
                            const char *long_name)
{
    ATS_ASSERT(m->out->count < MAX_COORDINATES);
    ats_coordinate *c = &m->out->items[m->out->count++];
    *c = (ats_coordinate){.name = name, .axis = axis, .unit = unit, .long_name = long_name};
    return c;
}

static ats_code add_text(maker *m, const char *name, const char *axis, int64_t n,
                         const char *long_name, const char ***values)
{
    ats_coordinate *c = next(m, name, axis, NULL, long_name);
    ats_code rc = ATS_NEW0(m->arena, n, values, m->err);
    c->type = ATS_TYPE_TEXT;
    c->text = *values;
    for (int64_t i = 0; rc == ATS_OK && i < n; i++) (*values)[i] = "";
    return rc;
}

static ats_code add_i64(maker *m, const char *name, const char *axis, int64_t n, const char *unit,
                        const char *long_name, int64_t **values)
{
    ats_coordinate *c = next(m, name, axis, unit, long_name);
    ats_code rc = ATS_NEW0(m->arena, n, values, m->err);
    c->type = ATS_TYPE_I64;
    c->i64 = *values;
    return rc;
}

static ats_code add_f64(maker *m, const char *name, const char *axis, int64_t n, const char *unit,
                        const char *long_name, double **values)
{
    ats_coordinate *c = next(m, name, axis, unit, long_name);
    ats_code rc = ATS_NEW(m->arena, n, values, m->err);
    c->type = ATS_TYPE_F64;
    c->f64 = *values;
    for (int64_t i = 0; rc == ATS_OK && i < n; i++) (*values)[i] = NAN;
    return rc;
}

/* Case of the same sample whose variant is the other arm of the same cell; -1: none. */
static int64_t other_arm(const ats_suite *suite, int64_t v)
{
    for (int64_t step = -1; step <= 1; step += 2) {
        const int64_t at = v + step;
        if (at < 0 || at >= suite->n_variants) continue;
        const ats_variant *a = &suite->variants[v], *b = &suite->variants[at];
        if (a->arm != b->arm && a->perturbation == b->perturbation &&
            strcmp(a->base_id, b->base_id) == 0)
            return at;
    }
    return -1;
}

static ats_code add_case_texts(maker *m)
{
    const ats_suite *suite = m->plan->suite;
    const int64_t n = m->plan->n_cases;
    const char **id, **name, **kind, **arm, **mode;
    ats_code rc;
    ATS_TRY(add_text(m, "variant", "case", n, "variant id, unique in the suite", &id));
    ATS_TRY(add_text(m, "perturbation", "case", n, "name of the perturbation in the suite", &name));
    ATS_TRY(add_text(m, "kind", "case", n, "family of the perturbation", &kind));
    ATS_TRY(add_text(m, "arm", "case", n, "treatment or control", &arm));
    ATS_TRY(add_text(m, "positions", "case", n, "what happens to positions", &mode));
    for (int64_t c = 0; c < n; c++) {
        const ats_variant *v = variant_of_case(m->plan, c);
        const ats_perturbation *p = &suite->perturbations[v->perturbation];
        id[c] = v->id;
        name[c] = p->name;
        kind[c] = p->family->kind;
        arm[c] = v->arm == ATS_ARM_CONTROL ? "control" : "treatment";
        if (v->mode != ATS_MODE_NONE) mode[c] = ats_mode_name(v->mode);
    }
out:
    return rc;
}

static ats_code add_case_numbers(maker *m)
{
    const ats_suite *suite = m->plan->suite;
    const int64_t n = m->plan->n_cases, n_variants = suite->n_variants;
    int64_t *sample, *replicate, *pair, *seed;
    ats_code rc;
    ATS_TRY(add_i64(m, "sample_index", "case", n, "1", "index on the sample axis", &sample));
    m->out->items[m->out->count - 1].index_of = "sample";
    ATS_TRY(add_i64(m, "replicate", "case", n, "1", "replicate of the random choices", &replicate));
    ATS_TRY(add_i64(m, "pair_case", "case", n, "1",
                    "case of the other arm (treatment or control) of the same cell, -1: none",
                    &pair));
    m->out->items[m->out->count - 1].index_of = "case";
    ATS_TRY(add_i64(m, "seed", "case", n, "1", "seed of the suite", &seed));
    for (int64_t c = 0; c < n; c++) {
        const int64_t other = other_arm(suite, c % n_variants);
        sample[c] = c / n_variants;
        replicate[c] = variant_of_case(m->plan, c)->replicate;
        pair[c] = other < 0 ? -1 : c - c % n_variants + other;
        seed[c] = (int64_t)suite->seed;
    }
out:
    return rc;
}

static bool is_number(const ats_param_def *def)
{
    return def->type == ATS_PARAM_INT || def->type == ATS_PARAM_REAL;
}

static bool reserved(const maker *m, const char *name)
{
    static const char *const axes[] = {"case",    "sample", "layer", "head",     "probe", "span",
                                       "part",    "k",      "curve", "readout",  "dose",  "status",
                                       "message", "suite",  "rows",  "undefined"};
    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++)
        if (strcmp(axes[i], name) == 0) return true;
    for (int64_t i = 0; i < m->out->count; i++)
        if (strcmp(m->out->items[i].name, name) == 0) return true;
    int64_t n = 0;
    const ats_metric *const *metrics = ats_metrics(&n);
    for (int64_t i = 0; i < n; i++)
        if (strcmp(metrics[i]->name, name) == 0) return true;
    return false;
}

typedef struct param_column {
    const ats_param_def *def;
    ats_coordinate *coordinate;
    double *numbers;
    const char **texts;
} param_column;

/* The column of a parameter: one for all families that give the name the same type. A name that
 * is taken by an axis, a metric or another type gets the prefix param_. */
static ats_code column_of(maker *m, const ats_param_def *def, param_column *columns, int64_t *count,
                          param_column **out)
{
    for (int64_t i = 0; i < *count; i++)
        if (strcmp(columns[i].def->name, def->name) == 0 &&
            is_number(columns[i].def) == is_number(def)) {
            *out = &columns[i];
            return ATS_OK;
        }
    const char *name = def->name;
    ats_code rc = ATS_OK;
    if (reserved(m, name))
        ATS_TRY(ats_arena_printf(m->arena, &name, m->err, "param_%s", def->name));
    if (reserved(m, name)) ATS_TRY(ats_arena_printf(m->arena, &name, m->err, "%s_word", name));
    param_column *column = &columns[(*count)++];
    *column = (param_column){.def = def};
    if (is_number(def))
        ATS_TRY(add_f64(m, name, "case", m->plan->n_cases, def->unit != NULL ? def->unit : "1",
                        def->doc, &column->numbers));
    else
        ATS_TRY(add_text(m, name, "case", m->plan->n_cases, def->doc, &column->texts));
    *out = column;
out:
    return rc;
}

static ats_code add_params(maker *m)
{
    const ats_suite *suite = m->plan->suite;
    param_column *columns = NULL;
    int64_t count = 0;
    ats_code rc;
    ATS_TRY(ATS_NEW0(m->arena, MAX_COORDINATES, &columns, m->err));
    for (int64_t v = 0; v < suite->n_variants; v++) {
        const ats_variant *variant = &suite->variants[v];
        const ats_family *family = suite->perturbations[variant->perturbation].family;
        for (int64_t p = 0; p < family->n_params; p++) {
            const ats_param *param = &variant->params[p];
            param_column *column = NULL;
            if (!param->set) continue;
            ATS_TRY(column_of(m, &family->params[p], columns, &count, &column));
            for (int64_t s = 0; s < m->plan->selection.n_samples; s++) {
                const int64_t c = s * suite->n_variants + v;
                if (column->numbers != NULL)
                    column->numbers[c] = param->number;
                else if (param->text != NULL)
                    column->texts[c] = param->text;
            }
        }
    }
out:
    return rc;
}

static ats_code probe_list(maker *m, const ats_chosen *chosen, const char **out)
{
    char *text = NULL;
    const int64_t room = 21 * chosen->n_probes + 1;
    ats_code rc = ATS_NEW(m->arena, room, &text, m->err);
    if (rc != ATS_OK) return rc;
    int64_t used = 0;
    for (int64_t p = 0; p < chosen->n_probes; p++)
        used += snprintf(text + used, (size_t)(room - used), "%s%lld", p > 0 ? "," : "",
                         (long long)chosen->probes[p]);
    *out = text;
    return ATS_OK;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static ats_code add_samples(maker *m)
{
    const ats_selection *selection = &m->plan->selection;
    const int64_t n = selection->n_samples;
    const char **id, **scale, **cluster, **variant, **file, **probes, **tokens, **spans, **rows;
    int64_t *keys;
    ats_code rc;
    ATS_TRY(add_text(m, "sample", "sample", n, "id of the captured sample", &scale));
    ATS_TRY(add_text(m, "sample_id", "sample", n, "id of the sample in its capture", &id));
    ATS_TRY(add_text(m, "sample_cluster", "sample", n, "document the sample comes from", &cluster));
    ATS_TRY(add_text(m, "sample_variant_of", "sample", n,
                     "id of the sample whose text was really edited, or empty", &variant));
    ATS_TRY(add_text(m, "sample_capture", "sample", n, "file name of the capture", &file));
    ATS_TRY(add_text(m, "sample_probes", "sample", n,
                     "probe indices of the sample in the order of the probe axis", &probes));
    ATS_TRY(add_text(m, "sample_tokens", "sample", n, "XXH3-128 of the token ids", &tokens));
    ATS_TRY(add_text(m, "sample_spans", "sample", n, "spans: name(role) start-stop", &spans));
    ATS_TRY(add_text(m, "sample_probe_rows", "sample", n, "chosen probes: key index@position(role)",
                     &rows));
    ATS_TRY(add_i64(m, "sample_keys", "sample", n, "rows", "keys of the sample", &keys));
    for (int64_t s = 0; s < n; s++) {
        const ats_chosen *chosen = &selection->samples[s];
        id[s] = scale[s] = chosen->sample->id;
        if (chosen->sample->cluster != NULL) cluster[s] = chosen->sample->cluster;
        if (chosen->sample->variant_of != NULL) variant[s] = chosen->sample->variant_of;
        file[s] = base_name(m->plan->captures[chosen->capture]->path);
        ATS_TRY(probe_list(m, chosen, &probes[s]));
        ATS_TRY(ats_sample_tokens(m->arena, chosen->sample, &tokens[s], m->err));
        ATS_TRY(ats_sample_spans(m->arena, chosen->sample, &spans[s], m->err));
        ATS_TRY(ats_sample_probes(m->arena, chosen, &rows[s], m->err));
        keys[s] = chosen->sample->n_keys;
    }
out:
    return rc;
}

static ats_code add_model_axes(maker *m)
{
    const ats_selection *selection = &m->plan->selection;
    const ats_span_axis *axis = &m->plan->axis;
    int64_t *layers, *heads, *layer_scale, *head_scale;
    const char **roles;
    double *scale;
    ats_code rc;
    ATS_TRY(add_i64(m, "layer", "layer", selection->n_layers, "1", "layer number in the model",
                    &layer_scale));
    ATS_TRY(add_i64(m, "head", "head", selection->n_heads, "1", "query head number", &head_scale));
    ATS_TRY(add_i64(m, "layer_index", "layer", selection->n_layers, "1",
                    "layer number in the model", &layers));
    ATS_TRY(add_i64(m, "head_index", "head", selection->n_heads, "1", "query head number", &heads));
    ATS_TRY(add_f64(m, "softmax_scale", "layer", selection->n_layers, "1",
                    "factor of q.k in the base route, rotary magnitude factors included", &scale));
    for (int64_t l = 0; l < selection->n_layers; l++) {
        const ats_layer *at = ats_plan_layer(m->plan, l);
        layers[l] = layer_scale[l] = at->index;
        scale[l] = at->contract.scale;
    }
    ATS_TRY(add_text(m, "span_role", "span", axis->count + 1,
                     "role of the first span of that name, or empty", &roles));
    for (int64_t i = 0; i < axis->n_named && axis->roles != NULL; i++)
        if (axis->roles[i] != NULL) roles[i] = axis->roles[i];
    memcpy(heads, selection->heads, (size_t)selection->n_heads * sizeof *heads);
    memcpy(head_scale, selection->heads, (size_t)selection->n_heads * sizeof *heads);
out:
    return rc;
}

ats_code ats_coordinates_before(const ats_plan *plan, ats_arena *arena, ats_coordinates *out,
                                ats_err *err)
{
    ats_coordinates made = {0};
    maker m = {plan, arena, &made, err};
    ats_code rc;
    ATS_TRY(ATS_NEW0(arena, MAX_COORDINATES, &made.items, err));
    ATS_TRY(add_case_texts(&m));
    ATS_TRY(add_case_numbers(&m));
    ATS_TRY(add_params(&m));
    ATS_TRY(add_samples(&m));
    ATS_TRY(add_model_axes(&m));
    *out = made;
out:
    return rc;
}

static ats_code add_outcome_numbers(maker *m, const ats_case *cases)
{
    const int64_t n = m->plan->n_cases;
    int64_t *rows, *undefined;
    double *dose, *cosine, *ratio, *logit;
    ats_code rc;
    ATS_TRY(add_i64(m, "rows", "case", n, "rows", "rows inserted or overwritten in one key head",
                    &rows));
    ATS_TRY(add_i64(m, "undefined", "case", n, "1",
                    "layer, head and probe cells without a legal key and without a sink",
                    &undefined));
    ATS_TRY(add_f64(m, "dose", "case", n, "1", "value on the dose axis of the family", &dose));
    ATS_TRY(add_f64(m, "realised_cosine", "case", n, "1",
                    "content cosine of the rows to the target, mean over rows, layers, key heads",
                    &cosine));
    ATS_TRY(add_f64(m, "realised_norm_ratio", "case", n, "1",
                    "key norm of the rows over the target's, mean over rows, layers, key heads",
                    &ratio));
    ATS_TRY(add_f64(m, "realised_logit", "case", n, "nat",
                    "logit of the rows, mean over rows, probes, layers, key heads", &logit));
    for (int64_t c = 0; c < n; c++) {
        rows[c] = cases[c].rows;
        undefined[c] = cases[c].undefined;
        dose[c] = cases[c].dose;
        cosine[c] = cases[c].cosine;
        ratio[c] = cases[c].norm_ratio;
        logit[c] = cases[c].logit;
    }
out:
    return rc;
}

ats_code ats_coordinates_after(const ats_plan *plan, const ats_case *cases, ats_arena *arena,
                               ats_coordinates *out, ats_err *err)
{
    ats_coordinates made = {0};
    maker m = {plan, arena, &made, err};
    int64_t *status;
    const char **message;
    ats_code rc;
    ATS_TRY(ATS_NEW0(arena, MAX_COORDINATES, &made.items, err));
    ATS_TRY(add_outcome_numbers(&m, cases));
    ATS_TRY(add_text(&m, "message", "case", plan->n_cases, "why skipped or failed", &message));
    ATS_TRY(add_i64(&m, "status", "case", plan->n_cases, NULL, "what became of the case", &status));
    made.items[made.count - 1].flag_values = "0,1,2";
    made.items[made.count - 1].flag_meanings = "ok skipped failed";
    for (int64_t c = 0; c < plan->n_cases; c++) {
        status[c] = cases[c].status;
        message[c] = cases[c].message;
    }
    *out = made;
out:
    return rc;
}

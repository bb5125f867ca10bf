#include "perturb/variant.h"

#include <math.h>
#include <string.h>

static ats_param standard(const ats_param_def *def)
{
    const bool number = def->type == ATS_PARAM_INT || def->type == ATS_PARAM_REAL;
    return (ats_param){.set = !def->required && (number ? !isnan(def->number) : def->text != NULL),
                       .number = def->number,
                       .text = def->text};
}

void variant_begin(variant *v, const tiny *t, const char *kind, ats_position_mode mode)
{
    memset(v, 0, sizeof *v);
    ats_arena_init(&v->arena, false);
    const ats_family *family = ats_family_find(kind);
    assert_non_null(family);
    assert_true(family->n_params <= VARIANT_PARAMS);
    for (int64_t i = 0; i < family->n_params; i++) v->params[i] = standard(&family->params[i]);
    for (int64_t i = 0; i < TINY_SAMPLES; i++)
        v->donors[i] = (ats_donor){.sample = &t->samples[i], .attention = &t->attention[i]};
    v->build = (ats_build){.arena = &v->arena,
                           .capture = &t->capture,
                           .layer = &t->layer,
                           .sample = &t->samples[0],
                           .attention = &t->attention[0],
                           .n_donors = TINY_SAMPLES,
                           .donors = v->donors,
                           .family = family,
                           .params = v->params,
                           .mode = mode,
                           .seed = 7,
                           .variant_id = "test/variant#0",
                           .target = "gold"};
}

static ats_param *find(variant *v, const char *name)
{
    const int64_t index = ats_family_param(v->build.family, name);
    assert_true(index >= 0);
    v->params[index].set = true;
    return &v->params[index];
}

void variant_number(variant *v, const char *name, double number) { find(v, name)->number = number; }

void variant_word(variant *v, const char *name, const char *text) { find(v, name)->text = text; }

ats_code variant_try(variant *v)
{
    const ats_family *family = v->build.family;
    if (family->check != NULL) {
        const ats_code rc = family->check(v->params, v->build.mode, &v->err);
        if (rc != ATS_OK) return rc;
    }
    return ats_perturb_build(&v->build, &v->built, &v->err);
}

void variant_build(variant *v)
{
    assert_ok(variant_try(v), &v->err);
    if (v->built.skipped) fail_msg("skipped: %s", v->built.reason);
}

void variant_free(variant *v) { ats_arena_fini(&v->arena); }

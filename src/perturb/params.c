#include "perturb/params.h"

#include <string.h>

const char *const ats_words_source[] = {"donor", "similar", "targeted", NULL};
const char *const ats_words_basis[] = {"real", "isotropic", NULL};
const char *const ats_words_payload[] = {"donor", "same", "orthogonal", "opposed", "zero", NULL};
const char *const ats_words_placement[] = {"before", "after", "around", "depth", "random", NULL};

static const ats_param *find(const ats_family *family, const ats_param *params, const char *name)
{
    const int64_t index = ats_family_param(family, name);
    ATS_ASSERT(index >= 0);
    return &params[index];
}

double ats_table_number(const ats_family *family, const ats_param *params, const char *name)
{
    const ats_param *param = find(family, params, name);
    return param->set ? param->number : (double)NAN;
}

const char *ats_table_text(const ats_family *family, const ats_param *params, const char *name)
{
    const ats_param *param = find(family, params, name);
    return param->set ? param->text : NULL;
}

double ats_arg(const ats_build *ctx, const char *name)
{
    return ats_table_number(ctx->family, ctx->params, name);
}

int64_t ats_arg_int(const ats_build *ctx, const char *name)
{
    const double number = ats_arg(ctx, name);
    ATS_ASSERT(!isnan(number));
    return (int64_t)number;
}

const char *ats_arg_text(const ats_build *ctx, const char *name)
{
    return ats_table_text(ctx->family, ctx->params, name);
}

bool ats_arg_is(const ats_build *ctx, const char *name, const char *word)
{
    const char *text = ats_arg_text(ctx, name);
    return text != NULL && strcmp(text, word) == 0;
}

/* A word that stands without the number that belongs to it. */
static ats_code needs(const ats_family *family, const ats_param *params, const char *group,
                      const char *word, const char *name, ats_err *err)
{
    const char *text = ats_table_text(family, params, group);
    if (text == NULL || strcmp(text, word) != 0) return ATS_OK;
    if (!isnan(ats_table_number(family, params, name))) return ATS_OK;
    return ats_fail(err, ATS_E_SUITE, "%s: `%s: %s` needs `%s`; write `%s: {%s: {%s: ...}}`",
                    family->kind, group, word, name, group, word, name);
}

ats_code ats_check_source(const ats_family *family, const ats_param *params, ats_err *err)
{
    const ats_code rc = needs(family, params, "source", "similar", "cosine", err);
    return rc != ATS_OK ? rc : needs(family, params, "source", "targeted", "margin", err);
}

ats_code ats_check_depth(const ats_family *family, const ats_param *params, ats_err *err)
{
    const char *text = ats_table_text(family, params, "placement");
    if (text == NULL || strcmp(text, "depth") != 0) return ATS_OK;
    if (!isnan(ats_table_number(family, params, "depth"))) return ATS_OK;
    return ats_fail(err, ATS_E_SUITE,
                    "%s: `placement: depth` needs a number; write `placement: {depth: 0.5}`",
                    family->kind);
}

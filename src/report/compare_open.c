#include <stdlib.h>
#include <string.h>

#include "report/compare_private.h"

/* Arrays along one axis have its length; *count -1: they give it. */
static ats_code check_length(const ats_compare_side *side, const char *name, int64_t got,
                             int64_t *count, ats_err *err)
{
    if (*count < 0) *count = got;
    if (*count == got) return ATS_OK;
    return ats_fail(err, ATS_E_INPUT, "%s: /%s has %lld entries where its axis has %lld",
                    side->path, name, (long long)got, (long long)*count);
}

static ats_code texts(ats_compare_state *s, ats_compare_side *side, const char *name,
                      const char *const **out, int64_t *count, ats_err *err)
{
    ats_arena scratch = {.blocks = NULL};
    char **raw = NULL;
    const char **copy = NULL;
    int64_t n = 0;
    ats_code rc = ats_result_texts(side->file, name, &raw, &n, err);
    if (rc != ATS_OK)
        return ats_prepend(err, rc, "%s %s was made by another version of attnstress; run it again",
                           side->role, side->path);
    ATS_TRY(check_length(side, name, n, count, err));
    ATS_TRY(ATS_NEW(s->arena, n, &copy, err));
    for (int64_t i = 0; i < n; i++) {
        ats_text text = {.arena = &scratch, .err = err};
        const char *visible = NULL;
        ats_arena_reset(&scratch);
        ats_compare_visible(&text, raw[i]);
        ATS_TRY(ats_text_done(&text, &visible));
        ATS_TRY(ats_arena_strdup(s->arena, visible, &copy[i], err));
    }
    *out = copy;
out:
    ats_arena_fini(&scratch);
    ats_result_free_texts(raw, n);
    return rc;
}

static ats_code numbers(ats_compare_state *s, ats_compare_side *side, const char *name,
                        const double **out, int64_t *count, ats_err *err)
{
    ats_result_variable variable = {.values = NULL};
    double *copy = NULL;
    ats_code rc = ats_result_read(side->file, name, &variable, err);
    if (rc != ATS_OK) goto out;
    if (variable.rank != 1) variable.extent[0] = 1;
    ATS_TRY(check_length(side, name, variable.extent[0], count, err));
    ATS_TRY(ATS_NEW(s->arena, variable.extent[0], &copy, err));
    memcpy(copy, variable.values, (size_t)variable.extent[0] * sizeof *copy);
    *out = copy;
out:
    free(variable.values);
    return rc;
}

/* A root attribute as text a terminal can take; "" when there is none. */
static ats_code attribute(ats_compare_state *s, ats_compare_side *side, const char *name,
                          const char **out, ats_err *err)
{
    char raw[8192];
    ats_err ignored;
    ats_text text = {.arena = s->arena, .err = err};
    if (ats_result_attribute(side->file, name, raw, sizeof raw, &ignored) != ATS_OK) raw[0] = '\0';
    ats_compare_visible(&text, raw);
    return ats_text_done(&text, out);
}

static ats_code attributes(ats_compare_state *s, ats_compare_side *side, ats_err *err)
{
    const char *version, *git, *backend, *detail, *precision;
    ats_code rc;
    ATS_TRY(attribute(s, side, "suite_name", &side->suite, err));
    ATS_TRY(attribute(s, side, "suite_hash", &side->suite_hash, err));
    ATS_TRY(attribute(s, side, "target", &side->target, err));
    ATS_TRY(attribute(s, side, "detail", &side->detail, err));
    ATS_TRY(attribute(s, side, "captures", &side->captures, err));
    ATS_TRY(attribute(s, side, "capture_hashes", &side->capture_hashes, err));
    ATS_TRY(attribute(s, side, "checkpoint", &side->checkpoint, err));
    if (side->checkpoint[0] == '\0') side->checkpoint = side->captures;
    ATS_TRY(attribute(s, side, "tool_version", &version, err));
    ATS_TRY(attribute(s, side, "tool_git", &git, err));
    ATS_TRY(attribute(s, side, "backend", &backend, err));
    ATS_TRY(attribute(s, side, "backend_detail", &detail, err));
    ATS_TRY(attribute(s, side, "precision", &precision, err));
    ATS_TRY(ats_arena_printf(s->arena, &side->build, err, "%s %s %s %s %s", version, git, backend,
                             detail, precision));
out:
    return rc;
}

/* Cases lie sample by sample, each with the same variants in the same order. */
static ats_code check_cases(ats_compare_side *side, const double *sample_index, ats_err *err)
{
    const int64_t n = side->n_samples > 0 ? side->n_cases / side->n_samples : 0;
    bool regular = n > 0 && n * side->n_samples == side->n_cases;
    for (int64_t c = 0; regular && c < side->n_cases; c++)
        regular = (int64_t)sample_index[c] == c / n &&
                  strcmp(side->variant[c], side->variant[c % n]) == 0;
    if (!regular)
        return ats_fail(err, ATS_E_INPUT,
                        "%s: the cases are not the suite's variants for each of %lld samples in "
                        "turn; a result that was merged in part cannot be compared",
                        side->path, (long long)side->n_samples);
    side->n_variants = n;
    for (int64_t i = 0; i < side->n_samples; i++)
        for (int64_t j = 0; j < i; j++)
            if (strcmp(side->sample_id[i], side->sample_id[j]) == 0)
                return ats_fail(err, ATS_E_INPUT,
                                "%s: two samples are called %s, so there is no telling which is "
                                "which in the other result",
                                side->path, side->sample_id[i]);
    return ATS_OK;
}

static ats_code open_side(ats_compare_state *s, ats_compare_side *side, ats_err *err)
{
    const double *sample_index = NULL, *probe = NULL;
    side->borrowed = side->file != NULL;
    ats_code rc = side->borrowed ? ATS_OK : ats_result_open(side->path, &side->file, err);
    if (rc != ATS_OK) return ats_prepend(err, rc, "%s", side->role);
    ATS_TRY(attributes(s, side, err));
    side->n_samples = side->n_cases = side->n_layers = side->n_heads = side->n_probes = -1;
    ATS_TRY(texts(s, side, "sample_id", &side->sample_id, &side->n_samples, err));
    ATS_TRY(texts(s, side, "sample_cluster", &side->cluster, &side->n_samples, err));
    ATS_TRY(texts(s, side, "sample_variant_of", &side->variant_of, &side->n_samples, err));
    ATS_TRY(texts(s, side, "sample_tokens", &side->tokens, &side->n_samples, err));
    ATS_TRY(texts(s, side, "sample_spans", &side->spans, &side->n_samples, err));
    ATS_TRY(texts(s, side, "sample_probe_rows", &side->probes, &side->n_samples, err));
    ATS_TRY(texts(s, side, "variant", &side->variant, &side->n_cases, err));
    ATS_TRY(texts(s, side, "perturbation", &side->perturbation, &side->n_cases, err));
    ATS_TRY(texts(s, side, "arm", &side->arm, &side->n_cases, err));
    if (ats_result_has(side->file, "span")) {
        side->n_spans = -1;
        ATS_TRY(texts(s, side, "span", &side->span, &side->n_spans, err));
    }
    ATS_TRY(numbers(s, side, "status", &side->status, &side->n_cases, err));
    ATS_TRY(numbers(s, side, "dose", &side->dose, &side->n_cases, err));
    ATS_TRY(numbers(s, side, "layer_index", &side->layer, &side->n_layers, err));
    ATS_TRY(numbers(s, side, "head_index", &side->head, &side->n_heads, err));
    if (strcmp(side->detail, "head") != 0)
        ATS_TRY(numbers(s, side, "probe", &probe, &side->n_probes, err));
    ATS_TRY(numbers(s, side, "sample_index", &sample_index, &side->n_cases, err));
    ATS_TRY(check_cases(side, sample_index, err));
out:
    return rc;
}

ats_code ats_compare_open(ats_compare_state *s, ats_err *err)
{
    ats_code rc;
    const ats_compare_options *o = s->options;
    s->side[0] = (ats_compare_side){.path = o->base, .role = "baseline", .file = o->base_file};
    s->side[1] =
        (ats_compare_side){.path = o->candidate, .role = "candidate", .file = o->candidate_file};
    ATS_TRY(open_side(s, &s->side[0], err));
    rc = open_side(s, &s->side[1], err);
out:
    return rc;
}

void ats_compare_close(ats_compare_state *s)
{
    for (int k = 0; k < 2; k++)
        if (!s->side[k].borrowed) ats_result_close(s->side[k].file);
}

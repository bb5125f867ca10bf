#include "engine/plan.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/plan_private.h"

/* Paths that one pattern names, in sorted order, appended to paths. */
static ats_code expand(ats_arena *arena, const char *pattern, const char **paths, int64_t room,
                       int64_t *count, ats_err *err)
{
    glob_t found = {0};
    ats_code rc = ATS_OK;
    const int status = glob(pattern, GLOB_NOCHECK, NULL, &found);
    if (status == 0 && found.gl_pathc == 1 && strcmp(found.gl_pathv[0], pattern) == 0 &&
        strpbrk(pattern, "*?[") != NULL && access(pattern, F_OK) != 0) {
        char *folder = realpath(".", NULL);
        rc = ats_fail(err, ATS_E_INPUT,
                      "captures: no file matches the pattern %s%s%s; correct it, or name a file",
                      pattern, pattern[0] == '/' || folder == NULL ? "" : " in ",
                      pattern[0] == '/' || folder == NULL ? "" : folder);
        free(folder);
        goto out;
    }
    if (status != 0) {
        rc = ats_fail(err, ATS_E_IO, "captures: %s could not be expanded: %s", pattern,
                      status == GLOB_NOSPACE ? "out of memory" : strerror(errno));
        goto out;
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        bool seen = false;
        for (int64_t j = 0; j < *count; j++)
            seen = seen || strcmp(paths[j], found.gl_pathv[i]) == 0;
        if (seen) continue;
        if (*count == room) {
            rc = ats_fail(err, ATS_E_INPUT,
                          "captures: more than %lld files; name fewer, or run them in parts",
                          (long long)room);
            goto out;
        }
        ATS_TRY(ats_arena_strdup(arena, found.gl_pathv[i], &paths[*count], err));
        *count += 1;
    }
out:
    globfree(&found);
    return rc;
}

static ats_code check_one_checkpoint(ats_capture *const *captures, int64_t count, ats_err *err)
{
    for (int64_t c = 1; c < count; c++) {
        const ats_capture *a = captures[0], *b = captures[c];
        const char *hash_a = a->weights_hash != NULL ? a->weights_hash : "";
        const char *hash_b = b->weights_hash != NULL ? b->weights_hash : "";
        if (strcmp(hash_a, hash_b) != 0)
            return ats_fail(err, ATS_E_INPUT,
                            "%s holds another checkpoint than %s (weights_hash %s, not %s): one "
                            "run is one checkpoint; run each by itself with --capture and put "
                            "the two results side by side with `attnstress compare`",
                            b->path, a->path, hash_b[0] ? hash_b : "none",
                            hash_a[0] ? hash_a : "none");
    }
    return ATS_OK;
}

enum { MAX_CAPTURES = 1024 };

ats_code ats_plan_open(const ats_suite *suite, const ats_plan_options *options, ats_arena *arena,
                       ats_capture ***out, int64_t *count, ats_err *err)
{
    const bool given = options != NULL && options->n_captures > 0;
    const int64_t n_patterns = given ? options->n_captures : suite->captures.count;
    const char *const *patterns = given ? options->captures : suite->captures.items;
    const char **paths = NULL;
    ats_capture **captures = NULL;
    int64_t n = 0, opened = 0;
    ats_code rc;
    if (n_patterns == 0)
        return ats_fail(err, ATS_E_SUITE,
                        "%s: the suite names no capture; add `captures: [file.h5]` or give "
                        "--capture FILE",
                        suite->path);
    ATS_TRY(ATS_NEW(arena, MAX_CAPTURES, &paths, err));
    for (int64_t i = 0; i < n_patterns; i++)
        ATS_TRY(expand(arena, patterns[i], paths, MAX_CAPTURES, &n, err));
    ATS_TRY(ATS_NEW0(arena, n, &captures, err));
    for (; opened < n; opened++) ATS_TRY(ats_capture_open(paths[opened], &captures[opened], err));
    ATS_TRY(check_one_checkpoint(captures, n, err));
    *out = captures;
    *count = n;
out:
    if (rc != ATS_OK)
        for (int64_t i = 0; i < opened; i++) ats_capture_close(captures[i]);
    return rc;
}

ats_build ats_plan_build(const ats_plan *plan, int64_t sample, int64_t layer, int64_t variant,
                         const ats_donor *donors, int64_t n_donors, ats_arena *arena)
{
    const ats_suite *suite = plan->suite;
    const ats_chosen *chosen = &plan->selection.samples[sample];
    const ats_capture *capture = plan->captures[chosen->capture];
    const ats_variant *v = &suite->variants[variant];
    ats_build build = {
        .arena = arena,
        .capture = capture,
        .layer = &capture->layers[plan->selection.layers[layer]],
        .sample = chosen->sample,
        .attention = donors[0].attention,
        .n_donors = n_donors,
        .donors = donors,
        .family = suite->perturbations[v->perturbation].family,
        .params = v->params,
        .mode = v->mode,
        .arm = v->arm,
        .replicate = v->replicate,
        .seed = suite->seed,
        .variant_id = v->base_id,
        .target = suite->target,
        .allow_past_max = suite->allow_past_max,
        .n_probes = chosen->n_probes,
        .probes = chosen->probes,
        .n_parts = v->n_parts,
    };
    for (int64_t i = 0; i < v->n_parts; i++) {
        const ats_variant *part = &suite->variants[v->part[i]];
        build.part[i] = (ats_build_part){suite->perturbations[part->perturbation].family,
                                         part->params, part->mode, part->replicate, part->base_id};
    }
    return build;
}

static ats_code make_axis(ats_plan *plan, ats_err *err)
{
    const ats_selection *selection = &plan->selection;
    const ats_sample **samples = NULL;
    const char *axis = plan->suite->span_axis;
    ats_code rc;
    ATS_TRY(ATS_NEW(&plan->arena, selection->n_samples, &samples, err));
    for (int64_t s = 0; s < selection->n_samples; s++) samples[s] = selection->samples[s].sample;
    ATS_TRY(ats_span_axis_of(&plan->arena, samples, selection->n_samples,
                             axis != NULL && strcmp(axis, "role") == 0, &plan->axis, err));
    plan->target_span =
        plan->suite->target != NULL ? ats_span_axis_find(&plan->axis, plan->suite->target) : -1;
    if (plan->target_span == plan->axis.count) plan->target_span = -1;
out:
    return rc;
}

const ats_layer *ats_plan_layer(const ats_plan *plan, int64_t layer)
{
    return &plan->captures[0]->layers[plan->selection.layers[layer]];
}

/* `auto` looks at the widest head of the chosen layers. */
static ats_code find_backend(ats_plan *plan, const char *name, ats_err *err)
{
    int64_t d_qk = 1, d_v = 1;
    for (int64_t l = 0; l < plan->selection.n_layers; l++) {
        const ats_layer *layer = ats_plan_layer(plan, l);
        d_qk = layer->d_qk > d_qk ? layer->d_qk : d_qk;
        d_v = layer->d_v > d_v ? layer->d_v : d_v;
    }
    return ats_backend_find_for(name, d_qk, d_v, &plan->backend, err);
}

static ats_code make(ats_plan *plan, const ats_plan_options *options, ats_err *err)
{
    const ats_suite *suite = plan->suite;
    const char *backend = options != NULL ? options->backend : NULL;
    ats_code rc;
    if (suite->n_variants == 0)
        ATS_TRY(ats_fail(err, ATS_E_SUITE,
                         "%s: the suite has no case: it names no perturbation, or `exclude` takes "
                         "every variant away",
                         suite->path));
    if (backend == NULL) backend = suite->backend != NULL ? suite->backend : "auto";
    ATS_TRY(ats_backend_find(backend, &plan->backend, err));
    ATS_TRY(ats_plan_open(suite, options, &plan->arena, &plan->captures, &plan->n_captures, err));
    ATS_TRY(ats_select_make(&plan->arena, suite, plan->captures, plan->n_captures, &plan->selection,
                            err));
    ATS_TRY(find_backend(plan, backend, err));
    ATS_TRY(make_axis(plan, err));
    ATS_TRY(ats_select_by_mass(suite, &plan->axis, plan->backend, &plan->selection, err));
    plan->n_cases = plan->selection.n_samples * suite->n_variants;
    ATS_TRY(ats_plan_layouts(plan, err));
    ATS_TRY(ats_plan_metrics(plan, err));
    ATS_TRY(ats_plan_sizes(plan, options, err));
    ATS_TRY(ats_plan_gates(plan, err));
out:
    return rc;
}

ats_code ats_plan_make(const ats_suite *suite, const ats_plan_options *options, ats_plan **out,
                       ats_err *err)
{
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_plan *plan = NULL;
    ats_code rc = ATS_NEW0(&arena, 1, &plan, err);
    if (rc != ATS_OK) {
        ats_arena_fini(&arena);
        return rc;
    }
    plan->arena = arena;
    plan->suite = suite;
    rc = make(plan, options, err);
    if (rc != ATS_OK)
        ats_plan_free(plan);
    else
        *out = plan;
    return rc;
}

void ats_plan_free(ats_plan *plan)
{
    if (plan == NULL) return;
    for (int64_t c = 0; c < plan->n_captures; c++) ats_capture_close(plan->captures[c]);
    ats_arena arena = plan->arena;
    ats_arena_fini(&arena);
}

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "capture/import_tensors.h"

enum { SHOWN = 100, NAMED = 8 };

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const ats_tensor *const *)a)->name, (*(const ats_tensor *const *)b)->name);
}

static ats_code list_all(ats_import_set *set, ats_err *err)
{
    int64_t n = 0;
    ats_code rc;
    for (int64_t f = 0; f < set->n_files; f++) set->n_tensors += set->files[f].n_tensors;
    ATS_TRY(ATS_NEW(set->arena, set->n_tensors + 1, &set->tensors, err));
    ATS_TRY(ATS_NEW0(set->arena, set->n_tensors + 1, &set->used, err));
    for (int64_t f = 0; f < set->n_files; f++)
        for (int64_t i = 0; i < set->files[f].n_tensors; i++)
            set->tensors[n++] = &set->files[f].tensors[i];
    if (n > 1) qsort(set->tensors, (size_t)n, sizeof *set->tensors, by_name);
    for (int64_t i = 1; i < n; i++) {
        const ats_tensor *a = set->tensors[i - 1], *b = set->tensors[i];
        if (strcmp(a->name, b->name) == 0)
            return ats_fail(err, ATS_E_INPUT,
                            "%s and %s both hold a tensor named %.*s; names are "
                            "unique over all files",
                            a->file->path, b->file->path, SHOWN, a->name);
    }
out:
    return rc;
}

ats_code ats_import_open(ats_import_set *set, const char *const *paths, int64_t n_paths,
                         ats_err *err)
{
    ats_code rc;
    ATS_TRY(ATS_NEW0(set->arena, n_paths, &set->files, err));
    for (int64_t i = 0; i < n_paths; i++) {
        ATS_TRY(ats_tensor_file_open(paths[i], set->arena, &set->files[i], err));
        set->n_files++;
    }
    rc = list_all(set, err);
out:
    return rc;
}

void ats_import_close(ats_import_set *set)
{
    for (int64_t i = 0; i < set->n_files; i++) ats_tensor_file_close(&set->files[i]);
    set->n_files = 0;
}

static ats_code expand(ats_import_set *set, const char *key, const char *pattern,
                       const char *sample, int64_t layer, const char **out, ats_err *err)
{
    ats_text text = {.arena = set->arena, .err = err};
    const char *at = pattern;
    while (*at != '\0') {
        const size_t plain = strcspn(at, "{");
        ats_text_add(&text, "%.*s", (int)plain, at);
        at += plain;
        if (strncmp(at, "{layer}", 7) == 0 && layer >= 0) {
            ats_text_add(&text, "%lld", (long long)layer);
            at += 7;
        } else if (strncmp(at, "{sample}", 8) == 0 && sample != NULL) {
            ats_text_add(&text, "%s", sample);
            at += 8;
        } else if (*at != '\0') {
            return ats_fail(err, ATS_E_INPUT,
                            "names.%s is '%.*s': only {layer} (of a layer's tensors) and {sample} "
                            "(of a sample's) stand for something",
                            key, SHOWN, pattern);
        }
    }
    return ats_text_done(&text, out);
}

static ats_code fail_missing(const ats_import_set *set, const char *key, const char *name,
                             ats_err *err)
{
    char listed[600] = "";
    size_t used = 0;
    const char **names = NULL;
    const char *near = NULL;
    if (ATS_NEW(set->arena, set->n_tensors + 1, &names, err) == ATS_OK) {
        for (int64_t i = 0; i < set->n_tensors; i++) names[i] = set->tensors[i]->name;
        names[set->n_tensors] = NULL;
        near = ats_nearest(name, names);
    }
    for (int64_t i = 0; i < set->n_tensors && i < NAMED && used < sizeof listed; i++) {
        const int n = snprintf(listed + used, sizeof listed - used, "%s%.60s", i > 0 ? ", " : "",
                               set->tensors[i]->name);
        used += n > 0 ? (size_t)n : 0;
    }
    return ats_fail(err, ATS_E_INPUT,
                    "no file holds the tensor %.*s (names.%s of the header); %s%.100s%s files hold "
                    "%lld: %s%s",
                    SHOWN, name, key, near != NULL ? "did you mean " : "the",
                    near != NULL ? near : "", near != NULL ? "? The" : "",
                    (long long)set->n_tensors, listed, set->n_tensors > NAMED ? ", ..." : "");
}

ats_code ats_import_find(ats_import_set *set, const char *key, const char *pattern,
                         const char *sample, int64_t layer, bool optional, const ats_tensor **out,
                         ats_err *err)
{
    ats_tensor wanted = {.name = NULL};
    const ats_tensor *probe = &wanted;
    ats_code rc = expand(set, key, pattern, sample, layer, &wanted.name, err);
    if (rc != ATS_OK) return rc;
    const ats_tensor **found = NULL;
    if (set->n_tensors > 0)
        found =
            bsearch(&probe, set->tensors, (size_t)set->n_tensors, sizeof *set->tensors, by_name);
    if (found == NULL && !optional) return fail_missing(set, key, wanted.name, err);
    if (found != NULL) set->used[found - set->tensors] = true;
    *out = found != NULL ? *found : NULL;
    return ATS_OK;
}

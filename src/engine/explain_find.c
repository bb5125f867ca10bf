#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "engine/explain_private.h"

static ats_code read_texts(ats_explain_case *found, const char *name, ats_explain_texts *out,
                           ats_err *err)
{
    return ats_result_texts(found->file, name, &out->items, &out->count, err);
}

static void free_texts(ats_explain_texts *texts)
{
    if (texts->items != NULL) ats_result_free_texts(texts->items, texts->count);
    *texts = (ats_explain_texts){.items = NULL};
}

/* One number of an integer coordinate. */
static ats_code read_number(ats_explain_case *found, const char *name, int64_t index, int64_t *out,
                            ats_err *err)
{
    ats_result_variable variable = {0};
    ats_code rc = ats_result_read(found->file, name, &variable, err);
    if (rc != ATS_OK) return rc;
    if (index < 0 || index >= variable.extent[0])
        rc = ats_fail(err, ATS_E_INPUT, "%s has %lld entries, no number %lld", name,
                      (long long)variable.extent[0], (long long)index);
    else
        *out = (int64_t)variable.values[index];
    free(variable.values);
    return rc;
}

/* Place of a model's number (layer, head) on its axis of the result. */
static ats_code find_number(ats_explain_case *found, const char *name, const char *what,
                            int64_t wanted, int64_t *out, ats_err *err)
{
    ats_result_variable variable = {0};
    char list[512] = "";
    int64_t at = -1;
    ats_code rc = ats_result_read(found->file, name, &variable, err);
    if (rc != ATS_OK) return rc;
    for (int64_t i = 0; i < variable.extent[0]; i++) {
        const size_t used = strlen(list);
        if ((int64_t)variable.values[i] == wanted) at = i;
        if (used + 32 < sizeof list)
            snprintf(list + used, sizeof list - used, "%s%lld", i > 0 ? ", " : "",
                     (long long)variable.values[i]);
    }
    free(variable.values);
    if (at < 0)
        return ats_fail(err, ATS_E_USAGE, "the result has no %s %lld; it has %s", what,
                        (long long)wanted, list);
    *out = at;
    return ATS_OK;
}

static int64_t find_text(const ats_explain_texts *texts, const char *wanted)
{
    for (int64_t i = 0; i < texts->count; i++)
        if (strcmp(texts->items[i], wanted) == 0) return i;
    return -1;
}

/* The first text near enough to be meant, else the first of all. */
static const char *near_text(const char *word, const ats_explain_texts *texts)
{
    for (int64_t i = 0; i < texts->count; i++)
        if (ats_nearest(word, (const char *const[]){texts->items[i], NULL}) != NULL)
            return texts->items[i];
    return texts->count > 0 ? texts->items[0] : "";
}

/* "<sample id>:<variant id>": sample ids may hold colons, so every sample is tried as a prefix. */
static ats_code find_named(ats_explain_case *found, const char *id,
                           const ats_explain_texts *samples, const ats_explain_texts *variants,
                           ats_err *err)
{
    for (int64_t s = 0; s < samples->count; s++) {
        const size_t length = strlen(samples->items[s]);
        if (strncmp(id, samples->items[s], length) != 0 || id[length] != ':') continue;
        const int64_t per_sample = variants->count / samples->count;
        const ats_explain_texts own = {variants->items + s * per_sample, per_sample};
        const int64_t at = find_text(&own, id + length + 1);
        if (at >= 0) {
            found->result_sample = s;
            found->result_case = s * per_sample + at;
            return ATS_OK;
        }
        return ats_fail(err, ATS_E_USAGE,
                        "--case %s: sample %s has no variant of that name; the nearest is %s:%s",
                        id, samples->items[s], samples->items[s], near_text(id + length + 1, &own));
    }
    return ats_fail(err, ATS_E_USAGE,
                    "--case %s: neither a case number nor <sample id>:<variant id>; for example "
                    "0, or %s:%s",
                    id, samples->items[0], variants->items[0]);
}

static ats_code find_case(ats_explain_case *found, const char *id, const ats_explain_texts *samples,
                          const ats_explain_texts *variants, ats_err *err)
{
    char *end = NULL;
    errno = 0;
    const long long number = strtoll(id, &end, 10);
    if (end == id || *end != '\0' || errno != 0)
        return find_named(found, id, samples, variants, err);
    if (number < 0 || number >= variants->count)
        return ats_fail(err, ATS_E_USAGE, "--case %s: the result has cases 0 to %lld", id,
                        (long long)variants->count - 1);
    found->result_case = number;
    return read_number(found, "sample_index", number, &found->result_sample, err);
}

/* The stored suite, through a file that is gone again once read. */
static ats_code load_suite(ats_explain_case *found, const char *result, ats_err *err)
{
    ats_explain_texts text = {0};
    const char *directory = getenv("TMPDIR");
    char path[4096];
    int fd = -1;
    FILE *stream = NULL;
    ats_code rc = read_texts(found, "suite", &text, err);
    if (rc != ATS_OK) return rc;
    snprintf(path, sizeof path, "%s/attnstress-suite-XXXXXX",
             directory != NULL && directory[0] ? directory : P_tmpdir);
    fd = mkstemp(path);
    stream = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (stream == NULL || fputs(text.items[0], stream) < 0 || fflush(stream) != 0)
        rc =
            ats_fail(err, ATS_E_IO, "%s: the suite of %s could not be written there to be read: %s",
                     path, result, strerror(errno));
    else
        rc = ats_suite_load(path, NULL, 0, &found->suite, err);
    if (rc != ATS_OK && rc != ATS_E_IO)
        rc = ats_prepend(err, rc, "the suite stored in %s cannot be read by this version", result);
    if (stream != NULL)
        fclose(stream);
    else if (fd >= 0)
        close(fd);
    if (fd >= 0) unlink(path);
    free_texts(&text);
    return rc;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Where the capture called `name` may lie: where the suite says, beside the result, here. */
static ats_code locate(const ats_explain_case *found, const char *result, const char *name,
                       char *path, size_t size, ats_err *err)
{
    const ats_strings *patterns = &found->suite->captures;
    for (int64_t i = -2; i < patterns->count; i++) {
        const char *beside = i == -2 ? result : i >= 0 ? patterns->items[i] : "";
        const int directory = (int)(base_name(beside) - beside);
        snprintf(path, size, "%.*s%s", directory, beside, name);
        if (access(path, R_OK) == 0) return ATS_OK;
    }
    return ats_fail(err, ATS_E_INPUT,
                    "%s was made from the capture %s, which is not beside it, not here and not "
                    "where the suite says; give it with --capture FILE",
                    result, name);
}

/* The result lists names and hashes of its captures as words in one order. */
static ats_code check_hash(ats_explain_case *found, const char *result, ats_err *err)
{
    char hashes[8192];
    ats_code rc = ats_result_attribute(found->file, "capture_hashes", hashes, sizeof hashes, err);
    if (rc != ATS_OK) return rc;
    const ats_capture *capture = found->plan->captures[0];
    if (strstr(hashes, capture->hash) != NULL) return ATS_OK;
    return ats_fail(err, ATS_E_INPUT,
                    "%s (hash %s) is not a capture that %s was made from (hashes %s); give the "
                    "right one with --capture FILE",
                    capture->path, capture->hash, result, hashes);
}

static ats_code make_plan(ats_explain_case *found, const ats_explain_options *options,
                          const char *sample_id, const char *file_name, const char *variant_id,
                          ats_err *err)
{
    char path[4096];
    ats_code rc = ATS_OK;
    if (options->capture != NULL)
        snprintf(path, sizeof path, "%s", options->capture);
    else
        ATS_TRY(locate(found, options->result, file_name, path, sizeof path, err));
    const char *const paths[] = {path};
    const ats_plan_options plan = {.captures = paths, .n_captures = 1, .backend = "reference"};
    ATS_TRY(ats_plan_make(found->suite, &plan, &found->plan, err));
    ATS_TRY(check_hash(found, options->result, err));
    const ats_selection *selection = &found->plan->selection;
    found->sample = found->layer = found->variant = -1;
    for (int64_t s = 0; s < selection->n_samples; s++)
        if (strcmp(selection->samples[s].sample->id, sample_id) == 0) found->sample = s;
    for (int64_t l = 0; l < selection->n_layers; l++)
        if (ats_plan_layer(found->plan, l)->index == options->layer) found->layer = l;
    for (int64_t v = 0; v < found->suite->n_variants; v++)
        if (strcmp(found->suite->variants[v].id, variant_id) == 0) found->variant = v;
    if (found->sample < 0 || found->layer < 0 || found->variant < 0)
        rc = ats_fail(err, ATS_E_INPUT,
                      "the capture %s and the suite in %s no longer give sample %s, layer %lld, "
                      "variant %s; the file was made by another version of attnstress",
                      path, options->result, sample_id, (long long)options->layer, variant_id);
out:
    return rc;
}

static ats_code find_probe(ats_explain_case *found, int64_t wanted, ats_err *err)
{
    const ats_chosen *chosen = &found->plan->selection.samples[found->sample];
    const int64_t last = chosen->n_probes - 1, at = wanted < 0 ? last : wanted;
    if (at > last)
        return ats_fail(err, ATS_E_USAGE,
                        "--probe %lld: sample %s has %lld chosen probes, numbered from 0 to %lld",
                        (long long)wanted, chosen->sample->id, (long long)chosen->n_probes,
                        (long long)last);
    found->result_probe = at;
    found->probe = chosen->probes[at];
    return ATS_OK;
}

ats_code ats_explain_find(const ats_explain_options *options, ats_explain_case *out, ats_err *err)
{
    ats_explain_case found = {.file = NULL};
    ats_explain_texts samples = {0}, variants = {0}, files = {0};
    ats_code rc = ats_result_open(options->result, &found.file, err);
    if (rc != ATS_OK) goto out;
    ATS_TRY(read_texts(&found, "sample_id", &samples, err));
    ATS_TRY(read_texts(&found, "variant", &variants, err));
    ATS_TRY(read_texts(&found, "sample_capture", &files, err));
    ATS_TRY(read_texts(&found, "span", &found.spans, err));
    ATS_TRY(find_case(&found, options->case_id, &samples, &variants, err));
    ATS_TRY(find_number(&found, "layer_index", "layer", options->layer, &found.result_layer, err));
    ATS_TRY(find_number(&found, "head_index", "head", options->head, &found.result_head, err));
    ATS_TRY(load_suite(&found, options->result, err));
    ATS_TRY(make_plan(&found, options, samples.items[found.result_sample],
                      files.items[found.result_sample], variants.items[found.result_case], err));
    ATS_TRY(find_probe(&found, options->probe, err));
    *out = found;
    found = (ats_explain_case){.file = NULL};
out:
    free_texts(&samples);
    free_texts(&variants);
    free_texts(&files);
    ats_explain_case_fini(&found);
    return rc;
}

void ats_explain_case_fini(ats_explain_case *found)
{
    free_texts(&found->spans);
    if (found->plan != NULL) ats_plan_free(found->plan);
    if (found->suite != NULL) ats_suite_free(found->suite);
    if (found->file != NULL) ats_result_close(found->file);
    *found = (ats_explain_case){.file = NULL};
}

#include <stdlib.h>
#include <string.h>

#include "capture/reader.h"

typedef struct ats_capture_file capture_file;

/* Positions stay far from where their differences could overflow. */
#define POSITION_LIMIT ((int64_t)1 << 52)

/* An int32 field, by way of checked 64-bit numbers. */
static ats_code read_i32(capture_file *file, const char *group, const char *name, bool optional,
                         int64_t n, const int32_t **out, ats_err *err)
{
    const int64_t *wide = NULL;
    int32_t *narrow = NULL;
    ats_code rc;
    ATS_TRY(
        ats_capture_integers(file, group, name, optional, &n, INT32_MIN, INT32_MAX, &wide, err));
    if (wide == NULL) {
        *out = NULL;
        goto out;
    }
    ATS_TRY(ATS_NEW(&file->arena, n, &narrow, err));
    for (int64_t i = 0; i < n; i++) narrow[i] = (int32_t)wide[i];
    *out = narrow;
out:
    return rc;
}

static ats_code check_span(capture_file *file, const char *group, const ats_span *span,
                           int64_t n_keys, ats_err *err)
{
    if (span->name[0] == '\0')
        return ats_h5_fail(err, ATS_E_INPUT, &file->h5, group, "span [%lld, %lld) has no name",
                           (long long)span->start, (long long)span->stop);
    if (span->start < 0 || span->stop > n_keys)
        return ats_h5_fail(err, ATS_E_INPUT, &file->h5, group,
                           "span \"%s\" is [%lld, %lld), outside the %lld keys", span->name,
                           (long long)span->start, (long long)span->stop, (long long)n_keys);
    if (span->start >= span->stop)
        return ats_h5_fail(err, ATS_E_INPUT, &file->h5, group,
                           "span \"%s\" is [%lld, %lld), which is empty", span->name,
                           (long long)span->start, (long long)span->stop);
    return ATS_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const ats_span *const *)a)->name, (*(const ats_span *const *)b)->name);
}

static ats_code unique_names(capture_file *file, const char *group, const ats_span *spans,
                             int64_t n, ats_err *err)
{
    const ats_span **sorted = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(&file->arena, n, &sorted, err));
    for (int64_t i = 0; i < n; i++) sorted[i] = &spans[i];
    if (n > 1) qsort(sorted, (size_t)n, sizeof *sorted, by_name);
    for (int64_t i = 1; i < n; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0) {
            rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, group,
                             "two spans are named \"%s\"; names are unique in a sample (roles may "
                             "repeat)",
                             sorted[i]->name);
            break;
        }
out:
    return rc;
}

static ats_code read_spans(capture_file *file, const char *sample_group, ats_sample *sample,
                           ats_err *err)
{
    const char *group = NULL, *const *names = NULL, *const *roles = NULL;
    const int64_t *start = NULL, *stop = NULL;
    ats_span *spans = NULL;
    int64_t n = -1;
    ats_code rc;
    ATS_TRY(ats_capture_path(file, sample_group, "spans", &group, err));
    if (!ats_h5_exists(&file->h5, group)) goto out;
    ATS_TRY(ats_capture_texts(file, group, "name", false, true, &n, &names, err));
    ATS_TRY(ats_capture_texts(file, group, "role", false, true, &n, &roles, err));
    if (n == 0) goto out;
    ATS_TRY(
        ats_capture_integers(file, group, "start", false, &n, INT64_MIN, INT64_MAX, &start, err));
    ATS_TRY(ats_capture_integers(file, group, "stop", false, &n, INT64_MIN, INT64_MAX, &stop, err));
    ATS_TRY(ATS_NEW(&file->arena, n, &spans, err));
    for (int64_t i = 0; i < n; i++) {
        spans[i] =
            (ats_span){.name = names[i], .role = roles[i], .start = start[i], .stop = stop[i]};
        ATS_TRY(check_span(file, group, &spans[i], sample->n_keys, err));
    }
    ATS_TRY(unique_names(file, group, spans, n, err));
    sample->spans = spans;
    sample->n_spans = n;
out:
    return rc;
}

static ats_code read_probes(capture_file *file, const char *sample_group, ats_sample *sample,
                            ats_err *err)
{
    const char *group = NULL, *const *roles = NULL;
    const int64_t *index = NULL, *position = NULL;
    ats_probe *probes = NULL;
    int64_t n = -1;
    ats_code rc;
    ATS_TRY(ats_capture_path(file, sample_group, "probes", &group, err));
    ATS_TRY(
        ats_capture_integers(file, group, "index", false, &n, INT64_MIN, INT64_MAX, &index, err));
    if (n == 0) {
        rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, group,
                         "has no probe; a sample needs at least one query row");
        goto out;
    }
    ATS_TRY(ats_capture_integers(file, group, "position", false, &n, -POSITION_LIMIT,
                                 POSITION_LIMIT, &position, err));
    ATS_TRY(ats_capture_texts(file, group, "role", false, true, &n, &roles, err));
    ATS_TRY(ATS_NEW(&file->arena, n, &probes, err));
    for (int64_t i = 0; i < n; i++) {
        probes[i] = (ats_probe){.index = index[i], .position = position[i], .role = roles[i]};
        if (index[i] < -1 || index[i] >= sample->n_keys) {
            rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, group,
                             "probe %lld has key index %lld, outside the %lld keys (-1: its token "
                             "is not among them)",
                             (long long)i, (long long)index[i], (long long)sample->n_keys);
            goto out;
        }
        if (index[i] >= 0 && sample->position[index[i]] != position[i]) {
            rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, group,
                             "probe %lld is key %lld, whose position is %lld, but states position "
                             "%lld; they are one token: store its position twice, or index -1",
                             (long long)i, (long long)index[i],
                             (long long)sample->position[index[i]], (long long)position[i]);
            goto out;
        }
    }
    sample->probes = probes;
    sample->n_probes = n;
out:
    return rc;
}

static ats_code read_rows(capture_file *file, const char *group, ats_sample *sample, ats_err *err)
{
    int64_t n = sample->n_keys;
    ats_code rc;
    ATS_TRY(read_i32(file, group, "tokens", false, n, &sample->tokens, err));
    ATS_TRY(ats_capture_integers(file, group, "position", false, &n, -POSITION_LIMIT,
                                 POSITION_LIMIT, &sample->position, err));
    ATS_TRY(read_i32(file, group, "segment", true, n, &sample->segment, err));
    ATS_TRY(
        ats_capture_texts(file, group, "token_text", true, false, &n, &sample->token_text, err));
    ATS_TRY(ats_capture_integers(file, group, "base_index", true, &n, -1, INT64_MAX,
                                 &sample->base_index, err));
    if (sample->variant_of != NULL && sample->base_index == NULL)
        rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, group,
                         "is a variant of \"%s\", but has no base_index [n_keys] (-1: inserted)",
                         sample->variant_of);
out:
    return rc;
}

static ats_code read_sample(capture_file *file, const char *group, ats_sample *sample, ats_err *err)
{
    const int64_t most = file->h5.size; /* a key takes more than a byte */
    ats_code rc;
    ATS_TRY(ats_capture_text(file, group, "id", false, &sample->id, err));
    if (sample->id[0] == '\0') {
        rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, group,
                         "has an empty id; suites and results name a sample by it");
        goto out;
    }
    ATS_TRY(ats_capture_text(file, group, "cluster", true, &sample->cluster, err));
    if (sample->cluster[0] == '\0') sample->cluster = sample->id;
    if (ats_h5_has_attr(&file->h5, group, "variant_of"))
        ATS_TRY(ats_capture_text(file, group, "variant_of", false, &sample->variant_of, err));
    ATS_TRY(ats_capture_integer(file, group, "n_keys", 1, most, &sample->n_keys, err));
    ATS_TRY(read_rows(file, group, sample, err));
    ATS_TRY(read_spans(file, group, sample, err));
    ATS_TRY(read_probes(file, group, sample, err));
    for (int64_t i = 0; i < file->capture.n_layers; i++)
        ATS_TRY(ats_capture_check_tensors(file, group, sample, &file->capture.layers[i], err));
out:
    return rc;
}

typedef struct entry {
    const char *id;
    int64_t index;
} entry;

static int by_id(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->id, ((const entry *)b)->id);
}

static ats_code check_variant(capture_file *file, const ats_sample *samples, const entry *sorted,
                              int64_t n, int64_t which, ats_err *err)
{
    const ats_sample *sample = &samples[which];
    const char *group = file->sample_groups[which];
    const entry key = {.id = sample->variant_of};
    const entry *found = bsearch(&key, sorted, (size_t)n, sizeof *sorted, by_id);
    if (found == NULL || found->index == which)
        return ats_h5_fail(err, ATS_E_INPUT, &file->h5, group,
                           "variant_of names \"%s\", which is no other sample of this file",
                           sample->variant_of);
    const int64_t base_keys = samples[found->index].n_keys;
    for (int64_t i = 0; i < sample->n_keys; i++)
        if (sample->base_index[i] >= base_keys)
            return ats_h5_fail(err, ATS_E_INPUT, &file->h5, group,
                               "base_index[%lld] is %lld, but \"%s\" has %lld keys", (long long)i,
                               (long long)sample->base_index[i], sample->variant_of,
                               (long long)base_keys);
    return ATS_OK;
}

/* Ids are unique, and variants name a sample that is there. */
static ats_code check_ids(capture_file *file, const ats_sample *samples, int64_t n, ats_err *err)
{
    entry *sorted = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(&file->arena, n, &sorted, err));
    for (int64_t i = 0; i < n; i++) sorted[i] = (entry){.id = samples[i].id, .index = i};
    qsort(sorted, (size_t)n, sizeof *sorted, by_id);
    for (int64_t i = 1; i < n; i++)
        if (strcmp(sorted[i - 1].id, sorted[i].id) == 0) {
            rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, "/samples",
                             "%s and %s both have the id \"%s\"; ids are unique",
                             file->sample_groups[sorted[i - 1].index],
                             file->sample_groups[sorted[i].index], sorted[i].id);
            goto out;
        }
    for (int64_t i = 0; i < n; i++)
        if (samples[i].variant_of != NULL) ATS_TRY(check_variant(file, samples, sorted, n, i, err));
out:
    return rc;
}

ats_code ats_capture_read_samples(capture_file *file, ats_err *err)
{
    const int64_t *numbers = NULL;
    ats_sample *samples = NULL;
    int64_t n = 0;
    ats_code rc;
    ATS_TRY(ats_capture_numbered(file, "/samples", &numbers, &file->sample_groups, &n, err));
    ATS_TRY(ATS_NEW0(&file->arena, n, &samples, err));
    for (int64_t i = 0; i < n; i++)
        ATS_TRY(read_sample(file, file->sample_groups[i], &samples[i], err));
    ATS_TRY(check_ids(file, samples, n, err));
    file->capture.samples = samples;
    file->capture.n_samples = n;
out:
    return rc;
}

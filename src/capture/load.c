/* Tensors of one sample and layer: described at opening, read on demand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/describe.h"
#include "capture/memory.h"
#include "capture/reader.h"
#include "capture/stream.h"
#include "h5/checksum.h"
#include "h5/chunks.h"

typedef struct ats_capture_file capture_file;

/* What a tensor should be. */
typedef struct tensor {
    const char *name, *axes;
    bool optional, words; /* words: q, k, v in their stored float type */
    int rank;
    int64_t extent[3];
} tensor;

enum { Q, K, V, KEEP, BIAS, OUT, LSE, TENSORS = ATS_TENSORS };

typedef struct tensors {
    tensor at[TENSORS];
} tensors;

static tensors tensors_of(const ats_sample *sample, const ats_layer *layer)
{
    const int64_t n = sample->n_keys, p = sample->n_probes;
    const int64_t hq = layer->n_q_heads, hkv = layer->n_kv_heads, d = layer->d_qk, dv = layer->d_v;
    return (tensors){{
        [Q] = {"q", "[query head, probe, d_qk]", false, true, 3, {hq, p, d}},
        [K] = {"k", "[key head, key, d_qk]", false, true, 3, {hkv, n, d}},
        [V] = {"v", "[key head, key, d_v]", false, true, 3, {hkv, n, dv}},
        [KEEP] = {"keep", "[probe, key]", true, false, 2, {p, n, 0}},
        [BIAS] = {"bias", "[1 or query head, probe, key]", true, false, 3, {-1, p, n}},
        [OUT] = {"out", "[query head, probe, d_v]", true, false, 3, {hq, p, dv}},
        [LSE] = {"lse", "[query head, probe]", true, false, 2, {hq, p, 0}},
    }};
}

static ats_code check_keep_type(const ats_h5_dataset *dataset, ats_err *err)
{
    if (dataset->type == ATS_H5_U8 || dataset->type == ATS_H5_I8 || dataset->type == ATS_H5_BOOL)
        return ATS_OK;
    return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                       "holds %s; a keep mask is uint8, int8 or bool (1: may attend). An additive "
                       "mask is stored as bias",
                       ats_h5_type_name(dataset->type));
}

static ats_code check_float_type(const ats_h5_dataset *dataset, ats_err *err)
{
    if (ats_h5_type_is_float(dataset->type) || dataset->type == ATS_H5_BF16) return ATS_OK;
    return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                       "holds %s, should hold float32", ats_h5_type_name(dataset->type));
}

static ats_code check_bias_heads(const ats_h5_dataset *dataset, const ats_layer *layer,
                                 ats_err *err)
{
    const int64_t heads = dataset->extent[0];
    if (heads == 1 || heads == layer->n_q_heads) return ATS_OK;
    return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                       "has %lld planes; should have 1 or n_q_heads = %lld", (long long)heads,
                       (long long)layer->n_q_heads);
}

/* Opens and checks one tensor; an absent optional one stays closed. */
static ats_code tensor_open(capture_file *file, const char *group, const tensor *want, int which,
                            const ats_layer *layer, ats_h5_dataset *out, ats_err *err)
{
    char path[192];
    ats_dtype dtype;
    ats_code rc;
    snprintf(path, sizeof path, "%s/%s", group, want->name);
    *out = (ats_h5_dataset){.id = 0};
    if (want->optional && !ats_h5_exists(&file->h5, path)) return ATS_OK;
    ats_h5_dataset dataset = {.id = 0};
    ATS_TRY(ats_h5_dataset_open(&file->h5, path, &dataset, err));
    ATS_TRY(ats_h5_expect_shape(&dataset, want->rank, want->extent, want->axes, err));
    if (want->words) ATS_TRY(ats_capture_dtype(file, &dataset, &dtype, err));
    if (which == KEEP) ATS_TRY(check_keep_type(&dataset, err));
    if (which == BIAS) ATS_TRY(check_bias_heads(&dataset, layer, err));
    if (which > KEEP) ATS_TRY(check_float_type(&dataset, err));
    ATS_TRY(ats_h5_expect_stored(&dataset, which == KEEP || which == BIAS, err));
    *out = dataset;
    return ATS_OK;
out:
    ats_h5_dataset_close(&dataset);
    return rc;
}

static ats_code refuse_unstated_mask(capture_file *file, const char *group, ats_err *err)
{
    static const char *const names[] = {"mask", "attention_mask", "attn_mask"};
    char path[192];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", group, names[i]);
        if (ats_h5_exists(&file->h5, path))
            return ats_h5_fail(err, ATS_E_INPUT, &file->h5, path,
                               "which way round this mask is cannot be told; store it as keep (1: "
                               "may attend) or as an additive bias");
    }
    return ATS_OK;
}

static void layer_group(const char *sample_group, const ats_layer *layer, char out[128])
{
    snprintf(out, 128, "%s/layers/%lld", sample_group, (long long)layer->index);
}

ats_code ats_capture_check_tensors(capture_file *file, const char *sample_group,
                                   const ats_sample *sample, const ats_layer *layer, ats_err *err)
{
    const tensors want = tensors_of(sample, layer);
    char group[128];
    layer_group(sample_group, layer, group);
    if (!ats_h5_exists(&file->h5, group))
        return ats_h5_fail(err, ATS_E_INPUT, &file->h5, group,
                           "is missing: sample \"%s\" lacks layer %lld", sample->id,
                           (long long)layer->index);
    for (int i = 0; i < TENSORS; i++) {
        ats_h5_dataset dataset;
        const ats_code rc = tensor_open(file, group, &want.at[i], i, layer, &dataset, err);
        if (rc != ATS_OK) return rc;
        ats_h5_dataset_close(&dataset);
    }
    return refuse_unstated_mask(file, group, err);
}

/* The key heads that k and v are wanted of, as boxes. */
typedef struct heads {
    int64_t start[3], extent[2][3]; /* of k and v */
    const ats_stream *stream;       /* where they go instead of memory, or NULL */
} heads;

static const int64_t *wanted_extent(const heads *wanted, int which)
{
    return which == K || which == V ? wanted->extent[which - K] : NULL;
}

static bool streams(const heads *wanted, int which)
{
    return wanted->stream != NULL && (which == K || which == V);
}

/* Types, and the bytes that each tensor takes in memory. */
static ats_code measure(capture_file *file, const ats_h5_dataset *open, const heads *wanted,
                        ats_attention *a, size_t bytes[TENSORS], ats_err *err)
{
    ats_dtype *const dtypes[] = {[Q] = &a->q_dtype, [K] = &a->k_dtype, [V] = &a->v_dtype};
    for (int i = 0; i < TENSORS; i++) {
        bytes[i] = 0;
        if (open[i].id == 0) continue;
        const int64_t *extent = wanted_extent(wanted, i);
        size_t element = i == KEEP ? 1 : sizeof(float);
        if (i <= V) {
            const ats_code rc = ats_capture_dtype(file, &open[i], dtypes[i], err);
            if (rc != ATS_OK) return rc;
            element = ats_dtype_size(*dtypes[i]);
        }
        if (streams(wanted, i)) continue;
        const int64_t count = extent != NULL ? extent[0] * extent[1] * extent[2] : open[i].count;
        bytes[i] = (size_t)(count > 0 ? count : 1) * element;
        a->bytes += (size_t)count * element;
    }
    return ATS_OK;
}

static void place(const ats_tensor_memory *memory, ats_attention *a)
{
    a->q = memory->at[Q];
    a->k = memory->at[K];
    a->v = memory->at[V];
    a->keep = memory->at[KEEP];
    a->bias = memory->at[BIAS];
    a->out = memory->at[OUT];
    a->lse = memory->at[LSE];
    memcpy(a->room, memory->room, sizeof a->room);
}

/* suspect: where the job tells whether some number of k or v may not be finite. */
static ats_h5_job job_of(int which, const ats_h5_dataset *dataset, const heads *wanted, void *out,
                         ats_dtype dtype, bool *suspect)
{
    const int64_t *extent = wanted_extent(wanted, which);
    const bool part = extent != NULL;
    return (ats_h5_job){.dataset = dataset,
                        .start = part ? wanted->start : NULL,
                        .count = extent,
                        .sparse = which == KEEP || which == BIAS,
                        .out = out,
                        .exponent = part ? (dtype == ATS_F16 ? 0x7c : 0x7f) : 0,
                        .suspect = part ? suspect : NULL};
}

/* int8 writers may mean -1, all bits set, by true. */
static ats_code check_keep_values(const ats_h5_dataset *dataset, uint8_t *keep, ats_err *err)
{
    const int64_t keys = dataset->extent[1];
    for (int64_t i = 0; i < dataset->count; i++) {
        if (keep[i] == 0xff && dataset->type == ATS_H5_I8) keep[i] = 1;
        if (keep[i] > 1)
            return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                               "holds %d at [%lld, %lld]; a keep mask holds 0 and 1 (may attend)",
                               dataset->type == ATS_H5_U8 ? keep[i] : (int)(int8_t)keep[i],
                               (long long)(i / keys), (long long)(i % keys));
    }
    return ATS_OK;
}

static ats_code stream_keys(const ats_h5_dataset *open, const heads *wanted, ats_attention *a,
                            bool suspect[TENSORS], ats_err *err)
{
    const ats_stream_source sources[2] = {
        {job_of(K, &open[K], wanted, NULL, a->k_dtype, &suspect[K]), ats_dtype_size(a->k_dtype)},
        {job_of(V, &open[V], wanted, NULL, a->v_dtype, &suspect[V]), ats_dtype_size(a->v_dtype)}};
    return ats_stream_read(wanted->stream, sources, a, err);
}

/* Everything that is stored as it is kept goes through one pass; other floats are converted. */
static ats_code read_tensors(capture_file *file, const ats_h5_dataset *open, const heads *wanted,
                             ats_attention *spare, ats_attention *a, bool suspect[TENSORS],
                             ats_err *err)
{
    ats_tensor_memory memory = ats_tensor_memory_take(spare);
    size_t bytes[TENSORS];
    ats_h5_job jobs[TENSORS];
    int64_t n = 0;
    ats_code rc;
    rc = measure(file, open, wanted, a, bytes, err);
    if (rc == ATS_OK) {
        rc = ats_tensor_memory_fit(&memory, bytes, err);
        if (rc != ATS_OK) rc = ats_prepend(err, rc, "%s: %s", file->h5.path, open[K].name);
    }
    if (rc != ATS_OK) {
        ats_tensor_memory_fini(&memory);
        goto out;
    }
    place(&memory, a);
    if (open[BIAS].id != 0) a->bias_heads = open[BIAS].extent[0];
    for (int i = 0; i < TENSORS; i++) {
        if (open[i].id == 0 || streams(wanted, i)) continue;
        jobs[n] = job_of(i, &open[i], wanted, memory.at[i], i == K ? a->k_dtype : a->v_dtype,
                         &suspect[i]);
        if (i > KEEP && open[i].type != ATS_H5_F32)
            ATS_TRY(ats_h5_read(&open[i], NULL, NULL, ATS_H5_F32, jobs[n].out, err));
        else
            n++;
    }
    ATS_TRY(ats_h5_read_many(jobs, n, err));
    if (wanted->stream != NULL) ATS_TRY(stream_keys(open, wanted, a, suspect, err));
    if (a->keep != NULL) rc = check_keep_values(&open[KEEP], a->keep, err);
out:
    return rc;
}

ats_code ats_attention_load(const ats_capture *capture, int64_t sample, int64_t layer,
                            ats_attention *out, ats_err *err)
{
    return ats_attention_load_heads(capture, sample, layer, 0, capture->layers[layer].n_kv_heads,
                                    out, err);
}

ats_code ats_attention_load_heads(const ats_capture *capture, int64_t sample, int64_t layer,
                                  int64_t first, int64_t count, ats_attention *out, ats_err *err)
{
    ats_attention none = {.bytes = 0};
    return ats_attention_reload(capture, sample, layer, first, count, NULL, &none, out, err);
}

/* Everything that needs the file. */
static ats_code load_stored(capture_file *file, int64_t sample, const ats_layer *l,
                            const heads *wanted, ats_attention *spare, ats_attention *a,
                            bool suspect[TENSORS], ats_err *err)
{
    const tensors want = tensors_of(&file->capture.samples[sample], l);
    ats_h5_dataset open[TENSORS] = {{.id = 0}};
    char group[128];
    ats_code rc;
    if (file->h5.hdf5 != NULL) pthread_mutex_lock(file->h5.hdf5);
    layer_group(file->sample_groups[sample], l, group);
    for (int i = 0; i < TENSORS; i++)
        ATS_TRY(tensor_open(file, group, &want.at[i], i, l, &open[i], err));
    rc = read_tensors(file, open, wanted, spare, a, suspect, err);
out:
    for (int i = 0; i < TENSORS; i++) ats_h5_dataset_close(&open[i]);
    if (file->h5.hdf5 != NULL) pthread_mutex_unlock(file->h5.hdf5);
    return rc;
}

ats_code ats_attention_reload(const ats_capture *capture, int64_t sample, int64_t layer,
                              int64_t first, int64_t count, const ats_stream *stream,
                              ats_attention *spare, ats_attention *out, ats_err *err)
{
    const ats_sample *s = &capture->samples[sample];
    const ats_layer *l = &capture->layers[layer];
    const heads wanted = {.start = {first, 0, 0},
                          .extent = {{count, s->n_keys, l->d_qk}, {count, s->n_keys, l->d_v}},
                          .stream = stream};
    ats_attention a = {.first_kv_head = first};
    bool suspect[TENSORS] = {false};
    ats_code rc;
    ATS_TRY(load_stored(capture->file, sample, l, &wanted, spare, &a, suspect, err));
    ATS_TRY(ats_capture_check_visible(capture, l, s, &a, count, suspect[K], suspect[V], err));
    *out = a;
out:
    ats_attention_fini(spare);
    if (rc != ATS_OK) ats_attention_fini(&a);
    return rc;
}

void ats_capture_share(const ats_capture *capture, pthread_mutex_t *hdf5)
{
    capture->file->h5.hdf5 = hdf5;
}

static ats_code count_checksums(capture_file *file, int64_t sample, const ats_layer *l,
                                int64_t *tensors_seen, int64_t *with, ats_err *err)
{
    const tensors want = tensors_of(&file->capture.samples[sample], l);
    char group[128];
    layer_group(file->sample_groups[sample], l, group);
    for (int i = 0; i < TENSORS; i++) {
        ats_h5_dataset dataset;
        bool has = false;
        ats_code rc = tensor_open(file, group, &want.at[i], i, l, &dataset, err);
        if (rc == ATS_OK && dataset.id > 0) {
            rc = ats_h5_checksummed(&dataset, &has, err);
            *tensors_seen += 1;
            *with += has;
        }
        ats_h5_dataset_close(&dataset);
        if (rc != ATS_OK) return rc;
    }
    return ATS_OK;
}

ats_code ats_capture_checksums(const ats_capture *capture, int64_t *total, int64_t *with,
                               ats_err *err)
{
    int64_t seen = 0, good = 0;
    ats_code rc = ATS_OK;
    for (int64_t s = 0; s < capture->n_samples; s++)
        for (int64_t l = 0; l < capture->n_layers; l++)
            ATS_TRY(count_checksums(capture->file, s, &capture->layers[l], &seen, &good, err));
    *total = seen;
    *with = good;
out:
    return rc;
}

ats_code ats_capture_storage(const ats_capture *capture, int64_t sample, int64_t layer,
                             ats_storage *out, ats_err *err)
{
    capture_file *file = capture->file;
    const ats_layer *l = &capture->layers[layer];
    const tensors want = tensors_of(&capture->samples[sample], l);
    ats_storage storage = {.bytes = 0};
    bool present[TENSORS] = {false};
    ats_dtype *const dtypes[] = {&storage.q_dtype, &storage.k_dtype, &storage.v_dtype};
    char group[128];
    ats_code rc = ATS_OK;
    layer_group(file->sample_groups[sample], l, group);
    for (int i = 0; i < TENSORS; i++) {
        ats_h5_dataset dataset;
        int64_t stored = 0;
        ATS_TRY(tensor_open(file, group, &want.at[i], i, l, &dataset, err));
        present[i] = dataset.id > 0;
        const size_t element = i > KEEP ? sizeof(float) : dataset.size;
        storage.bytes += present[i] ? dataset.count * (int64_t)element : 0;
        if (present[i]) rc = ats_h5_stored(&dataset, &stored, err);
        storage.stored += stored;
        if (rc == ATS_OK && (i == K || i == V)) {
            const int64_t room = ats_stream_room(&dataset);
            if (room > storage.stream_room) storage.stream_room = room;
        }
        if (rc == ATS_OK && i <= V) rc = ats_capture_dtype(file, &dataset, dtypes[i], err);
        ats_h5_dataset_close(&dataset);
        if (rc != ATS_OK) goto out;
    }
    storage.keep = present[KEEP];
    storage.bias = present[BIAS];
    storage.out = present[OUT];
    storage.lse = present[LSE];
    *out = storage;
out:
    return rc;
}

void ats_attention_fini(ats_attention *attention)
{
    free(attention->q);
    if (attention->scratch == NULL) free(attention->k);
    if (attention->scratch == NULL) free(attention->v);
    ats_scratch_free(attention->scratch);
    free(attention->keep);
    free(attention->bias);
    free(attention->out);
    free(attention->lse);
    *attention = (ats_attention){.bytes = 0};
}

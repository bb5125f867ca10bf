#include "capture/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/format.h"
#include "h5/attr.h"
#include "h5/chunks.h"

struct ats_capture_writer {
    ats_h5_file file;
    int64_t n_layers, n_samples;
    int64_t next_layer; /* of the sample begun last */
    ats_layer *layers;  /* [n_layers]; numbers alone are used, pointers inside are the caller's */
};

typedef struct object {
    char text[96];
} object;

static object group_path(const char *parent, int64_t number)
{
    object p;
    snprintf(p.text, sizeof p.text, "%s/%lld", parent, (long long)number);
    return p;
}

static object child_path(const char *parent, const char *name)
{
    object p;
    snprintf(p.text, sizeof p.text, "%s/%s", parent, name);
    return p;
}

static ats_code put_root(const ats_h5_file *file, const ats_capture *meta, ats_err *err)
{
    const struct {
        const char *name, *text;
    } texts[] = {{"model_id", meta->model_id},         {"checkpoint", meta->checkpoint},
                 {"weights_hash", meta->weights_hash}, {"tokenizer_hash", meta->tokenizer_hash},
                 {"created", meta->created},           {"producer", meta->producer}};
    ats_code rc;
    ATS_TRY(ats_h5_put_text(file, "/", "format", ATS_CAPTURE_FORMAT, err));
    ATS_TRY(ats_h5_put_i64(file, "/", "format_version", ATS_CAPTURE_VERSION, err));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *text = texts[i].text != NULL ? texts[i].text : "";
        ATS_TRY(ats_h5_put_text(file, "/", texts[i].name, text, err));
    }
out:
    return rc;
}

/* Chunks [1, rows, last] of at most 512 KiB, as the reader likes them. */
static void tensor_chunk(ats_h5_layout *layout, size_t element)
{
    enum { CHUNK_BYTES = 512 << 10 };
    const int last = layout->rank - 1;
    for (int i = 0; i < layout->rank; i++) layout->chunk[i] = 1;
    ats_h5_chunk_shape(1, &layout->extent[last], element, &layout->chunk[last]);
    int64_t rows = CHUNK_BYTES / (layout->chunk[last] * (int64_t)element);
    if (rows < 1) rows = 1;
    if (last > 0)
        layout->chunk[last - 1] = rows < layout->extent[last - 1] ? rows : layout->extent[last - 1];
}

static ats_code put_tensor(const ats_h5_file *file, const char *group, const char *name,
                           ats_h5_type type, const char *storage, int rank, const int64_t *extent,
                           const void *data, ats_err *err)
{
    const object p = child_path(group, name);
    ats_h5_layout layout = {.type = type,
                            .rank = rank,
                            .chunked = true,
                            .shuffle = true,
                            .compression = ATS_H5_ZSTD,
                            .level = 3};
    ats_h5_dataset dataset = {.id = 0};
    ats_code rc;
    if (data == NULL) return ATS_OK;
    for (int i = 0; i < rank; i++) layout.extent[i] = extent[i];
    tensor_chunk(&layout, ats_h5_type_size(type));
    ATS_TRY(ats_h5_dataset_create(file, p.text, &layout, &dataset, err));
    ATS_TRY(ats_h5_write_box(&dataset, NULL, NULL, data, err));
    if (storage != NULL) rc = ats_h5_put_text(file, p.text, "storage_dtype", storage, err);
out:
    ats_h5_dataset_close(&dataset);
    return rc;
}

/* Small data goes into the object's header, which has a checksum, the rest into chunks with one. */
static ats_code save(const ats_h5_file *file, const char *group, const char *name, ats_h5_type type,
                     int rank, const int64_t *extent, const void *data, ats_err *err)
{
    enum { SMALL = 16 << 10 /* bytes */ };
    const object p = child_path(group, name);
    int64_t bytes = (int64_t)ats_h5_type_size(type);
    for (int i = 0; i < rank; i++) bytes *= extent[i];
    return bytes > SMALL ? put_tensor(file, group, name, type, NULL, rank, extent, data, err)
                         : ats_h5_save(file, p.text, type, rank, extent, data, err);
}

static ats_code put_layer_numbers(const ats_h5_file *file, const char *group,
                                  const ats_layer *layer, ats_err *err)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"n_q_heads", layer->n_q_heads},
                   {"n_kv_heads", layer->n_kv_heads},
                   {"d_qk", layer->d_qk},
                   {"d_v", layer->d_v},
                   {"window", layer->contract.window},
                   {"chunk", layer->contract.chunk},
                   {"causal", layer->contract.causal},
                   {"rope_dynamic", layer->rope_dynamic},
                   {"max_position", layer->max_position}};
    ats_code rc;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        ATS_TRY(ats_h5_put_i64(file, group, numbers[i].name, numbers[i].value, err));
    ATS_TRY(ats_h5_put_f64(file, group, "scale", layer->contract.scale, err));
    ATS_TRY(ats_h5_put_f64(file, group, "softcap", layer->contract.softcap, err));
    ATS_TRY(ats_h5_put_text(file, group, "rope_layout",
                            ats_rope_layout_word(layer->contract.rope.layout), err));
    rc = ats_h5_put_text(file, group, "positions", ats_positions_word(layer->positions), err);
out:
    return rc;
}

static ats_code put_layer(const ats_h5_file *file, const ats_layer *layer, ats_err *err)
{
    const object group = group_path("/layers", layer->index);
    const ats_rope *rope = &layer->contract.rope;
    const int64_t heads[1] = {layer->n_q_heads};
    const int64_t output[3] = {layer->n_q_heads, layer->d_v, layer->d_model};
    ats_code rc;
    ATS_TRY(ats_h5_group_create(file, group.text, err));
    ATS_TRY(put_layer_numbers(file, group.text, layer, err));
    if (rope->layout != ATS_ROPE_NONE && rope->inv_freq != NULL)
        ATS_TRY(
            save(file, group.text, "inv_freq", ATS_H5_F64, 1, &rope->pairs, rope->inv_freq, err));
    if (layer->sink != NULL)
        ATS_TRY(save(file, group.text, "sink", ATS_H5_F32, 1, heads, layer->sink, err));
    if (layer->alibi_slope != NULL)
        ATS_TRY(
            save(file, group.text, "alibi_slope", ATS_H5_F32, 1, heads, layer->alibi_slope, err));
    if (layer->w_o != NULL) {
        ATS_TRY(save(file, group.text, "w_o", ATS_H5_F32, 3, output, layer->w_o, err));
        const object w_o = child_path(group.text, "w_o");
        ATS_TRY(ats_h5_put_text(file, w_o.text, "storage_dtype", "float32", err));
    }
out:
    return rc;
}

static ats_code put_readouts(const ats_h5_file *file, const ats_capture *meta, ats_err *err)
{
    const int64_t extent[2] = {meta->n_readouts, meta->readout_dim};
    ats_code rc;
    if (meta->n_readouts == 0) return ATS_OK;
    ATS_TRY(ats_h5_group_create(file, "/readouts", err));
    ATS_TRY(ats_h5_write_texts(file, "/readouts/names", meta->readout_names, meta->n_readouts, NULL,
                               err));
    rc = save(file, "/readouts", "direction", ATS_H5_F32, 2, extent, meta->readouts, err);
out:
    return rc;
}

ats_code ats_capture_create(const char *path, const ats_capture *meta, ats_capture_writer **out,
                            ats_err *err)
{
    ats_capture_writer *writer = calloc(1, sizeof *writer);
    ats_code rc;
    if (writer == NULL) return ats_fail(err, ATS_E_MEMORY, "out of memory for a capture writer");
    writer->n_layers = meta->n_layers;
    writer->layers = calloc((size_t)meta->n_layers + 1, sizeof *writer->layers);
    if (writer->layers == NULL) {
        rc = ats_fail(err, ATS_E_MEMORY, "out of memory for a capture writer");
        goto out;
    }
    ATS_TRY(ats_h5_create(path, &writer->file, err));
    ATS_TRY(put_root(&writer->file, meta, err));
    ATS_TRY(ats_h5_group_create(&writer->file, "/layers", err));
    for (int64_t i = 0; i < meta->n_layers; i++) {
        writer->layers[i] = meta->layers[i];
        ATS_TRY(put_layer(&writer->file, &meta->layers[i], err));
    }
    ATS_TRY(put_readouts(&writer->file, meta, err));
    ATS_TRY(ats_h5_group_create(&writer->file, "/samples", err));
    *out = writer;
    return ATS_OK;
out:
    ats_capture_abort(writer);
    return rc;
}

/* One text member of n records, `stride` bytes apart, as a dataset. */
static ats_code put_names(const ats_h5_file *file, const char *group, const char *name,
                          const void *records, size_t stride, size_t offset, int64_t n,
                          ats_err *err)
{
    const object p = child_path(group, name);
    const char **texts = malloc(((size_t)n + 1) * sizeof *texts);
    if (texts == NULL)
        return ats_fail(err, ATS_E_MEMORY, "out of memory for %lld names", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        const char *text;
        memcpy(&text, (const char *)records + (size_t)i * stride + offset, sizeof text);
        texts[i] = text != NULL ? text : "";
    }
    const ats_code rc = ats_h5_write_texts(file, p.text, texts, n, NULL, err);
    free(texts);
    return rc;
}

/* One int64_t member of n records as a dataset. */
static ats_code put_numbers(const ats_h5_file *file, const char *group, const char *name,
                            const void *records, size_t stride, size_t offset, int64_t n,
                            ats_err *err)
{
    int64_t *values = malloc(((size_t)n + 1) * sizeof *values);
    if (values == NULL)
        return ats_fail(err, ATS_E_MEMORY, "out of memory for %lld numbers", (long long)n);
    for (int64_t i = 0; i < n; i++)
        memcpy(&values[i], (const char *)records + (size_t)i * stride + offset, sizeof *values);
    const ats_code rc = save(file, group, name, ATS_H5_I64, 1, &n, values, err);
    free(values);
    return rc;
}

static ats_code put_spans(const ats_h5_file *file, const char *sample, const ats_span *spans,
                          int64_t n, ats_err *err)
{
    const object group = child_path(sample, "spans");
    const size_t stride = sizeof *spans;
    ats_code rc;
    ATS_TRY(ats_h5_group_create(file, group.text, err));
    ATS_TRY(put_names(file, group.text, "name", spans, stride, offsetof(ats_span, name), n, err));
    ATS_TRY(put_names(file, group.text, "role", spans, stride, offsetof(ats_span, role), n, err));
    ATS_TRY(
        put_numbers(file, group.text, "start", spans, stride, offsetof(ats_span, start), n, err));
    ATS_TRY(put_numbers(file, group.text, "stop", spans, stride, offsetof(ats_span, stop), n, err));
out:
    return rc;
}

static ats_code put_probes(const ats_h5_file *file, const char *sample, const ats_probe *probes,
                           int64_t n, ats_err *err)
{
    const object group = child_path(sample, "probes");
    const size_t stride = sizeof *probes;
    ats_code rc;
    ATS_TRY(ats_h5_group_create(file, group.text, err));
    ATS_TRY(
        put_numbers(file, group.text, "index", probes, stride, offsetof(ats_probe, index), n, err));
    ATS_TRY(put_numbers(file, group.text, "position", probes, stride, offsetof(ats_probe, position),
                        n, err));
    ATS_TRY(put_names(file, group.text, "role", probes, stride, offsetof(ats_probe, role), n, err));
out:
    return rc;
}

static ats_code put_sample(const ats_h5_file *file, const char *group, const ats_sample *sample,
                           ats_err *err)
{
    const int64_t n[1] = {sample->n_keys};
    ats_code rc;
    ATS_TRY(ats_h5_group_create(file, group, err));
    ATS_TRY(ats_h5_put_text(file, group, "id", sample->id, err));
    ATS_TRY(ats_h5_put_text(file, group, "cluster",
                            sample->cluster != NULL ? sample->cluster : sample->id, err));
    ATS_TRY(ats_h5_put_i64(file, group, "n_keys", sample->n_keys, err));
    if (sample->variant_of != NULL)
        ATS_TRY(ats_h5_put_text(file, group, "variant_of", sample->variant_of, err));
    ATS_TRY(save(file, group, "tokens", ATS_H5_I32, 1, n, sample->tokens, err));
    ATS_TRY(save(file, group, "position", ATS_H5_I64, 1, n, sample->position, err));
    if (sample->segment != NULL)
        ATS_TRY(save(file, group, "segment", ATS_H5_I32, 1, n, sample->segment, err));
    if (sample->base_index != NULL)
        ATS_TRY(save(file, group, "base_index", ATS_H5_I64, 1, n, sample->base_index, err));
    if (sample->token_text != NULL)
        ATS_TRY(put_names(file, group, "token_text", sample->token_text, sizeof(char *), 0,
                          sample->n_keys, err));
    ATS_TRY(put_spans(file, group, sample->spans, sample->n_spans, err));
    rc = put_probes(file, group, sample->probes, sample->n_probes, err);
out:
    return rc;
}

static ats_code put_words(const ats_h5_file *file, const char *group, const char *name,
                          ats_dtype dtype, const int64_t extent[3], const void *data, ats_err *err)
{
    const ats_h5_type type = dtype == ATS_F32 ? ATS_H5_F32 : ATS_H5_U16;
    return put_tensor(file, group, name, type, ats_dtype_name(dtype), 3, extent, data, err);
}

static ats_code put_attention(const ats_h5_file *file, const char *group, const ats_layer *layer,
                              const ats_sample *sample, const ats_attention *a, ats_err *err)
{
    const int64_t n = sample->n_keys, probes = sample->n_probes;
    const int64_t q[3] = {layer->n_q_heads, probes, layer->d_qk};
    const int64_t k[3] = {layer->n_kv_heads, n, layer->d_qk};
    const int64_t v[3] = {layer->n_kv_heads, n, layer->d_v};
    const int64_t keep[2] = {probes, n}, bias[3] = {a->bias_heads, probes, n};
    const int64_t out_extent[3] = {layer->n_q_heads, probes, layer->d_v};
    const int64_t lse[2] = {layer->n_q_heads, probes};
    ats_code rc;
    ATS_TRY(put_words(file, group, "q", a->q_dtype, q, a->q, err));
    ATS_TRY(put_words(file, group, "k", a->k_dtype, k, a->k, err));
    ATS_TRY(put_words(file, group, "v", a->v_dtype, v, a->v, err));
    ATS_TRY(put_tensor(file, group, "keep", ATS_H5_U8, NULL, 2, keep, a->keep, err));
    ATS_TRY(put_tensor(file, group, "bias", ATS_H5_F32, "float32", 3, bias, a->bias, err));
    ATS_TRY(put_tensor(file, group, "out", ATS_H5_F32, "float32", 3, out_extent, a->out, err));
    ATS_TRY(put_tensor(file, group, "lse", ATS_H5_F32, "float32", 2, lse, a->lse, err));
out:
    return rc;
}

ats_code ats_capture_begin_sample(ats_capture_writer *writer, const ats_sample *sample,
                                  ats_err *err)
{
    const object group = group_path("/samples", writer->n_samples);
    const object layers = child_path(group.text, "layers");
    ats_code rc;
    ATS_ASSERT(writer->n_samples == 0 || writer->next_layer == writer->n_layers);
    ATS_TRY(put_sample(&writer->file, group.text, sample, err));
    ATS_TRY(ats_h5_group_create(&writer->file, layers.text, err));
    writer->n_samples++;
    writer->next_layer = 0;
out:
    return rc;
}

ats_code ats_capture_add_layer(ats_capture_writer *writer, const ats_sample *sample,
                               const ats_attention *tensors, ats_err *err)
{
    ATS_ASSERT(writer->n_samples > 0 && writer->next_layer < writer->n_layers);
    const ats_layer *at = &writer->layers[writer->next_layer];
    const object group = group_path("/samples", writer->n_samples - 1);
    const object layers = child_path(group.text, "layers");
    const object layer = group_path(layers.text, at->index);
    ats_code rc;
    ATS_TRY(ats_h5_group_create(&writer->file, layer.text, err));
    ATS_TRY(put_attention(&writer->file, layer.text, at, sample, tensors, err));
    writer->next_layer++;
out:
    return rc;
}

ats_code ats_capture_add_sample(ats_capture_writer *writer, const ats_sample *sample,
                                const ats_attention *tensors, ats_err *err)
{
    ats_code rc;
    ATS_TRY(ats_capture_begin_sample(writer, sample, err));
    for (int64_t i = 0; i < writer->n_layers; i++)
        ATS_TRY(ats_capture_add_layer(writer, sample, &tensors[i], err));
out:
    return rc;
}

ats_code ats_capture_finish(ats_capture_writer *writer, ats_err *err)
{
    ats_code rc = ats_h5_put_i64(&writer->file, "/", "complete", 1, err);
    if (rc == ATS_OK) rc = ats_h5_commit(&writer->file, err);
    ats_capture_abort(writer);
    return rc;
}

void ats_capture_abort(ats_capture_writer *writer)
{
    if (writer == NULL) return;
    ats_h5_close(&writer->file);
    free(writer->layers);
    free(writer);
}

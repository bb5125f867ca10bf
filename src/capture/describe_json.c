#include <jansson.h>
#include <string.h>

#include "capture/describe.h"
#include "capture/format.h"

/* Sets a member; `good` stays false once anything failed (jansson returns NULL when out of memory).
 */
static void set(json_t *object, const char *name, json_t *value, bool *good)
{
    if (json_object_set_new(object, name, value) != 0) *good = false;
}

static void set_int(json_t *object, const char *name, int64_t value, bool *good)
{
    set(object, name, json_integer(value), good);
}

static void set_text(json_t *object, const char *name, const char *text, bool *good)
{
    set(object, name, json_string(text != NULL ? text : ""), good);
}

static json_t *layer_json(const ats_layer *layer, bool *good)
{
    json_t *o = json_object();
    const ats_contract *c = &layer->contract;
    set_int(o, "layer", layer->index, good);
    set_int(o, "n_q_heads", layer->n_q_heads, good);
    set_int(o, "n_kv_heads", layer->n_kv_heads, good);
    set_int(o, "d_qk", layer->d_qk, good);
    set_int(o, "d_v", layer->d_v, good);
    set(o, "scale", json_real(c->scale), good);
    set(o, "softcap", json_real(c->softcap), good);
    set_int(o, "window", c->window, good);
    set_int(o, "chunk", c->chunk, good);
    set(o, "causal", json_boolean(c->causal), good);
    set_text(o, "positions", ats_positions_word(layer->positions), good);
    set_text(o, "rope_layout", ats_rope_layout_word(c->rope.layout), good);
    set_int(o, "rotary_dim", 2 * c->rope.pairs, good);
    set(o, "rope_dynamic", json_boolean(layer->rope_dynamic), good);
    set_int(o, "max_position", layer->max_position, good);
    set(o, "sink", json_boolean(layer->sink != NULL), good);
    set_int(o, "d_model", layer->d_model, good);
    return o;
}

static json_t *span_json(const ats_sample *sample, const ats_span *span, bool *good)
{
    enum { EXCERPT = 200 };
    char excerpt[EXCERPT + 8];
    json_t *o = json_object();
    set_text(o, "name", span->name, good);
    set_text(o, "role", span->role, good);
    set_int(o, "start", span->start, good);
    set_int(o, "stop", span->stop, good);
    if (ats_span_excerpt(sample, span, EXCERPT, excerpt, sizeof excerpt))
        set_text(o, "text", excerpt, good);
    return o;
}

static json_t *probe_json(const ats_probe *probe, bool *good)
{
    json_t *o = json_object();
    set_int(o, "index", probe->index, good);
    set_int(o, "position", probe->position, good);
    set_text(o, "role", probe->role, good);
    return o;
}

static json_t *storage_json(const ats_layer *layer, const ats_storage *storage, bool *good)
{
    json_t *o = json_object();
    set_int(o, "layer", layer->index, good);
    set_text(o, "q_dtype", ats_dtype_name(storage->q_dtype), good);
    set_text(o, "k_dtype", ats_dtype_name(storage->k_dtype), good);
    set_text(o, "v_dtype", ats_dtype_name(storage->v_dtype), good);
    set_int(o, "bytes", storage->bytes, good);
    set_int(o, "stored", storage->stored, good);
    set(o, "keep", json_boolean(storage->keep), good);
    set(o, "bias", json_boolean(storage->bias), good);
    set(o, "out", json_boolean(storage->out), good);
    set(o, "lse", json_boolean(storage->lse), good);
    return o;
}

static void append(json_t *array, json_t *value, bool *good)
{
    if (json_array_append_new(array, value) != 0) *good = false;
}

static ats_code sample_json(const ats_capture *capture, int64_t index, json_t *o, bool *good,
                            ats_err *err)
{
    const ats_sample *sample = &capture->samples[index];
    json_t *spans = json_array(), *probes = json_array(), *tensors = json_array();
    set_text(o, "id", sample->id, good);
    set_text(o, "cluster", sample->cluster, good);
    if (sample->variant_of != NULL) set_text(o, "variant_of", sample->variant_of, good);
    set_int(o, "n_keys", sample->n_keys, good);
    for (int64_t i = 0; i < sample->n_spans; i++)
        append(spans, span_json(sample, &sample->spans[i], good), good);
    for (int64_t i = 0; i < sample->n_probes; i++)
        append(probes, probe_json(&sample->probes[i], good), good);
    set(o, "spans", spans, good);
    set(o, "probes", probes, good);
    set(o, "tensors", tensors, good);
    for (int64_t i = 0; i < capture->n_layers; i++) {
        ats_storage storage;
        const ats_code rc = ats_capture_storage(capture, index, i, &storage, err);
        if (rc != ATS_OK) return rc;
        append(tensors, storage_json(&capture->layers[i], &storage, good), good);
    }
    return ATS_OK;
}

static void root_json(const ats_capture *capture, json_t *root, bool *good)
{
    json_t *layers = json_array(), *readouts = json_array();
    set_text(root, "path", capture->path, good);
    set_text(root, "hash", capture->hash, good);
    set_text(root, "model_id", capture->model_id, good);
    set_text(root, "checkpoint", capture->checkpoint, good);
    set_text(root, "weights_hash", capture->weights_hash, good);
    set_text(root, "tokenizer_hash", capture->tokenizer_hash, good);
    set_text(root, "created", capture->created, good);
    set_text(root, "producer", capture->producer, good);
    for (int64_t i = 0; i < capture->n_layers; i++)
        append(layers, layer_json(&capture->layers[i], good), good);
    for (int64_t i = 0; i < capture->n_readouts; i++)
        append(readouts, json_string(capture->readout_names[i]), good);
    set(root, "layers", layers, good);
    set(root, "readouts", readouts, good);
}

ats_code ats_capture_json(const ats_capture *capture, FILE *out, ats_err *err)
{
    json_t *root = json_object(), *samples = json_array();
    bool good = root != NULL && samples != NULL;
    ats_code rc = ATS_OK;
    root_json(capture, root, &good);
    set(root, "samples", samples, &good);
    for (int64_t i = 0; i < capture->n_samples && rc == ATS_OK; i++) {
        json_t *sample = json_object();
        append(samples, sample, &good);
        rc = sample_json(capture, i, sample, &good, err);
    }
    if (rc == ATS_OK && !good)
        rc = ats_fail(err, ATS_E_INTERNAL,
                      "%s: cannot be put into JSON (its path or a name is not "
                      "UTF-8, or memory ran out)",
                      capture->path);
    if (rc == ATS_OK && (json_dumpf(root, out, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) != 0 ||
                         fputc('\n', out) == EOF))
        rc = ats_fail(err, ATS_E_IO, "%s: its JSON cannot be printed", capture->path);
    json_decref(root);
    return rc;
}

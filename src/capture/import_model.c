#include "capture/import_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "capture/format.h"

static ats_code find_layer_tensor(ats_import_model *m, const char *key, const char *pattern,
                                  int64_t layer, bool optional, const ats_tensor **out,
                                  ats_err *err)
{
    return ats_import_find(&m->set, key, pattern, m->header->samples[0].id, layer, optional, out,
                           err);
}

static ats_code agree(const char *what, int64_t stated, int64_t found, const ats_tensor *tensor,
                      int64_t *out, ats_err *err)
{
    if (stated != 0 && stated != found)
        return ats_fail(err, ATS_E_INPUT,
                        "%s: tensor %s says %s = %lld, the header says %lld (is the layout right?)",
                        tensor->file->path, tensor->name, what, (long long)found,
                        (long long)stated);
    *out = found;
    return ATS_OK;
}

/* Heads and widths, from q, k and v of the first sample. */
static ats_code read_shape(ats_import_model *m, const ats_import_layer *entry, ats_layer *layer,
                           ats_err *err)
{
    const ats_import_names *names = &m->header->names;
    const struct {
        const char *key, *pattern;
    } wanted[] = {{"q", names->q}, {"k", names->k}, {"v", names->v}};
    ats_import_view view[3];
    ats_code rc;
    for (int i = 0; i < 3; i++) {
        const ats_tensor *tensor = NULL;
        ATS_TRY(find_layer_tensor(m, wanted[i].key, wanted[i].pattern, layer->index, false, &tensor,
                                  err));
        ATS_TRY(ats_import_view_layout(m->header, tensor, false, &view[i], err));
    }
    ATS_TRY(agree("n_q_heads", entry->n_q_heads, view[0].extent[0], view[0].tensor,
                  &layer->n_q_heads, err));
    ATS_TRY(agree("n_kv_heads", entry->n_kv_heads, view[1].extent[0], view[1].tensor,
                  &layer->n_kv_heads, err));
    ATS_TRY(agree("d_qk", entry->d_qk, view[0].extent[2], view[0].tensor, &layer->d_qk, err));
    ATS_TRY(agree("d_v", entry->d_v, view[2].extent[2], view[2].tensor, &layer->d_v, err));
    if (layer->n_q_heads % layer->n_kv_heads != 0)
        rc = ats_fail(err, ATS_E_INPUT,
                      "layer %lld: %lld query heads are no multiple of %lld key heads (is the "
                      "layout right?)",
                      (long long)layer->index, (long long)layer->n_q_heads,
                      (long long)layer->n_kv_heads);
out:
    return rc;
}

/* An optional tensor of a layer, `rank` axes, as float32 in the arena. */
static ats_code take_layer_floats(ats_import_model *m, const char *key, const char *pattern,
                                  const ats_layer *layer, int rank, const char *axes,
                                  ats_import_view *view, const float **out, ats_err *err)
{
    const ats_tensor *tensor = NULL;
    float *taken = NULL, *kept = NULL;
    ats_code rc;
    ATS_TRY(find_layer_tensor(m, key, pattern, layer->index, true, &tensor, err));
    if (tensor == NULL) goto out;
    ATS_TRY(ats_import_view_last(tensor, rank, axes, view, err));
    if (view->extent[3 - rank] != layer->n_q_heads) {
        rc = ats_fail(err, ATS_E_INPUT, "%s: tensor %s has %lld rows for %lld query heads",
                      tensor->file->path, tensor->name, (long long)view->extent[3 - rank],
                      (long long)layer->n_q_heads);
        goto out;
    }
    ATS_TRY(ats_import_take_floats(&m->set, view, NULL, 0, m->header->words, &taken, err));
    ATS_TRY(ATS_NEW(m->arena, tensor->count, &kept, err));
    memcpy(kept, taken, (size_t)tensor->count * sizeof *kept);
    *out = kept;
out:
    free(taken);
    return rc;
}

static ats_code read_layer_tensors(ats_import_model *m, ats_layer *layer, ats_err *err)
{
    const ats_import_names *names = &m->header->names;
    ats_import_view view;
    ats_code rc;
    ATS_TRY(take_layer_floats(m, "sink", names->sink, layer, 1, "[query head]", &view, &layer->sink,
                              err));
    ATS_TRY(take_layer_floats(m, "alibi_slope", names->alibi_slope, layer, 1, "[query head]", &view,
                              &layer->alibi_slope, err));
    ATS_TRY(take_layer_floats(m, "w_o", names->w_o, layer, 3, "[query head, d_v, d_model]", &view,
                              &layer->w_o, err));
    if (layer->w_o == NULL) goto out;
    layer->d_model = view.extent[2];
    if (view.extent[1] != layer->d_v)
        rc = ats_fail(err, ATS_E_INPUT, "%s: tensor %s has %lld rows a head, but d_v is %lld",
                      view.tensor->file->path, view.tensor->name, (long long)view.extent[1],
                      (long long)layer->d_v);
out:
    return rc;
}

static ats_code read_rope(ats_import_model *m, const ats_import_layer *entry, ats_layer *layer,
                          ats_err *err)
{
    const ats_tensor *tensor = NULL;
    const double *stored = NULL;
    ats_code rc;
    if (entry->rope.layout == NULL) return ATS_OK;
    ATS_TRY(find_layer_tensor(m, "inv_freq", m->header->names.inv_freq, layer->index, true, &tensor,
                              err));
    if (tensor != NULL) ATS_TRY(ats_import_take_doubles(&m->set, tensor, &stored, err));
    rc = ats_import_make_rope(entry, m->arena, stored, tensor != NULL ? tensor->count : 0, layer,
                              err);
out:
    return rc;
}

static ats_code make_layer(ats_import_model *m, const ats_import_layer *entry, ats_layer *layer,
                           ats_err *err)
{
    ats_code rc;
    ATS_TRY(read_shape(m, entry, layer, err));
    layer->max_position = entry->max_position;
    layer->contract = (ats_contract){.softcap = entry->softcap,
                                     .temperature = 1,
                                     .window = entry->window,
                                     .chunk = entry->chunk,
                                     .causal = entry->causal};
    layer->contract.scale = isnan(entry->scale) ? 1 / sqrt((double)layer->d_qk) : entry->scale;
    const char *positions = entry->rope.layout != NULL ? "rope" : entry->positions;
    if (!ats_positions_parse(positions, &layer->positions))
        return ats_fail(err, ATS_E_INTERNAL, "positions '%s' is in one table only", positions);
    ATS_TRY(read_rope(m, entry, layer, err));
    ATS_TRY(read_layer_tensors(m, layer, err));
    const bool alibi = layer->positions == ATS_POSITIONS_ALIBI;
    if (alibi != (layer->alibi_slope != NULL))
        rc = ats_fail(err, ATS_E_INPUT, "layer %lld: %s", (long long)layer->index,
                      alibi ? "positions is alibi, but no file holds its alibi_slope"
                            : "has the tensor alibi_slope, but positions is not alibi");
out:
    return rc;
}

typedef struct numbered {
    int64_t number;
    const ats_import_layer *entry;
} numbered;

static int by_number(const void *a, const void *b)
{
    const int64_t x = ((const numbered *)a)->number, y = ((const numbered *)b)->number;
    return x < y ? -1 : x > y;
}

static ats_code note_scales(ats_import_model *m, const ats_layer *layers, int64_t n, ats_err *err)
{
    ats_import_layer_note *notes = NULL;
    const ats_code rc = ATS_NEW(m->arena, n, &notes, err);
    if (rc != ATS_OK) return rc;
    for (int64_t i = 0; i < n; i++) {
        const double stated = m->entry[i]->scale;
        notes[i] = (ats_import_layer_note){
            .layer = layers[i].index,
            .stated_scale = isnan(stated) ? 1 / sqrt((double)layers[i].d_qk) : stated,
            .scale = layers[i].contract.scale};
    }
    m->report.layers = notes;
    return ATS_OK;
}

ats_code ats_import_make_layers(ats_import_model *m, ats_err *err)
{
    const ats_import_header *header = m->header;
    numbered *order = NULL;
    ats_layer *layers = NULL;
    int64_t n = 0;
    ats_code rc;
    for (int64_t e = 0; e < header->n_layers; e++) n += header->layers[e].layers.count;
    ATS_TRY(ATS_NEW(m->arena, n, &order, err));
    ATS_TRY(ATS_NEW0(m->arena, n, &layers, err));
    ATS_TRY(ATS_NEW(m->arena, n, &m->entry, err));
    n = 0;
    for (int64_t e = 0; e < header->n_layers; e++)
        for (int64_t i = 0; i < header->layers[e].layers.count; i++)
            order[n++] = (numbered){header->layers[e].layers.items[i], &header->layers[e]};
    qsort(order, (size_t)n, sizeof *order, by_number);
    for (int64_t i = 0; i < n; i++) {
        m->entry[i] = order[i].entry;
        layers[i].index = order[i].number;
        ATS_TRY(make_layer(m, order[i].entry, &layers[i], err));
        if (layers[i].d_model > 0 && m->meta.readout_dim == 0)
            m->meta.readout_dim = layers[i].d_model;
    }
    m->meta.layers = layers;
    m->meta.n_layers = n;
    rc = note_scales(m, layers, n, err);
out:
    return rc;
}

/* From the header or from a tensor, never both; NULL: neither. */
static ats_code take_ints(ats_import_model *m, const ats_import_sample *from, const char *key,
                          const char *pattern, const ats_import_ints *listed, int64_t n,
                          int64_t low, int64_t high, const int64_t **out, ats_err *err)
{
    const ats_tensor *tensor = NULL;
    ats_code rc;
    ATS_TRY(ats_import_find(&m->set, key, pattern, from->id, -1, true, &tensor, err));
    if (tensor != NULL && m->header->n_samples > 1 && strstr(pattern, "{sample}") == NULL)
        return ats_fail(err, ATS_E_INPUT,
                        "there are several samples, but names.%s is '%s' for each of them; put "
                        "{sample} into it",
                        key, pattern);
    if (tensor != NULL && listed->count > 0)
        return ats_fail(err, ATS_E_INPUT,
                        "sample %s: %s stands in the header and in the tensor %s; give one of them",
                        from->id, key, tensor->name);
    if (tensor != NULL) return ats_import_take_integers(&m->set, tensor, n, low, high, out, err);
    if (listed->count == 0) return ATS_OK;
    if (listed->count != n)
        return ats_fail(err, ATS_E_INPUT, "sample %s: %s lists %lld numbers for %lld keys",
                        from->id, key, (long long)listed->count, (long long)n);
    for (int64_t i = 0; i < n; i++)
        if (listed->items[i] < low || listed->items[i] > high)
            return ats_fail(err, ATS_E_INPUT, "sample %s: %s: number %lld is outside %lld to %lld",
                            from->id, key, (long long)i, (long long)low, (long long)high);
    *out = listed->items;
out:
    return rc;
}

static ats_code take_i32(ats_import_model *m, const ats_import_sample *from, const char *key,
                         const char *pattern, const ats_import_ints *listed, int64_t n,
                         const int32_t **out, ats_err *err)
{
    const int64_t *wide = NULL;
    int32_t *narrow = NULL;
    ats_code rc;
    ATS_TRY(take_ints(m, from, key, pattern, listed, n, INT32_MIN, INT32_MAX, &wide, err));
    if (wide == NULL) goto out;
    ATS_TRY(ATS_NEW(m->arena, n, &narrow, err));
    for (int64_t i = 0; i < n; i++) narrow[i] = (int32_t)wide[i];
    *out = narrow;
out:
    return rc;
}

static ats_code fill_rows(ats_import_model *m, const ats_import_sample *from, ats_sample *sample,
                          ats_err *err)
{
    const int64_t limit = (int64_t)1 << 52, n = sample->n_keys;
    const ats_import_names *names = &m->header->names;
    int64_t *position = NULL;
    int32_t *tokens = NULL;
    ats_code rc;
    ATS_TRY(take_i32(m, from, "tokens", names->tokens, &from->tokens, n, &sample->tokens, err));
    ATS_TRY(take_i32(m, from, "segment", names->segment, &from->segment, n, &sample->segment, err));
    ATS_TRY(take_ints(m, from, "position", names->position, &from->position, n, -limit, limit,
                      &sample->position, err));
    ATS_TRY(take_ints(m, from, "base_index", names->base_index, &from->base_index, n, -1, limit,
                      &sample->base_index, err));
    if (sample->tokens == NULL) {
        ATS_TRY(ATS_NEW(m->arena, n, &tokens, err));
        for (int64_t i = 0; i < n; i++) tokens[i] = -1;
        sample->tokens = tokens;
        m->report.tokens_unknown = true;
    }
    if (sample->position == NULL) {
        ATS_TRY(ATS_NEW(m->arena, n, &position, err));
        for (int64_t i = 0; i < n; i++) position[i] = from->first_position + i;
        sample->position = position;
    }
    if (from->token_text.count != 0 && from->token_text.count != n)
        rc = ats_fail(err, ATS_E_INPUT, "sample %s: token_text lists %lld texts for %lld keys",
                      from->id, (long long)from->token_text.count, (long long)n);
    if (from->token_text.count == n) sample->token_text = from->token_text.items;
out:
    return rc;
}

static ats_code check_places(const ats_import_sample *from, ats_sample *sample, ats_err *err)
{
    for (int64_t i = 0; i < from->n_spans; i++)
        if (from->spans[i].stop > sample->n_keys)
            return ats_fail(err, ATS_E_INPUT,
                            "sample %s: span %s is [%lld, %lld), outside the %lld keys", from->id,
                            from->spans[i].name, (long long)from->spans[i].start,
                            (long long)from->spans[i].stop, (long long)sample->n_keys);
    for (int64_t i = 0; i < from->n_probes; i++) {
        ats_probe *probe = &from->probes[i];
        if (probe->index >= sample->n_keys)
            return ats_fail(
                err, ATS_E_INPUT, "sample %s: probe %lld has key index %lld, outside the %lld keys",
                from->id, (long long)i, (long long)probe->index, (long long)sample->n_keys);
        if (probe->position == INT64_MIN) probe->position = sample->position[probe->index];
    }
    return ATS_OK;
}

static ats_code make_sample(ats_import_model *m, const ats_import_sample *from, ats_sample *sample,
                            ats_err *err)
{
    const ats_tensor *k = NULL;
    ats_import_view view;
    ats_code rc;
    ATS_TRY(ats_import_find(&m->set, "k", m->header->names.k, from->id, m->meta.layers[0].index,
                            false, &k, err));
    ATS_TRY(ats_import_view_layout(m->header, k, false, &view, err));
    *sample = (ats_sample){.id = from->id,
                           .cluster = from->cluster != NULL ? from->cluster : from->id,
                           .variant_of = from->variant_of,
                           .n_keys = view.extent[1],
                           .n_spans = from->n_spans,
                           .spans = from->spans,
                           .n_probes = from->n_probes,
                           .probes = from->probes};
    ATS_TRY(fill_rows(m, from, sample, err));
    rc = check_places(from, sample, err);
out:
    return rc;
}

ats_code ats_import_make_samples(ats_import_model *m, ats_err *err)
{
    ats_sample *samples = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW0(m->arena, m->header->n_samples, &samples, err));
    for (int64_t i = 0; i < m->header->n_samples; i++) {
        ATS_TRY(make_sample(m, &m->header->samples[i], &samples[i], err));
        m->report.n_keys += samples[i].n_keys;
    }
    m->meta.samples = samples;
    m->meta.n_samples = m->header->n_samples;
out:
    return rc;
}

ats_code ats_import_make_readouts(ats_import_model *m, ats_err *err)
{
    const ats_strings *names = &m->header->readouts;
    const ats_tensor *tensor = NULL;
    ats_import_view view;
    float *taken = NULL, *kept = NULL;
    ats_code rc;
    ATS_TRY(ats_import_find(&m->set, "readouts", m->header->names.readouts, NULL, -1,
                            names->count == 0, &tensor, err));
    if (names->count == 0 || tensor == NULL) {
        if (tensor != NULL)
            rc = ats_fail(err, ATS_E_INPUT,
                          "%s: holds the tensor %s, and the header does not name its rows: "
                          "readouts: [...]",
                          tensor->file->path, tensor->name);
        goto out;
    }
    ATS_TRY(ats_import_view_last(tensor, 2, "[readout, d_model]", &view, err));
    if (view.extent[1] != names->count ||
        (m->meta.readout_dim > 0 && view.extent[2] != m->meta.readout_dim)) {
        rc = ats_fail(err, ATS_E_INPUT,
                      "%s: tensor %s is [%lld, %lld]; the header names %lld readouts and d_model "
                      "of w_o is %lld",
                      tensor->file->path, tensor->name, (long long)view.extent[1],
                      (long long)view.extent[2], (long long)names->count,
                      (long long)m->meta.readout_dim);
        goto out;
    }
    ATS_TRY(ats_import_take_floats(&m->set, &view, NULL, 0, m->header->words, &taken, err));
    ATS_TRY(ATS_NEW(m->arena, tensor->count, &kept, err));
    memcpy(kept, taken, (size_t)tensor->count * sizeof *kept);
    m->meta.readouts = kept;
    m->meta.n_readouts = names->count;
    m->meta.readout_dim = view.extent[2];
    m->meta.readout_names = names->items;
out:
    free(taken);
    return rc;
}

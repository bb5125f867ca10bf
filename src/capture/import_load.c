/* The tensors of one sample and layer. */
#include <stdlib.h>
#include <string.h>

#include "base/rope.h"
#include "capture/import_model.h"

typedef struct loader {
    ats_import_model *m;
    const ats_sample *sample;
    const ats_layer *layer;
    const int64_t *rows; /* [n_probes] rows of the query tensors, or NULL: they hold probes only */
    ats_err *err;
} loader;

/* Rows of the tensors whose axis is the query. */
static int64_t query_rows(const loader *l)
{
    return l->rows != NULL ? l->sample->n_keys : l->sample->n_probes;
}

static ats_code find(const loader *l, const char *key, const char *pattern, bool optional,
                     const ats_tensor **out)
{
    ats_code rc = ats_import_find(&l->m->set, key, pattern, l->sample->id, l->layer->index,
                                  optional, out, l->err);
    if (rc == ATS_OK && *out != NULL && l->m->header->n_samples > 1 &&
        strstr(pattern, "{sample}") == NULL)
        rc = ats_fail(l->err, ATS_E_INPUT,
                      "there are several samples, but names.%s is '%s' for each of them; put "
                      "{sample} into it",
                      key, pattern);
    return rc;
}

static ats_code expect(const loader *l, const ats_import_view *view, int64_t heads, int64_t rows,
                       int64_t width)
{
    const int64_t *x = view->extent;
    if (x[0] == heads && x[1] == rows && x[2] == width) return ATS_OK;
    const bool other = x[0] == heads && x[2] == width && l->rows == NULL &&
                       x[1] == l->sample->n_keys && rows == l->sample->n_probes;
    return ats_fail(
        l->err, ATS_E_INPUT,
        "%s: tensor %s of sample %s: %lld heads, %lld rows, width %lld; it should be "
        "%lld heads, %lld rows, width %lld (%s)",
        view->tensor->file->path, view->tensor->name, l->sample->id, (long long)x[0],
        (long long)x[1], (long long)x[2], (long long)heads, (long long)rows, (long long)width,
        other ? "it holds a row for each token: state queries: tokens" : "is the layout right?");
}

static ats_code load_words(const loader *l, const char *key, const char *pattern, int64_t heads,
                           int64_t n_rows, int64_t width, bool of_queries, ats_dtype *dtype,
                           void **out)
{
    const ats_tensor *tensor = NULL;
    ats_import_view view;
    ats_code rc;
    ATS_TRY(find(l, key, pattern, false, &tensor));
    ATS_TRY(ats_import_view_layout(l->m->header, tensor, false, &view, l->err));
    ATS_TRY(expect(l, &view, heads, n_rows, width));
    rc = ats_import_take_words(&l->m->set, &view, of_queries ? l->rows : NULL, l->sample->n_probes,
                               l->m->header->words, dtype, out, l->err);
out:
    return rc;
}

static ats_code load_floats(const loader *l, const char *key, const char *pattern, bool flat,
                            float **out)
{
    const ats_tensor *tensor = NULL;
    ats_import_view view;
    ats_code rc;
    ATS_TRY(find(l, key, pattern, true, &tensor));
    if (tensor == NULL) goto out;
    ATS_TRY(ats_import_view_layout(l->m->header, tensor, flat, &view, l->err));
    ATS_TRY(expect(l, &view, l->layer->n_q_heads, query_rows(l), flat ? 1 : l->layer->d_v));
    rc = ats_import_take_floats(&l->m->set, &view, l->rows, l->sample->n_probes,
                                l->m->header->words, out, l->err);
out:
    return rc;
}

static ats_code load_keep(const loader *l, uint8_t **out)
{
    const char *meaning = l->m->header->mask;
    const ats_tensor *tensor = NULL;
    ats_import_view view;
    ats_code rc;
    ATS_TRY(find(l, "keep", l->m->header->names.keep, true, &tensor));
    if (tensor == NULL) goto out;
    if (meaning == NULL) {
        rc = ats_fail(l->err, ATS_E_INPUT,
                      "%s: tensor %s is a boolean mask; state in the header what true means: mask: "
                      "visible or mask: hidden",
                      tensor->file->path, tensor->name);
        goto out;
    }
    ATS_TRY(ats_import_view_last(tensor, 2, "[query, key]", &view, l->err));
    ATS_TRY(expect(l, &view, 1, query_rows(l), l->sample->n_keys));
    ATS_TRY(ats_import_take_mask(&view, l->rows, l->sample->n_probes, out, l->err));
    if (strcmp(meaning, "hidden") == 0)
        for (int64_t i = 0; i < l->sample->n_probes * l->sample->n_keys; i++)
            (*out)[i] = !(*out)[i];
out:
    return rc;
}

static ats_code load_bias(const loader *l, ats_attention *out)
{
    const ats_tensor *tensor = NULL;
    ats_import_view view;
    ats_code rc;
    ATS_TRY(find(l, "bias", l->m->header->names.bias, true, &tensor));
    if (tensor == NULL) goto out;
    const bool heads = tensor->rank >= 3 && tensor->extent[tensor->rank - 3] > 1;
    ATS_TRY(ats_import_view_last(tensor, heads ? 3 : 2, "[query, key] or [query head, query, key]",
                                 &view, l->err));
    ATS_TRY(expect(l, &view, heads ? l->layer->n_q_heads : 1, query_rows(l), l->sample->n_keys));
    ATS_TRY(ats_import_take_floats(&l->m->set, &view, l->rows, l->sample->n_probes,
                                   l->m->header->words, &out->bias, l->err));
    out->bias_heads = view.extent[0];
    bool zero = false, one = false, other = false;
    for (int64_t i = 0; i < out->bias_heads * l->sample->n_probes * l->sample->n_keys; i++) {
        zero |= out->bias[i] == 0;
        one |= out->bias[i] == 1;
        other |= out->bias[i] != 0 && out->bias[i] != 1;
    }
    l->m->report.bias_like_mask |= zero && one && !other;
out:
    return rc;
}

/* In place of stored words, float32 rows turned to their positions. */
static ats_code rotate(const loader *l, ats_dtype *dtype, void **data, int64_t heads, int64_t rows,
                       bool of_queries)
{
    const int64_t d = l->layer->d_qk;
    float *wide = malloc((size_t)(heads * rows * d) * sizeof *wide);
    if (wide == NULL)
        return ats_fail(l->err, ATS_E_MEMORY, "out of memory to rotate %lld rows",
                        (long long)(heads * rows));
    ats_widen(*dtype, *data, 0, heads * rows * d, wide);
    for (int64_t h = 0; h < heads; h++)
        for (int64_t r = 0; r < rows; r++) {
            float *row = wide + (h * rows + r) * d;
            const int64_t position =
                of_queries ? l->sample->probes[r].position : l->sample->position[r];
            ats_rope_move(&l->layer->contract.rope, position, 1, d, row, row);
        }
    free(*data);
    *data = wide;
    *dtype = ATS_F32;
    return ATS_OK;
}

static ats_code load_all(const loader *l, const ats_import_layer *entry, ats_attention *a)
{
    const ats_import_names *names = &l->m->header->names;
    const ats_layer *layer = l->layer;
    const int64_t n = l->sample->n_keys;
    ats_code rc;
    ATS_TRY(load_words(l, "q", names->q, layer->n_q_heads, query_rows(l), layer->d_qk, true,
                       &a->q_dtype, &a->q));
    ATS_TRY(
        load_words(l, "k", names->k, layer->n_kv_heads, n, layer->d_qk, false, &a->k_dtype, &a->k));
    ATS_TRY(
        load_words(l, "v", names->v, layer->n_kv_heads, n, layer->d_v, false, &a->v_dtype, &a->v));
    if (entry->rope.layout != NULL && !entry->rope.rotated) {
        ATS_TRY(rotate(l, &a->q_dtype, &a->q, layer->n_q_heads, l->sample->n_probes, true));
        ATS_TRY(rotate(l, &a->k_dtype, &a->k, layer->n_kv_heads, n, false));
    }
    ATS_TRY(load_keep(l, &a->keep));
    ATS_TRY(load_bias(l, a));
    ATS_TRY(load_floats(l, "out", names->out, false, &a->out));
    rc = load_floats(l, "lse", names->lse, true, &a->lse);
out:
    return rc;
}

ats_code ats_import_load(ats_import_model *m, int64_t sample, int64_t layer, ats_attention *out,
                         ats_err *err)
{
    loader l = {
        .m = m, .sample = &m->meta.samples[sample], .layer = &m->meta.layers[layer], .err = err};
    int64_t *rows = NULL;
    ats_attention loaded = {.bias_heads = 1};
    ats_code rc;
    if (strcmp(m->header->queries, "tokens") == 0) {
        ATS_TRY(ATS_NEW(m->arena, l.sample->n_probes, &rows, err));
        for (int64_t p = 0; p < l.sample->n_probes; p++) {
            rows[p] = l.sample->probes[p].index;
            if (rows[p] >= 0) continue;
            rc = ats_fail(err, ATS_E_INPUT,
                          "sample %s: probe %lld has index -1, so its row cannot be found among "
                          "the tokens' (queries: tokens)",
                          l.sample->id, (long long)p);
            goto out;
        }
        l.rows = rows;
    }
    ATS_TRY(load_all(&l, m->entry[layer], &loaded));
    *out = loaded;
out:
    if (rc != ATS_OK) ats_attention_fini(&loaded);
    return rc;
}

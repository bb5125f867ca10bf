#include <math.h>
#include <string.h>

#include "capture/format.h"
#include "capture/reader.h"

typedef struct ats_capture_file capture_file;

static ats_code read_shape(capture_file *file, const char *group, ats_layer *layer, ats_err *err)
{
    ats_code rc;
    ATS_TRY(
        ats_capture_integer(file, group, "n_q_heads", 1, ATS_MAX_HEADS, &layer->n_q_heads, err));
    ATS_TRY(
        ats_capture_integer(file, group, "n_kv_heads", 1, ATS_MAX_HEADS, &layer->n_kv_heads, err));
    ATS_TRY(ats_capture_integer(file, group, "d_qk", 1, ATS_MAX_WIDTH, &layer->d_qk, err));
    ATS_TRY(ats_capture_integer(file, group, "d_v", 1, ATS_MAX_WIDTH, &layer->d_v, err));
    if (layer->n_q_heads % layer->n_kv_heads != 0)
        rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, group,
                         "n_q_heads = %lld is not a multiple of n_kv_heads = %lld; each key head "
                         "serves the same number of query heads",
                         (long long)layer->n_q_heads, (long long)layer->n_kv_heads);
out:
    return rc;
}

static ats_code read_contract(capture_file *file, const char *group, ats_contract *contract,
                              ats_err *err)
{
    int64_t causal = 0;
    ats_code rc;
    contract->temperature = 1;
    ATS_TRY(ats_h5_get_f64(&file->h5, group, "scale", &contract->scale, err));
    ATS_TRY(ats_h5_get_f64(&file->h5, group, "softcap", &contract->softcap, err));
    ATS_TRY(ats_capture_integer(file, group, "window", 0, INT64_MAX / 4, &contract->window, err));
    ATS_TRY(ats_capture_integer(file, group, "chunk", 0, INT64_MAX / 4, &contract->chunk, err));
    ATS_TRY(ats_capture_integer(file, group, "causal", 0, 1, &causal, err));
    contract->causal = causal == 1;
    if (!isfinite(contract->scale))
        rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, group,
                         "scale is %g; it should be a finite number (usually 1/sqrt(d_qk))",
                         contract->scale);
    else if (!isfinite(contract->softcap) || contract->softcap < 0)
        rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, group,
                         "softcap is %g; it should be positive, or 0 for none", contract->softcap);
out:
    return rc;
}

static ats_code read_words(capture_file *file, const char *group, ats_layer *layer, ats_err *err)
{
    const char *layout = NULL, *positions = NULL;
    ats_code rc;
    ATS_TRY(ats_capture_text(file, group, "rope_layout", false, &layout, err));
    ATS_TRY(ats_capture_text(file, group, "positions", false, &positions, err));
    if (!ats_rope_layout_parse(layout, &layer->contract.rope.layout))
        rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, group,
                         "rope_layout is \"%s\"; should be \"half\", \"interleaved\" or \"none\"",
                         layout);
    else if (!ats_positions_parse(positions, &layer->positions))
        rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, group,
                         "positions is \"%s\"; should be \"rope\", \"alibi\", \"none\" or "
                         "\"absolute\"",
                         positions);
    else if (layer->contract.rope.layout != ATS_ROPE_NONE && layer->positions != ATS_POSITIONS_ROPE)
        rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, group,
                         "rope_layout is \"%s\", but positions is \"%s\"; they contradict each "
                         "other",
                         layout, positions);
out:
    return rc;
}

static ats_code rope_fail(capture_file *file, const char *group, const char *what, ats_err *err)
{
    return ats_h5_fail(err, ATS_E_INPUT, &file->h5, group, "%s", what);
}

static ats_code read_frequencies(capture_file *file, const char *path, ats_layer *layer,
                                 ats_err *err)
{
    ats_rope *rope = &layer->contract.rope;
    ats_h5_dataset dataset = {.id = 0};
    double *values = NULL;
    const int64_t any[1] = {-1};
    ats_code rc;
    ATS_TRY(ats_h5_dataset_open(&file->h5, path, &dataset, err));
    ATS_TRY(ats_h5_expect_shape(&dataset, 1, any, "[rotary_dim / 2]", err));
    if (!ats_h5_type_is_float(dataset.type)) {
        rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, path, "holds %s, should hold float64",
                         ats_h5_type_name(dataset.type));
        goto out;
    }
    if (dataset.count < 1 || 2 * dataset.count > layer->d_qk) {
        rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, path,
                         "has %lld frequencies; should have 1 to d_qk / 2 = %lld",
                         (long long)dataset.count, (long long)(layer->d_qk / 2));
        goto out;
    }
    ATS_TRY(ats_h5_expect_stored(&dataset, false, err));
    ATS_TRY(ATS_NEW(&file->arena, dataset.count, &values, err));
    ATS_TRY(ats_h5_read(&dataset, NULL, NULL, ATS_H5_F64, values, err));
    for (int64_t i = 0; i < dataset.count; i++)
        if (!isfinite(values[i])) {
            rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, path,
                             "frequency %lld is %g; frequencies are finite (radians per position)",
                             (long long)i, values[i]);
            goto out;
        }
    rope->pairs = dataset.count;
    rope->inv_freq = values;
out:
    ats_h5_dataset_close(&dataset);
    return rc;
}

static ats_code read_rope(capture_file *file, const char *group, ats_layer *layer, ats_err *err)
{
    const char *path = NULL;
    int64_t dynamic = 0;
    ats_code rc;
    ATS_TRY(read_words(file, group, layer, err));
    ATS_TRY(ats_capture_integer(file, group, "rope_dynamic", 0, 1, &dynamic, err));
    ATS_TRY(ats_capture_integer(file, group, "max_position", 0, INT64_MAX / 4, &layer->max_position,
                                err));
    layer->rope_dynamic = dynamic == 1;
    ATS_TRY(ats_capture_path(file, group, "inv_freq", &path, err));
    const bool stored = ats_h5_exists(&file->h5, path);
    const bool rotary = layer->contract.rope.layout != ATS_ROPE_NONE;
    if (rotary && !stored)
        rc = rope_fail(file, group,
                       "has a rope_layout, but no inv_freq; store the layer's real inverse "
                       "frequencies [rotary_dim / 2], or rope_layout = \"none\" (then nothing can "
                       "be moved)",
                       err);
    else if (!rotary && stored)
        rc = rope_fail(file, group,
                       "has inv_freq, but rope_layout is \"none\"; state \"half\" or "
                       "\"interleaved\"",
                       err);
    else if (rotary)
        rc = read_frequencies(file, path, layer, err);
out:
    return rc;
}

static ats_code read_w_o(capture_file *file, const char *group, ats_layer *layer, ats_err *err)
{
    const char *path = NULL;
    ats_h5_dataset dataset = {.id = 0};
    int64_t extent[3] = {layer->n_q_heads, layer->d_v, -1};
    ats_code rc;
    ATS_TRY(ats_capture_path(file, group, "w_o", &path, err));
    if (!ats_h5_exists(&file->h5, path)) goto out;
    ATS_TRY(ats_h5_dataset_open(&file->h5, path, &dataset, err));
    ATS_TRY(ats_h5_expect_shape(&dataset, 3, extent, "[n_q_heads, d_v, d_model]", err));
    extent[2] = dataset.extent[2];
    if (extent[2] < 1) {
        rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, path, "d_model is 0");
        goto out;
    }
    ATS_TRY(ats_capture_floats(file, group, "w_o", false, 3, extent, "[n_q_heads, d_v, d_model]",
                               &layer->w_o, err));
    layer->d_model = extent[2];
out:
    ats_h5_dataset_close(&dataset);
    return rc;
}

static ats_code read_layer(capture_file *file, const char *group, ats_layer *layer, ats_err *err)
{
    ats_code rc;
    ATS_TRY(read_shape(file, group, layer, err));
    ATS_TRY(read_contract(file, group, &layer->contract, err));
    ATS_TRY(read_rope(file, group, layer, err));
    const int64_t heads[1] = {layer->n_q_heads};
    ATS_TRY(ats_capture_logits(file, group, "sink", heads[0], "[n_q_heads]", &layer->sink, err));
    ATS_TRY(ats_capture_floats(file, group, "alibi_slope", true, 1, heads, "[n_q_heads]",
                               &layer->alibi_slope, err));
    const bool alibi = layer->positions == ATS_POSITIONS_ALIBI;
    if (alibi != (layer->alibi_slope != NULL)) {
        rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, group,
                         alibi ? "positions is \"alibi\", but alibi_slope is missing"
                               : "has alibi_slope, but positions is not \"alibi\"");
        goto out;
    }
    rc = read_w_o(file, group, layer, err);
out:
    return rc;
}

ats_code ats_capture_read_layers(capture_file *file, ats_err *err)
{
    const int64_t *numbers = NULL;
    const char *const *groups = NULL;
    ats_layer *layers = NULL;
    int64_t n = 0, d_model = 0;
    ats_code rc;
    ATS_TRY(ats_capture_numbered(file, "/layers", &numbers, &groups, &n, err));
    ATS_TRY(ATS_NEW0(&file->arena, n, &layers, err));
    for (int64_t i = 0; i < n; i++) {
        layers[i].index = numbers[i];
        ATS_TRY(read_layer(file, groups[i], &layers[i], err));
        if (layers[i].d_model == 0) continue;
        if (d_model != 0 && layers[i].d_model != d_model) {
            rc =
                ats_h5_fail(err, ATS_E_INPUT, &file->h5, groups[i],
                            "w_o has d_model %lld, in an earlier layer it is %lld; a model has one",
                            (long long)layers[i].d_model, (long long)d_model);
            goto out;
        }
        d_model = layers[i].d_model;
    }
    file->capture.layers = layers;
    file->capture.n_layers = n;
out:
    return rc;
}

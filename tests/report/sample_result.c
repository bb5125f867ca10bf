#include "report/sample_result.h"

#include <math.h>
#include <stdlib.h>

static const char *const spans[] = {"gold", "sink", "recent", "rest", "inserted"};
static const char *const readouts[] = {"answer - foil"};

float sample_number(int64_t metric, int64_t where, int64_t layer, int64_t cell)
{
    const int64_t n = metric * 1009 + where * 131 + layer * 37 + cell;
    return n % 11 == 3 ? NAN : (float)n / 64;
}

int32_t sample_integer(int64_t metric, int64_t where, int64_t layer, int64_t cell)
{
    const int64_t n = metric + where * 131 + layer * 37 + cell;
    return n % 7 == 2 ? -1 : (int32_t)n;
}

static int64_t cell_size(const ats_metric *metric, bool detail_head)
{
    const int64_t widths[] = {
        [ATS_SHAPE_SCALAR] = 1, [ATS_SHAPE_SPAN] = SPANS,    [ATS_SHAPE_PART] = ATS_N_PARTS,
        [ATS_SHAPE_TOP] = TOP,  [ATS_SHAPE_READOUT] = SPANS, [ATS_SHAPE_VECTOR] = SPANS * DV};
    return widths[metric->shape] * HEADS * (detail_head ? 1 : PROBES);
}

static ats_code put(ats_results *results, const sample_result *how, int64_t m, bool base,
                    int64_t sample, int64_t layer, int64_t first, int64_t count, ats_err *err)
{
    int64_t n = 0;
    const ats_metric *metric = ats_metrics(&n)[m];
    const int64_t cell = cell_size(metric, how->detail_head);
    float *numbers = malloc((size_t)(count * cell) * sizeof *numbers);
    int32_t *integers = malloc((size_t)(count * cell) * sizeof *integers);
    for (int64_t i = 0; i < count * cell; i++) {
        const int64_t where = base ? sample : first + i / cell;
        numbers[i] = sample_number(m, where, layer, i % cell);
        integers[i] = sample_integer(m, where, layer, i % cell);
    }
    const ats_block block = {.metric = m,
                             .base = base,
                             .values = metric->integer ? NULL : numbers,
                             .integers = metric->integer ? integers : NULL};
    const ats_code rc = ats_results_write(results, sample, layer, first, count, &block, 1, err);
    free(numbers);
    free(integers);
    return rc;
}

static ats_code put_own(ats_results *results, int64_t layer, int64_t first, int64_t count,
                        int64_t sample, ats_err *err)
{
    int64_t counts[VARIANTS];
    int32_t probes[VARIANTS * HEADS];
    float worst[VARIANTS * HEADS];
    for (int64_t i = 0; i < count; i++) counts[i] = first + i;
    for (int64_t i = 0; i < count * HEADS; i++) {
        probes[i] = (int32_t)(i % PROBES);
        worst[i] = -(float)(first * HEADS + i);
    }
    const ats_block blocks[] = {{.metric = ATS_BLOCK_UNDEFINED, .counts = counts},
                                {.metric = ATS_BLOCK_WORST_PROBE, .integers = probes},
                                {.metric = ATS_BLOCK_WORST_VALUE, .values = worst}};
    return ats_results_write(results, sample, layer, first, count, blocks, 3, err);
}

static ats_code put_layer(ats_results *results, const sample_result *how, int64_t sample,
                          int64_t layer, ats_err *err)
{
    const int64_t batch = how->batch > 0 ? how->batch : VARIANTS;
    int64_t n = 0;
    const ats_metric *const *all = ats_metrics(&n);
    ats_code rc = ATS_OK;
    for (int64_t m = 0; m < n; m++)
        if (all[m]->has_base) ATS_TRY(put(results, how, m, true, sample, layer, 0, 1, err));
    for (int64_t v = 0; v < VARIANTS; v += batch) {
        const int64_t count = VARIANTS - v < batch ? VARIANTS - v : batch;
        const int64_t first = sample * VARIANTS + v;
        for (int64_t m = 0; m < n; m++)
            ATS_TRY(put(results, how, m, false, sample, layer, first, count, err));
        ATS_TRY(put_own(results, layer, first, count, sample, err));
    }
out:
    return rc;
}

static ats_code open_it(const char *path, const sample_result *how, ats_results **out, ats_err *err)
{
    static const int64_t layers[] = {4, 9}, sample_index[] = {0, 0, 0, 1, 1, 1};
    static const double dose[] = {1, 2, (double)NAN, 1, 2, (double)NAN};
    static const char *const ids[] = {"fact-0", "caf\xc3\xa9"};
    static const char *const kinds[] = {"distractors", "distractors", "mask_window",
                                        "distractors", "distractors", ""};
    static const int8_t control[] = {0, 1, 0, 0, 1, 0};
    static const ats_coordinate coordinates[] = {
        {"sample", "sample", ATS_TYPE_TEXT, NULL, "sample id", .text = ids},
        {"layer", "layer", ATS_TYPE_I64, "1", "layer number of the model", .i64 = layers},
        {"sample_index", "case", ATS_TYPE_I64, "1", "index of the sample", .i64 = sample_index},
        {"dose", "case", ATS_TYPE_F64, "1", "dose", .f64 = dose},
        {"kind", "case", ATS_TYPE_TEXT, NULL, "family", .text = kinds},
        {"control", "case", ATS_TYPE_BOOL, "1", "control arm", .flag = control}};
    static const ats_attribute attributes[] = {
        {.name = "suite_hash", .type = ATS_TYPE_TEXT, .text = "00ff"},
        {.name = "noise_floor", .type = ATS_TYPE_F64, .f64 = 0.25},
        {.name = "seed", .type = ATS_TYPE_I64, .i64 = (int64_t)1 << 40}};
    const ats_results_shape shape = {.n_cases = SAMPLES * VARIANTS,
                                     .n_samples = SAMPLES,
                                     .n_layers = LAYERS,
                                     .n_heads = HEADS,
                                     .n_probes = PROBES,
                                     .n_spans = SPANS,
                                     .n_top = TOP,
                                     .n_readouts = 1,
                                     .d_v = DV,
                                     .span_names = spans,
                                     .readout_names = readouts,
                                     .detail_head = how->detail_head};
    ats_results_options options = {.compression = how->compression,
                                   .vectors = true,
                                   .n_coordinates = sizeof coordinates / sizeof *coordinates,
                                   .coordinates = coordinates,
                                   .n_attributes = sizeof attributes / sizeof *attributes,
                                   .attributes = attributes,
                                   .suite_text = "name: small\n"};
    options.metrics = ats_metrics(&options.n_metrics);
    return ats_results_create(path, &shape, &options, out, err);
}

ats_code sample_result_write(const char *path, const sample_result *how, ats_err *err)
{
    static const int64_t status[] = {0, 0, 1, 2, 0, 0};
    static const ats_coordinate late = {.name = "status",
                                        .axis = "case",
                                        .type = ATS_TYPE_I64,
                                        .unit = "1",
                                        .long_name = "what became of the case",
                                        .i64 = status,
                                        .flag_values = "0,1,2",
                                        .flag_meanings = "ok skipped failed"};
    static const ats_attribute ended = {.name = "n_failed", .type = ATS_TYPE_I64, .i64 = 1};
    ats_results *results = NULL;
    ats_code rc = open_it(path, how, &results, err);
    if (rc != ATS_OK) return rc;
    for (int64_t s = 0; s < SAMPLES; s++)
        for (int64_t l = 0; l < LAYERS; l++) ATS_TRY(put_layer(results, how, s, l, err));
    ATS_TRY(ats_results_coordinates(results, &late, 1, err));
    if (how->unfinished) goto out;
    return ats_results_finish(results, &ended, 1, err);
out:
    ats_results_abort(results);
    return rc;
}

#include "report/results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "h5/attr.h"
#include "h5/chunks.h"
#include "report/results_private.h"

static ats_code parse_compression(ats_results *results, const ats_results_options *options,
                                  ats_err *err)
{
    const char *name = options->compression != NULL ? options->compression : "zstd";
    results->level = options->level > 0 ? options->level : strcmp(name, "deflate") == 0 ? 4 : 3;
    if (strcmp(name, "zstd") == 0)
        results->compression = ATS_H5_ZSTD;
    else if (strcmp(name, "deflate") == 0)
        results->compression = ATS_H5_DEFLATE;
    else if (strcmp(name, "none") != 0)
        return ats_fail(err, ATS_E_SUITE, "compression is \"%s\", should be zstd, deflate or none",
                        name);
    return ATS_OK;
}

static ats_code make_variable(const ats_results *results, const char *name,
                              const ats_results_dims *dims, bool integer, const void *fill,
                              ats_h5_dataset *out, ats_err *err)
{
    const ats_h5_type type = integer ? ATS_H5_I32 : ATS_H5_F32;
    ats_h5_layout layout = {.type = type,
                            .rank = dims->rank,
                            .chunked = true,
                            .shuffle = results->compression != 0,
                            .compression = results->compression,
                            .level = results->level,
                            .fill = fill};
    memcpy(layout.extent, dims->extent, sizeof layout.extent);
    ats_results_chunk(&results->shape, dims, dims->axis[0] == ATS_AXIS_SAMPLE, layout.chunk);
    ats_code rc = ats_h5_dataset_create(&results->file, name, &layout, out, err);
    if (rc != ATS_OK) return rc;
    return ats_h5_put_array(&results->file, name, "_FillValue", type, 1, fill, err);
}

/* CF's words for the codes 0, 1, ... of an integer variable. */
static ats_code put_codes(const ats_results *results, const char *name, const char *meanings,
                          ats_err *err)
{
    int32_t values[16], count = 1;
    for (const char *c = meanings; *c != '\0'; c++) count += *c == ' ';
    ATS_ASSERT(count <= (int32_t)(sizeof values / sizeof *values));
    for (int32_t i = 0; i < count; i++) values[i] = i;
    ats_code rc =
        ats_h5_put_array(&results->file, name, "flag_values", ATS_H5_I32, count, values, err);
    return rc == ATS_OK ? ats_h5_put_text(&results->file, name, "flag_meanings", meanings, err)
                        : rc;
}

static ats_code make_metric(ats_results *results, const ats_metric *metric, bool base,
                            ats_results_variable *variable, ats_err *err)
{
    static const float nan_f32 = NAN;
    const ats_results_dims dims = ats_results_dims_of(&results->shape, metric, base);
    const char *name = NULL, *long_name = NULL;
    ats_code rc;
    ATS_TRY(
        ats_arena_printf(&results->arena, &name, err, "%s%s", base ? "base_" : "", metric->name));
    ATS_TRY(ats_arena_printf(&results->arena, &long_name, err, "%s%s", metric->long_name,
                             base ? ", of the base" : ""));
    ATS_TRY(make_variable(results, name, &dims, metric->integer,
                          metric->integer ? (const void *)&metric->fill : (const void *)&nan_f32,
                          &variable->dataset, err));
    variable->cell = 1;
    for (int i = 2; i < dims.rank; i++) variable->cell *= dims.extent[i];
    ATS_TRY(ats_results_describe(results, &variable->dataset, &dims, metric->unit, long_name,
                                 metric->definition, err));
    if (metric->flag_meanings != NULL) rc = put_codes(results, name, metric->flag_meanings, err);
out:
    return rc;
}

static ats_code make_metrics(ats_results *results, bool vectors, ats_err *err)
{
    for (int64_t m = 0; m < results->n_metrics; m++)
        for (int base = 0; base < 2; base++) {
            const ats_metric *metric = results->metrics[m];
            if (!ats_results_writes(&results->shape, metric, base != 0, vectors)) continue;
            ats_code rc = make_metric(results, metric, base != 0,
                                      base != 0 ? &results->base[m] : &results->variables[m], err);
            if (rc != ATS_OK) return rc;
        }
    return ATS_OK;
}

static ats_code allocate(ats_results *results, ats_err *err)
{
    const ats_results_shape *shape = &results->shape;
    const int64_t cells = shape->n_cases * shape->n_layers, heads = cells * shape->n_heads;
    ats_code rc;
    ATS_TRY(ATS_NEW0(&results->arena, results->n_metrics, &results->variables, err));
    ATS_TRY(ATS_NEW0(&results->arena, results->n_metrics, &results->base, err));
    ATS_TRY(ATS_NEW0(&results->arena, cells, &results->undefined, err));
    ATS_TRY(ATS_NEW0(&results->arena, ATS_RESULTS_QUEUE, &results->queue, err));
    ATS_TRY(ATS_NEW0(&results->arena, ATS_RESULTS_QUEUE, &results->boxes, err));
    if (!shape->detail_head) goto out;
    ATS_TRY(ATS_NEW(&results->arena, heads, &results->worst_probe, err));
    ATS_TRY(ATS_NEW(&results->arena, heads, &results->worst_value, err));
    for (int64_t i = 0; i < heads; i++) {
        results->worst_probe[i] = -1;
        results->worst_value[i] = NAN;
    }
out:
    return rc;
}

static ats_code put_head(ats_results *results, const ats_results_options *options, ats_err *err)
{
    const ats_attribute own[] = {
        {.name = "format", .type = ATS_TYPE_TEXT, .text = ATS_RESULTS_FORMAT},
        {.name = "format_version", .type = ATS_TYPE_I64, .i64 = ATS_RESULTS_VERSION},
        {.name = "Conventions", .type = ATS_TYPE_TEXT, .text = "CF-1.10"},
        {.name = "detail",
         .type = ATS_TYPE_TEXT,
         .text = results->shape.detail_head ? "head" : "probe"}};
    ats_code rc;
    ATS_TRY(ats_results_attributes(results, own, sizeof own / sizeof *own, err));
    ATS_TRY(ats_results_attributes(results, options->attributes, options->n_attributes, err));
    ATS_TRY(ats_results_scales(results, options->coordinates, options->n_coordinates,
                               options->vectors, err));
    rc = ats_results_coordinates(results, options->coordinates, options->n_coordinates, err);
out:
    return rc;
}

static ats_code put_suite(ats_results *results, const char *text, ats_err *err)
{
    const ats_results_dims scalar = {.rank = 0};
    ats_h5_dataset dataset = {.id = 0};
    ats_code rc = ats_h5_write_texts(&results->file, "suite", &text, -1, &dataset, err);
    if (rc == ATS_OK)
        rc = ats_results_describe(results, &dataset, &scalar, "1", "resolved suite",
                                  "the suite after includes, overrides and defaults, as YAML", err);
    ats_h5_dataset_close(&dataset);
    return rc;
}

ats_code ats_results_create(const char *path, const ats_results_shape *shape,
                            const ats_results_options *options, ats_results **out, ats_err *err)
{
    ATS_ASSERT(shape->n_cases > 0 && shape->n_samples > 0 && shape->n_layers > 0);
    ATS_ASSERT(shape->n_heads > 0 && shape->n_probes > 0);
    ats_results *results = calloc(1, sizeof *results);
    if (results == NULL) return ats_fail(err, ATS_E_MEMORY, "%s: out of memory", path);
    ats_code rc;
    results->shape = *shape;
    results->n_metrics = options->n_metrics;
    results->metrics = options->metrics;
    ATS_TRY(parse_compression(results, options, err));
    ATS_TRY(ats_h5_create(path, &results->file, err));
    results->file.sealed = options->sealed;
    ATS_TRY(allocate(results, err));
    ATS_TRY(put_head(results, options, err));
    if (options->suite_text != NULL) ATS_TRY(put_suite(results, options->suite_text, err));
    ATS_TRY(make_metrics(results, options->vectors, err));
    *out = results;
    return ATS_OK;
out:
    ats_results_abort(results);
    return rc;
}

/* What was queued, in one pass: chunks are small, and threads that start and wait for each of them
 * apart would spend most of the time on that. */
static ats_code write_queue(ats_results *results, ats_err *err)
{
    const int64_t count = results->n_queued;
    results->n_queued = 0;
    for (int64_t i = 0; i < count; i++) {
        const ats_results_box *queued = &results->queue[i];
        results->boxes[i] =
            (ats_h5_box){queued->dataset, queued->start, queued->extent, queued->numbers};
    }
    return ats_h5_write_many(results->boxes, count, err);
}

/* `numbers` stay the caller's and as they are until the queue is written. */
static ats_code queue_box(ats_results *results, const ats_results_variable *variable, int64_t layer,
                          int64_t first, int64_t count, const float *numbers, ats_err *err)
{
    ats_code rc = ATS_OK;
    if (results->n_queued == ATS_RESULTS_QUEUE) rc = write_queue(results, err);
    if (rc != ATS_OK) return rc;
    ats_results_box *box = &results->queue[results->n_queued++];
    *box = (ats_results_box){.dataset = &variable->dataset,
                             .start = {first, layer},
                             .extent = {count, 1},
                             .numbers = numbers};
    for (int i = 2; i < variable->dataset.rank; i++) box->extent[i] = variable->dataset.extent[i];
    return ATS_OK;
}

/* What waits joins the queue. */
static ats_code flush(ats_results *results, ats_results_variable *variable, ats_err *err)
{
    if (variable->count == 0) return ATS_OK;
    const ats_code rc = queue_box(results, variable, variable->layer, variable->first,
                                  variable->count, variable->rows, err);
    variable->count = 0;
    return rc;
}

/* Rows that are in the queue must not be overwritten. */
static ats_code reuse_rows(ats_results *results, const ats_results_variable *variable, ats_err *err)
{
    for (int64_t i = 0; i < results->n_queued; i++)
        if (results->queue[i].numbers == variable->rows) return write_queue(results, err);
    return ATS_OK;
}

/* Keeps a piece of a row of chunks; writes the row when it is full. */
static ats_code put_piece(ats_results *results, ats_results_variable *v, int64_t layer,
                          int64_t first, int64_t count, const float *numbers, ats_err *err)
{
    const int64_t cases = v->dataset.chunk[0], cell = v->cell;
    ats_code rc = ATS_OK;
    if (v->count > 0 && (v->layer != layer || v->first + v->count != first))
        ATS_TRY(flush(results, v, err));
    if (v->rows == NULL) v->rows = malloc((size_t)(cases * cell) * sizeof *v->rows);
    if (v->rows == NULL)
        return ats_h5_fail(err, ATS_E_MEMORY, &results->file, v->dataset.name, "out of memory");
    if (v->count == 0) {
        ATS_TRY(reuse_rows(results, v, err));
        v->layer = layer;
        v->first = first;
    }
    memcpy(v->rows + v->count * cell, numbers, (size_t)(count * cell) * sizeof *numbers);
    v->count += count;
    const int64_t stop = v->first + v->count;
    if (stop % cases == 0 || stop == v->dataset.extent[0]) rc = flush(results, v, err);
out:
    return rc;
}

/* `count` cases' numbers of one layer from case `first` on. */
static ats_code put(ats_results *results, ats_results_variable *v, int64_t layer, int64_t first,
                    int64_t count, const float *numbers, ats_err *err)
{
    const int64_t cases = v->dataset.chunk[0], end = first + count;
    while (first < end) {
        int64_t piece = cases - first % cases; /* to the end of this row of chunks */
        const bool whole = first % cases == 0;
        if (whole) {
            piece = (end - first) / cases * cases;
            if (piece == 0 || end == v->dataset.extent[0]) piece = end - first;
        }
        if (piece > end - first) piece = end - first;
        const bool direct = whole && (piece % cases == 0 || first + piece == v->dataset.extent[0]);
        ats_code rc = direct ? queue_box(results, v, layer, first, piece, numbers, err)
                             : put_piece(results, v, layer, first, piece, numbers, err);
        if (rc != ATS_OK) return rc;
        numbers += piece * v->cell;
        first += piece;
    }
    return ATS_OK;
}

/* [case, head] of one layer into [case, layer, head], 4 bytes an element. */
static void place_heads(const ats_results_shape *shape, int64_t layer, int64_t first, int64_t count,
                        const void *from, void *to)
{
    const size_t row = (size_t)shape->n_heads * 4;
    for (int64_t c = 0; c < count; c++)
        memcpy((char *)to + (size_t)((first + c) * shape->n_layers + layer) * row,
               (const char *)from + (size_t)c * row, row);
}

static void keep_block(ats_results *results, int64_t layer, int64_t first, int64_t count,
                       const ats_block *block)
{
    const ats_results_shape *shape = &results->shape;
    if (block->metric == ATS_BLOCK_UNDEFINED)
        for (int64_t c = 0; c < count; c++)
            results->undefined[(first + c) * shape->n_layers + layer] = (int32_t)block->counts[c];
    if (block->metric == ATS_BLOCK_WORST_PROBE && results->worst_probe != NULL)
        place_heads(shape, layer, first, count, block->integers, results->worst_probe);
    if (block->metric == ATS_BLOCK_WORST_VALUE && results->worst_value != NULL)
        place_heads(shape, layer, first, count, block->values, results->worst_value);
}

ats_code ats_results_write(ats_results *results, int64_t sample, int64_t layer, int64_t case_start,
                           int64_t n_cases, const ats_block *blocks, int64_t n_blocks, ats_err *err)
{
    const ats_results_shape *shape = &results->shape;
    ATS_ASSERT(sample >= 0 && sample < shape->n_samples && layer >= 0 && layer < shape->n_layers);
    ATS_ASSERT(case_start >= 0 && n_cases >= 0 && case_start + n_cases <= shape->n_cases);
    for (int64_t i = 0; i < n_blocks; i++) {
        const ats_block *block = &blocks[i];
        if (block->metric < 0) {
            keep_block(results, layer, case_start, n_cases, block);
            continue;
        }
        ATS_ASSERT(block->metric < results->n_metrics);
        ats_results_variable *v =
            block->base ? &results->base[block->metric] : &results->variables[block->metric];
        /* int32 and float32 are 4 bytes each and are only moved here */
        const float *numbers =
            block->integers != NULL ? (const float *)(const void *)block->integers : block->values;
        if (v->dataset.id <= 0 || numbers == NULL) continue;
        ats_code rc = put(results, v, layer, block->base ? sample : case_start,
                          block->base ? 1 : n_cases, numbers, err);
        if (rc != ATS_OK) return rc;
    }
    return write_queue(results, err);
}

ats_code ats_results_put_kept(const ats_results *results, const char *name,
                              const ats_results_dims *dims, bool integer, const void *data,
                              const char *units, const char *long_name, const char *definition,
                              ats_err *err)
{
    static const float nan_f32 = NAN;
    const int32_t none =
        dims->axis[0] == ATS_AXIS_CURVE ? (int32_t)ATS_INTEGER_UNDEFINED : (int32_t)-1;
    ats_h5_dataset dataset = {.id = 0};
    ats_code rc =
        make_variable(results, name, dims, integer,
                      integer ? (const void *)&none : (const void *)&nan_f32, &dataset, err);
    if (rc == ATS_OK) rc = ats_h5_write_box(&dataset, NULL, NULL, data, err);
    if (rc == ATS_OK)
        rc = ats_results_describe(results, &dataset, dims, units, long_name, definition, err);
    ats_h5_dataset_close(&dataset);
    return rc;
}

static ats_code put_kept(const ats_results *results, const char *name, int rank, bool integer,
                         const void *data, const char *units, const char *long_name,
                         const char *definition, ats_err *err)
{
    const ats_results_axis axes[] = {ATS_AXIS_CASE, ATS_AXIS_LAYER, ATS_AXIS_HEAD};
    ats_results_dims dims = {.rank = rank};
    for (int i = 0; i < rank; i++) {
        dims.axis[i] = axes[i];
        dims.extent[i] = ats_results_axis_size(&results->shape, axes[i]);
    }
    return ats_results_put_kept(results, name, &dims, integer, data, units, long_name, definition,
                                err);
}

static ats_code put_all_kept(const ats_results *results, ats_err *err)
{
    ats_code rc;
    ATS_TRY(put_kept(results, "undefined_cells", 2, true, results->undefined, "1",
                     "undefined cells of the case",
                     "heads x probes whose variant has no legal key and no sink logit: NaN in "
                     "every variable, left out of every mean",
                     err));
    if (!results->shape.detail_head) goto out;
    ATS_TRY(put_kept(
        results, "worst_probe", 3, true, results->worst_probe, "1",
        "probe that lost the target most",
        "index of the probe with the lowest log_mass_shift of the target span; -1: none", err));
    rc = put_kept(results, "worst_log_mass_shift", 3, false, results->worst_value, "nats",
                  "log_mass_shift of the target span at worst_probe",
                  "lowest log_mass_shift of the target span over probes", err);
out:
    return rc;
}

static ats_code flush_all(ats_results *results, ats_err *err)
{
    ats_code rc = ATS_OK;
    for (int64_t m = 0; m < results->n_metrics && rc == ATS_OK; m++)
        rc = flush(results, &results->variables[m], err);
    return rc == ATS_OK ? write_queue(results, err) : rc;
}

static void close_variable(ats_results_variable *variable)
{
    ats_h5_dataset_close(&variable->dataset);
    free(variable->rows);
}

static void close_datasets(ats_results *results)
{
    for (int64_t m = 0; m < results->n_metrics && results->base != NULL; m++) {
        close_variable(&results->variables[m]);
        close_variable(&results->base[m]);
    }
    for (int a = 0; a < ATS_N_AXES; a++) ats_h5_dataset_close(&results->scales[a]);
}

ats_code ats_results_end(ats_results *results, const ats_attribute *attributes,
                         int64_t n_attributes, ats_err *err)
{
    ats_code rc;
    ATS_TRY(flush_all(results, err));
    ATS_TRY(put_all_kept(results, err));
    ATS_TRY(ats_results_attributes(results, attributes, n_attributes, err));
    ATS_TRY(ats_h5_put_i64(&results->file, "/", "complete", 1, err));
    close_datasets(results);
    results->n_metrics = 0;
    rc = ats_h5_shut(&results->file, err);
out:
    return rc;
}

ats_code ats_results_commit(ats_results *results, ats_err *err)
{
    const ats_code rc = ats_h5_commit(&results->file, err);
    ats_results_abort(results);
    return rc;
}

ats_code ats_results_finish(ats_results *results, const ats_attribute *attributes,
                            int64_t n_attributes, ats_err *err)
{
    const ats_code rc = ats_results_end(results, attributes, n_attributes, err);
    if (rc == ATS_OK) return ats_results_commit(results, err);
    ats_results_abort(results);
    return rc;
}

void ats_results_abort(ats_results *results)
{
    if (results == NULL) return;
    close_datasets(results);
    ats_h5_close(&results->file);
    ats_arena_fini(&results->arena);
    free(results);
}

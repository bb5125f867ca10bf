#include "h5/grid.h"

#include <string.h>

#include "h5/chunks.h"
#include "h5/internal.h"

void ats_h5_chunk_shape(int rank, const int64_t *extent, size_t element, int64_t *chunk)
{
    enum { TARGET = 1 << 20 };
    int64_t room = element > 0 && element < TARGET ? (int64_t)(TARGET / element) : 1;
    for (int i = rank - 1; i >= 0; i--) {
        const int64_t axis = extent[i] > 0 ? extent[i] : 1;
        chunk[i] = axis < room ? axis : room;
        room /= chunk[i];
    }
}

ats_code ats_h5_grid_make(const ats_h5_dataset *dataset, const int64_t *start, const int64_t *count,
                          ats_h5_grid *out, ats_err *err)
{
    ats_h5_grid grid = {.rank = dataset->rank, .n_chunks = 1, .chunk_elements = 1};
    for (int i = 0; i < dataset->rank; i++) {
        const int64_t extent = dataset->extent[i];
        grid.start[i] = start != NULL ? start[i] : 0;
        grid.count[i] = count != NULL ? count[i] : extent;
        if (grid.start[i] < 0 || grid.count[i] < 0 || grid.start[i] > extent ||
            grid.count[i] > extent - grid.start[i])
            return ats_h5_fail(err, ATS_E_INTERNAL, dataset->file, dataset->name,
                               "box [%lld, +%lld) of axis %d is outside [0, %lld)",
                               (long long)grid.start[i], (long long)grid.count[i], i,
                               (long long)extent);
        grid.chunk[i] = dataset->chunked ? dataset->chunk[i] : (extent > 0 ? extent : 1);
        grid.chunk_elements *= grid.chunk[i];
        grid.first[i] = grid.start[i] / grid.chunk[i];
        const int64_t stop = grid.start[i] + grid.count[i];
        grid.steps[i] = grid.count[i] == 0 ? 0 : (stop - 1) / grid.chunk[i] - grid.first[i] + 1;
        grid.n_chunks *= grid.steps[i];
    }
    *out = grid;
    return ATS_OK;
}

void ats_h5_grid_origin(const ats_h5_grid *grid, int64_t index, int64_t *origin)
{
    for (int i = grid->rank - 1; i >= 0; i--) {
        origin[i] = (grid->first[i] + index % grid->steps[i]) * grid->chunk[i];
        index /= grid->steps[i];
    }
}

/* The part of a chunk that lies in the box, in coordinates of each. */
typedef struct overlap {
    int64_t extent[ATS_H5_MAX_RANK], in_chunk[ATS_H5_MAX_RANK], in_box[ATS_H5_MAX_RANK];
} overlap;

static overlap overlap_of(const ats_h5_grid *grid, int64_t index)
{
    overlap part = {{0}, {0}, {0}};
    int64_t origin[ATS_H5_MAX_RANK] = {0};
    ats_h5_grid_origin(grid, index, origin);
    for (int i = 0; i < grid->rank; i++) {
        const int64_t box_stop = grid->start[i] + grid->count[i];
        const int64_t low = origin[i] > grid->start[i] ? origin[i] : grid->start[i];
        const int64_t stop =
            origin[i] + grid->chunk[i] < box_stop ? origin[i] + grid->chunk[i] : box_stop;
        part.extent[i] = stop - low;
        part.in_chunk[i] = low - origin[i];
        part.in_box[i] = low - grid->start[i];
    }
    return part;
}

void ats_h5_grid_runs(const ats_h5_grid *grid, int64_t index, ats_h5_run_fn run, void *ctx)
{
    const overlap part = overlap_of(grid, index);
    int64_t chunk_stride[ATS_H5_MAX_RANK], box_stride[ATS_H5_MAX_RANK];
    int64_t chunk_size = 1, box_size = 1, chunk_at = 0, box_at = 0, elements = 1;
    for (int i = grid->rank - 1; i >= 0; i--) {
        chunk_stride[i] = chunk_size;
        box_stride[i] = box_size;
        chunk_size *= grid->chunk[i];
        box_size *= grid->count[i];
        chunk_at += part.in_chunk[i] * chunk_stride[i];
        box_at += part.in_box[i] * box_stride[i];
    }
    /* Axes behind `outer` are one run: they are whole in both. */
    int outer = grid->rank;
    while (outer > 0) {
        outer--;
        elements *= part.extent[outer];
        if (part.extent[outer] != grid->chunk[outer] || part.extent[outer] != grid->count[outer])
            break;
    }
    int64_t at[ATS_H5_MAX_RANK] = {0};
    for (;;) {
        run(ctx, chunk_at, box_at, elements);
        int i = outer - 1;
        for (; i >= 0; i--) {
            chunk_at += chunk_stride[i];
            box_at += box_stride[i];
            if (++at[i] < part.extent[i]) break;
            chunk_at -= at[i] * chunk_stride[i];
            box_at -= at[i] * box_stride[i];
            at[i] = 0;
        }
        if (i < 0) return;
    }
}

/* Edge chunks may be stored unfiltered when the creator asked for it. */
static bool has_chunk_options(const ats_h5_dataset *dataset)
{
    unsigned options = 0;
    const hid_t creation = H5Dget_create_plist(dataset->id);
    const bool known = creation >= 0 && H5Pget_chunk_opts(creation, &options) >= 0;
    if (creation >= 0) H5Pclose(creation);
    return !known || options != 0;
}

ats_h5_pipeline ats_h5_pipeline_of(const ats_h5_dataset *dataset)
{
    ats_h5_pipeline pipeline = {.shuffle_at = -1, .compression_at = -1, .fletcher_at = -1};
    if (!dataset->chunked || !dataset->little_endian || dataset->type >= ATS_H5_TEXT)
        return pipeline;
    for (int i = 0; i < dataset->n_filters; i++) {
        const int id = dataset->filter[i];
        if (id == ATS_H5_SHUFFLE && i == 0) {
            pipeline.shuffled = true;
            pipeline.shuffle_at = i;
        } else if ((id == ATS_H5_DEFLATE || id == ATS_H5_ZSTD) && pipeline.compression == 0 &&
                   pipeline.fletcher_at < 0) {
            pipeline.compression = id;
            pipeline.compression_at = i;
        } else if (id == ATS_H5_FLETCHER32 && i + 1 == dataset->n_filters) {
            pipeline.fletcher_at = i;
        } else {
            return pipeline;
        }
    }
    pipeline.direct = !has_chunk_options(dataset);
    return pipeline;
}

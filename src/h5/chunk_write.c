#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/parallel.h"
#include "h5/chunks.h"
#include "h5/grid.h"
#include "h5/internal.h"
#include "h5/zstd_filter.h"

typedef struct packed {
    int64_t index; /* in the grid */
    uint8_t *bytes;
    size_t room, used;
} packed;

typedef struct worker {
    ZSTD_CCtx *zstd;
    uint8_t *scratch; /* one chunk, shuffled */
} worker;

typedef struct writer {
    const ats_h5_dataset *dataset;
    ats_h5_grid grid;
    ats_h5_pipeline pipeline;
    size_t chunk_bytes;
    const uint8_t *data;
    int64_t n_slots;
    packed *slots; /* [2, n_slots]: one half is stored while the other is filled */
    int n_workers;
    worker *workers; /* [n_workers] */
    int64_t batch;   /* being filled; -1 - none */
} writer;

static int64_t batch_size(const writer *w, int64_t batch)
{
    const int64_t left = w->grid.n_chunks - batch * w->n_slots;
    return batch < 0 || left < 0 ? 0 : left < w->n_slots ? left : w->n_slots;
}

static packed *slot_of(const writer *w, int64_t batch, int64_t i)
{
    return &w->slots[(batch & 1) * w->n_slots + i];
}

static ats_code store_batch(writer *w, int64_t batch, ats_err *err)
{
    for (int64_t i = 0; i < batch_size(w, batch); i++) {
        const packed *slot = slot_of(w, batch, i);
        int64_t origin[ATS_H5_MAX_RANK] = {0};
        ats_h5_grid_origin(&w->grid, slot->index, origin);
        const ats_h5_dims offset = ats_h5_to_dims(w->grid.rank, origin);
        H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* HDF5 keeps this setting for every thread apart */
        if (H5Dwrite_chunk(w->dataset->id, H5P_DEFAULT, 0, offset.at, slot->used, slot->bytes) < 0)
            return ats_h5_error(err, ATS_E_IO, w->dataset->file, w->dataset->name,
                                "a chunk cannot be written; is the disk full?");
    }
    return ATS_OK;
}

typedef struct gather {
    const writer *w;
    uint8_t *chunk;
} gather;

static void gather_run(void *ctx, int64_t chunk_at, int64_t box_at, int64_t elements)
{
    const gather *from = ctx;
    const writer *w = from->w;
    const size_t size = w->dataset->size;
    const uint8_t *data = w->data + (size_t)box_at * size;
    if (!w->pipeline.shuffled || size == 1) {
        memcpy(from->chunk + (size_t)chunk_at * size, data, (size_t)elements * size);
        return;
    }
    for (size_t byte = 0; byte < size; byte++) {
        uint8_t *plane = from->chunk + (int64_t)byte * w->grid.chunk_elements + chunk_at;
        for (int64_t i = 0; i < elements; i++) plane[i] = data[(size_t)i * size + byte];
    }
}

static size_t packed_bound(const writer *w)
{
    if (w->pipeline.compression == ATS_H5_ZSTD) return ZSTD_compressBound(w->chunk_bytes);
    if (w->pipeline.compression == ATS_H5_DEFLATE) return compressBound(w->chunk_bytes);
    return w->chunk_bytes;
}

static bool compress_chunk(const writer *w, worker *mine, packed *slot)
{
    if (w->pipeline.compression == ATS_H5_ZSTD) {
        if (mine->zstd == NULL) mine->zstd = ZSTD_createCCtx();
        slot->used = ats_zstd_encode(mine->zstd, w->dataset->level, mine->scratch, w->chunk_bytes,
                                     slot->bytes, slot->room);
        return slot->used > 0;
    }
    if (w->pipeline.compression == ATS_H5_DEFLATE) {
        uLongf used = slot->room;
        const int status =
            compress2(slot->bytes, &used, mine->scratch, w->chunk_bytes, w->dataset->level);
        slot->used = used;
        return status == Z_OK;
    }
    memcpy(slot->bytes, mine->scratch, w->chunk_bytes);
    slot->used = w->chunk_bytes;
    return true;
}

static ats_code fill_slot(writer *w, int64_t index, packed *slot, worker *mine, ats_err *err)
{
    if (mine->scratch == NULL) mine->scratch = malloc(w->chunk_bytes);
    if (slot->bytes == NULL) {
        slot->room = packed_bound(w);
        slot->bytes = malloc(slot->room);
    }
    if (mine->scratch == NULL || slot->bytes == NULL)
        return ats_fail(err, ATS_E_MEMORY, "out of memory: a chunk of %zu bytes", w->chunk_bytes);
    slot->index = index;
    memset(mine->scratch, 0, w->chunk_bytes);
    ats_h5_grid_runs(&w->grid, index, gather_run, &(gather){w, mine->scratch});
    if (!compress_chunk(w, mine, slot))
        return ats_h5_fail(err, ATS_E_INTERNAL, w->dataset->file, w->dataset->name,
                           "a chunk cannot be compressed");
    return ATS_OK;
}

/* Item 0 stores the batch before; the others fill this one. */
static ats_code step(void *ctx, int64_t index, int thread, ats_err *err)
{
    writer *w = ctx;
    if (index == 0) return store_batch(w, w->batch - 1, err);
    return fill_slot(w, w->batch * w->n_slots + index - 1, slot_of(w, w->batch, index - 1),
                     &w->workers[thread], err);
}

static ats_code writer_init(writer *w, ats_err *err)
{
    enum { AHEAD = 64 << 20 }; /* bytes of chunks in one batch, about */
    ats_code rc;
    void *slots = NULL, *workers = NULL;
    w->chunk_bytes = (size_t)w->grid.chunk_elements * w->dataset->size;
    w->n_workers = ats_threads();
    w->n_slots = (int64_t)(AHEAD / w->chunk_bytes);
    if (w->n_slots > 4 * (int64_t)w->n_workers) w->n_slots = 4 * (int64_t)w->n_workers;
    if (w->n_slots < 1) w->n_slots = 1;
    ATS_TRY(ats_h5_malloc(2 * (size_t)w->n_slots * sizeof *w->slots, &slots, err));
    w->slots = slots;
    memset(slots, 0, 2 * (size_t)w->n_slots * sizeof *w->slots);
    ATS_TRY(ats_h5_malloc((size_t)w->n_workers * sizeof *w->workers, &workers, err));
    w->workers = workers;
    memset(workers, 0, (size_t)w->n_workers * sizeof *w->workers);
out:
    return rc;
}

static void writer_fini(writer *w)
{
    for (int64_t i = 0; w->slots != NULL && i < 2 * w->n_slots; i++) free(w->slots[i].bytes);
    for (int i = 0; w->workers != NULL && i < w->n_workers; i++) {
        ZSTD_freeCCtx(w->workers[i].zstd);
        free(w->workers[i].scratch);
    }
    free(w->slots);
    free(w->workers);
}

static bool is_whole_chunks(const ats_h5_dataset *dataset, const ats_h5_grid *grid)
{
    for (int i = 0; i < grid->rank; i++) {
        const int64_t stop = grid->start[i] + grid->count[i];
        if (grid->start[i] % grid->chunk[i] != 0) return false;
        if (stop % grid->chunk[i] != 0 && stop != dataset->extent[i]) return false;
    }
    return true;
}

/* HDF5's own writing of a box in the stored type. */
static ats_code write_through(const ats_h5_dataset *dataset, const ats_h5_grid *grid,
                              const void *data, ats_err *err)
{
    const hid_t type = H5Dget_type(dataset->id), file = H5Dget_space(dataset->id);
    const ats_h5_dims start = ats_h5_to_dims(grid->rank, grid->start);
    const ats_h5_dims count = ats_h5_to_dims(grid->rank, grid->count);
    const hid_t memory =
        grid->rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(grid->rank, count.at, NULL);
    bool good = type >= 0 && file >= 0 && memory >= 0;
    if (good && grid->rank > 0)
        good = H5Sselect_hyperslab(file, H5S_SELECT_SET, start.at, NULL, count.at, NULL) >= 0;
    good = good && H5Dwrite(dataset->id, type, memory, file, H5P_DEFAULT, data) >= 0;
    ats_code rc = ATS_OK;
    if (!good)
        rc = ats_h5_error(err, ATS_E_IO, dataset->file, dataset->name,
                          "cannot be written; is the disk full?");
    if (type >= 0) H5Tclose(type);
    if (file >= 0) H5Sclose(file);
    if (memory >= 0) H5Sclose(memory);
    return rc;
}

ats_code ats_h5_write_box(const ats_h5_dataset *dataset, const int64_t *start, const int64_t *count,
                          const void *data, ats_err *err)
{
    writer w = {.dataset = dataset, .data = data};
    ats_code rc;
    ATS_TRY(ats_h5_grid_make(dataset, start, count, &w.grid, err));
    if (w.grid.n_chunks == 0) return ATS_OK;
    w.pipeline = ats_h5_pipeline_of(dataset);
    if (!w.pipeline.direct || w.pipeline.fletcher_at >= 0 || !is_whole_chunks(dataset, &w.grid))
        return write_through(dataset, &w.grid, data, err);
    ATS_TRY(writer_init(&w, err));
    for (w.batch = 0; batch_size(&w, w.batch) > 0; w.batch++)
        ATS_TRY(ats_parallel_for(1 + batch_size(&w, w.batch), step, &w, err));
    rc = store_batch(&w, w.batch - 1, err);
out:
    writer_fini(&w);
    return rc;
}

static ats_code copy_chunk(const ats_h5_dataset *src, const ats_h5_dataset *dst,
                           const ats_h5_dims *from, const ats_h5_dims *to, void **buffer,
                           size_t *room, ats_err *err)
{
    unsigned skipped = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t bytes = 0;
    uint32_t mask = 0;
    if (H5Dget_chunk_info_by_coord(src->id, from->at, &skipped, &address, &bytes) < 0)
        return ats_h5_error(err, ATS_E_INPUT, src->file, src->name, "its chunk index is damaged");
    if (address == HADDR_UNDEF || bytes == 0) return ATS_OK;
    if (src->file->size > 0 && bytes > (hsize_t)src->file->size)
        return ats_h5_fail(err, ATS_E_INPUT, src->file, src->name,
                           "a chunk claims more bytes than the file has; the file is damaged");
    if (*room < bytes) {
        void *more = realloc(*buffer, (size_t)bytes);
        if (more == NULL)
            return ats_fail(err, ATS_E_MEMORY, "out of memory: a chunk of %llu bytes",
                            (unsigned long long)bytes);
        *buffer = more;
        *room = (size_t)bytes;
    }
    if (H5Dread_chunk(src->id, H5P_DEFAULT, from->at, &mask, *buffer) < 0)
        return ats_h5_error(err, ATS_E_INPUT, src->file, src->name, "a chunk cannot be read");
    if (H5Dwrite_chunk(dst->id, H5P_DEFAULT, mask, to->at, (size_t)bytes, *buffer) < 0)
        return ats_h5_error(err, ATS_E_IO, dst->file, dst->name,
                            "a chunk cannot be written; is the disk full?");
    return ATS_OK;
}

static bool same_storage(const ats_h5_dataset *a, const ats_h5_dataset *b)
{
    bool same = a->type == b->type && a->rank == b->rank && a->chunked && b->chunked &&
                a->little_endian == b->little_endian && a->n_filters == b->n_filters;
    for (int i = 0; same && i < a->rank; i++) same = a->chunk[i] == b->chunk[i];
    for (int i = 0; same && i < a->n_filters; i++) same = a->filter[i] == b->filter[i];
    return same;
}

ats_code ats_h5_copy_chunks(const ats_h5_dataset *src, const ats_h5_dataset *dst,
                            const int64_t *offset, ats_err *err)
{
    ats_h5_grid grid;
    void *buffer = NULL;
    size_t room = 0;
    ats_code rc;
    if (!same_storage(src, dst))
        return ats_h5_fail(err, ATS_E_INPUT, src->file, src->name,
                           "is stored differently from %s: %s (type, chunks or filters)",
                           dst->file->path, dst->name);
    ATS_TRY(ats_h5_grid_make(src, NULL, NULL, &grid, err));
    for (int64_t i = 0; i < grid.n_chunks; i++) {
        int64_t origin[ATS_H5_MAX_RANK] = {0};
        ats_h5_grid_origin(&grid, i, origin);
        const ats_h5_dims from = ats_h5_to_dims(grid.rank, origin);
        for (int a = 0; a < grid.rank; a++) origin[a] += offset[a];
        const ats_h5_dims to = ats_h5_to_dims(grid.rank, origin);
        ATS_TRY(copy_chunk(src, dst, &from, &to, &buffer, &room, err));
    }
out:
    free(buffer);
    return rc;
}

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/parallel.h"
#include "h5/chunks.h"
#include "h5/grid.h"
#include "h5/internal.h"
#include "h5/shuffle.h"
#include "h5/zstd_filter.h"

/* One dataset's box on its way. */
typedef struct target {
    const ats_h5_dataset *dataset;
    ats_h5_grid grid;
    ats_h5_pipeline pipeline;
    size_t chunk_bytes;
    const uint8_t *data;
    int64_t first; /* number of its first chunk among those of all targets */
} target;

typedef struct packed {
    const target *to;
    int64_t index; /* in the target's grid */
    uint8_t *bytes;
    size_t room, used;
} packed;

typedef struct worker {
    ZSTD_CCtx *zstd;
    uint8_t *scratch; /* one chunk, shuffled */
} worker;

typedef struct writer {
    target *targets; /* [n_targets] */
    int64_t n_targets, n_chunks;
    size_t chunk_bytes; /* of the largest chunk */
    int64_t n_slots;
    packed *slots; /* [2, n_slots]: one half is stored while the other is filled */
    int n_workers;
    worker *workers; /* [n_workers] */
    int64_t batch;   /* being filled; -1 - none */
} writer;

static int64_t batch_size(const writer *w, int64_t batch)
{
    const int64_t left = w->n_chunks - batch * w->n_slots;
    return batch < 0 || left < 0 ? 0 : left < w->n_slots ? left : w->n_slots;
}

static packed *slot_of(const writer *w, int64_t batch, int64_t i)
{
    return &w->slots[(batch & 1) * w->n_slots + i];
}

static ats_code store_batch(writer *w, int64_t batch, ats_err *err)
{
    ats_h5_quiet();
    for (int64_t i = 0; i < batch_size(w, batch); i++) {
        const packed *slot = slot_of(w, batch, i);
        const ats_h5_dataset *dataset = slot->to->dataset;
        int64_t origin[ATS_H5_MAX_RANK] = {0};
        ats_h5_grid_origin(&slot->to->grid, slot->index, origin);
        const ats_h5_dims offset = ats_h5_to_dims(slot->to->grid.rank, origin);
        if (H5Dwrite_chunk(dataset->id, H5P_DEFAULT, 0, offset.at, slot->used, slot->bytes) < 0)
            return ats_h5_error(err, ATS_E_IO, dataset->file, dataset->name,
                                "a chunk cannot be written; is the disk full?");
    }
    return ATS_OK;
}

typedef struct gather {
    const target *from;
    uint8_t *chunk;
} gather;

static void gather_run(void *ctx, int64_t chunk_at, int64_t box_at, int64_t elements)
{
    const gather *g = ctx;
    const size_t size = g->from->dataset->size;
    const uint8_t *data = g->from->data + (size_t)box_at * size;
    if (!g->from->pipeline.shuffled || size == 1)
        memcpy(g->chunk + (size_t)chunk_at * size, data, (size_t)elements * size);
    else
        ats_h5_shuffle(data, size, elements, g->from->grid.chunk_elements, g->chunk + chunk_at);
}

static size_t packed_bound(const target *to)
{
    if (to->pipeline.compression == ATS_H5_ZSTD) return ZSTD_compressBound(to->chunk_bytes);
    if (to->pipeline.compression == ATS_H5_DEFLATE) return compressBound(to->chunk_bytes);
    return to->chunk_bytes;
}

static bool compress_chunk(const target *to, worker *mine, packed *slot)
{
    const int level = to->dataset->level;
    if (to->pipeline.compression == ATS_H5_ZSTD) {
        if (mine->zstd == NULL) mine->zstd = ZSTD_createCCtx();
        slot->used = ats_zstd_encode(mine->zstd, level, mine->scratch, to->chunk_bytes, slot->bytes,
                                     slot->room);
        return slot->used > 0;
    }
    if (to->pipeline.compression == ATS_H5_DEFLATE) {
        uLongf used = slot->room;
        const int status = compress2(slot->bytes, &used, mine->scratch, to->chunk_bytes, level);
        slot->used = used;
        return status == Z_OK;
    }
    memcpy(slot->bytes, mine->scratch, to->chunk_bytes);
    slot->used = to->chunk_bytes;
    return true;
}

static ats_code make_room(const writer *w, const target *to, packed *slot, worker *mine,
                          ats_err *err)
{
    const size_t room = packed_bound(to);
    if (mine->scratch == NULL) mine->scratch = malloc(w->chunk_bytes);
    if (slot->room < room) {
        free(slot->bytes);
        slot->bytes = malloc(room);
        slot->room = slot->bytes != NULL ? room : 0;
    }
    if (mine->scratch == NULL || slot->bytes == NULL)
        return ats_fail(err, ATS_E_MEMORY, "out of memory: a chunk of %zu bytes", w->chunk_bytes);
    return ATS_OK;
}

static ats_code fill_slot(writer *w, int64_t chunk, packed *slot, worker *mine, ats_err *err)
{
    const target *to = w->targets;
    while (chunk - to->first >= to->grid.n_chunks) to++;
    const ats_code rc = make_room(w, to, slot, mine, err);
    if (rc != ATS_OK) return rc;
    slot->to = to;
    slot->index = chunk - to->first;
    memset(mine->scratch, 0, to->chunk_bytes);
    ats_h5_grid_runs(&to->grid, slot->index, gather_run, &(gather){to, mine->scratch});
    if (!compress_chunk(to, mine, slot))
        return ats_h5_fail(err, ATS_E_INTERNAL, to->dataset->file, to->dataset->name,
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

static ats_code zeroed(size_t count, size_t size, void **out, ats_err *err)
{
    const ats_code rc = ats_h5_malloc(count * size, out, err);
    if (rc == ATS_OK) memset(*out, 0, count * size);
    return rc;
}

/* Many slots, because threads wait for each other at the end of a batch. */
static ats_code writer_init(writer *w, ats_err *err)
{
    enum { AHEAD = 16 << 20, MOST = 128 }; /* bytes of chunks in one batch, about; chunks */
    ats_code rc;
    void *slots = NULL, *workers = NULL;
    w->n_workers = ats_threads();
    w->n_slots = (int64_t)(AHEAD / w->chunk_bytes);
    if (w->n_slots > MOST) w->n_slots = MOST;
    if (w->n_slots < w->n_workers) w->n_slots = w->n_workers;
    if (w->n_slots > w->n_chunks) w->n_slots = w->n_chunks;
    ATS_TRY(zeroed(2 * (size_t)w->n_slots, sizeof *w->slots, &slots, err));
    w->slots = slots;
    ATS_TRY(zeroed((size_t)w->n_workers, sizeof *w->workers, &workers, err));
    w->workers = workers;
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
    free(w->targets);
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

/* Writes at once what the direct path cannot, and leaves the rest to the pool. */
static ats_code add_target(writer *w, const ats_h5_box *box, ats_err *err)
{
    target *to = &w->targets[w->n_targets];
    *to = (target){.dataset = box->dataset, .data = box->data, .first = w->n_chunks};
    const ats_code rc = ats_h5_grid_make(box->dataset, box->start, box->count, &to->grid, err);
    if (rc != ATS_OK || to->grid.n_chunks == 0) return rc;
    to->pipeline = ats_h5_pipeline_of(box->dataset);
    if (!to->pipeline.direct || to->pipeline.fletcher_at >= 0 ||
        !is_whole_chunks(box->dataset, &to->grid))
        return write_through(box->dataset, &to->grid, box->data, err);
    to->chunk_bytes = (size_t)to->grid.chunk_elements * box->dataset->size;
    if (to->chunk_bytes > w->chunk_bytes) w->chunk_bytes = to->chunk_bytes;
    w->n_chunks += to->grid.n_chunks;
    w->n_targets++;
    return ATS_OK;
}

ats_code ats_h5_write_many(const ats_h5_box *boxes, int64_t count, ats_err *err)
{
    writer w = {.n_chunks = 0};
    void *targets = NULL;
    ats_code rc;
    ATS_TRY(zeroed((size_t)count, sizeof *w.targets, &targets, err));
    w.targets = targets;
    for (int64_t i = 0; i < count; i++) ATS_TRY(add_target(&w, &boxes[i], err));
    if (w.n_chunks == 0) goto out;
    ATS_TRY(writer_init(&w, err));
    for (w.batch = 0; batch_size(&w, w.batch) > 0; w.batch++)
        ATS_TRY(ats_parallel_for(1 + batch_size(&w, w.batch), step, &w, err));
    rc = store_batch(&w, w.batch - 1, err);
out:
    writer_fini(&w);
    return rc;
}

ats_code ats_h5_write_box(const ats_h5_dataset *dataset, const int64_t *start, const int64_t *count,
                          const void *data, ats_err *err)
{
    const ats_h5_box box = {dataset, start, count, data};
    return ats_h5_write_many(&box, 1, err);
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

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/parallel.h"
#include "h5/checksum.h"
#include "h5/chunks.h"
#include "h5/grid.h"
#include "h5/internal.h"
#include "h5/zstd_filter.h"

/* A chunk on its way: as stored in the file. */
typedef struct slot {
    const struct source *from;
    int64_t index; /* in the source's grid */
    uint8_t *raw;
    size_t room, bytes;
    unsigned skipped; /* filter mask */
    bool written;
} slot;

typedef struct worker {
    ZSTD_DCtx *zstd;
    uint8_t *scratch; /* one chunk */
} worker;

/* One dataset's box on its way. */
typedef struct source {
    const ats_h5_dataset *dataset;
    ats_h5_grid grid;
    ats_h5_pipeline pipeline;
    size_t chunk_bytes;
    bool sparse;
    uint8_t fill[16]; /* one element */
    uint8_t *out;
    int64_t first;   /* number of its first chunk among those of all sources */
    int64_t written; /* chunks found so far */
    bool whole;
} source;

typedef struct reader {
    source *sources; /* [n_sources] */
    int64_t n_sources, n_chunks;
    size_t chunk_bytes; /* of the largest chunk */
    int64_t n_slots;    /* of each half */
    slot *slots;        /* [2, n_slots]: one half is fetched while the other is decoded */
    int n_workers;
    worker *workers; /* [n_workers] */
    int64_t batch;   /* being decoded */
} reader;

static int64_t batch_size(const reader *r, int64_t batch)
{
    const int64_t left = r->n_chunks - batch * r->n_slots;
    return left < 0 ? 0 : left < r->n_slots ? left : r->n_slots;
}

static slot *slot_of(const reader *r, int64_t batch, int64_t i)
{
    return &r->slots[(batch & 1) * r->n_slots + i];
}

static ats_code chunk_fail(const source *s, int64_t index, const char *why, ats_err *err)
{
    int64_t origin[ATS_H5_MAX_RANK] = {0};
    char place[128] = "";
    size_t used = 0;
    ats_h5_grid_origin(&s->grid, index, origin);
    for (int i = 0; i < s->grid.rank && used < sizeof place - 24; i++)
        used += (size_t)snprintf(place + used, sizeof place - used, "%s%lld", i > 0 ? ", " : "",
                                 (long long)origin[i]);
    return ats_h5_fail(err, ATS_E_INPUT, s->dataset->file, s->dataset->name,
                       "the chunk at [%s] cannot be read: %s; the file is damaged or incomplete",
                       place, why);
}

static ats_code fetch(source *s, slot *at, int64_t index, ats_err *err)
{
    int64_t origin[ATS_H5_MAX_RANK] = {0};
    ats_h5_grid_origin(&s->grid, index, origin);
    const ats_h5_dims offset = ats_h5_to_dims(s->grid.rank, origin);
    haddr_t address = HADDR_UNDEF;
    hsize_t bytes = 0;
    at->from = s;
    at->index = index;
    if (H5Dget_chunk_info_by_coord(s->dataset->id, offset.at, &at->skipped, &address, &bytes) < 0)
        return ats_h5_error(err, ATS_E_INPUT, s->dataset->file, s->dataset->name,
                            "its chunk index cannot be read");
    at->written = address != HADDR_UNDEF && bytes > 0;
    if (!at->written) return s->sparse ? ATS_OK : chunk_fail(s, index, "it was never written", err);
    s->written++;
    const int64_t file_size = s->dataset->file->size;
    if (file_size > 0 && bytes > (hsize_t)file_size)
        return chunk_fail(s, index, "it claims more bytes than the file has", err);
    if (at->room < bytes) {
        void *more = realloc(at->raw, (size_t)bytes);
        if (more == NULL)
            return ats_fail(err, ATS_E_MEMORY, "out of memory: a chunk of %llu bytes",
                            (unsigned long long)bytes);
        at->raw = more;
        at->room = (size_t)bytes;
    }
    at->bytes = (size_t)bytes;
    uint32_t skipped = 0;
    if (H5Dread_chunk(s->dataset->id, H5P_DEFAULT, offset.at, &skipped, at->raw) < 0)
        return ats_h5_error(err, ATS_E_INPUT, s->dataset->file, s->dataset->name,
                            "a chunk cannot be read");
    at->skipped = skipped;
    return ATS_OK;
}

static ats_code fetch_batch(reader *r, int64_t batch, ats_err *err)
{
    const int64_t count = batch_size(r, batch);
    for (int64_t i = 0; i < count; i++) {
        const int64_t chunk = batch * r->n_slots + i;
        source *s = r->sources;
        while (chunk - s->first >= s->grid.n_chunks) s++;
        const ats_code rc = fetch(s, slot_of(r, batch, i), chunk - s->first, err);
        if (rc != ATS_OK) return rc;
    }
    return ATS_OK;
}

/* Where a chunk's decoded bytes go: a run of elements at a time. */
typedef struct scatter {
    const uint8_t *planes; /* decoded chunk; shuffled: [size, chunk_elements] */
    bool shuffled;
    int64_t chunk_elements;
    size_t size;
    uint8_t *out;
} scatter;

static void unshuffle(const uint8_t *restrict planes, int64_t stride, size_t size, int64_t elements,
                      uint8_t *restrict out)
{
    if (size == 2) {
        const uint8_t *restrict low = planes, *restrict high = planes + stride;
        for (int64_t i = 0; i < elements; i++) {
            out[2 * i] = low[i];
            out[2 * i + 1] = high[i];
        }
        return;
    }
    if (size == 4) {
        const uint8_t *a = planes, *b = a + stride, *c = b + stride, *d = c + stride;
        for (int64_t i = 0; i < elements; i++) {
            out[4 * i] = a[i];
            out[4 * i + 1] = b[i];
            out[4 * i + 2] = c[i];
            out[4 * i + 3] = d[i];
        }
        return;
    }
    for (size_t byte = 0; byte < size; byte++)
        for (int64_t i = 0; i < elements; i++)
            out[(size_t)i * size + byte] = planes[(int64_t)byte * stride + i];
}

static void scatter_run(void *ctx, int64_t chunk_at, int64_t box_at, int64_t elements)
{
    const scatter *to = ctx;
    uint8_t *out = to->out + (size_t)box_at * to->size;
    if (to->shuffled)
        unshuffle(to->planes + chunk_at, to->chunk_elements, to->size, elements, out);
    else
        memcpy(out, to->planes + (size_t)chunk_at * to->size, (size_t)elements * to->size);
}

static void fill_run(void *ctx, int64_t chunk_at, int64_t box_at, int64_t elements)
{
    (void)chunk_at;
    const slot *at = ctx;
    const source *s = at->from;
    const size_t size = s->dataset->size;
    uint8_t *out = s->out + (size_t)box_at * size;
    for (int64_t i = 0; i < elements; i++) memcpy(out + (size_t)i * size, s->fill, size);
}

/* Inflates into the worker's scratch. */
static ats_code inflate_slot(const reader *r, const slot *at, worker *w, ats_err *err)
{
    const source *s = at->from;
    const char *why = "out of memory";
    if (w->scratch == NULL) w->scratch = malloc(r->chunk_bytes);
    if (w->scratch == NULL) return chunk_fail(s, at->index, why, err);
    if (s->pipeline.compression == ATS_H5_ZSTD) {
        if (w->zstd == NULL) w->zstd = ZSTD_createDCtx();
        if (ats_zstd_decode(w->zstd, at->raw, at->bytes, w->scratch, s->chunk_bytes, &why))
            return ATS_OK;
    } else {
        uLongf got = s->chunk_bytes;
        if (uncompress(w->scratch, &got, at->raw, at->bytes) == Z_OK && got == s->chunk_bytes)
            return ATS_OK;
        why = "the deflate stream is corrupt or of another size than the chunk";
    }
    return chunk_fail(s, at->index, why, err);
}

static bool runs_on(int place, unsigned skipped)
{
    return place >= 0 && (skipped & (1u << place)) == 0;
}

static ats_code decode(const reader *r, slot *at, worker *w, ats_err *err)
{
    const source *s = at->from;
    if (!at->written) {
        ats_h5_grid_runs(&s->grid, at->index, fill_run, at);
        return ATS_OK;
    }
    if (runs_on(s->pipeline.fletcher_at, at->skipped)) {
        if (!ats_h5_fletcher32_holds(at->raw, at->bytes))
            return chunk_fail(s, at->index, "its fletcher32 checksum does not hold", err);
        at->bytes -= ATS_H5_FLETCHER_SIZE;
    }
    if (s->pipeline.shuffle_at >= 0 && !runs_on(s->pipeline.shuffle_at, at->skipped) &&
        runs_on(s->pipeline.compression_at, at->skipped))
        return chunk_fail(s, at->index, "it claims to be compressed but not shuffled", err);
    scatter to = {.planes = at->raw,
                  .shuffled = runs_on(s->pipeline.shuffle_at, at->skipped) && s->dataset->size > 1,
                  .chunk_elements = s->grid.chunk_elements,
                  .size = s->dataset->size,
                  .out = s->out};
    if (runs_on(s->pipeline.compression_at, at->skipped)) {
        const ats_code rc = inflate_slot(r, at, w, err);
        if (rc != ATS_OK) return rc;
        to.planes = w->scratch;
    } else if (at->bytes != s->chunk_bytes) {
        return chunk_fail(s, at->index, "its stored size differs from the chunk's", err);
    }
    ats_h5_grid_runs(&s->grid, at->index, scatter_run, &to);
    return ATS_OK;
}

/* Item 0 fetches the next batch; the others decode this one. */
static ats_code step(void *ctx, int64_t index, int thread, ats_err *err)
{
    reader *r = ctx;
    if (index == 0) return fetch_batch(r, r->batch + 1, err);
    return decode(r, slot_of(r, r->batch, index - 1), &r->workers[thread], err);
}

static ats_code read_fill(source *s, ats_err *err)
{
    const hid_t creation = H5Dget_create_plist(s->dataset->id), type = H5Dget_type(s->dataset->id);
    ats_code rc = ATS_OK;
    if (creation < 0 || type < 0 || s->dataset->size > sizeof s->fill ||
        H5Pget_fill_value(creation, type, s->fill) < 0)
        rc = ats_h5_error(err, ATS_E_INPUT, s->dataset->file, s->dataset->name,
                          "its fill value cannot be read");
    if (creation >= 0) H5Pclose(creation);
    if (type >= 0) H5Tclose(type);
    return rc;
}

static ats_code zeroed(size_t count, size_t size, void **out, ats_err *err)
{
    const ats_code rc = ats_h5_malloc(count * size, out, err);
    if (rc == ATS_OK) memset(*out, 0, count * size);
    return rc;
}

static ats_code reader_init(reader *r, ats_err *err)
{
    enum { AHEAD = 64 << 20 }; /* bytes of decoded chunks in one batch, about */
    ats_code rc;
    void *slots = NULL, *workers = NULL;
    r->n_workers = ats_threads();
    r->n_slots = (int64_t)(AHEAD / r->chunk_bytes);
    if (r->n_slots > 4 * (int64_t)r->n_workers) r->n_slots = 4 * (int64_t)r->n_workers;
    if (r->n_slots < 1) r->n_slots = 1;
    ATS_TRY(zeroed(2 * (size_t)r->n_slots, sizeof *r->slots, &slots, err));
    r->slots = slots;
    ATS_TRY(zeroed((size_t)r->n_workers, sizeof *r->workers, &workers, err));
    r->workers = workers;
out:
    return rc;
}

static void reader_fini(reader *r)
{
    for (int64_t i = 0; r->slots != NULL && i < 2 * r->n_slots; i++) free(r->slots[i].raw);
    for (int i = 0; r->workers != NULL && i < r->n_workers; i++) {
        ZSTD_freeDCtx(r->workers[i].zstd);
        free(r->workers[i].scratch);
    }
    free(r->slots);
    free(r->workers);
}

/* HDF5's own reading of a box, in the stored type but host byte order. */
static ats_code read_through(const ats_h5_dataset *dataset, const ats_h5_grid *grid, void *out,
                             ats_err *err)
{
    const hid_t type = H5Dget_type(dataset->id), file = H5Dget_space(dataset->id);
    const ats_h5_dims start = ats_h5_to_dims(grid->rank, grid->start);
    const ats_h5_dims count = ats_h5_to_dims(grid->rank, grid->count);
    const hid_t memory =
        grid->rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(grid->rank, count.at, NULL);
    bool good = type >= 0 && file >= 0 && memory >= 0;
    if (good && grid->rank > 0)
        good = H5Sselect_hyperslab(file, H5S_SELECT_SET, start.at, NULL, count.at, NULL) >= 0;
    good = good && H5Dread(dataset->id, type, memory, file, H5P_DEFAULT, out) >= 0;
    ats_code rc = ATS_OK;
    if (!good) rc = ats_h5_error(err, ATS_E_INPUT, dataset->file, dataset->name, "cannot be read");
    if (type >= 0) H5Tclose(type);
    if (file >= 0) H5Sclose(file);
    if (memory >= 0) H5Sclose(memory);
    return rc;
}

static void swap_bytes(uint8_t *data, int64_t elements, size_t size)
{
    for (int64_t i = 0; i < elements; i++, data += size)
        for (size_t a = 0, b = size - 1; a < b; a++, b--) {
            const uint8_t byte = data[a];
            data[a] = data[b];
            data[b] = byte;
        }
}

static int64_t box_elements(const ats_h5_grid *grid)
{
    int64_t elements = 1;
    for (int i = 0; i < grid->rank; i++) elements *= grid->count[i];
    return elements;
}

/* Reads at once what the direct path cannot, and leaves the rest to the pool. */
static ats_code add_source(reader *r, const ats_h5_job *job, ats_err *err)
{
    const ats_h5_dataset *dataset = job->dataset;
    source *s = &r->sources[r->n_sources];
    ats_code rc;
    *s = (source){
        .dataset = dataset, .sparse = job->sparse, .whole = job->start == NULL, .out = job->out};
    if (dataset->type >= ATS_H5_TEXT)
        return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                           "holds %s, should hold numbers", ats_h5_type_name(dataset->type));
    ATS_TRY(ats_h5_grid_make(dataset, job->start, job->count, &s->grid, err));
    const int64_t elements = box_elements(&s->grid);
    if (elements == 0) goto out;
    s->pipeline = ats_h5_pipeline_of(dataset);
    if (!s->pipeline.direct) {
        ATS_TRY(read_through(dataset, &s->grid, job->out, err));
        if (!dataset->little_endian) swap_bytes(job->out, elements, dataset->size);
        goto out;
    }
    if (s->sparse) ATS_TRY(read_fill(s, err));
    s->chunk_bytes = (size_t)s->grid.chunk_elements * dataset->size;
    s->first = r->n_chunks;
    r->n_chunks += s->grid.n_chunks;
    r->n_sources++;
    if (s->chunk_bytes > r->chunk_bytes) r->chunk_bytes = s->chunk_bytes;
out:
    return rc;
}

/* A chunk whose place in the index is damaged would else pass for one that was never written. */
static ats_code check_written(const source *s, ats_err *err)
{
    hsize_t count = 0;
    if (!s->sparse || !s->whole) return ATS_OK;
    const hid_t space = H5Dget_space(s->dataset->id);
    const bool known = space >= 0 && H5Dget_num_chunks(s->dataset->id, space, &count) >= 0;
    if (space >= 0) H5Sclose(space);
    if (!known)
        return ats_h5_error(err, ATS_E_INPUT, s->dataset->file, s->dataset->name,
                            "its chunk index cannot be read");
    if ((int64_t)count == s->written) return ATS_OK;
    return ats_h5_fail(err, ATS_E_INPUT, s->dataset->file, s->dataset->name,
                       "has %lld chunks, and %lld of them lie where its shape has one; the file is "
                       "damaged",
                       (long long)count, (long long)s->written);
}

ats_code ats_h5_read_many(const ats_h5_job *jobs, int64_t count, ats_err *err)
{
    reader r = {.n_chunks = 0};
    void *sources = NULL;
    ats_code rc;
    ATS_TRY(ats_h5_malloc((size_t)count * sizeof(source), &sources, err));
    r.sources = sources;
    for (int64_t i = 0; i < count; i++) ATS_TRY(add_source(&r, &jobs[i], err));
    if (r.n_chunks == 0) goto out;
    ATS_TRY(reader_init(&r, err));
    ATS_TRY(fetch_batch(&r, 0, err));
    for (r.batch = 0; batch_size(&r, r.batch) > 0; r.batch++)
        ATS_TRY(ats_parallel_for(1 + batch_size(&r, r.batch), step, &r, err));
    for (int64_t i = 0; i < r.n_sources; i++) ATS_TRY(check_written(&r.sources[i], err));
out:
    reader_fini(&r);
    free(sources);
    return rc;
}

ats_code ats_h5_read_box(const ats_h5_dataset *dataset, const int64_t *start, const int64_t *count,
                         bool sparse, void *out, ats_err *err)
{
    const ats_h5_job job = {dataset, start, count, sparse, out};
    return ats_h5_read_many(&job, 1, err);
}

ats_code ats_h5_read_all(const ats_h5_dataset *dataset, bool sparse, void *out, ats_err *err)
{
    const ats_code rc = ats_h5_expect_stored(dataset, sparse, err);
    return rc != ATS_OK ? rc : ats_h5_read_box(dataset, NULL, NULL, sparse, out, err);
}

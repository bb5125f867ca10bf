#include <pthread.h>
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
#include "h5/shuffle.h"
#include "h5/zstd_filter.h"

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
    uint8_t exponent; /* as ats_h5_job's */
    bool suspect, *told;
} source;

/* A thread's memory, and the chunk that it has at hand. */
typedef struct worker {
    ZSTD_DCtx *zstd;
    uint8_t *scratch; /* one chunk */
    uint8_t *raw;     /* as stored in the file */
    size_t room, bytes;
    unsigned skipped; /* filter mask */
    bool written;
} worker;

typedef struct reader {
    source *sources; /* [n_sources] */
    int64_t n_sources, n_chunks;
    size_t chunk_bytes; /* of the largest chunk */
    int n_workers;
    worker *workers;       /* [n_workers] */
    pthread_mutex_t *hdf5; /* around every call of the library, and what it counts */
} reader;

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

static ats_code make_room(worker *w, size_t bytes, ats_err *err)
{
    if (w->room >= bytes) return ATS_OK;
    free(w->raw);
    w->room = 0;
    w->raw = malloc(bytes);
    if (w->raw == NULL)
        return ats_fail(err, ATS_E_MEMORY, "out of memory: a chunk of %zu bytes", bytes);
    w->room = bytes;
    return ATS_OK;
}

/* Bytes of a chunk as stored, 0: never written. The first call looks the chunk up, but fails where
 * there is none; the second tells that from damage, at the price of a walk through the index. */
static bool stored_size(const ats_h5_dataset *dataset, const hsize_t *offset, hsize_t *bytes)
{
    haddr_t address = HADDR_UNDEF;
    unsigned skipped = 0;
    if (H5Dget_chunk_storage_size(dataset->id, offset, bytes) >= 0) return true;
    *bytes = 0;
    if (H5Dget_chunk_info_by_coord(dataset->id, offset, &skipped, &address, bytes) < 0)
        return false;
    if (address == HADDR_UNDEF) *bytes = 0;
    return true;
}

static ats_code fetch(source *s, int64_t index, worker *w, ats_err *err)
{
    int64_t origin[ATS_H5_MAX_RANK] = {0};
    ats_h5_grid_origin(&s->grid, index, origin);
    const ats_h5_dims offset = ats_h5_to_dims(s->grid.rank, origin);
    hsize_t bytes = 0;
    uint32_t skipped = 0;
    ats_code rc;
    ats_h5_quiet();
    if (!stored_size(s->dataset, offset.at, &bytes))
        return ats_h5_error(err, ATS_E_INPUT, s->dataset->file, s->dataset->name,
                            "its chunk index cannot be read");
    w->written = bytes > 0;
    if (!w->written) return s->sparse ? ATS_OK : chunk_fail(s, index, "it was never written", err);
    s->written++;
    const int64_t file_size = s->dataset->file->size;
    if (file_size > 0 && bytes > (hsize_t)file_size)
        return chunk_fail(s, index, "it claims more bytes than the file has", err);
    ATS_TRY(make_room(w, (size_t)bytes, err));
    w->bytes = (size_t)bytes;
    if (H5Dread_chunk(s->dataset->id, H5P_DEFAULT, offset.at, &skipped, w->raw) < 0)
        rc = ats_h5_error(err, ATS_E_INPUT, s->dataset->file, s->dataset->name,
                          "a chunk cannot be read");
    w->skipped = skipped;
out:
    return rc;
}

/* Where a chunk's decoded bytes go: a run of elements at a time. */
typedef struct scatter {
    const uint8_t *planes; /* decoded chunk; shuffled: [size, chunk_elements] */
    bool shuffled;
    int64_t chunk_elements;
    size_t size;
    uint8_t *out;
    uint8_t exponent;
    bool suspect;
} scatter;

static void scatter_run(void *ctx, int64_t chunk_at, int64_t box_at, int64_t elements)
{
    scatter *to = ctx;
    uint8_t *out = to->out + (size_t)box_at * to->size;
    if (!to->shuffled)
        memcpy(out, to->planes + (size_t)chunk_at * to->size, (size_t)elements * to->size);
    else if (ats_h5_unshuffle(to->planes + chunk_at, to->chunk_elements, to->size, elements,
                              to->exponent, out))
        to->suspect = true;
}

/* What a chunk that was never written is filled with. */
static void fill_run(void *ctx, int64_t chunk_at, int64_t box_at, int64_t elements)
{
    (void)chunk_at;
    const source *s = ctx;
    const size_t size = s->dataset->size;
    uint8_t *out = s->out + (size_t)box_at * size;
    for (int64_t i = 0; i < elements; i++) memcpy(out + (size_t)i * size, s->fill, size);
}

/* Inflates into the worker's scratch. */
static ats_code inflate_chunk(const reader *r, const source *s, int64_t index, worker *w,
                              ats_err *err)
{
    const char *why = "out of memory";
    if (w->scratch == NULL) w->scratch = malloc(r->chunk_bytes);
    if (w->scratch == NULL) return chunk_fail(s, index, why, err);
    if (s->pipeline.compression == ATS_H5_ZSTD) {
        if (w->zstd == NULL) w->zstd = ZSTD_createDCtx();
        if (ats_zstd_decode(w->zstd, w->raw, w->bytes, w->scratch, s->chunk_bytes, &why))
            return ATS_OK;
    } else {
        uLongf got = s->chunk_bytes;
        if (uncompress(w->scratch, &got, w->raw, w->bytes) == Z_OK && got == s->chunk_bytes)
            return ATS_OK;
        why = "the deflate stream is corrupt or of another size than the chunk";
    }
    return chunk_fail(s, index, why, err);
}

static bool runs_on(int place, unsigned skipped)
{
    return place >= 0 && (skipped & (1u << place)) == 0;
}

static void set_suspect(source *s)
{
#pragma omp atomic write
    s->suspect = true;
}

/* The chunk that the worker has fetched, to its place in the box. */
static ats_code decode(const reader *r, source *s, int64_t index, worker *w, ats_err *err)
{
    if (!w->written) {
        ats_h5_grid_runs(&s->grid, index, fill_run, s);
        set_suspect(s);
        return ATS_OK;
    }
    if (runs_on(s->pipeline.fletcher_at, w->skipped)) {
        if (!ats_h5_fletcher32_holds(w->raw, w->bytes))
            return chunk_fail(s, index, "its fletcher32 checksum does not hold", err);
        w->bytes -= ATS_H5_FLETCHER_SIZE;
    }
    if (s->pipeline.shuffle_at >= 0 && !runs_on(s->pipeline.shuffle_at, w->skipped) &&
        runs_on(s->pipeline.compression_at, w->skipped))
        return chunk_fail(s, index, "it claims to be compressed but not shuffled", err);
    scatter to = {.planes = w->raw,
                  .shuffled = runs_on(s->pipeline.shuffle_at, w->skipped) && s->dataset->size > 1,
                  .chunk_elements = s->grid.chunk_elements,
                  .size = s->dataset->size,
                  .out = s->out,
                  .exponent = s->exponent};
    if (runs_on(s->pipeline.compression_at, w->skipped)) {
        const ats_code rc = inflate_chunk(r, s, index, w, err);
        if (rc != ATS_OK) return rc;
        to.planes = w->scratch;
    } else if (w->bytes != s->chunk_bytes) {
        return chunk_fail(s, index, "its stored size differs from the chunk's", err);
    }
    ats_h5_grid_runs(&s->grid, index, scatter_run, &to);
    if (to.suspect || !to.shuffled) set_suspect(s);
    return ATS_OK;
}

/* Each thread fetches a chunk, which waits for nothing when the file is in the page cache, and
 * decodes it while it is still in this core's cache. */
static ats_code read_chunk(void *ctx, int64_t chunk, int thread, ats_err *err)
{
    reader *r = ctx;
    source *s = r->sources;
    while (chunk - s->first >= s->grid.n_chunks) s++;
    worker *w = &r->workers[thread];
    pthread_mutex_lock(r->hdf5);
    const ats_code rc = fetch(s, chunk - s->first, w, err);
    pthread_mutex_unlock(r->hdf5);
    return rc != ATS_OK ? rc : decode(r, s, chunk - s->first, w, err);
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

static ats_code reader_init(reader *r, ats_err *err)
{
    void *workers = NULL;
    r->n_workers = ats_threads();
    const size_t bytes = (size_t)r->n_workers * sizeof *r->workers;
    const ats_code rc = ats_h5_malloc(bytes, &workers, err);
    if (rc != ATS_OK) return rc;
    r->workers = memset(workers, 0, bytes);
    return ATS_OK;
}

static void reader_fini(reader *r)
{
    for (int i = 0; r->workers != NULL && i < r->n_workers; i++) {
        ZSTD_freeDCtx(r->workers[i].zstd);
        free(r->workers[i].scratch);
        free(r->workers[i].raw);
    }
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
    *s = (source){.dataset = dataset,
                  .sparse = job->sparse,
                  .whole = job->start == NULL,
                  .out = job->out,
                  .exponent = job->exponent,
                  .told = job->suspect};
    if (s->told != NULL) *s->told = true;
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
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_t *const shared = count > 0 ? jobs[0].dataset->file->hdf5 : NULL;
    reader r = {.hdf5 = shared != NULL ? shared : &own};
    void *sources = NULL;
    ats_code rc;
    ATS_TRY(ats_h5_malloc((size_t)count * sizeof(source), &sources, err));
    r.sources = sources;
    for (int64_t i = 0; i < count; i++) ATS_TRY(add_source(&r, &jobs[i], err));
    if (r.n_chunks == 0) goto out;
    ATS_TRY(reader_init(&r, err));
    if (shared != NULL) pthread_mutex_unlock(shared);
    rc = ats_parallel_for(r.n_chunks, read_chunk, &r, err);
    if (shared != NULL) pthread_mutex_lock(shared);
    if (rc != ATS_OK) goto out;
    for (int64_t i = 0; i < r.n_sources; i++) {
        ATS_TRY(check_written(&r.sources[i], err));
        if (r.sources[i].told != NULL && r.sources[i].exponent != 0)
            *r.sources[i].told = r.sources[i].suspect;
    }
out:
    reader_fini(&r);
    free(sources);
    return rc;
}

ats_code ats_h5_read_box(const ats_h5_dataset *dataset, const int64_t *start, const int64_t *count,
                         bool sparse, void *out, ats_err *err)
{
    const ats_h5_job job = {
        .dataset = dataset, .start = start, .count = count, .sparse = sparse, .out = out};
    return ats_h5_read_many(&job, 1, err);
}

ats_code ats_h5_read_all(const ats_h5_dataset *dataset, bool sparse, void *out, ats_err *err)
{
    const ats_code rc = ats_h5_expect_stored(dataset, sparse, err);
    return rc != ATS_OK ? rc : ats_h5_read_box(dataset, NULL, NULL, sparse, out, err);
}

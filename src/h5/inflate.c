#include "h5/inflate.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/parallel.h"
#include "h5/grid.h"
#include "h5/internal.h"
#include "h5/zstd_filter.h"

enum { MOST = 64 }; /* chunks */

typedef struct frame {
    void *bytes;
    size_t size;
} frame;

struct ats_h5_inflater {
    int64_t n_frames, items;
    frame frames[MOST];
    size_t decoded; /* bytes of a chunk */
    int threads;
    struct {
        void *room; /* one chunk */
        ZSTD_DCtx *zstd;
    } * workers; /* [threads] */
};

static ats_code fetch(const ats_h5_dataset *dataset, hid_t space, int64_t chunk, frame *out,
                      ats_err *err)
{
    unsigned skipped = 0;
    uint32_t mask = 0;
    haddr_t address = 0;
    hsize_t bytes = 0, offset[ATS_H5_MAX_RANK] = {0};
    if (H5Dget_chunk_info(dataset->id, space, (hsize_t)chunk, offset, &skipped, &address, &bytes) <
        0)
        return ats_h5_error(err, ATS_E_INPUT, dataset->file, dataset->name,
                            "its chunk index cannot be read");
    out->size = (size_t)bytes;
    const ats_code rc = ats_h5_malloc((size_t)bytes, &out->bytes, err);
    if (rc != ATS_OK) return rc;
    if (H5Dread_chunk(dataset->id, H5P_DEFAULT, offset, &mask, out->bytes) < 0)
        return ats_h5_error(err, ATS_E_INPUT, dataset->file, dataset->name,
                            "a chunk cannot be read");
    return ATS_OK;
}

static ats_code inflate_item(void *ctx, int64_t item, int worker, ats_err *err)
{
    const ats_h5_inflater *x = ctx;
    const frame *f = &x->frames[item % x->n_frames];
    const char *why = "";
    if (ats_zstd_decode(x->workers[worker].zstd, f->bytes, f->size, x->workers[worker].room,
                        x->decoded, &why))
        return ATS_OK;
    return ats_fail(err, ATS_E_INPUT, "a chunk cannot be inflated: %s", why);
}

ats_code ats_h5_inflater_run(ats_h5_inflater *x, double *out, ats_err *err)
{
    *out = (double)x->items * (double)x->decoded;
    return ats_parallel_some(x->threads, x->items, inflate_item, x, err);
}

static ats_code make_workers(ats_h5_inflater *x, ats_err *err)
{
    x->workers = calloc((size_t)x->threads, sizeof *x->workers);
    if (x->workers == NULL) return ats_fail(err, ATS_E_MEMORY, "out of memory");
    for (int i = 0; i < x->threads; i++) {
        const ats_code rc = ats_h5_malloc(x->decoded, &x->workers[i].room, err);
        if (rc != ATS_OK) return rc;
        x->workers[i].zstd = ZSTD_createDCtx();
    }
    return ATS_OK;
}

ats_code ats_h5_inflater_open(const ats_h5_dataset *dataset, double bytes, ats_h5_inflater **out,
                              ats_err *err)
{
    ats_h5_inflater *x = calloc(1, sizeof *x);
    hsize_t stored = 0;
    ats_code rc;
    if (x == NULL) return ats_fail(err, ATS_E_MEMORY, "out of memory");
    x->decoded = dataset->size;
    x->threads = ats_threads();
    for (int i = 0; i < dataset->rank; i++) x->decoded *= (size_t)dataset->chunk[i];
    const hid_t space = H5Dget_space(dataset->id);
    if (space < 0 || H5Dget_num_chunks(dataset->id, space, &stored) < 0 || stored == 0)
        ATS_TRY(ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name, "has no chunk"));
    ATS_TRY(make_workers(x, err));
    for (; x->n_frames < MOST && x->n_frames < (int64_t)stored; x->n_frames++)
        ATS_TRY(fetch(dataset, space, x->n_frames, &x->frames[x->n_frames], err));
    x->items = (int64_t)(bytes / (double)x->decoded);
    if (x->items < x->threads) x->items = x->threads;
    *out = x;
out:
    if (rc != ATS_OK) ats_h5_inflater_close(x);
    if (space >= 0) H5Sclose(space);
    return rc;
}

void ats_h5_inflater_close(ats_h5_inflater *x)
{
    if (x == NULL) return;
    for (int64_t i = 0; i < MOST; i++) free(x->frames[i].bytes);
    for (int i = 0; x->workers != NULL && i < x->threads; i++) {
        free(x->workers[i].room);
        ZSTD_freeDCtx(x->workers[i].zstd);
    }
    free(x->workers);
    free(x);
}

#include "h5/inflate.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/parallel.h"
#include "h5/grid.h"
#include "h5/internal.h"
#include "h5/zstd_filter.h"

enum { MOST = 64 }; /* chunks */

typedef struct frame {
    void *bytes;
    size_t size;
} frame;

typedef struct inflating {
    int64_t n_frames, items;
    frame frames[MOST];
    size_t decoded; /* bytes of a chunk */
    void **room;    /* [threads] */
} inflating;

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
    const inflating *x = ctx;
    const frame *f = &x->frames[item % x->n_frames];
    const char *why = "";
    if (ats_zstd_decode(NULL, f->bytes, f->size, x->room[worker], x->decoded, &why)) return ATS_OK;
    return ats_fail(err, ATS_E_INPUT, "a chunk cannot be inflated: %s", why);
}

static ats_code time_best(inflating *x, double seconds, double *out, ats_err *err)
{
    double best = 0;
    const double until = ats_clock() + seconds;
    for (int round = 0; round < 3 || ats_clock() < until; round++) {
        const double start = ats_clock();
        const ats_code rc = ats_parallel_for(x->items, inflate_item, x, err);
        if (rc != ATS_OK) return rc;
        const double rate = (double)x->items * (double)x->decoded / (ats_clock() - start);
        if (rate > best) best = rate;
    }
    *out = best;
    return ATS_OK;
}

ats_code ats_h5_inflate_rate(const ats_h5_dataset *dataset, double seconds, double *out,
                             ats_err *err)
{
    const int threads = ats_threads();
    inflating x = {.decoded = dataset->size};
    hsize_t stored = 0;
    void *room = NULL;
    ats_code rc = ATS_OK;
    for (int i = 0; i < dataset->rank; i++) x.decoded *= (size_t)dataset->chunk[i];
    const hid_t space = H5Dget_space(dataset->id);
    if (space < 0 || H5Dget_num_chunks(dataset->id, space, &stored) < 0 || stored == 0) {
        if (space >= 0) H5Sclose(space);
        return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name, "has no chunk");
    }
    ATS_TRY(ats_h5_malloc((size_t)threads * sizeof *x.room, &room, err));
    x.room = room;
    for (int i = 0; i < threads; i++) x.room[i] = NULL;
    for (int i = 0; i < threads; i++) ATS_TRY(ats_h5_malloc(x.decoded, &x.room[i], err));
    for (; x.n_frames < MOST && x.n_frames < (int64_t)stored; x.n_frames++)
        ATS_TRY(fetch(dataset, space, x.n_frames, &x.frames[x.n_frames], err));
    x.items = x.n_frames > 4 * (int64_t)threads ? x.n_frames : 4 * (int64_t)threads;
    ATS_TRY(time_best(&x, seconds, out, err));
out:
    for (int64_t i = 0; i < MOST; i++) free(x.frames[i].bytes);
    for (int i = 0; x.room != NULL && i < threads; i++) free(x.room[i]);
    free(room);
    H5Sclose(space);
    return rc;
}

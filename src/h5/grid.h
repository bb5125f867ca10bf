/* The chunk grid of a box of a dataset: which chunks it touches, and the runs of elements that
 * are contiguous both in a chunk and in the caller's row-major box. Shared by chunk_read.c and
 * chunk_write.c. */
#ifndef ATS_H5_GRID_H
#define ATS_H5_GRID_H

#include "h5/dataset.h"

typedef struct ats_h5_grid {
    int rank;
    int64_t start[ATS_H5_MAX_RANK], count[ATS_H5_MAX_RANK]; /* the box, elements */
    int64_t chunk[ATS_H5_MAX_RANK];                         /* elements */
    int64_t first[ATS_H5_MAX_RANK], steps[ATS_H5_MAX_RANK]; /* chunks along each axis */
    int64_t n_chunks;
    int64_t chunk_elements;
} ats_h5_grid;

/* start and count NULL: the whole dataset. Refuses a box outside the dataset. */
ATS_MUST_CHECK ats_code ats_h5_grid_make(const ats_h5_dataset *dataset, const int64_t *start,
                                         const int64_t *count, ats_h5_grid *out, ats_err *err);
/* Element coordinates of a chunk's first element; index in [0, n_chunks). */
void ats_h5_grid_origin(const ats_h5_grid *grid, int64_t index, int64_t *origin);

/* run(ctx, element offset in the chunk, element offset in the box, elements), for each. */
typedef void (*ats_h5_run_fn)(void *ctx, int64_t chunk_at, int64_t box_at, int64_t elements);
void ats_h5_grid_runs(const ats_h5_grid *grid, int64_t index, ats_h5_run_fn run, void *ctx);

/* The filters as the direct paths know them: shuffle, then at most one compressor, then at most one
 * fletcher32. */
typedef struct ats_h5_pipeline {
    bool direct; /* false: only HDF5 itself can run these filters */
    bool shuffled;
    int compression;                /* 0, ATS_H5_DEFLATE, ATS_H5_ZSTD */
    int shuffle_at, compression_at; /* places in the pipeline, for a chunk's filter mask; -1 */
    int fletcher_at;
} ats_h5_pipeline;

ats_h5_pipeline ats_h5_pipeline_of(const ats_h5_dataset *dataset);

#endif

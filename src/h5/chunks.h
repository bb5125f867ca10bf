/* Chunk shapes, and boxes of chunked datasets read and written on several threads.
 *
 * HDF5 itself is called from one thread at a time: one thread fetches or stores a raw chunk while
 * the others inflate, deflate, shuffle and unshuffle (zstd, deflate, shuffle). Bytes written do not
 * depend on the number of threads. */
#ifndef ATS_H5_CHUNKS_H
#define ATS_H5_CHUNKS_H

#include "h5/dataset.h"

/* A chunk shape with 1 <= chunk[i] <= max(extent[i], 1), at most about 1 MiB (one element at
 * least): trailing axes whole where they fit, leading axes cut first. */
void ats_h5_chunk_shape(int rank, const int64_t *extent, size_t element, int64_t *chunk);

/* Everything, in the stored type (raw words for F16 and BF16, host byte order): out holds
 * dataset->count elements. Chunks that were never written are an error unless sparse. Storage
 * without chunks and with other filters goes through HDF5. */
ATS_MUST_CHECK ats_code ats_h5_read_all(const ats_h5_dataset *dataset, bool sparse, void *out,
                                        ats_err *err);

/* The same for the box [start, start + count); start and count NULL: everything. Touches only the
 * chunks that the box overlaps. */
ATS_MUST_CHECK ats_code ats_h5_read_box(const ats_h5_dataset *dataset, const int64_t *start,
                                        const int64_t *count, bool sparse, void *out, ats_err *err);

/* Several boxes in one pass, so that small datasets keep all threads busy together. */
typedef struct ats_h5_job {
    const ats_h5_dataset *dataset;
    const int64_t *start, *count; /* NULL, NULL: everything */
    bool sparse;
    void *out;
    uint8_t exponent; /* bits of a float's exponent in its most significant byte; 0: not asked */
    bool *suspect;    /* false: some exponent bit there is 0 in every element, so all are finite;
                       * true: not known. NULL: not asked */
} ats_h5_job;
ATS_MUST_CHECK ats_code ats_h5_read_many(const ats_h5_job *jobs, int64_t count, ats_err *err);

/* data: the box [start, start + count) row-major in the stored type. A box made of whole chunks
 * (or ending at the dataset's edge) is compressed on all threads; any other goes through HDF5.
 * start and count NULL: everything. */
ATS_MUST_CHECK ats_code ats_h5_write_box(const ats_h5_dataset *dataset, const int64_t *start,
                                         const int64_t *count, const void *data, ats_err *err);

/* Several boxes in one pass, chunks in the order of the boxes; those that go through HDF5 before
 * the others. */
typedef struct ats_h5_box {
    const ats_h5_dataset *dataset;
    const int64_t *start, *count; /* NULL, NULL: everything */
    const void *data;
} ats_h5_box;
ATS_MUST_CHECK ats_code ats_h5_write_many(const ats_h5_box *boxes, int64_t count, ats_err *err);

/* Copies the stored bytes of every written chunk of src to dst at chunk-aligned offset: nothing
 * is inflated. Both have the same type, chunk and filters. */
ATS_MUST_CHECK ats_code ats_h5_copy_chunks(const ats_h5_dataset *src, const ats_h5_dataset *dst,
                                           const int64_t *offset, ats_err *err);

#endif

/* Datasets: description, checked reading and writing of typed arrays and texts.
 *
 * Opening refuses virtual and external storage and filters that are not there, and knows rank,
 * extents, type and stored bytes before any memory is asked for.
 * Ownership: an ats_h5_dataset owns its handle and name; the file must outlive it. */
#ifndef ATS_H5_DATASET_H
#define ATS_H5_DATASET_H

#include "h5/file.h"

enum { ATS_H5_MAX_RANK = 8, ATS_H5_MAX_FILTERS = 8 };

typedef enum ats_h5_type {
    ATS_H5_I8,
    ATS_H5_U8,
    ATS_H5_I16,
    ATS_H5_U16,
    ATS_H5_I32,
    ATS_H5_U32,
    ATS_H5_I64,
    ATS_H5_U64,
    ATS_H5_F16,  /* IEEE binary16; in memory raw 16-bit words */
    ATS_H5_BF16, /* 8 exponent and 7 mantissa bits; in memory raw 16-bit words */
    ATS_H5_F32,
    ATS_H5_F64,
    ATS_H5_BOOL, /* h5py's one-byte enum; in memory int8_t */
    ATS_H5_TEXT, /* variable or fixed length string */
    ATS_H5_OTHER
} ats_h5_type;

const char *ats_h5_type_name(ats_h5_type type);
size_t ats_h5_type_size(ats_h5_type type); /* bytes; 0 for TEXT and OTHER */
bool ats_h5_type_is_integer(ats_h5_type type);
bool ats_h5_type_is_float(ats_h5_type type); /* F16, F32, F64 */

typedef struct ats_h5_dataset {
    const ats_h5_file *file;
    ats_h5_id id; /* > 0 while open */
    char *name;
    ats_h5_type type;
    bool little_endian;
    size_t size; /* bytes of a stored element */
    int rank;    /* 0: scalar */
    int64_t extent[ATS_H5_MAX_RANK];
    int64_t count; /* product of the extents */
    bool chunked;
    int64_t chunk[ATS_H5_MAX_RANK]; /* when chunked */
    int n_filters;
    int filter[ATS_H5_MAX_FILTERS]; /* in the order of writing */
    int level;                      /* of the compressing filter, for writing */
} ats_h5_dataset;

enum { ATS_H5_DEFLATE = 1, ATS_H5_SHUFFLE = 2, ATS_H5_FLETCHER32 = 3, ATS_H5_ZSTD = 32015 };

typedef struct ats_h5_layout {
    ats_h5_type type; /* not TEXT or OTHER */
    int rank;
    int64_t extent[ATS_H5_MAX_RANK];
    bool chunked;                   /* false: contiguous, no filter */
    bool compact;                   /* not chunked, in the checksummed header: below 64 KiB */
    int64_t chunk[ATS_H5_MAX_RANK]; /* all 0: ats_h5_chunk_shape */
    bool shuffle;
    int compression; /* 0, ATS_H5_DEFLATE or ATS_H5_ZSTD */
    int level;
    const void *fill; /* one element of type, or NULL: zero */
} ats_h5_layout;

ATS_MUST_CHECK ats_code ats_h5_dataset_open(const ats_h5_file *file, const char *name,
                                            ats_h5_dataset *out, ats_err *err);
/* A zero-sized or scalar dataset is made contiguous without filters whatever the layout says. */
ATS_MUST_CHECK ats_code ats_h5_dataset_create(const ats_h5_file *file, const char *name,
                                              const ats_h5_layout *layout, ats_h5_dataset *out,
                                              ats_err *err);
void ats_h5_dataset_close(ats_h5_dataset *dataset);

/* Refuses another rank; extent[i] = -1: any. `axes` says in words what they are ("[head, n, d]").
 */
ATS_MUST_CHECK ats_code ats_h5_expect_shape(const ats_h5_dataset *dataset, int rank,
                                            const int64_t *extent, const char *axes, ats_err *err);
/* Bytes in the file, which HDF5 counts chunk by chunk. */
ATS_MUST_CHECK ats_code ats_h5_stored(const ats_h5_dataset *dataset, int64_t *out, ats_err *err);
/* Refuses more decoded bytes than the stored bytes can hold, or than the machine has memory for.
 * sparse: chunks that were never written are allowed (they hold the fill value). */
ATS_MUST_CHECK ats_code ats_h5_expect_stored(const ats_h5_dataset *dataset, bool sparse,
                                             ats_err *err);

/* The box [start, start + count) as elements of type, converted by HDF5; NULL, NULL: everything. */
ATS_MUST_CHECK ats_code ats_h5_read(const ats_h5_dataset *dataset, const int64_t *start,
                                    const int64_t *count, ats_h5_type type, void *out,
                                    ats_err *err);
ATS_MUST_CHECK ats_code ats_h5_write(const ats_h5_dataset *dataset, const int64_t *start,
                                     const int64_t *count, ats_h5_type type, const void *data,
                                     ats_err *err);

/* Every string of a text dataset (any rank, row-major), in the arena, NUL-terminated. */
ATS_MUST_CHECK ats_code ats_h5_read_texts(const ats_h5_dataset *dataset, ats_arena *arena,
                                          const char *const **out, ats_err *err);
/* A new variable-length UTF-8 dataset [count]; count -1: scalar. texts NULL: all empty, until they
 * are put. */
ATS_MUST_CHECK ats_code ats_h5_write_texts(const ats_h5_file *file, const char *name,
                                           const char *const *texts, int64_t count,
                                           ats_h5_dataset *out, ats_err *err);

/* texts [count] from element `first` on of a text dataset of rank 1. */
ATS_MUST_CHECK ats_code ats_h5_put_texts(const ats_h5_dataset *dataset, int64_t first,
                                         const char *const *texts, int64_t count, ats_err *err);

/* A whole small dataset in one call: create, write, close. */
ATS_MUST_CHECK ats_code ats_h5_save(const ats_h5_file *file, const char *name, ats_h5_type type,
                                    int rank, const int64_t *extent, const void *data,
                                    ats_err *err);

#endif

/* Global heaps, where variable-length strings live, read and checked without HDF5.
 *
 * HDF5 1.10 takes references into a heap, and sizes and indices inside it, on trust, so a damaged
 * byte makes it read past its memory. Texts are therefore read here, of attributes as of datasets;
 * for what HDF5 must still follow by itself (dimension scales), every heap of the file is checked
 * once at opening. Ownership: an ats_h5_heaps owns its buffers. One thread. */
#ifndef ATS_H5_HEAP_H
#define ATS_H5_HEAP_H

#include "h5/file.h"

enum { ATS_H5_REFERENCE = 16 /* bytes: length u32, heap address u64, object index u32 */ };

/* Refuses a file with a damaged heap, or with offsets that are not 8 bytes wide. */
ATS_MUST_CHECK ats_code ats_h5_heaps_check(const ats_h5_file *file, ats_err *err);

typedef struct ats_h5_heap {
    int64_t address, size; /* bytes */
    uint8_t *bytes;
    int64_t *object; /* [n_objects, 2]: place and size of each; size -1: none */
    int64_t n_objects;
    int64_t last_use;
} ats_h5_heap;

typedef struct ats_h5_heaps {
    const ats_h5_file *file;
    int descriptor;
    int64_t base;          /* where addresses count from: the user block's size */
    int64_t budget, clock; /* bytes that may still be fetched */
    ats_h5_heap cached[8];
} ats_h5_heaps;

ATS_MUST_CHECK ats_code ats_h5_heaps_init(const ats_h5_file *file, ats_h5_heaps *out, ats_err *err);
void ats_h5_heaps_fini(ats_h5_heaps *heaps);
/* Bytes of the file itself. */
ATS_MUST_CHECK ats_code ats_h5_heaps_fetch(const ats_h5_heaps *heaps, int64_t offset, int64_t count,
                                           void *out, ats_err *err);
/* The bytes that a stored reference [ATS_H5_REFERENCE] names; they stay valid until the next call.
 * Errors lack file and object: the caller prepends them. */
ATS_MUST_CHECK ats_code ats_h5_heaps_text(ats_h5_heaps *heaps, const uint8_t *reference,
                                          const char **text, int64_t *length, ats_err *err);

#endif

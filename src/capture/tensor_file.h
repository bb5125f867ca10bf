/* Named tensors of files that other programs wrote: safetensors, npy, npz.
 *
 * Opening reads and checks every description (names, types, shapes, places) and no data; the kind
 * is told by the first bytes. Nothing is unpickled, and a tensor of a type that cannot be read is
 * refused only when it is asked for.
 * Ownership: a file owns its handle; its descriptions live in the arena given to open. */
#ifndef ATS_CAPTURE_TENSOR_FILE_H
#define ATS_CAPTURE_TENSOR_FILE_H

#include "base/arena.h"

enum { ATS_TENSOR_RANK = 16 };

typedef enum ats_element {
    ATS_ELEMENT_F16,
    ATS_ELEMENT_BF16,
    ATS_ELEMENT_F32,
    ATS_ELEMENT_F64,
    ATS_ELEMENT_BOOL,
    ATS_ELEMENT_I8,
    ATS_ELEMENT_U8,
    ATS_ELEMENT_I16,
    ATS_ELEMENT_U16,
    ATS_ELEMENT_I32,
    ATS_ELEMENT_U32,
    ATS_ELEMENT_I64,
    ATS_ELEMENT_U64,
    ATS_ELEMENT_WORDS2, /* two bytes without a meaning: numpy's V2, what bfloat16 becomes there */
    ATS_ELEMENT_OTHER   /* never read; `type` names it */
} ats_element;

typedef struct ats_tensor {
    const char *name;
    ats_element element;
    const char *type;   /* as the file writes it: "BF16", "<f4", "|O" */
    const char *reason; /* OTHER: why it is not read */
    int64_t size;       /* bytes of an element; 0 for OTHER */
    bool big_endian, fortran;
    int rank;
    int64_t extent[ATS_TENSOR_RANK];
    int64_t count;  /* product of the extents */
    int64_t offset; /* of the data: in the file, or in the archive's member */
    int64_t bytes;  /* of the data */
    int64_t member; /* in an npz archive; -1: none */
    struct ats_tensor_file *file;
} ats_tensor;

typedef struct ats_tensor_file {
    const char *path;
    int fd;
    int64_t size; /* bytes */
    struct zip *archive;
    int64_t n_tensors;
    ats_tensor *tensors; /* [n_tensors], in the file's order */
} ats_tensor_file;

/* ATS_E_INPUT: the file, the tensor and the rule that is broken; ATS_E_UNSUPPORTED: a pickle. */
ATS_MUST_CHECK ats_code ats_tensor_file_open(const char *path, ats_arena *arena,
                                             ats_tensor_file *out, ats_err *err);
void ats_tensor_file_close(ats_tensor_file *file); /* accepts a zeroed file */

/* The elements in the file's order (column-major for fortran), in host byte order.
 * out: [bytes]. Refuses OTHER. */
ATS_MUST_CHECK ats_code ats_tensor_read(const ats_tensor *tensor, void *out, ats_err *err);

/* "[4, 3, 32]" */
const char *ats_tensor_shape(const ats_tensor *tensor, char *out, size_t size);

#endif

/* Tensor files as bytes, written by hand. */
#ifndef ATS_TESTS_CAPTURE_TENSOR_FILES_H
#define ATS_TESTS_CAPTURE_TENSOR_FILES_H

#include <stdint.h>

#include "h5/scratch.h"

/* header, `pad` blanks, data [size]. */
void safetensors_write(const char *path, const char *header, int pad, const void *data,
                       int64_t size);
/* malloc'd npy bytes of this version with this dictionary. */
uint8_t *npy_bytes(int version, const char *dictionary, const void *data, int64_t size,
                   int64_t *length);
void npy_write(const char *path, const char *dictionary, const void *data, int64_t size);

/* One member of an archive; taken over and released by npz_write. */
typedef struct npz_member {
    const char *name;
    uint8_t *bytes;
    int64_t size;
} npz_member;
void npz_write(const char *path, npz_member *members, int n, int deflate);

#endif

/* The three file formats behind tensor_file.h. Private to capture/. */
#ifndef ATS_CAPTURE_TENSOR_FORMATS_H
#define ATS_CAPTURE_TENSOR_FORMATS_H

#include "capture/tensor_file.h"

ATS_MUST_CHECK ats_code ats_safetensors_read_header(ats_tensor_file *file, ats_arena *arena,
                                                    ats_err *err);
ATS_MUST_CHECK ats_code ats_npy_read_header(ats_tensor_file *file, ats_arena *arena, ats_err *err);
ATS_MUST_CHECK ats_code ats_npz_read_headers(ats_tensor_file *file, ats_arena *arena, ats_err *err);
/* An archive's member as stored, from byte 0: [offset + bytes) with the first `offset` skipped. */
ATS_MUST_CHECK ats_code ats_npz_read(const ats_tensor *tensor, void *out, ats_err *err);
void ats_npz_close(ats_tensor_file *file);

/* Exactly `bytes` at `offset`; refuses a file that ends before. */
ATS_MUST_CHECK ats_code ats_tensor_file_bytes(const ats_tensor_file *file, int64_t offset,
                                              int64_t bytes, void *out, ats_err *err);

/* npy descriptions. `where` begins sentences: the file, or file and member. */
enum { ATS_NPY_PREFIX = 12, ATS_NPY_HEADER_MAX = 1 << 20 };
/* Bytes before the dictionary and its own, from the first `got` bytes of the file. */
ATS_MUST_CHECK ats_code ats_npy_prefix(const char *where, const uint8_t *bytes, int64_t got,
                                       int64_t *before, int64_t *length, ats_err *err);
/* text: the dictionary, NUL-terminated. Fills element, type, shape, order and counts. */
ATS_MUST_CHECK ats_code ats_npy_describe(const char *where, const char *text, int64_t length,
                                         ats_arena *arena, ats_tensor *out, ats_err *err);

#endif

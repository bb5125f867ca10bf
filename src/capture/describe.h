/* Facts of a capture for printing. Private to capture/. */
#ifndef ATS_CAPTURE_DESCRIBE_H
#define ATS_CAPTURE_DESCRIBE_H

#include <stdio.h>

#include "capture/capture.h"

/* How the tensors of one sample and layer are stored. */
typedef struct ats_storage {
    ats_dtype q_dtype, k_dtype, v_dtype;
    int64_t bytes, stored; /* in memory; in the file */
    bool keep, bias, out, lse;
    int64_t stream_room; /* bytes of memory that streaming k and v takes while they are read */
} ats_storage;

ATS_MUST_CHECK ats_code ats_capture_storage(const ats_capture *capture, int64_t sample,
                                            int64_t layer, ats_storage *out, ats_err *err);
/* The span's token texts joined, control characters and quotes escaped, cut at `most` bytes
 * between characters ("..." then). False without token texts. */
bool ats_span_excerpt(const ats_sample *sample, const ats_span *span, size_t most, char *out,
                      size_t size);
ATS_MUST_CHECK ats_code ats_capture_json(const ats_capture *capture, FILE *out, ats_err *err);

#endif

/* Keys and values of a head that memory does not hold: decoded a few rows at a time into a scratch
 * file. Private to capture/. */
#ifndef ATS_CAPTURE_STREAM_H
#define ATS_CAPTURE_STREAM_H

#include "capture/capture.h"
#include "h5/chunks.h"

/* job: the box [heads, rows, columns] of k or v, `out` not set. */
typedef struct ats_stream_source {
    ats_h5_job job;
    size_t element; /* bytes */
} ats_stream_source;

/* Bytes of memory while a dataset [heads, rows, columns] is streamed, beside what a read of a chunk
 * takes. */
int64_t ats_stream_room(const ats_h5_dataset *dataset);
/* k, then v; sets a->k, a->v, a->scratch and adds what stays in memory to a->bytes. */
ATS_MUST_CHECK ats_code ats_stream_read(const ats_stream *stream,
                                        const ats_stream_source sources[2], ats_attention *a,
                                        ats_err *err);

#endif

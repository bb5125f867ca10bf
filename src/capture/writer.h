/* Writes a capture: layers first, then samples in order, `complete` last, then renamed
 * into place. Used by synth, tests and importers.
 * Ownership: the writer owns its file until finish or abort; inputs are only read. */
#ifndef ATS_CAPTURE_WRITER_H
#define ATS_CAPTURE_WRITER_H

#include "capture/capture.h"

typedef struct ats_capture_writer ats_capture_writer;

/* meta: model_id .. producer and readouts are taken from it; layers too. w_o stored as float32. */
ATS_MUST_CHECK ats_code ats_capture_create(const char *path, const ats_capture *meta,
                                           ats_capture_writer **out, ats_err *err);
/* tensors: [n_layers], one for each layer of meta; NULL members are left out. */
ATS_MUST_CHECK ats_code ats_capture_add_sample(ats_capture_writer *writer, const ats_sample *sample,
                                               const ats_attention *tensors, ats_err *err);
/* The same layer by layer, so that one layer's tensors are in memory at a time: begin, then every
 * layer in the order of meta. */
ATS_MUST_CHECK ats_code ats_capture_begin_sample(ats_capture_writer *writer,
                                                 const ats_sample *sample, ats_err *err);
ATS_MUST_CHECK ats_code ats_capture_add_layer(ats_capture_writer *writer, const ats_sample *sample,
                                              const ats_attention *tensors, ats_err *err);
ATS_MUST_CHECK ats_code ats_capture_finish(ats_capture_writer *writer, ats_err *err); /* frees it */
void ats_capture_abort(ats_capture_writer *writer); /* removes the unfinished file */

#endif

/* What this machine's zstd does with a dataset's chunks from memory, on all threads, each into one
 * chunk's room that stays in its core's cache: the ceiling that reading a file is measured against.
 * Up to 64 chunks of a zstd dataset without other compression.
 * Ownership: an ats_h5_inflater owns copies of the chunks; the dataset may be closed. */
#ifndef ATS_H5_INFLATE_H
#define ATS_H5_INFLATE_H

#include "h5/dataset.h"

typedef struct ats_h5_inflater ats_h5_inflater;

/* bytes: what a run inflates, about. */
ATS_MUST_CHECK ats_code ats_h5_inflater_open(const ats_h5_dataset *dataset, double bytes,
                                             ats_h5_inflater **out, ats_err *err);
/* out: decoded bytes. */
ATS_MUST_CHECK ats_code ats_h5_inflater_run(ats_h5_inflater *inflater, double *out, ats_err *err);
void ats_h5_inflater_close(ats_h5_inflater *inflater);

#endif

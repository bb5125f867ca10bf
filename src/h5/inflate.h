/* How fast this machine inflates a dataset's chunks from memory, on all threads: the ceiling that
 * reading a file is measured against. Up to 64 chunks of a zstd dataset without other filters. */
#ifndef ATS_H5_INFLATE_H
#define ATS_H5_INFLATE_H

#include "h5/dataset.h"

/* out: decoded bytes a second, the best of repetitions that take about `seconds`. */
ATS_MUST_CHECK ats_code ats_h5_inflate_rate(const ats_h5_dataset *dataset, double seconds,
                                            double *out, ats_err *err);

#endif

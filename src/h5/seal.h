/* Seals: the last 64 bytes of a file are the XXH3-128 of all bytes before them, so that a truncated
 * or altered file is known from its bytes alone. HDF5 does not look at what follows its own data.
 * A seal is no signature: it finds accidents, not forgeries. */
#ifndef ATS_H5_SEAL_H
#define ATS_H5_SEAL_H

#include <stdbool.h>

#include "base/status.h"

enum { ATS_H5_SEAL_BYTES = 64 };

/* Appends the seal to a closed file; nothing is synced. */
ATS_MUST_CHECK ats_code ats_h5_seal(const char *path, ats_err *err);
/* *whole: the seal is there and fits, *why is "" then, else what is wrong, without the path.
 * ATS_E_IO: the file cannot be read. */
ATS_MUST_CHECK ats_code ats_h5_seal_check(const char *path, bool *whole, const char **why,
                                          ats_err *err);

#endif

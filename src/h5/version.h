/* Versions of a format: `format_version` (major) says what the numbers mean, `format_minor` (0 where
 * it is absent) what was added since. A reader of one major reads every minor of it: what it does
 * not know, it ignores. */
#ifndef ATS_H5_VERSION_H
#define ATS_H5_VERSION_H

#include "h5/attr.h"

/* ATS_E_UNSUPPORTED: another major than the one this program knows. what: "capture", "result". */
ATS_MUST_CHECK ats_code ats_h5_expect_version(const ats_h5_file *file, const char *what,
                                              int64_t major, ats_err *err);

#endif

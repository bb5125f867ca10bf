/* What `attnstress inspect` prints of a capture: a tree for people, JSON for programs. */
#ifndef ATS_CAPTURE_INSPECT_H
#define ATS_CAPTURE_INSPECT_H

#include <stdio.h>

#include "capture/capture.h"

/* Writes to out; the capture is only read. Errors: ATS_E_IO when out fails. */
ATS_MUST_CHECK ats_code ats_capture_inspect(const ats_capture *capture, FILE *out, bool json,
                                            ats_err *err);

#endif

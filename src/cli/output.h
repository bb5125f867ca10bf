/* Text files that a command writes beside what it prints: pages, JUnit XML.
 *
 * No file that was read is ever replaced, under whatever name, nor any HDF5 file: a result or a
 * capture is named as output by mistake alone. A plain file appears whole or not at all, through a
 * link where there is one; a pipe or a device is written to and stays what it is. */
#ifndef ATS_CLI_OUTPUT_H
#define ATS_CLI_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* Whether both names lead to one file that is there. */
bool ats_output_same(const char *a, const char *b);

/* Refuses `path` (given by `option`, such as "--junit") where it is one of inputs[n] (NULL: none),
 * an HDF5 file or a folder. Before the work, so that a typing error costs nothing. */
ATS_MUST_CHECK ats_code ats_output_check(const char *option, const char *path, int64_t n,
                                         const char *const *inputs, ats_err *err);

ATS_MUST_CHECK ats_code ats_output_write(const char *path, const char *text, ats_err *err);

#endif

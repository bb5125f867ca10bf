/* Two sums over everything that a capture file says: its numbers, and its texts. */
#ifndef ATS_TESTS_CAPTURE_CONTENT_H
#define ATS_TESTS_CAPTURE_CONTENT_H

#include "capture/capture.h"

typedef struct content {
    uint64_t numbers, texts;
} content;

/* Loads every tensor. An error is the loader's. */
ats_code content_of(const char *path, content *out, ats_err *err);
/* The same of an open capture; its tensors are read from the file anew. */
ats_code content_of_open(const ats_capture *got, content *out, ats_err *err);

#endif

/* What this process used so far, as the kernel counts it. Unknown: -1.
 * Numbers are read when asked for; nothing is kept. */
#ifndef ATS_BASE_USAGE_H
#define ATS_BASE_USAGE_H

#include <stdint.h>

typedef struct ats_usage {
    int64_t peak_bytes;                  /* largest resident set of this program */
    double user_seconds, system_seconds; /* of the processor, all threads */
    int64_t read_bytes, written_bytes;   /* through system calls, caches included */
    int64_t loaded_bytes, stored_bytes;  /* from and to storage */
} ats_usage;

/* root: "", or a folder that stands for / (tests). */
ats_usage ats_usage_read(const char *root);

#endif

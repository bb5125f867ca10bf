/* How much memory this process may use: what the machine has available, or less where a control
 * group says so (memory.max of version 2, memory.limit_in_bytes of version 1).
 * Numbers are read when asked for; nothing is kept. */
#ifndef ATS_BASE_MEMORY_H
#define ATS_BASE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ats_memory {
    int64_t available; /* bytes of the machine, swap apart; -1: unknown */
    int64_t group;     /* bytes that the control group leaves; -1: no limit */
} ats_memory;

/* root: "" , or a folder that stands for / (tests). */
ats_memory ats_memory_read(const char *root);
/* The smaller of the two; -1: neither is known. */
int64_t ats_memory_usable(const ats_memory *memory);

/* "2G", "512 MiB", "1.5g", "1000000": bytes, powers of 1024. False: it is no such number, or below
 * 1 or above 2^60. */
bool ats_memory_parse(const char *text, int64_t *bytes);

#endif

/* One input file that lies in memory: open, fstat, pread and the like are wrapped at link time
 * (-Wl,--wrap), so that an execution costs no call of the system. Every other name and descriptor
 * goes to the system. */
#ifndef ATS_TESTS_FUZZ_MEMORY_FILE_H
#define ATS_TESTS_FUZZ_MEMORY_FILE_H

#include <stddef.h>
#include <stdint.h>

#define ATS_FUZZ_PATH "/memory/input"
enum { ATS_FUZZ_FD = 1 << 20 };

/* The bytes stay the caller's. NULL: there is no such file. */
void ats_fuzz_memory(const uint8_t *bytes, size_t size);

#endif

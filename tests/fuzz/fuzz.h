/* One fuzz target a file: bytes in, no crash, no leak, no sanitizer finding, no false success.
 *
 * With clang and preset `fuzz` each target links libFuzzer; in every other build replay.c runs the
 * committed corpus through it as an ordinary test. */
#ifndef ATS_TESTS_FUZZ_H
#define ATS_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes as a file in memory (/dev/shm): a path that opens it, until the next call. */
const char *ats_fuzz_file(const uint8_t *data, size_t size);
/* Says why an input was refused, where ATS_FUZZ_VERBOSE is set. An input of the corpus whose name
 * begins with "valid" must not be: the replay then fails. */
void ats_fuzz_refused(const char *why);
/* Refusals so far. */
int64_t ats_fuzz_refusals(void);
/* A NUL-terminated copy; free() it. */
char *ats_fuzz_text(const uint8_t *data, size_t size);

#endif

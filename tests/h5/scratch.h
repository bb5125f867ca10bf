/* A scratch folder of a test program, and the bytes of files in it. */
#ifndef ATS_TESTS_H5_SCRATCH_H
#define ATS_TESTS_H5_SCRATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Makes the folder in the working directory; a cmocka group setup. */
int scratch_setup(void **state);
/* Removes it with everything in it; a cmocka group teardown. */
int scratch_teardown(void **state);
/* "<folder>/<name>" in one of 8 rotating buffers. */
const char *scratch_path(const char *name);
/* malloc'd bytes of a file. */
uint8_t *scratch_read(const char *path, int64_t *size);
void scratch_write(const char *path, const void *bytes, int64_t size);
bool scratch_exists(const char *path);

#endif

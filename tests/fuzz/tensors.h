/* What the targets of tensor files share. */
#ifndef ATS_TESTS_FUZZ_TENSORS_H
#define ATS_TESTS_FUZZ_TENSORS_H

#include <stddef.h>
#include <stdint.h>

enum { ATS_FUZZ_TENSOR_FILE = 1 << 17 /* bytes of the largest composed file */ };

/* Opens the bytes as a tensor file and reads every tensor that is described. */
void ats_fuzz_tensors(const uint8_t *bytes, size_t size);

/* An npy file in out (room: 13 bytes and size + 1023 at most): data[0] is the version, data[1..2]
 * the bytes of data, the rest the dictionary. Returns its bytes. */
size_t ats_fuzz_npy(const uint8_t *data, size_t size, uint8_t *out);

#endif

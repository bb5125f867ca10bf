/* HDF5's shuffle filter: it stores every first byte of a chunk's elements, then every second byte
 * and so on, the planes of their bytes. Here `size` bytes an element, planes `stride` bytes apart.
 */
#ifndef ATS_H5_SHUFFLE_H
#define ATS_H5_SHUFFLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* data: [elements, size]. */
void ats_h5_shuffle(const uint8_t *data, size_t size, int64_t elements, int64_t stride,
                    uint8_t *planes);

/* out: [elements, size]. True: the last (most significant) byte of some element has all bits of
 * `exponent`, as in every infinity and NaN of a float whose exponent's bits there these are.
 * exponent 0: false. */
bool ats_h5_unshuffle(const uint8_t *planes, int64_t stride, size_t size, int64_t elements,
                      uint8_t exponent, uint8_t *out);

#endif

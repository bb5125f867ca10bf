/* Checksums of chunks: fletcher32 as HDF5's filter 3 stores it, and which datasets carry one. */
#ifndef ATS_H5_CHECKSUM_H
#define ATS_H5_CHECKSUM_H

#include "h5/dataset.h"

enum { ATS_H5_FLETCHER_SIZE = 4 /* bytes behind a chunk's, little endian */ };

/* Fletcher's sum over big-endian 16-bit words, an odd last byte as the high half of one. */
uint32_t ats_h5_fletcher32(const uint8_t *bytes, size_t count);
/* Whether the last 4 of these bytes are the sum of the others. */
bool ats_h5_fletcher32_holds(const uint8_t *bytes, size_t count);

/* True when a flipped byte of the numbers cannot pass unseen: every stored chunk has fletcher32 or
 * a zstd frame with a checksum, or the numbers lie in a checksummed object header. */
ATS_MUST_CHECK ats_code ats_h5_checksummed(const ats_h5_dataset *dataset, bool *out, ats_err *err);

#endif

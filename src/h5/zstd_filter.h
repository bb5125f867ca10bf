/* HDF5 filter 32015: zstd, one frame per chunk. cd_values: [0] level (3 when absent),
 * [1] decoded bytes of a chunk, recorded when a dataset is made; a frame that says otherwise is
 * refused. Frames are written with zstd's content checksum (the low half of XXH64), and decoding
 * checks it where a frame has it. Needs libc and zstd alone, so that the plugin works in any
 * process that loads HDF5. */
#ifndef ATS_H5_ZSTD_FILTER_H
#define ATS_H5_ZSTD_FILTER_H

#include <stddef.h>

enum { ATS_ZSTD_FILTER = 32015, ATS_ZSTD_LEVEL = 3 };

/* Decodes one frame of `bytes` bytes into exactly `want` bytes. False: corrupt, or another size;
 * *why then says so. */
int ats_zstd_decode(void *context, const void *frame, size_t bytes, void *out, size_t want,
                    const char **why);
/* Packs `bytes` bytes into one frame with a checksum; room: ZSTD_compressBound of them. 0: failed.
 */
size_t ats_zstd_encode(void *context, int level, const void *in, size_t bytes, void *out,
                       size_t room);
enum { ATS_ZSTD_HEAD = 5 /* bytes of a frame that ats_zstd_checksummed looks at */ };
int ats_zstd_checksummed(const void *frame, size_t bytes);
/* The size that the frame header states, checked to be a whole single frame; 0: not stated or
 * corrupt. */
size_t ats_zstd_stated(const void *frame, size_t bytes);

/* The H5Z_class2_t of the filter. */
const void *ats_zstd_filter_class(void);

#endif

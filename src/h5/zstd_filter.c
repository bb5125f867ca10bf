#include "h5/zstd_filter.h"

#include <hdf5.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* No chunk is larger than 4 GiB: HDF5's own limit, and the bound of what a frame may claim. */
static const unsigned long long largest_chunk = 0xffffffffULL;
/* A zstd block decodes to at most 128 KiB and takes 4 bytes at least. */
static const unsigned long long largest_ratio = 32768;

size_t ats_zstd_stated(const void *frame, size_t bytes)
{
    const unsigned long long stated = ZSTD_getFrameContentSize(frame, bytes);
    if (stated == ZSTD_CONTENTSIZE_UNKNOWN || stated == ZSTD_CONTENTSIZE_ERROR) return 0;
    if (stated > largest_chunk) return 0;
    if (stated / largest_ratio > bytes) return 0;
    const size_t used = ZSTD_findFrameCompressedSize(frame, bytes);
    return ZSTD_isError(used) || used != bytes ? 0 : (size_t)stated;
}

int ats_zstd_decode(void *context, const void *frame, size_t bytes, void *out, size_t want,
                    const char **why)
{
    const unsigned long long stated = ZSTD_getFrameContentSize(frame, bytes);
    *why = "the chunk is not a zstd frame";
    if (stated == ZSTD_CONTENTSIZE_ERROR) return 0;
    *why = "the zstd frame's size differs from the chunk's";
    if (stated != ZSTD_CONTENTSIZE_UNKNOWN && stated != want) return 0;
    const size_t got = context != NULL ? ZSTD_decompressDCtx(context, out, want, frame, bytes)
                                       : ZSTD_decompress(out, want, frame, bytes);
    if (ZSTD_isError(got)) {
        *why = ZSTD_getErrorName(got);
        return 0;
    }
    return got == want;
}

size_t ats_zstd_encode(void *context, int level, const void *in, size_t bytes, void *out,
                       size_t room)
{
    if (context == NULL || ZSTD_isError(ZSTD_CCtx_reset(context, ZSTD_reset_session_only)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)))
        return 0;
    const size_t size = ZSTD_compress2(context, out, room, in, bytes);
    return ZSTD_isError(size) ? 0 : size;
}

/* Bit 2 of the frame header descriptor, behind the magic number (RFC 8878, 3.1.1.1.1). */
int ats_zstd_checksummed(const void *frame, size_t bytes)
{
    static const unsigned char magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
    return bytes >= ATS_ZSTD_HEAD && memcmp(frame, magic, sizeof magic) == 0 &&
           (((const unsigned char *)frame)[4] & 4) != 0;
}

static size_t inflate_chunk(size_t want, size_t bytes, size_t *room, void **buffer)
{
    size_t size = ats_zstd_stated(*buffer, bytes);
    if (size == 0 && want == 0) return 0;
    if (size == 0) size = want; /* a frame that states no size is bounded by the chunk's */
    if (want != 0 && size != want) return 0;
    void *out = malloc(size);
    if (out == NULL) return 0;
    const char *why;
    if (!ats_zstd_decode(NULL, *buffer, bytes, out, size, &why)) {
        free(out);
        return 0;
    }
    free(*buffer);
    *buffer = out;
    *room = size;
    return size;
}

static size_t deflate_chunk(int level, size_t bytes, size_t *room, void **buffer)
{
    const size_t bound = ZSTD_compressBound(bytes);
    if (ZSTD_isError(bound)) return 0;
    void *out = malloc(bound);
    if (out == NULL) return 0;
    ZSTD_CCtx *context = ZSTD_createCCtx();
    const size_t size = ats_zstd_encode(context, level, *buffer, bytes, out, bound);
    ZSTD_freeCCtx(context);
    if (size == 0) {
        free(out);
        return 0;
    }
    free(*buffer);
    *buffer = out;
    *room = bound;
    return size;
}

/* 0 is failure, as HDF5 wants it. `bytes`, never the buffer's room, is the input's length. */
static size_t filter(unsigned flags, size_t n_values, const unsigned *values, size_t bytes,
                     size_t *room, void **buffer)
{
    const size_t want = n_values > 1 ? values[1] : 0;
    if (flags & H5Z_FLAG_REVERSE) return inflate_chunk(want, bytes, room, buffer);
    int level = n_values > 0 ? (int)values[0] : ATS_ZSTD_LEVEL;
    if (level < 1 || level > ZSTD_maxCLevel()) level = ATS_ZSTD_LEVEL;
    return deflate_chunk(level, bytes, room, buffer);
}

const void *ats_zstd_filter_class(void)
{
    static const H5Z_class2_t filter_class = {
        .version = H5Z_CLASS_T_VERS,
        .id = ATS_ZSTD_FILTER,
        .encoder_present = 1,
        .decoder_present = 1,
        .name = "zstd",
        .filter = filter,
    };
    return &filter_class;
}

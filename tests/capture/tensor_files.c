#include "capture/tensor_files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

#include "support/check.h"

void safetensors_write(const char *path, const char *header, int pad, const void *data,
                       int64_t size)
{
    const int64_t length = (int64_t)strlen(header) + pad;
    uint8_t *bytes = malloc((size_t)(8 + length + size));
    assert_non_null(bytes);
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(length >> 8 * i);
    memset(bytes + 8, ' ', (size_t)length);
    memcpy(bytes + 8, header, strlen(header));
    if (size > 0) memcpy(bytes + 8 + length, data, (size_t)size);
    scratch_write(path, bytes, 8 + length + size);
    free(bytes);
}

uint8_t *npy_bytes(int version, const char *dictionary, const void *data, int64_t size,
                   int64_t *length)
{
    const int width = version == 1 ? 2 : 4;
    const int64_t text = (int64_t)strlen(dictionary), before = 8 + width;
    uint8_t *bytes = malloc((size_t)(before + text + size));
    assert_non_null(bytes);
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (uint8_t)version;
    bytes[7] = 0;
    for (int i = 0; i < width; i++) bytes[8 + i] = (uint8_t)(text >> 8 * i);
    memcpy(bytes + before, dictionary, (size_t)text);
    if (size > 0) memcpy(bytes + before + text, data, (size_t)size);
    *length = before + text + size;
    return bytes;
}

void npy_write(const char *path, const char *dictionary, const void *data, int64_t size)
{
    int64_t length = 0;
    uint8_t *bytes = npy_bytes(1, dictionary, data, size, &length);
    scratch_write(path, bytes, length);
    free(bytes);
}

void npz_write(const char *path, npz_member *members, int n, int deflate)
{
    int fault = 0;
    unlink(path);
    zip_t *archive = zip_open(path, ZIP_CREATE, &fault);
    assert_non_null(archive);
    for (int i = 0; i < n; i++) {
        zip_source_t *source =
            zip_source_buffer(archive, members[i].bytes, (zip_uint64_t)members[i].size, 1);
        const zip_int64_t at = zip_file_add(archive, members[i].name, source, 0);
        assert_true(at >= 0);
        assert_int_equal(zip_set_file_compression(archive, (zip_uint64_t)at,
                                                  deflate ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0),
                         0);
    }
    assert_int_equal(zip_close(archive), 0);
}

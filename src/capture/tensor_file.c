#include "capture/tensor_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/tensor_formats.h"

ats_code ats_tensor_file_bytes(const ats_tensor_file *file, int64_t offset, int64_t bytes,
                               void *out, ats_err *err)
{
    char *at = out;
    while (bytes > 0) {
        const size_t most = (size_t)1 << 30;
        const size_t want = (size_t)bytes < most ? (size_t)bytes : most;
        const ssize_t got = pread(file->fd, at, want, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return ats_fail(err, ATS_E_IO, "%s: cannot be read: %s", file->path, strerror(errno));
        if (got == 0)
            return ats_fail(err, ATS_E_INPUT, "%s: ends at byte %lld, while it is read", file->path,
                            (long long)offset);
        at += got;
        offset += got;
        bytes -= got;
    }
    return ATS_OK;
}

static bool has_suffix(const char *path, const char *suffix)
{
    const size_t n = strlen(path), m = strlen(suffix);
    return n >= m && strcmp(path + n - m, suffix) == 0;
}

/* Pickle protocols 2 to 5 begin with two bytes that a safetensors length could have too, but its
 * ninth byte is a brace. */
static bool is_pickle(const uint8_t *head, int64_t got)
{
    return got >= 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5 &&
           !(got >= 9 && head[8] == '{');
}

static ats_code refuse_pickle(const char *path, ats_err *err)
{
    return ats_fail(
        err, ATS_E_UNSUPPORTED,
        "%s: is a pickle, and nothing is ever unpickled here (that can run code); convert it where "
        "you trust it: python3 -c \"import torch, sys; from safetensors.torch import save_file; "
        "save_file(torch.load(sys.argv[1], weights_only=True), sys.argv[2])\" %s "
        "tensors.safetensors",
        path, path);
}

static ats_code read_headers(ats_tensor_file *file, ats_arena *arena, ats_err *err)
{
    uint8_t head[16] = {0};
    const int64_t got = file->size < 16 ? file->size : 16;
    const ats_code rc = ats_tensor_file_bytes(file, 0, got, head, err);
    if (rc != ATS_OK) return rc;
    if (got >= 6 && memcmp(head, "\x93NUMPY", 6) == 0) return ats_npy_read_header(file, arena, err);
    if (got >= 4 && memcmp(head, "PK", 2) == 0 && head[2] < 8)
        return ats_npz_read_headers(file, arena, err);
    if (is_pickle(head, got)) return refuse_pickle(file->path, err);
    if (has_suffix(file->path, ".npy"))
        return ats_fail(err, ATS_E_INPUT,
                        "%s: is not an npy file: it does not begin with \\x93NUMPY; write it with "
                        "numpy.save",
                        file->path);
    if (has_suffix(file->path, ".npz"))
        return ats_fail(err, ATS_E_INPUT,
                        "%s: is not an npz file: it is no zip archive; write it with numpy.savez",
                        file->path);
    if (got >= 8 && memcmp(head, "\x89HDF\r\n\x1a\n", 8) == 0)
        return ats_fail(err, ATS_E_INPUT,
                        "%s: is an HDF5 file; a capture needs no import (attnstress inspect %s)",
                        file->path, file->path);
    return ats_safetensors_read_header(file, arena, err);
}

ats_code ats_tensor_file_open(const char *path, ats_arena *arena, ats_tensor_file *out,
                              ats_err *err)
{
    ats_tensor_file file = {.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC)};
    struct stat info;
    ats_code rc;
    if (file.fd < 0)
        return ats_fail(err, ATS_E_INPUT, "%s: cannot be opened: %s", path, strerror(errno));
    if (fstat(file.fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        rc = ats_fail(err, ATS_E_INPUT, "%s: is not a regular file", path);
        goto out;
    }
    file.size = (int64_t)info.st_size;
    ATS_TRY(read_headers(&file, arena, err));
    *out = file;
    for (int64_t i = 0; i < out->n_tensors; i++) out->tensors[i].file = out;
out:
    if (rc != ATS_OK) ats_tensor_file_close(&file);
    return rc;
}

void ats_tensor_file_close(ats_tensor_file *file)
{
    if (file->path == NULL) return;
    ats_npz_close(file);
    close(file->fd);
    *file = (ats_tensor_file){0};
}

static void swap_bytes(uint8_t *data, int64_t count, int64_t size)
{
    for (int64_t i = 0; i < count; i++, data += size)
        for (int64_t b = 0; b < size / 2; b++) {
            const uint8_t kept = data[b];
            data[b] = data[size - 1 - b];
            data[size - 1 - b] = kept;
        }
}

ats_code ats_tensor_read(const ats_tensor *tensor, void *out, ats_err *err)
{
    const ats_tensor_file *file = tensor->file;
    if (tensor->element == ATS_ELEMENT_OTHER)
        return ats_fail(err, ATS_E_INPUT, "%s: tensor %s has the type %s: %s", file->path,
                        tensor->name, tensor->type, tensor->reason);
    const ats_code rc = tensor->member >= 0
                            ? ats_npz_read(tensor, out, err)
                            : ats_tensor_file_bytes(file, tensor->offset, tensor->bytes, out, err);
    if (rc == ATS_OK && tensor->big_endian) swap_bytes(out, tensor->count, tensor->size);
    return rc;
}

const char *ats_tensor_shape(const ats_tensor *tensor, char *out, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < tensor->rank && used < size; i++) {
        const int n = snprintf(out + used, size - used, "%s%lld", i > 0 ? ", " : "[",
                               (long long)tensor->extent[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    if (used < size) snprintf(out + used, size - used, "%s", tensor->rank > 0 ? "]" : "[]");
    return out;
}

/* The npz format: a zip archive of npy files, stored or deflated, read by libzip, which checks
 * each member's checksum at its end. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

#include "capture/tensor_formats.h"

enum { MEMBERS_MAX = 1 << 20, DEFLATE_MOST = 1032 };

static ats_code fail_zip(const ats_tensor_file *file, const char *member, zip_error_t *fault,
                         ats_err *err)
{
    const ats_code rc =
        ats_fail(err, ATS_E_INPUT, "%s%s%s: %s (zip archive)", file->path, member ? ": " : "",
                 member ? member : "", zip_error_strerror(fault));
    return rc;
}

/* Exactly `bytes` of an open member. */
static ats_code read_part(const ats_tensor_file *file, const char *member, zip_file_t *zf,
                          void *out, int64_t bytes, int64_t *got, ats_err *err)
{
    char *at = out;
    *got = 0;
    while (*got < bytes) {
        const zip_int64_t n = zip_fread(zf, at + *got, (zip_uint64_t)(bytes - *got));
        if (n < 0) return fail_zip(file, member, zip_file_get_error(zf), err);
        if (n == 0) break;
        *got += n;
    }
    return ATS_OK;
}

static ats_code describe(ats_tensor_file *file, ats_arena *arena, const zip_stat_t *stat,
                         zip_file_t *zf, ats_tensor *out, ats_err *err)
{
    const char *where = NULL;
    char *text = NULL;
    uint8_t head[ATS_NPY_PREFIX];
    int64_t got = 0, before = 0, length = 0;
    ats_code rc;
    ATS_TRY(ats_arena_printf(arena, &where, err, "%s: %s", file->path, stat->name));
    ATS_TRY(read_part(file, stat->name, zf, head, ATS_NPY_PREFIX, &got, err));
    ATS_TRY(ats_npy_prefix(where, head, got, &before, &length, err));
    /* the prefix of version 1 is shorter than what was read: its dictionary has begun */
    const int64_t early = got - before < length ? got - before : length;
    ATS_TRY(ATS_NEW0(arena, length + 1, &text, err));
    memcpy(text, head + before, (size_t)early);
    ATS_TRY(read_part(file, stat->name, zf, text + early, length - early, &got, err));
    if (got != length - early) {
        rc = ats_fail(err, ATS_E_INPUT, "%s: ends inside the npy header", where);
        goto out;
    }
    ATS_TRY(ats_npy_describe(where, text, length, arena, out, err));
    out->offset = before + length;
    const int64_t left = (int64_t)stat->size - out->offset;
    if (out->element != ATS_ELEMENT_OTHER && out->bytes != left)
        rc = ats_fail(err, ATS_E_INPUT,
                      "%s: its shape of %s takes %" PRId64 " bytes, but %" PRId64
                      " follow the header",
                      where, out->type, out->bytes, left);
out:
    return rc;
}

static ats_code check_stat(const ats_tensor_file *file, const zip_stat_t *stat, ats_err *err)
{
    const zip_uint64_t wanted = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                                ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if ((stat->valid & wanted) != wanted)
        return ats_fail(err, ATS_E_INPUT, "%s: a member of the archive has no size", file->path);
    if (stat->encryption_method != ZIP_EM_NONE)
        return ats_fail(err, ATS_E_INPUT, "%s: %s is encrypted", file->path, stat->name);
    if (stat->comp_method != ZIP_CM_STORE && stat->comp_method != ZIP_CM_DEFLATE)
        return ats_fail(err, ATS_E_INPUT,
                        "%s: %s is compressed by method %d; numpy.savez stores or deflates",
                        file->path, stat->name, stat->comp_method);
    const zip_uint64_t most = (zip_uint64_t)file->size * DEFLATE_MOST;
    if (stat->comp_size > (zip_uint64_t)file->size || stat->size > most)
        return ats_fail(err, ATS_E_INPUT,
                        "%s: %s should have %" PRIu64 " bytes, more than this file can hold",
                        file->path, stat->name, (uint64_t)stat->size);
    return ATS_OK;
}

static ats_code add_member(ats_tensor_file *file, ats_arena *arena, zip_int64_t index, ats_err *err)
{
    zip_stat_t stat;
    ats_tensor *out = &file->tensors[file->n_tensors];
    ats_code rc;
    if (zip_stat_index(file->archive, (zip_uint64_t)index, ZIP_FL_UNCHANGED, &stat) != 0)
        return fail_zip(file, NULL, zip_get_error(file->archive), err);
    ATS_TRY(check_stat(file, &stat, err));
    const size_t length = strlen(stat.name);
    if (length < 5 || strcmp(stat.name + length - 4, ".npy") != 0) {
        if (strstr(stat.name, "data.pkl") != NULL)
            return ats_fail(err, ATS_E_UNSUPPORTED,
                            "%s: is a PyTorch file (a pickle), and nothing is ever unpickled here; "
                            "convert it: python3 -c \"import torch, sys; from safetensors.torch "
                            "import save_file; save_file(torch.load(sys.argv[1], "
                            "weights_only=True), sys.argv[2])\" %s tensors.safetensors",
                            file->path, file->path);
        return ats_fail(err, ATS_E_INPUT,
                        "%s: %s is no .npy member; write the archive with numpy.savez", file->path,
                        stat.name);
    }
    zip_file_t *zf = zip_fopen_index(file->archive, (zip_uint64_t)index, ZIP_FL_UNCHANGED);
    if (zf == NULL) return fail_zip(file, stat.name, zip_get_error(file->archive), err);
    *out = (ats_tensor){.member = index};
    rc = describe(file, arena, &stat, zf, out, err);
    zip_fclose(zf);
    if (rc == ATS_OK)
        rc = ats_arena_printf(arena, &out->name, err, "%.*s", (int)length - 4, stat.name);
    if (rc == ATS_OK) file->n_tensors++;
out:
    return rc;
}

static ats_code refuse_duplicates(const ats_tensor_file *file, ats_err *err)
{
    for (int64_t i = 0; i < file->n_tensors; i++) {
        const zip_int64_t first = zip_name_locate(
            file->archive, zip_get_name(file->archive, (zip_uint64_t)file->tensors[i].member, 0),
            0);
        if (first != file->tensors[i].member)
            return ats_fail(err, ATS_E_INPUT, "%s: holds two members named %s.npy", file->path,
                            file->tensors[i].name);
    }
    return ATS_OK;
}

ats_code ats_npz_read_headers(ats_tensor_file *file, ats_arena *arena, ats_err *err)
{
    int fault = 0;
    ats_code rc;
    const int fd = dup(file->fd);
    if (fd >= 0) file->archive = zip_fdopen(fd, ZIP_CHECKCONS, &fault);
    if (file->archive == NULL) {
        zip_error_t error;
        if (fd >= 0) close(fd);
        zip_error_init_with_code(&error, fault);
        rc = fail_zip(file, NULL, &error, err);
        zip_error_fini(&error);
        return rc;
    }
    const zip_int64_t n = zip_get_num_entries(file->archive, ZIP_FL_UNCHANGED);
    if (n > MEMBERS_MAX)
        return ats_fail(err, ATS_E_INPUT, "%s: holds %" PRId64 " members; at most %d are read",
                        file->path, (int64_t)n, MEMBERS_MAX);
    ATS_TRY(ATS_NEW0(arena, n + 1, &file->tensors, err));
    for (zip_int64_t i = 0; i < n; i++) ATS_TRY(add_member(file, arena, i, err));
    rc = refuse_duplicates(file, err);
out:
    return rc;
}

ats_code ats_npz_read(const ats_tensor *tensor, void *out, ats_err *err)
{
    const ats_tensor_file *file = tensor->file;
    char skipped[4096], extra;
    int64_t got = 0, left = tensor->offset;
    ats_code rc = ATS_OK;
    zip_file_t *zf = zip_fopen_index(file->archive, (zip_uint64_t)tensor->member, ZIP_FL_UNCHANGED);
    if (zf == NULL) return fail_zip(file, tensor->name, zip_get_error(file->archive), err);
    while (left > 0 && rc == ATS_OK) {
        const int64_t part = left < (int64_t)sizeof skipped ? left : (int64_t)sizeof skipped;
        ATS_TRY(read_part(file, tensor->name, zf, skipped, part, &got, err));
        if (got < part) break;
        left -= part;
    }
    ATS_TRY(read_part(file, tensor->name, zf, out, tensor->bytes, &got, err));
    if (left > 0 || got != tensor->bytes) {
        rc = ats_fail(err, ATS_E_INPUT, "%s: %s ends before its data", file->path, tensor->name);
        goto out;
    }
    rc = read_part(file, tensor->name, zf, &extra, 1, &got, err); /* the checksum is tested here */
out:
    zip_fclose(zf);
    return rc;
}

void ats_npz_close(ats_tensor_file *file)
{
    if (file->archive != NULL) zip_discard(file->archive);
    file->archive = NULL;
}

#include "h5/attr.h"

#include <stdlib.h>
#include <string.h>

#include "h5/heap.h"
#include "h5/internal.h"

bool ats_h5_has_attr(const ats_h5_file *file, const char *object, const char *name)
{
    return H5Aexists_by_name(file->id, object, name, file->access) > 0;
}

typedef struct attribute {
    hid_t id, type;
    ats_h5_type kind;
} attribute;

static void attribute_close(attribute *open)
{
    if (open->id >= 0) H5Aclose(open->id);
    if (open->type >= 0) H5Tclose(open->type);
}

/* Opens an attribute of exactly one element. */
static ats_code attribute_open(const ats_h5_file *file, const char *object, const char *name,
                               attribute *out, ats_err *err)
{
    *out = (attribute){-1, -1, ATS_H5_OTHER};
    if (!ats_h5_has_attr(file, object, name))
        return ats_h5_fail(err, ATS_E_INPUT, file, object, "the attribute \"%s\" is missing", name);
    out->id = H5Aopen_by_name(file->id, object, name, H5P_DEFAULT, file->access);
    if (out->id < 0)
        return ats_h5_error(err, ATS_E_INPUT, file, object, "the attribute \"%s\" cannot be opened",
                            name);
    out->type = H5Aget_type(out->id);
    const hid_t space = H5Aget_space(out->id);
    const hssize_t count = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
    if (space >= 0) H5Sclose(space);
    ats_code rc = ATS_OK;
    if (out->type < 0)
        rc = ats_h5_error(err, ATS_E_INPUT, file, object, "the attribute \"%s\" has no type", name);
    else if (count != 1)
        rc = ats_h5_fail(err, ATS_E_INPUT, file, object,
                         "the attribute \"%s\" holds %lld values, should hold one", name,
                         (long long)count);
    else
        out->kind = ats_h5_classify(out->type);
    if (rc != ATS_OK) attribute_close(out);
    return rc;
}

static ats_code wrong_type(const ats_h5_file *file, const char *object, const char *name,
                           ats_h5_type got, const char *want, ats_err *err)
{
    return ats_h5_fail(err, ATS_E_INPUT, file, object,
                       "the attribute \"%s\" is of type %s, should be %s", name,
                       ats_h5_type_name(got), want);
}

static ats_code unreadable(const ats_h5_file *file, const char *object, const char *name,
                           ats_err *err)
{
    return ats_h5_error(err, ATS_E_INPUT, file, object, "the attribute \"%s\" cannot be read",
                        name);
}

static ats_code read_number(const ats_h5_file *file, const char *object, const char *name,
                            const attribute *open, hid_t native, void *out, ats_err *err)
{
    if (H5Aread(open->id, native, out) >= 0) return ATS_OK;
    return unreadable(file, object, name, err);
}

ats_code ats_h5_get_i64(const ats_h5_file *file, const char *object, const char *name, int64_t *out,
                        ats_err *err)
{
    attribute open;
    ats_code rc = attribute_open(file, object, name, &open, err);
    if (rc != ATS_OK) return rc;
    int64_t value = 0;
    uint64_t large = 0;
    int8_t flag = 0;
    if (open.kind == ATS_H5_BOOL) {
        ATS_TRY(read_number(file, object, name, &open, open.type, &flag, err));
        value = flag;
    } else if (open.kind == ATS_H5_U64) {
        ATS_TRY(read_number(file, object, name, &open, H5T_NATIVE_UINT64, &large, err));
        if (large > (uint64_t)INT64_MAX) {
            rc = ats_h5_fail(err, ATS_E_INPUT, file, object,
                             "the attribute \"%s\" is %llu, larger than 2^63 - 1", name,
                             (unsigned long long)large);
            goto out;
        }
        value = (int64_t)large;
    } else if (ats_h5_type_is_integer(open.kind)) {
        ATS_TRY(read_number(file, object, name, &open, H5T_NATIVE_INT64, &value, err));
    } else {
        rc = wrong_type(file, object, name, open.kind, "an integer", err);
        goto out;
    }
    *out = value;
out:
    attribute_close(&open);
    return rc;
}

ats_code ats_h5_get_f64(const ats_h5_file *file, const char *object, const char *name, double *out,
                        ats_err *err)
{
    attribute open;
    ats_code rc = attribute_open(file, object, name, &open, err);
    if (rc != ATS_OK) return rc;
    double value = 0;
    if (ats_h5_type_is_float(open.kind) || ats_h5_type_is_integer(open.kind))
        rc = read_number(file, object, name, &open, H5T_NATIVE_DOUBLE, &value, err);
    else
        rc = wrong_type(file, object, name, open.kind, "a number", err);
    if (rc == ATS_OK) *out = value;
    attribute_close(&open);
    return rc;
}

/* HDF5's own reading, for a file that is being written: its heaps are still in memory. */
static ats_code read_written(const ats_h5_file *file, const char *object, const char *name,
                             const attribute *open, ats_arena *arena, const char **out,
                             ats_err *err)
{
    const hid_t type = ats_h5_text_type();
    char *text = NULL;
    ats_code rc;
    if (type < 0 || H5Tset_cset(type, H5Tget_cset(open->type)) < 0 ||
        H5Aread(open->id, type, &text) < 0)
        rc = unreadable(file, object, name, err);
    else
        rc = ats_arena_strdup(arena, text != NULL ? text : "", out, err);
    if (text != NULL) H5free_memory(text);
    if (type >= 0) H5Tclose(type);
    return rc;
}

static ats_code read_variable(const ats_h5_file *file, const char *object, const char *name,
                              const attribute *open, ats_arena *arena, const char **out,
                              ats_err *err)
{
    uint8_t reference[ATS_H5_REFERENCE];
    const char *text = NULL;
    char *copy = NULL;
    int64_t length = 0;
    ats_h5_heaps heaps;
    ats_code rc = ats_h5_heaps_init(file, &heaps, err);
    if (rc != ATS_OK) return rc;
    const hid_t type = ats_h5_reference_type();
    if (type < 0 || H5Aread(open->id, type, reference) < 0)
        rc = unreadable(file, object, name, err);
    else if ((rc = ats_h5_heaps_text(&heaps, reference, &text, &length, err)) != ATS_OK)
        rc = ats_prepend(err, rc, "%s: %s: the attribute \"%s\"", file->path, object, name);
    else if ((rc = ATS_NEW(arena, length + 1, &copy, err)) == ATS_OK) {
        if (length > 0) memcpy(copy, text, (size_t)length);
        copy[length] = '\0';
        *out = copy;
    }
    if (type >= 0) H5Tclose(type);
    ats_h5_heaps_fini(&heaps);
    return rc;
}

static ats_code read_fixed(const ats_h5_file *file, const char *object, const char *name,
                           const attribute *open, ats_arena *arena, const char **out, ats_err *err)
{
    enum { WIDEST = 1 << 24 };
    char *text = NULL;
    const size_t width = H5Tget_size(open->type);
    if (width == 0 || width > WIDEST)
        return ats_h5_fail(err, ATS_E_INPUT, file, object,
                           "the attribute \"%s\" is %zu bytes long; at most 16 MiB are read", name,
                           width);
    ats_code rc = ats_arena_zalloc(arena, (int64_t)width + 1, 1, (void **)&text, err);
    if (rc != ATS_OK) return rc;
    if (H5Aread(open->id, open->type, text) < 0) return unreadable(file, object, name, err);
    *out = text;
    return ATS_OK;
}

ats_code ats_h5_get_text(const ats_h5_file *file, const char *object, const char *name,
                         ats_arena *arena, const char **out, ats_err *err)
{
    attribute open;
    ats_code rc = attribute_open(file, object, name, &open, err);
    if (rc != ATS_OK) return rc;
    if (open.kind != ATS_H5_TEXT)
        rc = wrong_type(file, object, name, open.kind, "text", err);
    else if (H5Tis_variable_str(open.type) > 0 && file->size == 0)
        rc = read_written(file, object, name, &open, arena, out, err);
    else if (H5Tis_variable_str(open.type) > 0)
        rc = read_variable(file, object, name, &open, arena, out, err);
    else
        rc = read_fixed(file, object, name, &open, arena, out, err);
    attribute_close(&open);
    return rc;
}

/* Makes and writes an attribute; type and space stay the caller's. */
static ats_code put(const ats_h5_file *file, const char *object, const char *name, hid_t stored,
                    hid_t native, hid_t space, const void *value, ats_err *err)
{
    hid_t id = -1;
    if (ats_h5_has_attr(file, object, name))
        H5Adelete_by_name(file->id, object, name, file->access);
    if (stored >= 0 && native >= 0 && space >= 0)
        id = H5Acreate_by_name(file->id, object, name, stored, space, H5P_DEFAULT, H5P_DEFAULT,
                               file->access);
    ats_code rc = ATS_OK;
    if (id < 0 || H5Awrite(id, native, value) < 0)
        rc = ats_h5_error(err, ATS_E_IO, file, object, "the attribute \"%s\" cannot be written",
                          name);
    if (id >= 0) H5Aclose(id);
    return rc;
}

ats_code ats_h5_put_array(const ats_h5_file *file, const char *object, const char *name,
                          ats_h5_type type, int64_t count, const void *values, ats_err *err)
{
    const hsize_t extent = (hsize_t)(count < 0 ? 1 : count);
    const hid_t space = count < 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &extent, NULL);
    const hid_t stored = ats_h5_stored_type(type);
    const hid_t native = ats_h5_native(type);
    ats_code rc = put(file, object, name, stored, native < 0 ? stored : native, space, values, err);
    if (space >= 0) H5Sclose(space);
    if (stored >= 0) H5Tclose(stored);
    return rc;
}

ats_code ats_h5_put_i64(const ats_h5_file *file, const char *object, const char *name,
                        int64_t value, ats_err *err)
{
    return ats_h5_put_array(file, object, name, ATS_H5_I64, -1, &value, err);
}

ats_code ats_h5_put_f64(const ats_h5_file *file, const char *object, const char *name, double value,
                        ats_err *err)
{
    return ats_h5_put_array(file, object, name, ATS_H5_F64, -1, &value, err);
}

ats_code ats_h5_put_text(const ats_h5_file *file, const char *object, const char *name,
                         const char *text, ats_err *err)
{
    const hid_t type = ats_h5_text_type(), space = H5Screate(H5S_SCALAR);
    ats_code rc = put(file, object, name, type, type, space, &text, err);
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    return rc;
}

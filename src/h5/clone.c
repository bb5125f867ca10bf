#include "h5/clone.h"

#include <hdf5_hl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "h5/attr.h"
#include "h5/internal.h"

enum { MAX_NAMES = 4096, MAX_ATTRIBUTE = 16 << 20 };

typedef struct names {
    ats_arena *arena;
    ats_err *err;
    ats_code rc;
    const char **items; /* [MAX_NAMES] */
    int64_t count;
} names;

static herr_t keep(names *list, const char *name)
{
    if (list->count == MAX_NAMES) {
        list->rc = ats_fail(list->err, ATS_E_INPUT, "more than %d names", (int)MAX_NAMES);
        return -1;
    }
    list->rc = ats_arena_strdup(list->arena, name, &list->items[list->count], list->err);
    if (list->rc != ATS_OK) return -1;
    list->count++;
    return 0;
}

static herr_t keep_link(hid_t group, const char *name, const H5L_info_t *info, void *ctx)
{
    (void)group, (void)info;
    return keep(ctx, name);
}

static herr_t keep_attribute(hid_t object, const char *name, const H5A_info_t *info, void *ctx)
{
    (void)object, (void)info;
    return keep(ctx, name);
}

static ats_code list_of(const ats_h5_file *file, const char *object, bool attributes,
                        ats_arena *arena, const char *const **out, int64_t *count, ats_err *err)
{
    names list = {.arena = arena, .err = err};
    hid_t id = -1;
    hsize_t at = 0;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, MAX_NAMES, &list.items, err));
    ATS_TRY(ats_h5_object_open(file, object, &id, err));
    const herr_t status =
        attributes ? H5Aiterate2(id, H5_INDEX_CRT_ORDER, H5_ITER_INC, &at, keep_attribute, &list)
                   : H5Literate(id, H5_INDEX_CRT_ORDER, H5_ITER_INC, &at, keep_link, &list);
    if (status < 0)
        rc = list.rc != ATS_OK ? ats_prepend(err, list.rc, "%s: %s", file->path, object)
                               : ats_h5_error(err, ATS_E_INPUT, file, object,
                                              "cannot be listed in the order in which it was made");
    if (rc != ATS_OK) goto out;
    *out = list.items;
    *count = list.count;
out:
    if (id > 0) H5Oclose(id);
    return rc;
}

ats_code ats_h5_datasets(const ats_h5_file *file, ats_arena *arena, const char *const **out,
                         int64_t *count, ats_err *err)
{
    return list_of(file, "/", false, arena, out, count, err);
}

ats_code ats_h5_attr_names(const ats_h5_file *file, const char *object, ats_arena *arena,
                           const char *const **out, int64_t *count, ats_err *err)
{
    return list_of(file, object, true, arena, out, count, err);
}

typedef struct attribute {
    hid_t id, type, space, copy;
    void *value;
    bool variable; /* holds memory of HDF5 */
} attribute;

static ats_code read_attribute(const ats_h5_file *from, hid_t id, const char *object,
                               const char *name, attribute *a, ats_err *err)
{
    a->id = H5Aopen(id, name, H5P_DEFAULT);
    if (a->id >= 0) a->type = H5Aget_type(a->id);
    if (a->id >= 0) a->space = H5Aget_space(a->id);
    if (a->id < 0 || a->type < 0 || a->space < 0)
        return ats_h5_error(err, ATS_E_INPUT, from, object, "the attribute \"%s\" cannot be opened",
                            name);
    const hssize_t count = H5Sget_simple_extent_npoints(a->space);
    const size_t size = H5Tget_size(a->type);
    const H5T_class_t class = H5Tget_class(a->type);
    const bool plain = class == H5T_INTEGER || class == H5T_FLOAT || class == H5T_STRING;
    if (!plain || count < 0 || size == 0 || (size_t)count > MAX_ATTRIBUTE / size)
        return ats_h5_fail(err, ATS_E_INPUT, from, object,
                           "the attribute \"%s\" is of a kind that no result has", name);
    ats_code rc = ats_h5_malloc((size_t)count * size, &a->value, err);
    if (rc != ATS_OK) return rc;
    if (H5Aread(a->id, a->type, a->value) < 0)
        return ats_h5_error(err, ATS_E_INPUT, from, object, "the attribute \"%s\" cannot be read",
                            name);
    a->variable = H5Tis_variable_str(a->type) > 0;
    return ATS_OK;
}

static void attribute_fini(attribute *a)
{
    if (a->variable) H5Dvlen_reclaim(a->type, a->space, H5P_DEFAULT, a->value);
    free(a->value);
    if (a->copy >= 0) H5Aclose(a->copy);
    if (a->id >= 0) H5Aclose(a->id);
    if (a->type >= 0) H5Tclose(a->type);
    if (a->space >= 0) H5Sclose(a->space);
}

/* One side of a copy: an object of a file. */
typedef struct side {
    const ats_h5_file *file;
    hid_t id;
    const char *name;
} side;

static ats_code copy_attribute(const side *from, const side *to, const char *name, ats_err *err)
{
    attribute a = {.id = -1, .type = -1, .space = -1, .copy = -1};
    ats_code rc = read_attribute(from->file, from->id, from->name, name, &a, err);
    if (rc == ATS_OK) {
        a.copy = H5Acreate2(to->id, name, a.type, a.space, H5P_DEFAULT, H5P_DEFAULT);
        if (a.copy < 0 || H5Awrite(a.copy, a.type, a.value) < 0)
            rc = ats_h5_error(err, ATS_E_IO, to->file, to->name,
                              "the attribute \"%s\" cannot be written", name);
    }
    attribute_fini(&a);
    return rc;
}

ats_code ats_h5_root_attr_copy(const ats_h5_file *from, const ats_h5_file *to, const char *name,
                               ats_err *err)
{
    return copy_attribute(&(side){from, from->id, "/"}, &(side){to, to->id, "/"}, name, err);
}

ats_code ats_h5_attr_words(const ats_h5_file *file, const char *object, const char *name,
                           ats_arena *arena, const char **out, ats_err *err)
{
    int64_t whole = 0;
    double real = 0;
    ats_err ignored;
    ats_code rc = ats_h5_get_text(file, object, name, arena, out, &ignored);
    if (rc == ATS_OK) return rc;
    if (ats_h5_get_i64(file, object, name, &whole, &ignored) == ATS_OK)
        return ats_arena_printf(arena, out, err, "%lld", (long long)whole);
    rc = ats_h5_get_f64(file, object, name, &real, err);
    return rc == ATS_OK ? ats_arena_printf(arena, out, err, "%.17g", real) : rc;
}

bool ats_h5_is_scale(const ats_h5_dataset *dataset) { return H5DSis_scale(dataset->id) > 0; }

static bool of_scales(const char *name)
{
    static const char *const own[] = {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST",
                                      "DIMENSION_LABELS"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(own[i], name) == 0) return true;
    return false;
}

ats_code ats_h5_attrs_like(const ats_h5_dataset *like, const ats_h5_dataset *out, ats_err *err)
{
    const side from = {like->file, like->id, like->name}, to = {out->file, out->id, out->name};
    ats_arena arena = {.blocks = NULL};
    const char *const *list = NULL;
    int64_t count = 0;
    ats_code rc;
    ATS_TRY(ats_h5_attr_names(like->file, like->name, &arena, &list, &count, err));
    for (int64_t i = 0; i < count; i++)
        if (!of_scales(list[i])) ATS_TRY(copy_attribute(&from, &to, list[i], err));
out:
    ats_arena_fini(&arena);
    return rc;
}

ats_code ats_h5_dataset_like(const ats_h5_dataset *like, const ats_h5_file *file, int64_t first,
                             ats_h5_dataset *out, ats_err *err)
{
    int64_t extent[ATS_H5_MAX_RANK];
    memcpy(extent, like->extent, sizeof extent);
    if (first >= 0 && like->rank > 0) extent[0] = first;
    const ats_h5_dims dims = ats_h5_to_dims(like->rank, extent);
    const hid_t type = H5Dget_type(like->id), creation = H5Dget_create_plist(like->id);
    const hid_t space =
        like->rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(like->rank, dims.at, NULL);
    hid_t id = -1;
    if (type >= 0 && creation >= 0 && space >= 0)
        id = H5Dcreate2(file->id, like->name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    ats_code rc = ATS_OK;
    if (id < 0) rc = ats_h5_error(err, ATS_E_IO, file, like->name, "the dataset cannot be made");
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    if (creation >= 0) H5Pclose(creation);
    if (id >= 0) ats_h5_close_dataset(file, id);
    return rc != ATS_OK ? rc : ats_h5_dataset_open(file, like->name, out, err);
}

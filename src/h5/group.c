#include <stdlib.h>
#include <string.h>

#include "h5/internal.h"

ats_code ats_h5_object_open(const ats_h5_file *file, const char *name, hid_t *out, ats_err *err)
{
    const hid_t id = H5Oopen(file->id, name, file->access);
    if (id < 0) return ats_h5_error(err, ATS_E_INPUT, file, name, "cannot be opened");
    const H5I_type_t kind = H5Iget_type(id);
    if (kind != H5I_GROUP && kind != H5I_DATASET) {
        H5Oclose(id);
        return ats_h5_fail(err, ATS_E_INPUT, file, name, "is neither a group nor a dataset");
    }
    *out = id;
    return ATS_OK;
}

ats_code ats_h5_group_create(const ats_h5_file *file, const char *name, ats_err *err)
{
    const unsigned order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
    hid_t creation = H5Pcreate(H5P_GROUP_CREATE), group = -1;
    if (creation > 0 && H5Pset_link_creation_order(creation, order) >= 0 &&
        H5Pset_attr_creation_order(creation, order) >= 0 &&
        H5Pset_obj_track_times(creation, false) >= 0)
        group = H5Gcreate2(file->id, name, H5P_DEFAULT, creation, H5P_DEFAULT);
    ats_code rc = ATS_OK;
    if (group < 0) rc = ats_h5_error(err, ATS_E_IO, file, name, "the group cannot be made");
    if (group > 0) H5Gclose(group);
    if (creation > 0) H5Pclose(creation);
    return rc;
}

bool ats_h5_exists(const ats_h5_file *file, const char *name)
{
    if (strcmp(name, "/") == 0) return true;
    return H5Lexists(file->id, name, file->access) > 0;
}

typedef struct names {
    ats_arena *arena;
    ats_err *err;
    const char **items; /* malloc'd, [room] */
    int64_t count, room, limit;
    ats_code rc;
} names;

static herr_t add_name(hid_t group, const char *name, const H5L_info_t *info, void *ctx)
{
    (void)group, (void)info;
    names *list = ctx;
    if (list->count >= list->limit) {
        list->rc = ats_fail(list->err, ATS_E_INPUT, "has more links than the file has bytes for");
        return -1;
    }
    if (list->count == list->room) {
        const int64_t room = list->room > 0 ? 2 * list->room : 16;
        const char **more = realloc(list->items, (size_t)room * sizeof *more);
        if (more == NULL) {
            list->rc =
                ats_fail(list->err, ATS_E_MEMORY, "out of memory for %lld names", (long long)room);
            return -1;
        }
        list->items = more;
        list->room = room;
    }
    list->rc = ats_arena_strdup(list->arena, name, &list->items[list->count], list->err);
    if (list->rc != ATS_OK) return -1;
    list->count++;
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

ats_code ats_h5_children(const ats_h5_file *file, const char *name, ats_arena *arena,
                         const char *const **out, int64_t *count, ats_err *err)
{
    hid_t id = -1;
    const char **copy = NULL;
    names list = {.arena = arena, .err = err, .limit = INT64_MAX};
    ats_code rc;
    if (file->size > 0) list.limit = file->size / 8;
    ATS_TRY(ats_h5_object_open(file, name, &id, err));
    if (H5Iget_type(id) != H5I_GROUP) {
        rc = ats_h5_fail(err, ATS_E_INPUT, file, name, "is a dataset, should be a group");
        goto out;
    }
    hsize_t at = 0;
    if (H5Literate(id, H5_INDEX_NAME, H5_ITER_INC, &at, add_name, &list) < 0) {
        rc = list.rc != ATS_OK
                 ? ats_prepend(err, list.rc, "%s: %s", file->path, name)
                 : ats_h5_error(err, ATS_E_INPUT, file, name, "the group cannot be listed");
        goto out;
    }
    ATS_TRY(ATS_NEW(arena, list.count, &copy, err));
    if (list.count > 0) {
        qsort(list.items, (size_t)list.count, sizeof *list.items, by_text);
        memcpy(copy, list.items, (size_t)list.count * sizeof *copy);
    }
    *out = copy;
    *count = list.count;
out:
    free(list.items);
    if (id > 0) H5Oclose(id);
    return rc;
}

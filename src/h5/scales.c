#include "h5/scales.h"

#include <hdf5_hl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "h5/internal.h"

ats_code ats_h5_scale_make(const ats_h5_dataset *dataset, const char *name, ats_err *err)
{
    if (H5DSset_scale(dataset->id, name) >= 0) return ATS_OK;
    return ats_h5_error(err, ATS_E_IO, dataset->file, dataset->name,
                        "cannot become the scale of dimension %s", name);
}

ats_code ats_h5_scale_bare(const ats_h5_file *file, const char *name, int64_t size,
                           ats_h5_dataset *out, ats_err *err)
{
    /* The words by which netCDF-4 knows a dimension without a variable. */
    char words[80];
    snprintf(words, sizeof words, "This is a netCDF dimension but not a netCDF variable.%10lld",
             (long long)size);
    ats_h5_dataset dataset;
    const ats_h5_layout layout = {.type = ATS_H5_F32, .rank = 1, .extent = {size}};
    ats_code rc = ats_h5_dataset_create(file, name, &layout, &dataset, err);
    if (rc != ATS_OK) return rc;
    rc = ats_h5_scale_make(&dataset, words, err);
    if (rc != ATS_OK)
        ats_h5_dataset_close(&dataset);
    else
        *out = dataset;
    return rc;
}

/* One axis of a dataset, as a scale's REFERENCE_LIST holds it. */
typedef struct user {
    hobj_ref_t dataset;
    int axis;
} user;

struct ats_h5_users {
    int64_t count, room;
    struct {
        hobj_ref_t scale;
        user by;
    } * items; /* [room] in the order of attaching */
};

ats_code ats_h5_users_make(struct ats_h5_users **out, ats_err *err)
{
    void *users = NULL;
    ats_code rc = ats_h5_malloc(sizeof **out, &users, err);
    if (rc != ATS_OK) return rc;
    *out = users;
    **out = (struct ats_h5_users){.count = 0};
    return ATS_OK;
}

void ats_h5_users_free(struct ats_h5_users *users)
{
    if (users != NULL) free(users->items);
    free(users);
}

static ats_code make_room(struct ats_h5_users *users, ats_err *err)
{
    if (users->count < users->room) return ATS_OK;
    const int64_t room = 2 * users->room + 64;
    void *more = realloc(users->items, (size_t)room * sizeof *users->items);
    if (more == NULL)
        return ats_fail(err, ATS_E_MEMORY, "out of memory for %lld axes", (long long)room);
    users->items = more;
    users->room = room;
    return ATS_OK;
}

/* DIMENSION_LIST: for each axis the list of its scales. */
static bool put_dimensions(const ats_h5_dataset *dataset, hobj_ref_t *scales)
{
    const hsize_t rank = (hsize_t)dataset->rank;
    hvl_t lists[ATS_H5_MAX_RANK];
    for (int i = 0; i < dataset->rank; i++) lists[i] = (hvl_t){1, &scales[i]};
    const hid_t type = H5Tvlen_create(H5T_STD_REF_OBJ), space = H5Screate_simple(1, &rank, NULL);
    hid_t id = -1;
    if (type >= 0 && space >= 0)
        id = H5Acreate2(dataset->id, "DIMENSION_LIST", type, space, H5P_DEFAULT, H5P_DEFAULT);
    const bool good = id >= 0 && H5Awrite(id, type, lists) >= 0;
    if (id >= 0) H5Aclose(id);
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    return good;
}

ats_code ats_h5_scales_attach(const ats_h5_dataset *dataset, const ats_h5_dataset *const *scales,
                              ats_err *err)
{
    struct ats_h5_users *users = dataset->file->users;
    hobj_ref_t own, of[ATS_H5_MAX_RANK];
    ATS_ASSERT(users != NULL && dataset->rank > 0);
    bool good = H5Rcreate(&own, dataset->id, ".", H5R_OBJECT, -1) >= 0;
    for (int i = 0; good && i < dataset->rank; i++)
        good = H5Rcreate(&of[i], scales[i]->id, ".", H5R_OBJECT, -1) >= 0;
    if (!good || !put_dimensions(dataset, of))
        return ats_h5_error(err, ATS_E_IO, dataset->file, dataset->name,
                            "its axes cannot be given their scales");
    for (int i = 0; i < dataset->rank; i++) {
        const ats_code rc = make_room(users, err);
        if (rc != ATS_OK) return rc;
        users->items[users->count].scale = of[i];
        users->items[users->count++].by = (user){own, i};
    }
    return ATS_OK;
}

static hid_t user_type(void)
{
    const hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(user));
    if (type >= 0 && H5Tinsert(type, "dataset", HOFFSET(user, dataset), H5T_STD_REF_OBJ) >= 0 &&
        H5Tinsert(type, "dimension", HOFFSET(user, axis), H5T_NATIVE_INT) >= 0)
        return type;
    if (type >= 0) H5Tclose(type);
    return -1;
}

/* REFERENCE_LIST of one scale. */
static bool put_users(const ats_h5_file *file, hobj_ref_t scale, const user *list, int64_t count)
{
    const hsize_t extent = (hsize_t)count;
    const hid_t type = user_type(), space = H5Screate_simple(1, &extent, NULL);
    const hid_t object = H5Rdereference2(file->id, H5P_DEFAULT, H5R_OBJECT, &scale);
    hid_t id = -1;
    if (type >= 0 && space >= 0 && object >= 0)
        id = H5Acreate2(object, "REFERENCE_LIST", type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool good = id >= 0 && H5Awrite(id, type, list) >= 0;
    if (id >= 0) H5Aclose(id);
    if (object >= 0 && H5Oclose(object) < 0) good = false;
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    return good;
}

ats_code ats_h5_users_write(const ats_h5_file *file, ats_err *err)
{
    const struct ats_h5_users *users = file->users;
    void *memory = NULL;
    ats_code rc;
    if (users == NULL || users->count == 0) return ATS_OK;
    ATS_TRY(ats_h5_malloc((size_t)users->count * sizeof(user), &memory, err));
    user *list = memory;
    memset(list, 0, (size_t)users->count * sizeof *list);
    for (int64_t i = 0; i < users->count; i++) {
        const hobj_ref_t scale = users->items[i].scale;
        int64_t n = 0;
        for (int64_t k = 0; k < users->count; k++) {
            if (users->items[k].scale != scale) continue;
            if (k < i) break; /* was written with its first user */
            list[n].dataset = users->items[k].by.dataset;
            list[n++].axis = users->items[k].by.axis;
        }
        if (n == 0 || put_users(file, scale, list, n)) continue;
        rc = ats_h5_error(err, ATS_E_IO, file, NULL,
                          "the users of an axis cannot be written; is the disk full?");
        goto out;
    }
out:
    free(memory);
    return rc;
}

typedef struct found {
    char *name;
    size_t size;
    haddr_t address; /* of the scale, while its link is looked for */
} found;

static herr_t compare_link(hid_t root, const char *name, const H5L_info_t *info, void *ctx)
{
    (void)root;
    const found *to = ctx;
    if (info->type != H5L_TYPE_HARD || info->u.address != to->address) return 0;
    snprintf(to->name, to->size, "%s", name);
    return 1;
}

/* Its name among the root's links, which hold addresses; false: not there. */
static bool name_in_root(hid_t scale, found *to)
{
    H5O_info_t info;
    if (H5Oget_info2(scale, &info, H5O_INFO_BASIC) < 0) return false;
    to->address = info.addr;
    return H5Literate_by_name(scale, "/", H5_INDEX_NAME, H5_ITER_NATIVE, NULL, compare_link, to,
                              H5P_DEFAULT) > 0;
}

static herr_t note_name(hid_t dataset, unsigned axis, hid_t scale, void *ctx)
{
    (void)dataset, (void)axis;
    found *to = ctx;
    char path[512] = "";
    /* the scale's own word where it names a dataset */
    if (H5DSget_scale_name(scale, path, sizeof path) > 0 && path[0] != '/' &&
        strchr(path, ' ') == NULL && H5Lexists(scale, path, H5P_DEFAULT) > 0) {
        snprintf(to->name, to->size, "%s", path);
        return 1;
    }
    if (name_in_root(scale, to)) return 1;
    path[0] = '\0'; /* this visits every object */
    if (H5Iget_name(scale, path, sizeof path) < 0) return -1;
    snprintf(to->name, to->size, "%s", path[0] == '/' ? path + 1 : path);
    return 1;
}

ats_code ats_h5_scale_name(const ats_h5_dataset *dataset, int axis, char *out, size_t size,
                           ats_err *err)
{
    int at = 0;
    found to = {.name = out, .size = size};
    out[0] = '\0';
    if (H5DSget_num_scales(dataset->id, (unsigned)axis) <= 0) return ATS_OK;
    if (H5DSiterate_scales(dataset->id, (unsigned)axis, &at, note_name, &to) >= 0) return ATS_OK;
    return ats_h5_error(err, ATS_E_INPUT, dataset->file, dataset->name,
                        "the scale of axis %d cannot be read", axis);
}

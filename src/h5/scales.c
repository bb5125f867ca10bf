#include "h5/scales.h"

#include <hdf5_hl.h>
#include <stdio.h>
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

ats_code ats_h5_scale_attach(const ats_h5_dataset *dataset, int axis, const ats_h5_dataset *scale,
                             ats_err *err)
{
    if (H5DSattach_scale(dataset->id, scale->id, (unsigned)axis) >= 0) return ATS_OK;
    return ats_h5_error(err, ATS_E_IO, dataset->file, dataset->name,
                        "axis %d cannot be given the scale %s", axis, scale->name);
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

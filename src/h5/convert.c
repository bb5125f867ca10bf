/* Reading and writing with a change of type: HDF5's conversion on top of the checked box reader. */
#include <stdlib.h>
#include <string.h>

#include "h5/chunks.h"
#include "h5/grid.h"
#include "h5/internal.h"

static int64_t elements_of(const ats_h5_grid *grid)
{
    int64_t elements = 1;
    for (int i = 0; i < grid->rank; i++) elements *= grid->count[i];
    return elements;
}

/* Memory type of the box reader's bytes: the stored type in host byte order. */
static hid_t host_type(const ats_h5_dataset *dataset)
{
    const hid_t native = ats_h5_native(dataset->type);
    return native >= 0 ? H5Tcopy(native) : ats_h5_stored_type(dataset->type);
}

static hid_t wanted_type(ats_h5_type type)
{
    const hid_t native = ats_h5_native(type);
    return native >= 0 ? H5Tcopy(native) : ats_h5_stored_type(type);
}

static ats_code convert(const ats_h5_dataset *dataset, hid_t from, hid_t to, int64_t elements,
                        void *buffer, ats_err *err)
{
    if (from >= 0 && to >= 0 &&
        H5Tconvert(from, to, (size_t)elements, buffer, NULL, H5P_DEFAULT) >= 0)
        return ATS_OK;
    return ats_h5_error(err, ATS_E_INPUT, dataset->file, dataset->name, "cannot be converted");
}

ats_code ats_h5_read(const ats_h5_dataset *dataset, const int64_t *start, const int64_t *count,
                     ats_h5_type type, void *out, ats_err *err)
{
    if (dataset->type == type) return ats_h5_read_box(dataset, start, count, true, out, err);
    ats_h5_grid grid;
    void *buffer = NULL;
    hid_t from = -1, to = -1;
    ats_code rc;
    ATS_TRY(ats_h5_grid_make(dataset, start, count, &grid, err));
    const size_t elements = (size_t)elements_of(&grid), wide = ats_h5_type_size(type);
    ATS_TRY(ats_h5_malloc(elements * (wide > dataset->size ? wide : dataset->size), &buffer, err));
    ATS_TRY(ats_h5_read_box(dataset, start, count, true, buffer, err));
    from = host_type(dataset);
    to = wanted_type(type);
    ATS_TRY(convert(dataset, from, to, (int64_t)elements, buffer, err));
    if (elements > 0) memcpy(out, buffer, elements * wide);
out:
    free(buffer);
    if (from >= 0) H5Tclose(from);
    if (to >= 0) H5Tclose(to);
    return rc;
}

ats_code ats_h5_write(const ats_h5_dataset *dataset, const int64_t *start, const int64_t *count,
                      ats_h5_type type, const void *data, ats_err *err)
{
    if (dataset->type == type) return ats_h5_write_box(dataset, start, count, data, err);
    ats_h5_grid grid;
    void *buffer = NULL;
    hid_t from = -1, to = -1;
    ats_code rc;
    ATS_TRY(ats_h5_grid_make(dataset, start, count, &grid, err));
    const size_t elements = (size_t)elements_of(&grid), given = ats_h5_type_size(type);
    ATS_TRY(
        ats_h5_malloc(elements * (given > dataset->size ? given : dataset->size), &buffer, err));
    if (elements > 0) memcpy(buffer, data, elements * given);
    from = wanted_type(type);
    to = host_type(dataset);
    ATS_TRY(convert(dataset, from, to, (int64_t)elements, buffer, err));
    rc = ats_h5_write_box(dataset, start, count, buffer, err);
out:
    free(buffer);
    if (from >= 0) H5Tclose(from);
    if (to >= 0) H5Tclose(to);
    return rc;
}

#include "h5/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "h5/chunks.h"
#include "h5/internal.h"

static ats_code describe_type(ats_h5_dataset *dataset, ats_err *err)
{
    const hid_t type = H5Dget_type(dataset->id);
    if (type < 0)
        return ats_h5_error(err, ATS_E_INPUT, dataset->file, dataset->name, "has no readable type");
    dataset->type = ats_h5_classify(type);
    dataset->size = H5Tget_size(type);
    dataset->little_endian = H5Tget_order(type) != H5T_ORDER_BE;
    H5Tclose(type);
    if (dataset->size == 0)
        return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                           "its elements have no size");
    return ATS_OK;
}

/* Extents, their product, and that the product in bytes fits 63 bits. */
static ats_code describe_shape(ats_h5_dataset *dataset, ats_err *err)
{
    hsize_t dims[H5S_MAX_RANK];
    const hid_t space = H5Dget_space(dataset->id);
    const int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
    const bool known =
        rank >= 0 && rank <= H5S_MAX_RANK && H5Sget_simple_extent_dims(space, dims, NULL) == rank;
    const H5S_class_t kind = space < 0 ? H5S_NO_CLASS : H5Sget_simple_extent_type(space);
    if (space >= 0) H5Sclose(space);
    if (!known || kind == H5S_NO_CLASS || kind == H5S_NULL)
        return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                           "its shape cannot be read or is empty (a null dataspace)");
    if (rank > ATS_H5_MAX_RANK)
        return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                           "has rank %d; at most %d is read", rank, ATS_H5_MAX_RANK);
    dataset->rank = rank;
    int64_t count = 1, bytes = 0;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        dataset->extent[i] = (int64_t)dims[i];
        if (dims[i] > (hsize_t)INT64_MAX ||
            (dims[i] > 0 && __builtin_mul_overflow(count, (int64_t)dims[i], &count)))
            return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                               "its extents multiply past 2^63 elements");
        if (dims[i] == 0) empty = true;
    }
    if (__builtin_mul_overflow(count, (int64_t)dataset->size, &bytes))
        return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                           "its elements take more than 2^63 bytes");
    dataset->count = empty ? 0 : count;
    return ATS_OK;
}

static ats_code describe_filters(ats_h5_dataset *dataset, hid_t creation, ats_err *err)
{
    const int n = H5Pget_nfilters(creation);
    if (n < 0 || n > ATS_H5_MAX_FILTERS)
        return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                           "has %d filters; at most %d are read", n, ATS_H5_MAX_FILTERS);
    dataset->n_filters = n;
    for (int i = 0; i < n; i++) {
        unsigned flags, config, values[4] = {0};
        size_t n_values = 4;
        char name[64] = "";
        const int id = H5Pget_filter2(creation, (unsigned)i, &flags, &n_values, values,
                                      sizeof name - 1, name, &config);
        if (id < 0)
            return ats_h5_error(err, ATS_E_INPUT, dataset->file, dataset->name,
                                "filter %d cannot be read", i);
        dataset->filter[i] = id;
        if (id == ATS_H5_SHUFFLE && dataset->type < ATS_H5_TEXT &&
            (n_values < 1 || values[0] != dataset->size))
            return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                               "its shuffle filter is for elements of %u bytes, the elements have "
                               "%zu; the file is damaged",
                               values[0], dataset->size);
        if (id == ATS_H5_DEFLATE || id == ATS_H5_ZSTD) dataset->level = (int)values[0];
        if (H5Zfilter_avail(id) <= 0)
            return ats_h5_fail(err, ATS_E_UNSUPPORTED, dataset->file, dataset->name,
                               "was compressed with filter %d (%s), which is not installed; point "
                               "HDF5_PLUGIN_PATH at its plugin or rewrite the dataset with zstd "
                               "(32015) or gzip",
                               id, name[0] != '\0' ? name : "no name stored");
    }
    return ATS_OK;
}

static ats_code describe_chunks(ats_h5_dataset *dataset, hid_t creation, ats_err *err)
{
    hsize_t dims[H5S_MAX_RANK];
    if (H5Pget_chunk(creation, H5S_MAX_RANK, dims) != dataset->rank)
        return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                           "its chunks have another rank than the dataset");
    int64_t bytes = (int64_t)dataset->size;
    for (int i = 0; i < dataset->rank; i++) {
        if (dims[i] == 0 || dims[i] > UINT32_MAX ||
            __builtin_mul_overflow(bytes, (int64_t)dims[i], &bytes) || bytes > UINT32_MAX)
            return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                               "its chunk shape is empty or over 4 GiB");
        dataset->chunk[i] = (int64_t)dims[i];
    }
    dataset->chunked = true;
    return ATS_OK;
}

static ats_code describe_layout(ats_h5_dataset *dataset, hid_t creation, ats_err *err)
{
    const H5D_layout_t layout = H5Pget_layout(creation);
    if (layout == H5D_VIRTUAL)
        return ats_h5_fail(err, ATS_E_UNSUPPORTED, dataset->file, dataset->name,
                           "is a virtual dataset (its numbers are in other files), which is never "
                           "followed; copy it into this file");
    if (layout == H5D_CONTIGUOUS && H5Pget_external_count(creation) > 0)
        return ats_h5_fail(err, ATS_E_UNSUPPORTED, dataset->file, dataset->name,
                           "keeps its numbers in an external file, which is never read; copy it "
                           "into this file");
    if (layout != H5D_CONTIGUOUS && layout != H5D_COMPACT && layout != H5D_CHUNKED)
        return ats_h5_error(err, ATS_E_INPUT, dataset->file, dataset->name,
                            "has an unknown storage layout");
    return ATS_OK;
}

static ats_code describe(ats_h5_dataset *dataset, ats_err *err)
{
    ats_code rc;
    const hid_t creation = H5Dget_create_plist(dataset->id);
    if (creation < 0)
        return ats_h5_error(err, ATS_E_INPUT, dataset->file, dataset->name,
                            "its creation properties cannot be read");
    ATS_TRY(describe_layout(dataset, creation, err));
    ATS_TRY(describe_type(dataset, err));
    ATS_TRY(describe_shape(dataset, err));
    if (H5Pget_layout(creation) == H5D_CHUNKED) {
        ATS_TRY(describe_chunks(dataset, creation, err));
        ATS_TRY(describe_filters(dataset, creation, err));
    }
out:
    H5Pclose(creation);
    return rc;
}

ats_code ats_h5_dataset_open(const ats_h5_file *file, const char *name, ats_h5_dataset *out,
                             ats_err *err)
{
    ats_h5_dataset dataset = {.file = file};
    ats_code rc;
    hid_t id = -1;
    rc = ats_h5_object_open(file, name, &id, err);
    if (rc != ATS_OK)
        return ats_h5_exists(file, name)
                   ? rc
                   : ats_h5_fail(err, ATS_E_INPUT, file, name, "is missing (or cannot be reached)");
    dataset.id = id;
    ATS_TRY(ats_h5_strdup(name, &dataset.name, err));
    if (H5Iget_type(id) != H5I_DATASET) {
        rc = ats_h5_fail(err, ATS_E_INPUT, file, name, "is a group, should be a dataset");
        goto out;
    }
    ATS_TRY(describe(&dataset, err));
    *out = dataset;
    return ATS_OK;
out:
    ats_h5_dataset_close(&dataset);
    return rc;
}

void ats_h5_close_dataset(const ats_h5_file *file, hid_t id)
{
    if (H5Oclose(id) < 0 && file->unwritten != NULL) ++*file->unwritten;
}

void ats_h5_dataset_close(ats_h5_dataset *dataset)
{
    if (dataset->id > 0) ats_h5_close_dataset(dataset->file, dataset->id);
    free(dataset->name);
    *dataset = (ats_h5_dataset){.id = 0};
}

static bool set_storage(hid_t creation, const ats_h5_layout *layout, size_t element, hid_t type)
{
    const unsigned order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
    if (H5Pset_attr_creation_order(creation, order) < 0) return false;
    if (H5Pset_obj_track_times(creation, false) < 0) return false;
    if (layout->fill != NULL && H5Pset_fill_value(creation, type, layout->fill) < 0) return false;
    int64_t count = 1;
    for (int i = 0; i < layout->rank; i++) count *= layout->extent[i];
    if (layout->compact && count > 0) return H5Pset_layout(creation, H5D_COMPACT) >= 0;
    if (!layout->chunked || layout->rank == 0 || count == 0) return true;
    int64_t chunk[ATS_H5_MAX_RANK];
    memcpy(chunk, layout->chunk, sizeof chunk);
    if (chunk[0] == 0) ats_h5_chunk_shape(layout->rank, layout->extent, element, chunk);
    const ats_h5_dims dims = ats_h5_to_dims(layout->rank, chunk);
    size_t bytes = element;
    for (int i = 0; i < layout->rank; i++) bytes *= (size_t)chunk[i];
    if (H5Pset_chunk(creation, layout->rank, dims.at) < 0) return false;
    if (layout->shuffle && element > 1 && H5Pset_shuffle(creation) < 0) return false;
    if (layout->compression == ATS_H5_DEFLATE)
        return H5Pset_deflate(creation, (unsigned)layout->level) >= 0;
    const unsigned values[2] = {(unsigned)layout->level, (unsigned)bytes};
    if (layout->compression == ATS_H5_ZSTD)
        return H5Pset_filter(creation, ATS_H5_ZSTD, H5Z_FLAG_MANDATORY, 2, values) >= 0;
    return layout->compression == 0;
}

ats_code ats_h5_dataset_create(const ats_h5_file *file, const char *name,
                               const ats_h5_layout *layout, ats_h5_dataset *out, ats_err *err)
{
    const size_t element = ats_h5_type_size(layout->type);
    const ats_h5_dims dims = ats_h5_to_dims(layout->rank, layout->extent);
    const hid_t type = ats_h5_stored_type(layout->type);
    const hid_t space =
        layout->rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(layout->rank, dims.at, NULL);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    hid_t id = -1;
    if (type > 0 && space > 0 && creation > 0 && set_storage(creation, layout, element, type))
        id = H5Dcreate2(file->id, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    ats_code rc = ATS_OK;
    if (id < 0) rc = ats_h5_error(err, ATS_E_IO, file, name, "the dataset cannot be made");
    if (type > 0) H5Tclose(type);
    if (space > 0) H5Sclose(space);
    if (creation > 0) H5Pclose(creation);
    if (id > 0) ats_h5_close_dataset(file, id);
    return rc != ATS_OK ? rc : ats_h5_dataset_open(file, name, out, err);
}

ats_code ats_h5_save(const ats_h5_file *file, const char *name, ats_h5_type type, int rank,
                     const int64_t *extent, const void *data, ats_err *err)
{
    ats_h5_layout layout = {.type = type, .rank = rank};
    int64_t bytes = (int64_t)ats_h5_type_size(type);
    for (int i = 0; i < rank; i++) {
        layout.extent[i] = extent[i];
        bytes *= extent[i];
    }
    layout.compact = bytes <= ATS_H5_COMPACT;
    ats_h5_dataset dataset = {.id = 0};
    ats_code rc = ats_h5_dataset_create(file, name, &layout, &dataset, err);
    if (rc == ATS_OK) rc = ats_h5_write(&dataset, NULL, NULL, type, data, err);
    ats_h5_dataset_close(&dataset);
    return rc;
}

static void shape_text(int rank, const int64_t *extent, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < rank && used < size; i++) {
        const char *sep = i == 0 ? "[" : ", ";
        int n = extent[i] < 0
                    ? snprintf(out + used, size - used, "%sany", sep)
                    : snprintf(out + used, size - used, "%s%lld", sep, (long long)extent[i]);
        if (n > 0) used += (size_t)n;
    }
    if (used < size) snprintf(out + used, size - used, rank == 0 ? "a scalar" : "]");
}

ats_code ats_h5_expect_shape(const ats_h5_dataset *dataset, int rank, const int64_t *extent,
                             const char *axes, ats_err *err)
{
    bool same = dataset->rank == rank;
    for (int i = 0; same && i < rank; i++) same = extent[i] < 0 || extent[i] == dataset->extent[i];
    if (same) return ATS_OK;
    char got[128], want[128];
    shape_text(dataset->rank, dataset->extent, got, sizeof got);
    shape_text(rank, extent, want, sizeof want);
    return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                       "has shape %s, should be %s: %s", got, want, axes);
}

/* Bytes of memory, so that a small file cannot ask for more than there is. */
static int64_t machine_memory(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (int64_t)pages * (int64_t)page : INT64_MAX;
}

ats_code ats_h5_stored(const ats_h5_dataset *dataset, int64_t *out, ats_err *err)
{
    *out = (int64_t)H5Dget_storage_size(dataset->id);
    if (dataset->file->size == 0 || *out <= dataset->file->size) return ATS_OK;
    return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                       "claims %lld stored bytes in a file of %lld; the file is damaged",
                       (long long)*out, (long long)dataset->file->size);
}

ats_code ats_h5_expect_stored(const ats_h5_dataset *dataset, bool sparse, ats_err *err)
{
    /* The best that zstd can do is 128 KiB of equal bytes in 4 bytes. */
    enum { BEST_RATIO = 32768 };
    const int64_t bytes = dataset->count * (int64_t)dataset->size;
    if (bytes == 0) return ATS_OK;
    if (bytes > machine_memory())
        return ats_h5_fail(err, ATS_E_MEMORY, dataset->file, dataset->name,
                           "needs %lld bytes; this machine has %lld", (long long)bytes,
                           (long long)machine_memory());
    if (sparse && dataset->chunked) return ATS_OK;
    const int64_t ratio = dataset->n_filters > 0 ? BEST_RATIO : 1;
    int64_t stored = 0;
    const ats_code rc = ats_h5_stored(dataset, &stored, err);
    if (rc != ATS_OK) return rc;
    if (stored >= bytes / ratio && stored > 0) return ATS_OK;
    return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                       "should hold %lld bytes, but only %lld are stored; it was never written, "
                       "or the file is damaged",
                       (long long)bytes, (long long)stored);
}

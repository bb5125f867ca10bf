#include <stdlib.h>
#include <string.h>

#include "h5/chunks.h"
#include "h5/grid.h"
#include "h5/heap.h"
#include "h5/internal.h"

/* Strings are fetched in batches so that hostile lengths stop early. */
enum { BATCH = 4096 };

/* HDF5 converts strings in a buffer that it clears for every transfer, 1 MiB unless told, and most
 * of our columns hold few. 0 (H5P_DEFAULT): there is no memory for the list. */
static hid_t transfer_of(int64_t count)
{
    enum { LEAST = 4 << 10, MOST = 1 << 20 };
    const size_t want = (size_t)count * ATS_H5_REFERENCE;
    const hid_t list = count < MOST / ATS_H5_REFERENCE ? H5Pcreate(H5P_DATASET_XFER) : -1;
    if (list < 0) return H5P_DEFAULT;
    (void)H5Pset_buffer(list, want < LEAST ? LEAST : want, NULL, NULL);
    return list;
}

static void transfer_end(hid_t list)
{
    if (list != H5P_DEFAULT) H5Pclose(list);
}

typedef struct source {
    const ats_h5_dataset *dataset;
    hid_t type, file_space;
    bool variable;
    size_t width;  /* bytes of a fixed string */
    int64_t limit; /* bytes of text that the file could hold */
} source;

static ats_code keep_text(const source *from, const char *text, size_t length, int64_t *total,
                          ats_arena *arena, const char **out, ats_err *err)
{
    char *copy = NULL;
    *total += (int64_t)length;
    if (*total > from->limit)
        return ats_h5_fail(err, ATS_E_INPUT, from->dataset->file, from->dataset->name,
                           "holds more text than the file has bytes; the file is damaged");
    ats_code rc = ATS_NEW(arena, (int64_t)length + 1, &copy, err);
    if (rc != ATS_OK) return rc;
    if (length > 0) memcpy(copy, text, length);
    copy[length] = '\0';
    *out = copy;
    return ATS_OK;
}

static ats_code read_batch(const source *from, hid_t memory, void *buffer, int64_t count,
                           int64_t *total, ats_arena *arena, const char **out, ats_err *err)
{
    const ats_h5_dataset *dataset = from->dataset;
    if (H5Dread(dataset->id, from->type, memory, from->file_space, H5P_DEFAULT, buffer) < 0)
        return ats_h5_error(err, ATS_E_INPUT, dataset->file, dataset->name,
                            "its strings cannot be read");
    ats_code rc = ATS_OK;
    for (int64_t i = 0; i < count && rc == ATS_OK; i++) {
        const char *text =
            from->variable ? ((char **)buffer)[i] : (char *)buffer + (size_t)i * from->width;
        if (text == NULL) text = "";
        const size_t length = from->variable ? strlen(text) : strnlen(text, from->width);
        rc = keep_text(from, text, length, total, arena, &out[i], err);
    }
    if (from->variable) H5Dvlen_reclaim(from->type, memory, H5P_DEFAULT, buffer);
    return rc;
}

/* Selects elements [first, first + count) of a row-major dataset of any rank: rank 1 as a box,
 * others whole. */
static bool select_batch(const source *from, int64_t first, int64_t count)
{
    if (from->dataset->rank != 1) return H5Sselect_all(from->file_space) >= 0;
    const hsize_t start = (hsize_t)first, extent = (hsize_t)count;
    return H5Sselect_hyperslab(from->file_space, H5S_SELECT_SET, &start, NULL, &extent, NULL) >= 0;
}

static ats_code read_all(const source *from, ats_arena *arena, const char **out, ats_err *err)
{
    const ats_h5_dataset *dataset = from->dataset;
    const int64_t step = dataset->rank == 1 && dataset->count > BATCH ? BATCH : dataset->count;
    const size_t width = from->variable ? sizeof(char *) : from->width;
    void *buffer = NULL;
    int64_t total = 0;
    ats_code rc;
    ATS_TRY(ats_h5_malloc((size_t)step * width, &buffer, err));
    for (int64_t first = 0; first < dataset->count; first += step) {
        const int64_t left = dataset->count - first, count = left < step ? left : step;
        const hsize_t extent = (hsize_t)count;
        const hid_t memory = H5Screate_simple(1, &extent, NULL);
        if (memory < 0 || !select_batch(from, first, count))
            rc = ats_h5_error(err, ATS_E_INPUT, dataset->file, dataset->name, "cannot be selected");
        else
            rc = read_batch(from, memory, buffer, count, &total, arena, out + first, err);
        if (memory >= 0) H5Sclose(memory);
        if (rc != ATS_OK) goto out;
    }
out:
    free(buffer);
    return rc;
}

/* The memory type: variable strings as char *, fixed ones as they are stored. */
static hid_t memory_type(hid_t stored, bool variable)
{
    if (!variable) return H5Tcopy(stored);
    hid_t type = ats_h5_text_type();
    if (type > 0 && H5Tset_cset(type, H5Tget_cset(stored)) < 0) {
        H5Tclose(type);
        return -1;
    }
    return type;
}

/* Places of a variable-length text in the file, [count, ATS_H5_REFERENCE]. Chunks are decoded here
 * where they can be: HDF5 takes their decoded size on trust. */
static ats_code read_references(const ats_h5_dataset *dataset, uint8_t *out, ats_err *err)
{
    ats_h5_dataset raw = *dataset;
    raw.type = ATS_H5_U8;
    raw.size = ATS_H5_REFERENCE;
    if (dataset->chunked && dataset->filter[0] != ATS_H5_SHUFFLE && ats_h5_pipeline_of(&raw).direct)
        return ats_h5_read_box(&raw, NULL, NULL, false, out, err);
    const hid_t type = ats_h5_reference_type(), transfer = transfer_of(dataset->count);
    ats_code rc = ATS_OK;
    if (type < 0 || H5Dread(dataset->id, type, H5S_ALL, H5S_ALL, transfer, out) < 0)
        rc = ats_h5_error(err, ATS_E_INPUT, dataset->file, dataset->name,
                          "its strings cannot be read");
    transfer_end(transfer);
    if (type >= 0) H5Tclose(type);
    return rc;
}

static ats_code read_from_heaps(const source *from, ats_arena *arena, const char **out,
                                ats_err *err)
{
    const ats_h5_dataset *dataset = from->dataset;
    ats_h5_heaps heaps;
    void *references = NULL;
    int64_t total = 0;
    ats_code rc = ats_h5_heaps_init(dataset->file, &heaps, err);
    if (rc != ATS_OK) return rc;
    ATS_TRY(ats_h5_malloc((size_t)dataset->count * ATS_H5_REFERENCE, &references, err));
    ATS_TRY(read_references(dataset, references, err));
    for (int64_t i = 0; i < dataset->count; i++) {
        const uint8_t *reference = (const uint8_t *)references + i * ATS_H5_REFERENCE;
        const char *text = NULL;
        int64_t length = 0;
        rc = ats_h5_heaps_text(&heaps, reference, &text, &length, err);
        if (rc != ATS_OK) {
            rc = ats_prepend(err, rc, "%s: %s", dataset->file->path, dataset->name);
            goto out;
        }
        ATS_TRY(keep_text(from, text, strnlen(text, (size_t)length), &total, arena, &out[i], err));
    }
out:
    free(references);
    ats_h5_heaps_fini(&heaps);
    return rc;
}

ats_code ats_h5_read_texts(const ats_h5_dataset *dataset, ats_arena *arena, const char *const **out,
                           ats_err *err)
{
    const ats_h5_file *file = dataset->file;
    source from = {.dataset = dataset, .type = -1, .file_space = -1, .width = dataset->size};
    const char **texts = NULL;
    hid_t stored = -1;
    ats_code rc;
    if (dataset->type != ATS_H5_TEXT)
        return ats_h5_fail(err, ATS_E_INPUT, file, dataset->name, "holds %s, should hold text",
                           ats_h5_type_name(dataset->type));
    ATS_TRY(ats_h5_expect_stored(dataset, false, err));
    from.limit = file->size > 0 ? file->size : INT64_MAX;
    if (dataset->n_filters > 0 && from.limit < INT64_MAX / 32768) from.limit *= 32768;
    ATS_TRY(ATS_NEW(arena, dataset->count, &texts, err));
    if (dataset->count > 0) {
        stored = H5Dget_type(dataset->id);
        from.variable = H5Tis_variable_str(stored) > 0;
        from.type = memory_type(stored, from.variable);
        from.file_space = H5Dget_space(dataset->id);
        if (from.type < 0 || from.file_space < 0) {
            rc = ats_h5_error(err, ATS_E_INPUT, file, dataset->name, "its strings cannot be read");
            goto out;
        }
        /* A file that is being written keeps its heaps in HDF5's memory. */
        if (from.variable && file->size > 0)
            ATS_TRY(read_from_heaps(&from, arena, texts, err));
        else
            ATS_TRY(read_all(&from, arena, texts, err));
    }
    *out = texts;
out:
    if (stored >= 0) H5Tclose(stored);
    if (from.type >= 0) H5Tclose(from.type);
    if (from.file_space >= 0) H5Sclose(from.file_space);
    return rc;
}

static hid_t create_texts(const ats_h5_file *file, const char *name, hid_t type, int64_t count)
{
    const unsigned order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
    const hsize_t extent = count < 0 ? 1 : (hsize_t)count;
    const hid_t space = count < 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &extent, NULL);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    hid_t id = -1;
    const bool small = count <= ATS_H5_COMPACT / ATS_H5_REFERENCE && count != 0;
    if (space >= 0 && creation >= 0 && (!small || H5Pset_layout(creation, H5D_COMPACT) >= 0) &&
        H5Pset_attr_creation_order(creation, order) >= 0 &&
        H5Pset_obj_track_times(creation, false) >= 0)
        id = H5Dcreate2(file->id, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    if (space >= 0) H5Sclose(space);
    if (creation >= 0) H5Pclose(creation);
    return id;
}

ats_code ats_h5_write_texts(const ats_h5_file *file, const char *name, const char *const *texts,
                            int64_t count, ats_h5_dataset *out, ats_err *err)
{
    const hid_t type = ats_h5_text_type();
    const hid_t id = type < 0 ? -1 : create_texts(file, name, type, count);
    const hid_t transfer = transfer_of(count < 0 ? 1 : count);
    const bool wanted = texts != NULL && count != 0;
    ats_code rc = ATS_OK;
    if (id < 0 || (wanted && H5Dwrite(id, type, H5S_ALL, H5S_ALL, transfer, texts) < 0))
        rc = ats_h5_error(err, ATS_E_IO, file, name, "the strings cannot be written");
    transfer_end(transfer);
    if (id >= 0) ats_h5_close_dataset(file, id);
    if (type >= 0) H5Tclose(type);
    if (rc != ATS_OK || out == NULL) return rc;
    return ats_h5_dataset_open(file, name, out, err);
}

ats_code ats_h5_put_texts(const ats_h5_dataset *dataset, int64_t first, const char *const *texts,
                          int64_t count, ats_err *err)
{
    const hsize_t start = (hsize_t)first, extent = (hsize_t)count;
    const hid_t type = ats_h5_text_type(), memory = H5Screate_simple(1, &extent, NULL);
    const hid_t space = H5Dget_space(dataset->id), transfer = transfer_of(count);
    ats_code rc = ATS_OK;
    if (type < 0 || memory < 0 || space < 0 ||
        H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &extent, NULL) < 0 ||
        H5Dwrite(dataset->id, type, memory, space, transfer, texts) < 0)
        rc = ats_h5_error(err, ATS_E_IO, dataset->file, dataset->name,
                          "the strings cannot be written; is the disk full?");
    transfer_end(transfer);
    if (type >= 0) H5Tclose(type);
    if (memory >= 0) H5Sclose(memory);
    if (space >= 0) H5Sclose(space);
    return rc;
}

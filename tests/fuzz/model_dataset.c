/* The calls of HDF5 that read datasets, answered from the model. */
#include <stdlib.h>
#include <string.h>

#include "model.h"

static const model_node *dataset_of(hid_t id)
{
    const int node = model_number(id, MODEL_OBJECT);
    if (node < 0 || model.nodes[node].kind != H5I_DATASET) abort();
    return &model.nodes[node];
}

static const model_node *list_of(hid_t id)
{
    const int node = model_number(id, MODEL_LIST);
    if (node < 0) abort();
    return &model.nodes[node];
}

hid_t H5Dget_type(hid_t id) { return model_fails() ? -1 : model_new_type(&dataset_of(id)->type); }

hid_t H5Dget_space(hid_t id)
{
    if (model_fails()) return -1;
    const model_node *node = dataset_of(id);
    return model_new_space(node->space, node->space == H5S_SIMPLE ? node->rank : 0, node->extent);
}

hid_t H5Dget_create_plist(hid_t id)
{
    return model_fails() ? -1 : model_open(MODEL_LIST, model_number(id, MODEL_OBJECT));
}

hsize_t H5Dget_storage_size(hid_t id) { return model_fails() ? 0 : dataset_of(id)->storage; }
H5D_layout_t H5Pget_layout(hid_t id)
{
    return model_fails() ? H5D_LAYOUT_ERROR : list_of(id)->layout;
}
int H5Pget_external_count(hid_t id) { return list_of(id)->external_files; }
int H5Pget_nfilters(hid_t id) { return model_fails() ? -1 : list_of(id)->n_filters; }

int H5Pget_chunk(hid_t id, int rank, hsize_t extent[])
{
    if (model_fails()) return -1;
    const model_node *node = list_of(id);
    for (int i = 0; i < node->chunk_rank && i < rank; i++) extent[i] = node->chunk[i];
    return node->chunk_rank;
}

herr_t H5Pget_chunk_opts(hid_t id, unsigned *options)
{
    *options = list_of(id)->chunk_options;
    return model_fails() ? -1 : 0;
}

H5Z_filter_t H5Pget_filter2(hid_t id, unsigned which, unsigned *flags, size_t *count,
                            unsigned values[], size_t size, char name[], unsigned *config)
{
    if (model_fails()) return -1;
    const model_node *node = list_of(id);
    *flags = *config = 0;
    if (*count > 0) values[0] = node->filter_value[which];
    *count = node->filter_value[which] == 0 ? 0 : 1;
    if (size > 3) memcpy(name, "lzf", 4);
    return node->filter[which];
}

herr_t H5Pget_fill_value(hid_t id, hid_t type, void *out)
{
    (void)id;
    if (model_fails()) return -1;
    memset(out, 0, model_get_type(type)->size);
    return 0;
}

/* Element `at` of the data, repeated from its start where the file claims more than there is. */
static void elements(const model_node *node, hsize_t first, hsize_t count, uint8_t *out)
{
    const size_t size = node->type.size;
    const hsize_t have = size > 0 ? (hsize_t)node->data_size / size : 0;
    for (hsize_t i = 0; i < count; i++)
        if (have > 0)
            memcpy(out + i * size, model.pool + node->data + (size_t)((first + i) % have) * size,
                   size);
        else
            memset(out + i * size, 0x3c, size);
}

herr_t H5Dread(hid_t id, hid_t type, hid_t memory, hid_t file, hid_t transfer, void *out)
{
    (void)transfer;
    if (model_fails()) return -1;
    const model_node *node = dataset_of(id);
    const model_type *to = model_get_type(type);
    if (to == NULL || file < 0 || memory < 0) return -1;
    hsize_t first, skipped;
    const hsize_t count = model_selected(file, node, &first);
    if (memory != H5S_ALL && model_selected(memory, node, &skipped) != count) abort();
    if (count > 0 && node->type.size > ((size_t)1 << 20) / count) return -1;
    if (to->size == node->type.size) {
        elements(node, first, count, out);
        return 0;
    }
    uint8_t *raw = malloc((size_t)count * node->type.size + 1);
    if (raw == NULL) return -1;
    elements(node, first, count, raw);
    const bool good = model_convert(&node->type, to, (size_t)count, raw, out);
    free(raw);
    return good ? 0 : -1;
}

herr_t H5Dvlen_reclaim(hid_t type, hid_t space, hid_t transfer, void *buffer)
{
    (void)type, (void)space, (void)transfer, (void)buffer;
    abort(); /* no file of the model is being written */
}

/* Number of a chunk in row-major order; -1: no such chunk was written. */
static hsize_t chunk_at(const model_node *node, const hsize_t *offset)
{
    hsize_t at = 0;
    for (int i = 0; i < node->rank; i++) {
        if (i >= node->chunk_rank || node->chunk[i] == 0) return HSIZE_UNDEF;
        const hsize_t steps = (node->extent[i] + node->chunk[i] - 1) / node->chunk[i];
        at = at * steps + offset[i] / node->chunk[i];
    }
    return at < node->n_chunks ? at : HSIZE_UNDEF;
}

herr_t H5Dget_num_chunks(hid_t id, hid_t space, hsize_t *count)
{
    (void)space;
    *count = dataset_of(id)->n_chunks;
    return model_fails() ? -1 : 0;
}

herr_t H5Dget_chunk_storage_size(hid_t id, const hsize_t *offset, hsize_t *bytes)
{
    const model_node *node = dataset_of(id);
    if (model_fails() || chunk_at(node, offset) == HSIZE_UNDEF) return -1;
    *bytes = (hsize_t)node->data_size;
    return 0;
}

herr_t H5Dget_chunk_info_by_coord(hid_t id, const hsize_t *offset, unsigned *skipped,
                                  haddr_t *address, hsize_t *bytes)
{
    const model_node *node = dataset_of(id);
    const bool there = chunk_at(node, offset) != HSIZE_UNDEF;
    if (model_fails()) return -1;
    *skipped = node->skipped;
    *address = there ? 64 : HADDR_UNDEF;
    *bytes = there ? (hsize_t)node->data_size : 0;
    return 0;
}

herr_t H5Dget_chunk_info(hid_t id, hid_t space, hsize_t which, hsize_t *offset, unsigned *skipped,
                         haddr_t *address, hsize_t *bytes)
{
    const model_node *node = dataset_of(id);
    (void)space;
    if (model_fails() || which >= node->n_chunks) return -1;
    memset(offset, 0, (size_t)node->rank * sizeof *offset);
    *skipped = node->skipped;
    *address = 64;
    *bytes = (hsize_t)node->data_size;
    return 0;
}

herr_t H5Dread_chunk(hid_t id, hid_t transfer, const hsize_t *offset, uint32_t *skipped, void *out)
{
    const model_node *node = dataset_of(id);
    (void)transfer;
    if (model_fails() || chunk_at(node, offset) == HSIZE_UNDEF) return -1;
    *skipped = node->skipped;
    if (node->data_size > 0) memcpy(out, model.pool + node->data, (size_t)node->data_size);
    return 0;
}

#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "memory_file.h"

model_state model;

enum { HEAP = 48 /* place of the heap in the image */ };

static unsigned hash_of(const char *path)
{
    unsigned hash = 2166136261u;
    for (; *path != '\0'; path++) hash = (hash ^ (unsigned char)*path) * 16777619u;
    return hash % MODEL_TABLE;
}

static void enter(int node)
{
    unsigned at = hash_of(model.nodes[node].path);
    while (model.table[at] >= 0) at = (at + 1) % MODEL_TABLE;
    model.table[at] = (int16_t)node;
}

void model_rehash(void)
{
    memset(model.table, 0xff, sizeof model.table);
    for (int i = 0; i < model.n_nodes; i++)
        if (model.nodes[i].path[0] != '\0') enter(i);
}

int model_find(const char *path)
{
    for (unsigned at = hash_of(path); model.table[at] >= 0; at = (at + 1) % MODEL_TABLE)
        if (strcmp(model.nodes[model.table[at]].path, path) == 0) return model.table[at];
    return -1;
}

int model_find_attr(int node, const char *name)
{
    for (int i = 0; i < model.n_attrs; i++)
        if (model.attrs[i].node == node && strcmp(model.attrs[i].name, name) == 0) return i;
    return -1;
}

int model_pool(const void *data, size_t size)
{
    const size_t at = (size_t)model.pool_size;
    if (size > MODEL_POOL - at) return -1;
    for (size_t i = 0; i < size; i++)
        model.pool[at + i] = data != NULL ? ((const uint8_t *)data)[i] : (uint8_t)(i + 1);
    model.pool_size += (int)size;
    return (int)at;
}

static void put(uint8_t *at, uint64_t value, int width)
{
    for (int i = 0; i < width; i++) at[i] = (uint8_t)(value >> 8 * i);
}

bool model_text(const char *text, size_t size, uint8_t reference[16])
{
    const size_t padded = (size + 7) & ~(size_t)7, start = (size_t)model.image_size;
    if (start + 16 + padded + 256 > MODEL_IMAGE) return false;
    uint8_t *object = model.image + start;
    memset(object, 0, 16 + padded);
    const uint64_t index = (uint64_t)++model.n_texts;
    put(object, index, 2);
    put(object + 2, 1, 2);
    put(object + 8, size, 8);
    if (size > 0) memcpy(object + 16, text, size);
    model.image_size += (int)(16 + padded);
    put(model.image + HEAP + 8, (uint64_t)model.image_size - HEAP, 8);
    put(reference, size, 4);
    put(reference + 4, HEAP, 8);
    put(reference + 12, index, 4);
    return true;
}

void model_begin(void)
{
    memset(&model, 0, sizeof model);
    model.offset_size = 8;
    memcpy(model.image, "\211HDF\r\n\032\n\2\10\10", 11);
    memcpy(model.image + HEAP, "GCOL\1", 5);
    model.image_size = HEAP + 16;
    put(model.image + HEAP + 8, 16, 8);
    model_rehash();
    model_group("/");
}

static model_node *add_node(const char *path)
{
    if (model.n_nodes == MODEL_NODES || strlen(path) >= MODEL_NAME) abort();
    model_node *node = &model.nodes[model.n_nodes++];
    snprintf(node->path, sizeof node->path, "%s", path);
    node->space = H5S_SIMPLE;
    for (int i = 0; i < MODEL_RANK; i++) node->scale[i] = -1;
    enter(model.n_nodes - 1);
    return node;
}

int model_group(const char *path)
{
    add_node(path)->kind = H5I_GROUP;
    return model.n_nodes - 1;
}

int model_dataset(const char *path, model_type_name type, int rank, const hsize_t *extent,
                  const void *data)
{
    model_node *node = add_node(path);
    size_t bytes = model_type_of(type).size;
    node->kind = H5I_DATASET;
    node->type = model_type_of(type);
    node->rank = rank;
    node->space = rank == 0 ? H5S_SCALAR : H5S_SIMPLE;
    node->layout = H5D_CONTIGUOUS;
    for (int i = 0; i < rank; i++) bytes *= node->extent[i] = extent[i];
    node->data = model_pool(data, bytes);
    node->data_size = (int)bytes;
    node->storage = bytes;
    if (node->data < 0) abort();
    return model.n_nodes - 1;
}

int model_texts(const char *path, int count, const char *const *texts)
{
    uint8_t references[16][16];
    const hsize_t extent = (hsize_t)(count < 0 ? 1 : count);
    for (hsize_t i = 0; i < extent; i++)
        if (i == 16 || !model_text(texts[i], strlen(texts[i]), references[i])) abort();
    return model_dataset(path, MODEL_TEXT, count < 0 ? 0 : 1, &extent, references);
}

static model_attr *add_attr(const char *path, const char *name, model_type type, const void *data)
{
    if (model.n_attrs == MODEL_ATTRS) abort();
    model_attr *attr = &model.attrs[model.n_attrs++];
    attr->node = model_find(path);
    snprintf(attr->name, sizeof attr->name, "%s", name);
    attr->type = type;
    attr->space = H5S_SCALAR;
    attr->count = 1;
    attr->data = model_pool(data, type.size);
    attr->data_size = (int)type.size;
    if (attr->node < 0 || attr->data < 0) abort();
    return attr;
}

void model_attr_i64(const char *path, const char *name, int64_t value)
{
    add_attr(path, name, model_type_of(MODEL_I64), &value);
}

void model_attr_f64(const char *path, const char *name, double value)
{
    add_attr(path, name, model_type_of(MODEL_F64), &value);
}

void model_attr_text(const char *path, const char *name, const char *text, bool variable)
{
    uint8_t reference[16];
    model_type type = model_type_of(variable ? MODEL_TEXT : MODEL_FIXED);
    if (variable && !model_text(text, strlen(text), reference)) abort();
    if (!variable) type.size = strlen(text) + 1;
    add_attr(path, name, type, variable ? (const void *)reference : text);
}

void model_compress(int which, const hsize_t *chunk, bool shuffle)
{
    model_node *node = &model.nodes[which];
    uint8_t plain[4096] = {0}, planes[4096], stored[8192];
    const size_t size = node->type.size;
    size_t count = 1;
    for (int i = 0; i < node->rank; i++) count *= node->chunk[i] = chunk[i];
    if (count * size > sizeof plain) abort();
    memcpy(plain, model.pool + node->data,
           (size_t)node->data_size < count * size ? (size_t)node->data_size : count * size);
    for (size_t i = 0; i < count; i++)
        for (size_t b = 0; b < size; b++) planes[b * count + i] = plain[i * size + b];
    const size_t bytes =
        ZSTD_compress(stored, sizeof stored, shuffle ? planes : plain, count * size, 1);
    node->data = model_pool(stored, bytes);
    node->data_size = (int)bytes;
    if (ZSTD_isError(bytes) || node->data < 0) abort();
    node->layout = H5D_CHUNKED;
    node->chunk_rank = node->rank;
    node->n_chunks = 1;
    for (int i = 0; i < node->rank; i++)
        node->n_chunks *= (node->extent[i] + chunk[i] - 1) / chunk[i];
    node->storage = bytes * node->n_chunks;
    if (shuffle) {
        node->filter[0] = 2;
        node->filter_value[0] = (unsigned)size;
    }
    node->n_filters = shuffle ? 2 : 1;
    node->filter[node->n_filters - 1] = 32015;
}

void model_append(const void *bytes, size_t size)
{
    if (size > (size_t)(MODEL_IMAGE - model.image_size)) return;
    memcpy(model.image + model.image_size, bytes, size);
    model.image_size += (int)size;
}

int model_execute(const uint8_t *data, size_t size, void (*build)(void), void (*run)(void))
{
    static model_state built;
    if (built.n_nodes == 0) {
        model_begin();
        build();
        built = model;
    }
    model = built;
    model_edit(data, size);
    ats_fuzz_memory(model.image, (size_t)model.image_size);
    run();
    if (model_open_handles() != 0) abort();
    model_close_all();
    return 0;
}

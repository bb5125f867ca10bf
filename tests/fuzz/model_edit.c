/* The input's bytes as a list of alterations of the model. */
#include <stdio.h>
#include <string.h>

#include "model.h"

typedef struct cursor {
    const uint8_t *at, *end;
} cursor;

static unsigned byte(cursor *c) { return c->at < c->end ? *c->at++ : 0; }
static unsigned two(cursor *c)
{
    const unsigned low = byte(c);
    return low | byte(c) << 8;
}

/* A number worth trying, or a small one. */
static uint64_t number(cursor *c)
{
    static const uint64_t known[] = {0,
                                     1,
                                     2,
                                     3,
                                     4,
                                     7,
                                     8,
                                     255,
                                     1 << 16,
                                     0x7fffffff,
                                     0x80000000,
                                     0xffffffff,
                                     1ULL << 32,
                                     1ULL << 52,
                                     1ULL << 62,
                                     INT64_MAX,
                                     1ULL << 63,
                                     UINT64_MAX,
                                     UINT64_MAX - 1,
                                     1 << 20,
                                     0x7ff0000000000000,
                                     0x7ff8000000000000,
                                     0x3f800000,
                                     0x7f800000,
                                     0x7fc00000,
                                     0xff800000,
                                     0xfff0000000000000,
                                     0x3ff0000000000000,
                                     0x43e0000000000000};
    const unsigned which = byte(c);
    const unsigned n = sizeof known / sizeof *known;
    if (which < n) return known[which];
    return which < 64 ? two(c) : which - 64;
}

static model_node *pick_node(cursor *c) { return &model.nodes[byte(c) % (unsigned)model.n_nodes]; }

static model_attr *pick_attr(cursor *c)
{
    static model_attr none;
    return model.n_attrs > 0 ? &model.attrs[byte(c) % (unsigned)model.n_attrs] : &none;
}

static model_type pick_type(cursor *c)
{
    model_type type = model_type_of((model_type_name)(byte(c) % MODEL_TYPES));
    if (type.kind == H5T_STRING && !type.variable && type.size == 8) type.size = number(c);
    return type;
}

/* Overwrites some bytes of what lies at [at, at + size) of the pool. */
static void patch(cursor *c, int at, int size)
{
    const unsigned place = two(c), width = 1u << byte(c) % 4;
    const uint64_t value = number(c);
    if (at < 0 || size <= 0) return;
    for (unsigned i = 0; i < width; i++)
        model.pool[at + (int)((place * width + i) % (unsigned)size)] = (uint8_t)(value >> 8 * i);
}

/* Raw bytes of the input, as many as the next byte says. */
static size_t raw(cursor *c, const uint8_t **out)
{
    size_t size = byte(c);
    if (size > (size_t)(c->end - c->at)) size = (size_t)(c->end - c->at);
    *out = c->at;
    c->at += size;
    return size;
}

static void edit_data(cursor *c, int *data, int *data_size, const model_type *type)
{
    const uint8_t *bytes;
    uint8_t reference[16];
    const size_t size = raw(c, &bytes);
    int at;
    if (type->variable) {
        if (!model_text((const char *)bytes, size, reference)) return;
        at = model_pool(reference, sizeof reference);
        if (at >= 0) *data_size = sizeof reference;
    } else {
        at = model_pool(bytes, size);
        if (at >= 0) *data_size = (int)size;
    }
    if (at >= 0) *data = at;
}

static const char *const names[] = {"q",
                                    "k",
                                    "v",
                                    "keep",
                                    "bias",
                                    "out",
                                    "lse",
                                    "mask",
                                    "sink",
                                    "inv_freq",
                                    "w_o",
                                    "alibi_slope",
                                    "segment",
                                    "token_text",
                                    "base_index",
                                    "tokens",
                                    "position",
                                    "spans",
                                    "probes",
                                    "0",
                                    "1",
                                    "2",
                                    "7",
                                    "007",
                                    "x",
                                    "name",
                                    "role",
                                    "start",
                                    "stop",
                                    "index",
                                    "layers",
                                    "samples",
                                    "readouts",
                                    "names",
                                    "direction",
                                    "variant_of",
                                    "cluster",
                                    "id",
                                    "storage_dtype",
                                    "_FillValue",
                                    "complete",
                                    "partial",
                                    "format",
                                    "format_version",
                                    "status",
                                    "gates",
                                    "suite",
                                    "variant",
                                    "span"};

static const char *pick_name(cursor *c) { return names[byte(c) % (sizeof names / sizeof *names)]; }

static bool inside(const char *path, const char *group)
{
    const size_t length = strlen(group);
    return strncmp(path, group, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static void delete_below(const char *group)
{
    char path[MODEL_NAME];
    snprintf(path, sizeof path, "%s", group);
    for (int i = 1; i < model.n_nodes; i++)
        if (inside(model.nodes[i].path, path)) model.nodes[i].path[0] = '\0';
}

static void copy_node(int from, const char *path)
{
    if (model.n_nodes == MODEL_NODES || model_find(path) >= 0) return;
    const int to = model.n_nodes++, n_attrs = model.n_attrs;
    model.nodes[to] = model.nodes[from];
    snprintf(model.nodes[to].path, MODEL_NAME, "%s", path);
    for (int i = 0; i < n_attrs && model.n_attrs < MODEL_ATTRS; i++) {
        if (model.attrs[i].node != from) continue;
        model.attrs[model.n_attrs] = model.attrs[i];
        model.attrs[model.n_attrs++].node = to;
    }
}

/* A node, and with `deep` what lies below it, at another place. */
static void copy_to(cursor *c, bool deep)
{
    const int from = (int)(pick_node(c) - model.nodes), n_nodes = model.n_nodes;
    const model_node *parent = pick_node(c);
    char source[MODEL_NAME], path[2 * MODEL_NAME], whole[2 * MODEL_NAME];
    snprintf(source, sizeof source, "%s", model.nodes[from].path);
    const int length = snprintf(path, sizeof path, "%s/%s",
                                parent == model.nodes ? "" : parent->path, pick_name(c));
    if (length >= MODEL_NAME || from == 0) return;
    copy_node(from, path);
    for (int i = 1; deep && i < n_nodes; i++) {
        const size_t skip = strlen(source);
        if (i == from || skip == 0 || !inside(model.nodes[i].path, source)) continue;
        if (snprintf(whole, sizeof whole, "%s%s", path, model.nodes[i].path + skip) < MODEL_NAME)
            copy_node(i, whole);
    }
    model_rehash();
}

static void edit_filter(cursor *c)
{
    static const H5Z_filter_t known[] = {1, 2, 3, 32015, 4, 6, 32000, 305};
    model_node *node = pick_node(c);
    const unsigned which = byte(c) % MODEL_FILTERS;
    node->filter[which] = known[byte(c) % (sizeof known / sizeof *known)];
    node->filter_value[which] = (unsigned)number(c);
}

static void edit_storage(cursor *c)
{
    static const H5D_layout_t layouts[] = {H5D_COMPACT, H5D_CONTIGUOUS, H5D_CHUNKED, H5D_VIRTUAL};
    model_node *node = pick_node(c);
    switch (byte(c) % 8) {
    case 0:
        node->layout = layouts[byte(c) % 4];
        break;
    case 1:
        node->external_files = (int)(byte(c) % 3);
        break;
    case 2:
        node->storage = number(c);
        break;
    case 3:
        node->n_chunks = number(c) % 4096;
        break;
    case 4:
        node->chunk_options = byte(c) % 4;
        node->skipped = byte(c) % 8;
        break;
    case 5:
        node->chunk_rank = (int)(byte(c) % MODEL_RANK);
        break;
    case 6:
        node->chunk[byte(c) % MODEL_RANK] = number(c);
        break;
    default:
        node->n_filters = (int)(byte(c) % (MODEL_FILTERS + 1));
        node->old_header = (byte(c) & 1) != 0;
    }
}

static void edit_scale(cursor *c)
{
    model_node *node = pick_node(c);
    const unsigned axis = byte(c) % MODEL_RANK, scale = byte(c);
    const uint8_t *bytes;
    node->scale[axis] = scale == 255 ? -1 : (int)(scale % (unsigned)model.n_nodes);
    node->is_scale = (scale & 1) != 0;
    if (node->scale[axis] >= 0 && (byte(c) & 1) != 0) {
        const size_t size = raw(c, &bytes) % (MODEL_NAME - 1);
        char *name = model.nodes[node->scale[axis]].scale_name;
        memcpy(name, bytes, size);
        name[size] = '\0';
    }
}

static void edit_attr(cursor *c)
{
    model_attr *attr = pick_attr(c), *more;
    switch (byte(c) % 7) {
    case 0:
        attr->node = -1;
        break;
    case 1:
        attr->type = pick_type(c);
        break;
    case 2:
        patch(c, attr->data, attr->data_size);
        break;
    case 3:
        edit_data(c, &attr->data, &attr->data_size, &attr->type);
        if (attr->type.kind == H5T_STRING && !attr->type.variable)
            attr->type.size = (size_t)attr->data_size;
        break;
    case 4:
        attr->count = (hssize_t)number(c);
        attr->space = attr->count == 1 ? H5S_SCALAR : H5S_SIMPLE;
        break;
    case 5:
        attr->space = (H5S_class_t)(byte(c) % 3);
        attr->count = 1;
        break;
    default:
        if (model.n_attrs == MODEL_ATTRS) break;
        more = &model.attrs[model.n_attrs++];
        *more = *attr;
        more->node = (int)(pick_node(c) - model.nodes);
        snprintf(more->name, sizeof more->name, "%s", pick_name(c));
    }
}

static void edit_node(cursor *c)
{
    static const int kinds[] = {H5I_GROUP, H5I_DATASET, H5I_DATATYPE};
    model_node *node;
    char path[MODEL_NAME];
    switch (byte(c) % 9) {
    case 0:
        node = pick_node(c);
        snprintf(path, sizeof path, "%s", node->path);
        if (node != model.nodes && path[0] != '\0') delete_below(path);
        model_rehash();
        break;
    case 1:
        node = pick_node(c);
        if (node != model.nodes) node->kind = kinds[byte(c) % 3];
        break;
    case 2:
        pick_node(c)->type = pick_type(c);
        break;
    case 3:
        node = pick_node(c);
        node->extent[byte(c) % MODEL_RANK] = number(c);
        break;
    case 4:
        node = pick_node(c);
        node->rank = (int)(byte(c) % MODEL_RANK);
        node->space = (H5S_class_t)(byte(c) % 3);
        if (node->space == H5S_SCALAR) node->rank = 0;
        break;
    case 5:
        node = pick_node(c);
        patch(c, node->data, node->data_size);
        break;
    case 6:
        node = pick_node(c);
        edit_data(c, &node->data, &node->data_size, &node->type);
        break;
    case 7:
        node = pick_node(c);
        if (node != model.nodes) node->external = (byte(c) & 1) != 0;
        break;
    default:
        /* extent and bytes together, so that what is read is as long as it claims */
        node = pick_node(c);
        node->extent[0] = byte(c) % 40;
        node->storage = node->extent[0] * node->type.size;
        for (int i = 1; i < node->rank; i++) node->storage *= node->extent[i];
    }
}

void model_edit(const uint8_t *data, size_t size)
{
    cursor c = {data, data + size};
    while (c.at < c.end) {
        switch (byte(&c) % 10) {
        case 0:
        case 1:
        case 2:
            edit_node(&c);
            break;
        case 3:
        case 4:
            edit_attr(&c);
            break;
        case 5:
            edit_storage(&c);
            break;
        case 6:
            edit_filter(&c);
            break;
        case 7:
            copy_to(&c, (byte(&c) & 1) != 0);
            break;
        case 8:
            edit_scale(&c);
            break;
        default:
            if ((byte(&c) & 3) != 0) {
                const unsigned at = two(&c) % (unsigned)model.image_size;
                model.image[at] = (uint8_t)byte(&c);
            } else {
                model.countdown = (int64_t)two(&c) % 2000;
                model.failure = (int)(byte(&c) % MODEL_FAULTS);
                if (byte(&c) == 4) model.offset_size = 4;
            }
        }
    }
}

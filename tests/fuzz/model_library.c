/* The calls of HDF5 that read, answered from the model: files, links, objects, attributes, errors.
 */
#include <hdf5_hl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory_file.h"
#include "model.h"

static int fault;

void model_fault(int what) { fault = what; }

bool model_fails(void)
{
    fault = MODEL_FAULT_PLAIN;
    if (model.countdown == 0 || --model.countdown > 0) return false;
    fault = model.failure;
    return true;
}

herr_t H5open(void) { return 0; }
herr_t H5dont_atexit(void) { return 0; }

herr_t H5free_memory(void *memory)
{
    free(memory);
    return 0;
}

herr_t H5Eset_auto2(hid_t stack, H5E_auto2_t function, void *ctx)
{
    (void)stack, (void)function, (void)ctx;
    return 0;
}

herr_t H5Eclear2(hid_t stack)
{
    (void)stack;
    return 0;
}

herr_t H5Ewalk2(hid_t stack, H5E_direction_t direction, H5E_walk2_t function, void *ctx)
{
    static const struct {
        const char *where, *what;
    } words[MODEL_FAULTS] = {
        {"H5F__super_read", "read failed: time = now, error message = 'Input/output error', total"},
        {"H5L__extern_traverse", "unable to open external file"},
        {"H5Z_pipeline", "required filter 'lzf' is not registered"},
        {"H5FD_sec2_lock", "unable to lock file, errno = 11"}};
    const H5E_error2_t record = {.func_name = words[fault].where, .desc = words[fault].what};
    (void)stack, (void)direction;
    return function(0, &record, ctx);
}

herr_t H5Zregister(const void *filter)
{
    (void)filter;
    return model_fails() ? -1 : 0;
}

htri_t H5Zfilter_avail(H5Z_filter_t id) { return (id >= 1 && id <= 6) || id == 32015; }

hid_t H5Pcreate(hid_t kind)
{
    (void)kind;
    return model_fails() ? -1 : model_open(MODEL_LIST, 0);
}

herr_t H5Pclose(hid_t id) { return model_close(id, MODEL_LIST); }

herr_t H5Pset_elink_cb(hid_t id, H5L_elink_traverse_t function, void *ctx)
{
    (void)id, (void)function, (void)ctx;
    return model_fails() ? -1 : 0;
}

herr_t H5Pset_buffer(hid_t id, size_t size, void *conversion, void *background)
{
    (void)id, (void)size, (void)conversion, (void)background;
    return model_fails() ? -1 : 0;
}

herr_t H5Pget_mdc_config(hid_t id, H5AC_cache_config_t *config)
{
    (void)id, (void)config;
    return model_fails() ? -1 : 0;
}

herr_t H5Pset_mdc_config(hid_t id, H5AC_cache_config_t *config)
{
    (void)id, (void)config;
    return model_fails() ? -1 : 0;
}

herr_t H5Pget_userblock(hid_t id, hsize_t *size)
{
    (void)id;
    *size = 0;
    return model_fails() ? -1 : 0;
}

herr_t H5Pget_sizes(hid_t id, size_t *offset, size_t *length)
{
    (void)id;
    *offset = *length = model.offset_size;
    return model_fails() ? -1 : 0;
}

hid_t H5Fopen(const char *name, unsigned flags, hid_t access)
{
    (void)flags, (void)access;
    if (strcmp(name, ATS_FUZZ_PATH) != 0) abort();
    return model_fails() ? -1 : model_open(MODEL_FILE, 0);
}

herr_t H5Fclose(hid_t id) { return model_close(id, MODEL_FILE); }
hid_t H5Fget_create_plist(hid_t id)
{
    (void)id;
    return model_fails() ? -1 : model_open(MODEL_LIST, 0);
}

herr_t H5Fget_vfd_handle(hid_t id, hid_t access, void **handle)
{
    static int descriptor = ATS_FUZZ_FD;
    (void)id, (void)access;
    *handle = &descriptor;
    return model_fails() ? -1 : 0;
}

/* The node that a path names from a handle; behind an external link: -1, and the report says so. */
static int node_at(hid_t from, const char *path)
{
    char whole[256];
    const int base = model_number(from, MODEL_OBJECT);
    if (strcmp(path, ".") == 0) return base >= 0 ? base : 0;
    if (path[0] != '/' && base > 0)
        snprintf(whole, sizeof whole, "%s/%s", model.nodes[base].path, path);
    else
        snprintf(whole, sizeof whole, "%s%s", path[0] == '/' ? "" : "/", path);
    /* each parent must be a group */
    for (char *slash = strchr(whole + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        const int parent = model_find(whole);
        if (parent < 0 || model.nodes[parent].kind != H5I_GROUP || model.nodes[parent].external) {
            if (parent >= 0 && model.nodes[parent].external) fault = MODEL_FAULT_EXTERNAL;
            return -1;
        }
        *slash = '/';
    }
    return model_find(whole);
}

htri_t H5Lexists(hid_t at, const char *name, hid_t access)
{
    (void)access;
    return model_fails() ? -1 : node_at(at, name) >= 0;
}

hid_t H5Oopen(hid_t at, const char *name, hid_t access)
{
    (void)access;
    if (model_fails()) return -1;
    const int node = node_at(at, name);
    if (node < 0) return -1;
    if (model.nodes[node].external) {
        fault = MODEL_FAULT_EXTERNAL;
        return -1;
    }
    return model_open(MODEL_OBJECT, node);
}

herr_t H5Oclose(hid_t id) { return model_close(id, MODEL_OBJECT); }

H5I_type_t H5Iget_type(hid_t id)
{
    const int node = model_number(id, MODEL_OBJECT);
    return node < 0 ? H5I_BADID : (H5I_type_t)model.nodes[node].kind;
}

ssize_t H5Iget_name(hid_t id, char *out, size_t size)
{
    const int node = model_number(id, MODEL_OBJECT);
    if (model_fails() || node < 0) return -1;
    return snprintf(out, size, "%s", model.nodes[node].path);
}

herr_t H5Oget_info2(hid_t id, H5O_info_t *info, unsigned fields)
{
    const int node = model_number(id, MODEL_OBJECT);
    (void)fields;
    if (model_fails() || node < 0) return -1;
    memset(info, 0, sizeof *info);
    info->addr = (haddr_t)node;
    info->hdr.version = model.nodes[node].old_header ? 1 : 2;
    return 0;
}

/* Is it a child of that group? Its name then. */
static const char *child_of(int group, const model_node *node)
{
    const size_t length = group == 0 ? 0 : strlen(model.nodes[group].path);
    if (node->path[0] == '\0' || node == &model.nodes[0]) return NULL;
    if (strncmp(node->path, model.nodes[group].path, length) != 0 || node->path[length] != '/')
        return NULL;
    return strchr(node->path + length + 1, '/') == NULL ? node->path + length + 1 : NULL;
}

static herr_t iterate(hid_t id, int group, H5L_iterate_t function, void *ctx)
{
    for (int i = 0; i < model.n_nodes; i++) {
        const char *name = child_of(group, &model.nodes[i]);
        H5L_info_t info = {.type = model.nodes[i].external ? H5L_TYPE_EXTERNAL : H5L_TYPE_HARD};
        if (name == NULL) continue;
        info.u.address = (haddr_t)i;
        const herr_t status = function(id, name, &info, ctx);
        if (status != 0) return status;
    }
    return 0;
}

herr_t H5Literate(hid_t id, H5_index_t index, H5_iter_order_t order, hsize_t *at,
                  H5L_iterate_t function, void *ctx)
{
    const int node = model_number(id, MODEL_OBJECT);
    (void)index, (void)order, (void)at;
    if (model_fails() || node < 0) return -1;
    return iterate(id, node, function, ctx);
}

herr_t H5Literate_by_name(hid_t id, const char *name, H5_index_t index, H5_iter_order_t order,
                          hsize_t *at, H5L_iterate_t function, void *ctx, hid_t access)
{
    (void)index, (void)order, (void)at, (void)access;
    const int node = node_at(id, name);
    if (model_fails() || node < 0) return -1;
    return iterate(id, node, function, ctx);
}

htri_t H5Aexists_by_name(hid_t at, const char *object, const char *name, hid_t access)
{
    (void)access;
    if (model_fails()) return -1;
    const int node = node_at(at, object);
    return node < 0 || model.nodes[node].external ? -1 : model_find_attr(node, name) >= 0;
}

hid_t H5Aopen_by_name(hid_t at, const char *object, const char *name, hid_t list, hid_t access)
{
    (void)list, (void)access;
    if (model_fails()) return -1;
    const int node = node_at(at, object), attr = node < 0 ? -1 : model_find_attr(node, name);
    return attr < 0 ? -1 : model_open(MODEL_ATTR, attr);
}

herr_t H5Aclose(hid_t id) { return model_close(id, MODEL_ATTR); }

hid_t H5Aget_type(hid_t id)
{
    return model_fails() ? -1 : model_new_type(&model.attrs[model_number(id, MODEL_ATTR)].type);
}

hid_t H5Aget_space(hid_t id)
{
    if (model_fails()) return -1;
    const model_attr *attr = &model.attrs[model_number(id, MODEL_ATTR)];
    const hsize_t extent = (hsize_t)attr->count;
    return model_new_space(attr->space, attr->space == H5S_SIMPLE ? 1 : 0, &extent);
}

herr_t H5Aread(hid_t id, hid_t type, void *out)
{
    if (model_fails()) return -1;
    const model_attr *attr = &model.attrs[model_number(id, MODEL_ATTR)];
    const model_type *to = model_get_type(type);
    static uint8_t value[1 << 12];
    if (to == NULL) return -1;
    if (attr->count != 1) abort(); /* src/h5 reads single values alone */
    if (attr->type.size > sizeof value) {
        memset(out, 'x', to->size);
        return 0;
    }
    for (size_t i = 0; i < attr->type.size; i++)
        value[i] = i < (size_t)attr->data_size ? model.pool[attr->data + (int)i] : 0;
    return model_convert(&attr->type, to, 1, value, out) ? 0 : -1;
}

htri_t H5DSis_scale(hid_t id)
{
    return model_fails() ? -1 : model.nodes[model_number(id, MODEL_OBJECT)].is_scale;
}

int H5DSget_num_scales(hid_t id, unsigned axis)
{
    if (model_fails()) return -1;
    return model.nodes[model_number(id, MODEL_OBJECT)].scale[axis] >= 0;
}

ssize_t H5DSget_scale_name(hid_t id, char *out, size_t size)
{
    if (model_fails()) return -1;
    return snprintf(out, size, "%s", model.nodes[model_number(id, MODEL_OBJECT)].scale_name);
}

herr_t H5DSiterate_scales(hid_t id, unsigned axis, int *at, H5DS_iterate_t function, void *ctx)
{
    (void)at;
    if (model_fails()) return -1;
    const int scale = model.nodes[model_number(id, MODEL_OBJECT)].scale[axis];
    const hid_t open = model_open(MODEL_OBJECT, scale);
    const herr_t status = function(id, axis, open, ctx);
    model_close(open, MODEL_OBJECT);
    return status;
}

hid_t H5P_CLS_DATASET_ACCESS_ID_g = 100, H5P_CLS_DATASET_CREATE_ID_g = 101,
      H5P_CLS_FILE_ACCESS_ID_g = 102, H5P_CLS_FILE_CREATE_ID_g = 103,
      H5P_CLS_GROUP_CREATE_ID_g = 104;

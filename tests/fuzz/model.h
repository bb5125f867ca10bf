/* A file of HDF5 as plain memory, and the calls of the HDF5 library that read it.
 *
 * A target that links model*.c runs this project's own code above HDF5 (src/h5, src/capture,
 * src/report) without the library: its functions are answered from a tree of objects that is built
 * once and altered by the input's bytes (model_edit.c). So all that a file can claim (types,
 * shapes, layouts, filters, attributes, links, failures of the library) comes before that code at
 * memory's speed, past the checksums that stop a fuzzer of bytes. What the library does with
 * damaged bytes is no part of it. Handles are counted: using one that is closed, or leaving one
 * open, aborts. */
#ifndef ATS_TESTS_FUZZ_MODEL_H
#define ATS_TESTS_FUZZ_MODEL_H

#include <hdf5.h>
#include <stdbool.h>

enum {
    MODEL_NODES = 96,
    MODEL_ATTRS = 160,
    MODEL_POOL = 1 << 14,
    MODEL_IMAGE = 1 << 13,
    MODEL_TABLE = 256,
    MODEL_RANK = 10,
    MODEL_NAME = 48,
    MODEL_FILTERS = 10
};

typedef struct model_type {
    H5T_class_t kind;
    size_t size, precision;
    bool big_endian, is_signed, variable;
    size_t sign, exponent_at, exponent, mantissa_at, mantissa, bias;
    int members;
} model_type;

typedef enum model_type_name {
    MODEL_I8,
    MODEL_U8,
    MODEL_I16,
    MODEL_U16,
    MODEL_I32,
    MODEL_U32,
    MODEL_I64,
    MODEL_U64,
    MODEL_F16,
    MODEL_BF16,
    MODEL_F32,
    MODEL_F64,
    MODEL_BOOL,
    MODEL_TEXT,
    MODEL_FIXED, /* 8 bytes */
    MODEL_I32BE,
    MODEL_F32BE,
    MODEL_F64BE,
    MODEL_U16BE,
    MODEL_I24, /* 3 of 4 bytes */
    MODEL_COMPOUND,
    MODEL_ENUM3,
    MODEL_REFERENCE,
    MODEL_F8,
    MODEL_F128,
    MODEL_NOTHING, /* no size */
    MODEL_VLEN,
    MODEL_BITS,
    MODEL_WIDE, /* a fixed text of 2^31 bytes */
    MODEL_TYPES
} model_type_name;

typedef struct model_node {
    char path[MODEL_NAME]; /* "/a/b"; empty: deleted */
    int kind;              /* an H5I_type_t: group, dataset, datatype */
    bool external;         /* behind an external link: seen, never opened */
    bool old_header, is_scale, virtual_layout;
    model_type type;
    H5S_class_t space;
    int rank, chunk_rank;
    hsize_t extent[MODEL_RANK], chunk[MODEL_RANK];
    H5D_layout_t layout;
    int external_files, n_filters;
    H5Z_filter_t filter[MODEL_FILTERS];
    unsigned filter_value[MODEL_FILTERS], chunk_options, skipped;
    hsize_t n_chunks, storage; /* chunks that were written; bytes that are claimed */
    int data, data_size;       /* in the pool: the elements, or each chunk's stored bytes */
    int scale[MODEL_RANK];     /* node; -1: none */
    char scale_name[MODEL_NAME];
} model_node;

typedef struct model_attr {
    int node; /* -1: deleted */
    char name[32];
    model_type type;
    H5S_class_t space;
    hssize_t count;
    int data, data_size;
} model_attr;

typedef struct model_state {
    int n_nodes, n_attrs, n_texts, pool_size, image_size;
    int64_t countdown; /* calls until one fails; 0: none does */
    int failure;       /* what that failure is said to be: model_fault */
    size_t offset_size;
    model_node nodes[MODEL_NODES];
    model_attr attrs[MODEL_ATTRS];
    int16_t table[MODEL_TABLE]; /* hash of path -> node, -1: none */
    uint8_t pool[MODEL_POOL], image[MODEL_IMAGE];
} model_state;

enum {
    MODEL_FAULT_PLAIN,
    MODEL_FAULT_EXTERNAL,
    MODEL_FAULT_FILTER,
    MODEL_FAULT_LOCK,
    MODEL_FAULTS
};

extern model_state model;

/* Building. Data is copied; NULL: bytes 1, 2, 3, ... */
void model_begin(void); /* an empty file with a root */
int model_group(const char *path);
int model_dataset(const char *path, model_type_name type, int rank, const hsize_t *extent,
                  const void *data);
/* Text dataset [count]; count -1: scalar. */
int model_texts(const char *path, int count, const char *const *texts);
void model_attr_i64(const char *path, const char *name, int64_t value);
void model_attr_f64(const char *path, const char *name, double value);
/* variable: in the file's heap; else fixed. */
void model_attr_text(const char *path, const char *name, const char *text, bool variable);
/* The dataset's elements as one chunk of these extents, shuffled and compressed by zstd. */
void model_compress(int node, const hsize_t *chunk, bool shuffle);
/* Bytes behind everything else in the file. */
void model_append(const void *bytes, size_t size);
model_type model_type_of(model_type_name name);
int model_pool(const void *data, size_t size);                         /* its place; -1: full */
bool model_text(const char *text, size_t size, uint8_t reference[16]); /* false: the heap is full */
int model_find(const char *path);                                      /* -1: none */
int model_find_attr(int node, const char *name);
void model_rehash(void);

/* Alters the tree as the bytes say. */
void model_edit(const uint8_t *data, size_t size);

/* A target: `build` makes the tree once, `run` reads ATS_FUZZ_PATH. Returns 0. */
int model_execute(const uint8_t *data, size_t size, void (*build)(void), void (*run)(void));

/* True when this call of the library is the one that fails. */
bool model_fails(void);
void model_fault(int what); /* the next report of an error says so */

enum { MODEL_TYPE, MODEL_SPACE, MODEL_OBJECT, MODEL_ATTR, MODEL_LIST, MODEL_FILE };
/* Handles, each with a number. */
hid_t model_open(int kind, int number);
int model_number(hid_t id, int kind); /* -1: not such a handle; aborts on a closed one */
herr_t model_close(hid_t id, int kind);
int model_open_handles(void);
void model_close_all(void);

/* Types and spaces behind handles; -1: not one. */
hid_t model_new_type(const model_type *type);
const model_type *model_get_type(hid_t id);
hid_t model_new_space(H5S_class_t kind, int rank, const hsize_t *extent);
/* Elements that are selected, and the first of them; for H5S_ALL those of the node. */
hsize_t model_selected(hid_t id, const model_node *node, hsize_t *first);
bool model_convert(const model_type *from, const model_type *to, size_t count, const void *in,
                   void *out);

#endif

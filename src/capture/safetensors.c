/* The safetensors header: 8 bytes of length, JSON, data. Refuses what the format's reference
 * reader refuses (github.com/huggingface/safetensors): every byte of the data belongs to exactly
 * one tensor, in the size that its type and shape say. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "capture/tensor_formats.h"

enum { LENGTH_BYTES = 8, HEADER_MAX = 100000000, SHOWN = 80 };

typedef struct type_row {
    const char *name;
    ats_element element;
    int bits;
} type_row;

static const type_row types[] = {
    {"F16", ATS_ELEMENT_F16, 16},      {"BF16", ATS_ELEMENT_BF16, 16},
    {"F32", ATS_ELEMENT_F32, 32},      {"F64", ATS_ELEMENT_F64, 64},
    {"BOOL", ATS_ELEMENT_BOOL, 8},     {"I8", ATS_ELEMENT_I8, 8},
    {"U8", ATS_ELEMENT_U8, 8},         {"I16", ATS_ELEMENT_I16, 16},
    {"U16", ATS_ELEMENT_U16, 16},      {"I32", ATS_ELEMENT_I32, 32},
    {"U32", ATS_ELEMENT_U32, 32},      {"I64", ATS_ELEMENT_I64, 64},
    {"U64", ATS_ELEMENT_U64, 64},      {"F8_E5M2", ATS_ELEMENT_OTHER, 8},
    {"F8_E4M3", ATS_ELEMENT_OTHER, 8}, {"F8_E8M0", ATS_ELEMENT_OTHER, 8},
    {"F4", ATS_ELEMENT_OTHER, 4},      {"F6_E2M3", ATS_ELEMENT_OTHER, 6},
    {"F6_E3M2", ATS_ELEMENT_OTHER, 6}, {"C64", ATS_ELEMENT_OTHER, 64},
};

typedef struct header {
    const ats_tensor_file *file;
    ats_arena *arena;
    int64_t data;  /* first byte of the data */
    int64_t bytes; /* of the data */
    ats_err *err;
} header;

static const type_row *find_type(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0) return &types[i];
    return NULL;
}

/* A whole number from 0 on; false for anything else, with its text in shown. */
static bool is_count(const json_t *value, int64_t *out, char *shown, size_t size)
{
    if (json_is_integer(value) && json_integer_value(value) >= 0) {
        *out = json_integer_value(value);
        return true;
    }
    char *text = value != NULL ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    snprintf(shown, size, "%s", text != NULL ? text : "absent");
    free(text);
    return false;
}

static ats_code read_type(const header *h, const json_t *value, ats_tensor *t,
                          const type_row **type)
{
    const char *name = json_string_value(json_object_get(value, "dtype"));
    if (name == NULL)
        return ats_fail(h->err, ATS_E_INPUT, "%s: tensor %.*s has no dtype (a text)", h->file->path,
                        SHOWN, t->name);
    *type = find_type(name);
    if (*type == NULL)
        return ats_fail(h->err, ATS_E_INPUT,
                        "%s: tensor %.*s has the unknown type \"%.*s\"; types are F16, BF16, F32, "
                        "F64, I8 to I64, U8 to U64 and BOOL",
                        h->file->path, SHOWN, t->name, SHOWN, name);
    t->element = (*type)->element;
    t->type = (*type)->name;
    t->size = t->element == ATS_ELEMENT_OTHER ? 0 : (*type)->bits / 8;
    t->reason = "this type is not read; convert it to F32, BF16 or F16";
    return ATS_OK;
}

static ats_code read_shape(const header *h, const json_t *value, ats_tensor *t)
{
    char shown[SHOWN];
    const json_t *shape = json_object_get(value, "shape");
    if (!json_is_array(shape))
        return ats_fail(h->err, ATS_E_INPUT, "%s: tensor %.*s has no shape (a list)", h->file->path,
                        SHOWN, t->name);
    if (json_array_size(shape) > ATS_TENSOR_RANK)
        return ats_fail(h->err, ATS_E_INPUT, "%s: tensor %.*s has %zu axes; at most %d are read",
                        h->file->path, SHOWN, t->name, json_array_size(shape), ATS_TENSOR_RANK);
    t->rank = (int)json_array_size(shape);
    t->count = 1;
    for (int i = 0; i < t->rank; i++) {
        if (!is_count(json_array_get(shape, (size_t)i), &t->extent[i], shown, sizeof shown))
            return ats_fail(h->err, ATS_E_INPUT,
                            "%s: tensor %.*s: extent %d of its shape is %s, outside the range of "
                            "whole numbers from 0 on",
                            h->file->path, SHOWN, t->name, i, shown);
        if (__builtin_mul_overflow(t->count, t->extent[i], &t->count))
            return ats_fail(h->err, ATS_E_INPUT,
                            "%s: tensor %.*s: its shape has more elements than 64 bits count",
                            h->file->path, SHOWN, t->name);
    }
    return ATS_OK;
}

static ats_code read_offsets(const header *h, const json_t *value, ats_tensor *t)
{
    const json_t *pair = json_object_get(value, "data_offsets");
    int64_t at[2] = {0, 0};
    char shown[SHOWN];
    if (!json_is_array(pair) || json_array_size(pair) != 2)
        return ats_fail(h->err, ATS_E_INPUT,
                        "%s: tensor %.*s has no data_offsets (a list of two numbers)",
                        h->file->path, SHOWN, t->name);
    for (size_t i = 0; i < 2; i++)
        if (!is_count(json_array_get(pair, i), &at[i], shown, sizeof shown))
            return ats_fail(h->err, ATS_E_INPUT,
                            "%s: tensor %.*s: data offset %s is outside the range of whole numbers "
                            "from 0 on",
                            h->file->path, SHOWN, t->name, shown);
    if (at[1] < at[0])
        return ats_fail(h->err, ATS_E_INPUT,
                        "%s: tensor %.*s: its data ends at %" PRId64 ", before it begins at "
                        "%" PRId64 " (order)",
                        h->file->path, SHOWN, t->name, at[1], at[0]);
    if (at[1] > h->bytes)
        return ats_fail(h->err, ATS_E_INPUT,
                        "%s: tensor %.*s: its data ends at %" PRId64 ", past the end of the file "
                        "(%" PRId64 " data bytes)",
                        h->file->path, SHOWN, t->name, at[1], h->bytes);
    t->offset = h->data + at[0];
    t->bytes = at[1] - at[0];
    return ATS_OK;
}

static ats_code read_tensor(const header *h, const char *name, const json_t *value, ats_tensor *t)
{
    const type_row *type = NULL;
    int64_t bits = 0;
    char shape[200];
    ats_code rc;
    *t = (ats_tensor){.member = -1};
    ATS_TRY(ats_arena_strdup(h->arena, name, &t->name, h->err));
    if (!json_is_object(value))
        return ats_fail(h->err, ATS_E_INPUT, "%s: tensor %.*s is not described by an object",
                        h->file->path, SHOWN, name);
    ATS_TRY(read_type(h, value, t, &type));
    ATS_TRY(read_shape(h, value, t));
    ATS_TRY(read_offsets(h, value, t));
    if (__builtin_mul_overflow(t->count, (int64_t)type->bits, &bits))
        rc = ats_fail(h->err, ATS_E_INPUT, "%s: tensor %.*s: its size is more than 64 bits count",
                      h->file->path, SHOWN, name);
    else if (bits % 8 != 0 || bits / 8 != t->bytes)
        rc = ats_fail(h->err, ATS_E_INPUT,
                      "%s: tensor %.*s: shape %s of %s takes %" PRId64 " bytes, but data_offsets "
                      "give it %" PRId64 " (size against shape)",
                      h->file->path, SHOWN, name, ats_tensor_shape(t, shape, sizeof shape), t->type,
                      bits / 8, t->bytes);
out:
    return rc;
}

static int by_place(const void *a, const void *b)
{
    const ats_tensor *x = *(const ats_tensor *const *)a, *y = *(const ats_tensor *const *)b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Sorted by place, each tensor begins where the one before ends, and the last ends with the file.
 */
static ats_code check_places(const header *h, const ats_tensor *tensors, int64_t n)
{
    const ats_tensor **sorted = NULL;
    const char *before = "the header";
    int64_t end = h->data;
    ats_code rc = ATS_NEW(h->arena, n, &sorted, h->err);
    if (rc != ATS_OK) return rc;
    for (int64_t i = 0; i < n; i++) sorted[i] = &tensors[i];
    if (n > 1) qsort(sorted, (size_t)n, sizeof *sorted, by_place);
    for (int64_t i = 0; i < n; i++) {
        const ats_tensor *t = sorted[i];
        if (t->offset < end)
            return ats_fail(h->err, ATS_E_INPUT,
                            "%s: tensors %.*s and %.*s overlap: the second begins at %" PRId64
                            ", inside the first",
                            h->file->path, SHOWN, before, SHOWN, t->name, t->offset - h->data);
        if (t->offset > end)
            return ats_fail(h->err, ATS_E_INPUT,
                            "%s: tensor %.*s begins at %" PRId64 " and leaves a gap of %" PRId64
                            " bytes after %.*s",
                            h->file->path, SHOWN, t->name, t->offset - h->data, t->offset - end,
                            SHOWN, before);
        end = t->offset + t->bytes;
        before = t->name;
    }
    if (end != h->data + h->bytes)
        return ats_fail(h->err, ATS_E_INPUT,
                        "%s: %" PRId64 " bytes after %.*s belong to no tensor; the last tensor "
                        "ends with the file",
                        h->file->path, h->data + h->bytes - end, SHOWN, before);
    return ATS_OK;
}

static ats_code check_metadata(const header *h, json_t *metadata)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return ats_fail(h->err, ATS_E_INPUT, "%s: __metadata__ is not an object", h->file->path);
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return ats_fail(h->err, ATS_E_INPUT, "%s: __metadata__ entry %.*s is not a text",
                            h->file->path, SHOWN, key);
    }
    return ATS_OK;
}

static ats_code read_all(const header *h, json_t *root, ats_tensor_file *file)
{
    const char *name;
    json_t *value;
    ats_tensor *tensors = NULL;
    int64_t n = 0;
    ats_code rc = ATS_NEW(h->arena, json_object_size(root) + 1, &tensors, h->err);
    if (rc != ATS_OK) return rc;
    json_object_foreach(root, name, value)
    {
        if (strcmp(name, "__metadata__") == 0)
            rc = check_metadata(h, value);
        else
            rc = read_tensor(h, name, value, &tensors[n++]);
        if (rc != ATS_OK) return rc;
    }
    ATS_TRY(check_places(h, tensors, n));
    file->tensors = tensors;
    file->n_tensors = n;
out:
    return rc;
}

/* Numbers past 64 bits stop the parser before it knows whose they are: read once more with all
 * numbers as reals, only to name the tensor. */
static ats_code fail_range(const header *h, const char *text, size_t length)
{
    const char *name;
    json_t *value, *root = json_loadb(text, length, JSON_DECODE_INT_AS_REAL, NULL);
    const char *at = "?";
    json_object_foreach(root, name, value)
    {
        for (int list = 0; list < 2; list++) {
            size_t i;
            json_t *item;
            json_array_foreach(json_object_get(value, list == 0 ? "shape" : "data_offsets"), i,
                               item)
            {
                if (json_number_value(item) > 9e18 || json_number_value(item) < 0) at = name;
            }
        }
    }
    const ats_code rc =
        ats_fail(h->err, ATS_E_INPUT,
                 "%s: tensor %.*s: a number of its shape or data_offsets is outside "
                 "the range of 64 bits",
                 h->file->path, SHOWN, at);
    json_decref(root);
    return rc;
}

static ats_code parse(const header *h, const char *text, size_t length, ats_tensor_file *file)
{
    json_error_t fault;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &fault);
    ats_code rc;
    if (root == NULL) {
        const enum json_error_code code = json_error_code(&fault);
        if (code == json_error_out_of_memory)
            return ats_fail(h->err, ATS_E_MEMORY, "%s: out of memory for the header", file->path);
        if (code == json_error_numeric_overflow) return fail_range(h, text, length);
        if (code == json_error_duplicate_key)
            return ats_fail(h->err, ATS_E_INPUT,
                            "%s: duplicate name in the header, at its byte %d: %s", file->path,
                            fault.position, fault.text);
        return ats_fail(h->err, ATS_E_INPUT, "%s: the header is not JSON, at its byte %d: %s",
                        file->path, fault.position, fault.text);
    }
    if (json_is_object(root))
        rc = read_all(h, root, file);
    else
        rc = ats_fail(h->err, ATS_E_INPUT, "%s: the header is not a JSON object", file->path);
    json_decref(root);
    return rc;
}

ats_code ats_safetensors_read_header(ats_tensor_file *file, ats_arena *arena, ats_err *err)
{
    uint8_t prefix[LENGTH_BYTES];
    uint64_t length = 0;
    char *text = NULL;
    ats_code rc;
    if (file->size < LENGTH_BYTES)
        return ats_fail(err, ATS_E_INPUT,
                        "%s: is neither safetensors, npy nor npz: it has %" PRId64 " bytes",
                        file->path, file->size);
    ATS_TRY(ats_tensor_file_bytes(file, 0, LENGTH_BYTES, prefix, err));
    for (int i = LENGTH_BYTES - 1; i >= 0; i--) length = length << 8 | prefix[i];
    const uint64_t left = (uint64_t)file->size - LENGTH_BYTES;
    if (length > left || length > HEADER_MAX) {
        rc = ats_fail(err, ATS_E_INPUT,
                      "%s: the safetensors header should have %" PRIu64 " bytes, but %s (short "
                      "header, or no safetensors file)",
                      file->path, length,
                      length > left ? "the file ends before" : "at most 100 MB are allowed");
        goto out;
    }
    ATS_TRY(ATS_NEW(arena, (int64_t)length + 1, &text, err));
    ATS_TRY(ats_tensor_file_bytes(file, LENGTH_BYTES, (int64_t)length, text, err));
    text[length] = '\0';
    if (length == 0 || text[0] != '{') {
        rc = ats_fail(err, ATS_E_INPUT,
                      "%s: is neither safetensors, npy nor npz: a safetensors header begins with "
                      "'{'",
                      file->path);
        goto out;
    }
    const header h = {.file = file,
                      .arena = arena,
                      .data = LENGTH_BYTES + (int64_t)length,
                      .bytes = (int64_t)(left - length),
                      .err = err};
    rc = parse(&h, text, (size_t)length, file);
out:
    return rc;
}

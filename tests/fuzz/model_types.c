/* Types and dataspaces of the model, and the library's conversion of numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "model.h"

enum { SLOTS = 1024, FIRST = 0x1000 };

typedef struct slot {
    int kind, number, generation;
    bool open;
    model_type type;
    H5S_class_t space;
    int rank;
    hsize_t extent[H5S_MAX_RANK], start[H5S_MAX_RANK], selected[H5S_MAX_RANK];
    bool boxed;
} slot;

static slot slots[SLOTS];
static int n_open, next_free;

hid_t model_open(int kind, int number)
{
    for (int tried = 0; tried < SLOTS; tried++) {
        const int i = (next_free + tried) % SLOTS;
        if (slots[i].open) continue;
        next_free = i + 1;
        slots[i].open = true;
        slots[i].kind = kind;
        slots[i].number = number;
        slots[i].generation++;
        n_open++;
        return (hid_t)slots[i].generation << 16 | (FIRST + i);
    }
    abort();
}

static slot *slot_of(hid_t id)
{
    const int i = (int)(id & 0xffff) - FIRST;
    if (id <= 0 || i < 0 || i >= SLOTS) return NULL;
    if (!slots[i].open || slots[i].generation != id >> 16) abort(); /* closed: its user is wrong */
    return &slots[i];
}

int model_number(hid_t id, int kind)
{
    const slot *s = slot_of(id);
    return s != NULL && s->kind == kind ? s->number : -1;
}

herr_t model_close(hid_t id, int kind)
{
    slot *s = slot_of(id);
    if (s == NULL || s->kind != kind) return -1;
    s->open = false;
    n_open--;
    return 0;
}

int model_open_handles(void) { return n_open; }

void model_close_all(void)
{
    for (int i = 0; i < SLOTS && n_open > 0; i++) slots[i].open = false;
    n_open = next_free = 0;
}

static model_type integer(size_t size, bool is_signed, bool big)
{
    return (model_type){.kind = H5T_INTEGER,
                        .size = size,
                        .precision = 8 * size,
                        .is_signed = is_signed,
                        .big_endian = big};
}

static model_type real(size_t size, size_t exponent, size_t mantissa, bool big)
{
    return (model_type){.kind = H5T_FLOAT,
                        .size = size,
                        .precision = 8 * size,
                        .big_endian = big,
                        .sign = 8 * size - 1,
                        .exponent_at = mantissa,
                        .exponent = exponent,
                        .mantissa = mantissa,
                        .bias = ((size_t)1 << (exponent - 1)) - 1};
}

static model_type other(H5T_class_t kind, size_t size, int members)
{
    return (model_type){.kind = kind, .size = size, .precision = 8 * size, .members = members};
}

model_type model_type_of(model_type_name name)
{
    model_type t;
    switch (name) {
    case MODEL_I8:
    case MODEL_U8:
    case MODEL_I16:
    case MODEL_U16:
    case MODEL_I32:
    case MODEL_U32:
    case MODEL_I64:
    case MODEL_U64:
        return integer((size_t)1 << name / 2, name % 2 == 0, false);
    case MODEL_F16:
        return real(2, 5, 10, false);
    case MODEL_BF16:
        return real(2, 8, 7, false);
    case MODEL_F32:
    case MODEL_F32BE:
        return real(4, 8, 23, name == MODEL_F32BE);
    case MODEL_F64:
    case MODEL_F64BE:
        return real(8, 11, 52, name == MODEL_F64BE);
    case MODEL_F8:
        return real(1, 4, 3, false);
    case MODEL_F128:
        return real(16, 15, 112, false);
    case MODEL_I32BE:
        return integer(4, true, true);
    case MODEL_U16BE:
        return integer(2, false, true);
    case MODEL_I24:
        t = integer(4, true, false);
        t.precision = 24;
        return t;
    case MODEL_TEXT:
        t = other(H5T_STRING, 16, 0);
        t.variable = true;
        return t;
    case MODEL_FIXED:
        return other(H5T_STRING, 8, 0);
    case MODEL_WIDE:
        return other(H5T_STRING, (size_t)1 << 31, 0);
    case MODEL_BOOL:
        return other(H5T_ENUM, 1, 2);
    case MODEL_ENUM3:
        return other(H5T_ENUM, 4, 3);
    case MODEL_COMPOUND:
        return other(H5T_COMPOUND, 12, 2);
    case MODEL_REFERENCE:
        return other(H5T_REFERENCE, 8, 0);
    case MODEL_VLEN:
        return other(H5T_VLEN, 16, 0);
    case MODEL_BITS:
        return other(H5T_BITFIELD, 1, 0);
    case MODEL_NOTHING:
    case MODEL_TYPES:
        break;
    }
    return other(H5T_OPAQUE, 0, 0);
}

hid_t model_new_type(const model_type *type)
{
    const hid_t id = model_open(MODEL_TYPE, 0);
    slot_of(id)->type = *type;
    return id;
}

/* Handles below FIRST are the predefined ones: 1 + model_type_name. */
const model_type *model_get_type(hid_t id)
{
    static model_type predefined[MODEL_TYPES];
    if (id > 0 && id <= MODEL_TYPES) {
        predefined[id - 1] = model_type_of((model_type_name)(id - 1));
        return &predefined[id - 1];
    }
    const slot *s = slot_of(id);
    return s != NULL && s->kind == MODEL_TYPE ? &s->type : NULL;
}

hid_t model_new_space(H5S_class_t kind, int rank, const hsize_t *extent)
{
    const hid_t id = model_open(MODEL_SPACE, 0);
    slot *s = slot_of(id);
    s->space = kind;
    s->rank = rank;
    s->boxed = false;
    for (int i = 0; i < rank; i++) s->extent[i] = extent[i];
    return id;
}

static const slot *space_of(hid_t id)
{
    const slot *s = slot_of(id);
    return s != NULL && s->kind == MODEL_SPACE ? s : NULL;
}

static hsize_t product(int rank, const hsize_t *extent)
{
    hsize_t count = 1;
    for (int i = 0; i < rank; i++) count *= extent[i];
    return count;
}

hsize_t model_selected(hid_t id, const model_node *node, hsize_t *first)
{
    const slot *s = id == H5S_ALL ? NULL : space_of(id);
    *first = 0;
    if (s == NULL) return product(node->rank, node->extent);
    if (!s->boxed) return product(s->rank, s->extent);
    for (int i = 0; i < s->rank; i++) *first = *first * s->extent[i] + s->start[i];
    return product(s->rank, s->selected);
}

hid_t H5Screate(H5S_class_t kind) { return model_fails() ? -1 : model_new_space(kind, 0, NULL); }

hid_t H5Screate_simple(int rank, const hsize_t dims[], const hsize_t maxdims[])
{
    (void)maxdims;
    return model_fails() ? -1 : model_new_space(H5S_SIMPLE, rank, dims);
}

herr_t H5Sclose(hid_t id) { return model_close(id, MODEL_SPACE); }

int H5Sget_simple_extent_ndims(hid_t id)
{
    return model_fails() || space_of(id) == NULL ? -1 : space_of(id)->rank;
}

int H5Sget_simple_extent_dims(hid_t id, hsize_t dims[], hsize_t maxdims[])
{
    (void)maxdims;
    if (model_fails() || space_of(id) == NULL) return -1;
    const slot *s = space_of(id);
    for (int i = 0; i < s->rank; i++) dims[i] = s->extent[i];
    return s->rank;
}

hssize_t H5Sget_simple_extent_npoints(hid_t id)
{
    if (model_fails() || space_of(id) == NULL) return -1;
    const slot *s = space_of(id);
    return s->space == H5S_NULL ? 0 : (hssize_t)product(s->rank, s->extent);
}

H5S_class_t H5Sget_simple_extent_type(hid_t id)
{
    return model_fails() || space_of(id) == NULL ? H5S_NO_CLASS : space_of(id)->space;
}

herr_t H5Sselect_all(hid_t id)
{
    if (model_fails() || space_of(id) == NULL) return -1;
    slot_of(id)->boxed = false;
    return 0;
}

herr_t H5Sselect_hyperslab(hid_t id, H5S_seloper_t op, const hsize_t start[],
                           const hsize_t stride[], const hsize_t count[], const hsize_t block[])
{
    (void)op, (void)stride, (void)block;
    if (model_fails() || space_of(id) == NULL) return -1;
    slot *s = slot_of(id);
    for (int i = 0; i < s->rank; i++) {
        if (count[i] > s->extent[i] || start[i] > s->extent[i] - count[i]) abort();
        s->start[i] = start[i];
        s->selected[i] = count[i];
    }
    s->boxed = true;
    return 0;
}

/* One number in both forms: whole when `is_real` is false. */
typedef struct number {
    bool is_real, is_signed;
    double real;
    uint64_t whole;
} number;

static bool load(const model_type *t, const uint8_t *in, number *out)
{
    uint8_t bytes[8] = {0};
    if (t->size == 0 || t->size > 8) return false;
    for (size_t i = 0; i < t->size; i++) bytes[i] = in[t->big_endian ? t->size - 1 - i : i];
    uint64_t word = 0;
    for (size_t i = 0; i < t->size; i++) word |= (uint64_t)bytes[i] << 8 * i;
    *out = (number){.is_real = t->kind == H5T_FLOAT, .is_signed = t->is_signed};
    if (t->kind == H5T_FLOAT) {
        float narrow;
        const uint32_t half = (uint32_t)word;
        memcpy(&narrow, &half, sizeof narrow);
        if (t->size == 8)
            memcpy(&out->real, &word, sizeof out->real);
        else if (t->size == 4)
            out->real = (double)narrow;
        else if (t->size == 2)
            out->real = (double)(t->exponent == 5 ? ats_f16_to_f32((uint16_t)word)
                                                  : ats_bf16_to_f32((uint16_t)word));
        return true;
    }
    if (t->is_signed && t->size < 8 && (word >> (8 * t->size - 1) & 1) != 0)
        word |= ~(uint64_t)0 << 8 * t->size;
    out->whole = word;
    out->real = t->is_signed ? (double)(int64_t)word : (double)word;
    return t->kind == H5T_INTEGER || t->kind == H5T_ENUM;
}

static uint64_t whole_of(const number *x, bool to_signed)
{
    if (!x->is_real) {
        if (to_signed && !x->is_signed && x->whole > (uint64_t)INT64_MAX) return INT64_MAX;
        if (!to_signed && x->is_signed && (int64_t)x->whole < 0) return 0;
        return x->whole;
    }
    if (isnan(x->real)) return 0;
    if (to_signed)
        return x->real >= 0x1p63    ? (uint64_t)INT64_MAX
               : x->real <= -0x1p63 ? (uint64_t)INT64_MIN
                                    : (uint64_t)(int64_t)x->real;
    return x->real >= 0x1p64 ? UINT64_MAX : x->real <= 0 ? 0 : (uint64_t)x->real;
}

bool model_convert(const model_type *from, const model_type *to, size_t count, const void *in,
                   void *out)
{
    if (from->kind == to->kind && from->size == to->size && from->big_endian == to->big_endian) {
        memmove(out, in, count * to->size);
        return true;
    }
    /* the conversion that src/h5 registers keeps the bytes of a text's reference */
    if (to->kind == H5T_OPAQUE && from->variable && from->size == to->size) {
        memmove(out, in, count * to->size);
        return true;
    }
    if (to->kind == H5T_OPAQUE || to->kind == H5T_STRING || from->size == 0) return false;
    const bool backwards = to->size > from->size; /* in may be out */
    for (size_t n = 0; n < count; n++) {
        const size_t i = backwards ? count - 1 - n : n;
        number x;
        uint8_t *at = (uint8_t *)out + i * to->size;
        if (!load(from, (const uint8_t *)in + i * from->size, &x)) return false;
        const float narrow = (float)x.real;
        const uint64_t whole = whole_of(&x, to->is_signed);
        if (to->kind == H5T_FLOAT && to->size == 8)
            memcpy(at, &x.real, 8);
        else if (to->kind == H5T_FLOAT && to->size == 4)
            memcpy(at, &narrow, 4);
        else if (to->kind == H5T_INTEGER && to->size <= 8)
            memcpy(at, &whole, to->size);
        else
            return false;
    }
    return true;
}

hid_t H5Tcopy(hid_t id)
{
    if (model_fails()) return -1;
    const model_type *type = model_get_type(id);
    return type != NULL ? model_new_type(type) : -1;
}

hid_t H5Tcreate(H5T_class_t kind, size_t size)
{
    const model_type type = other(kind, size, 0);
    return model_fails() ? -1 : model_new_type(&type);
}

/* As the library: a wrong handle has no class and no size. */
static const model_type *type_at(hid_t id)
{
    static const model_type none = {.kind = H5T_NO_CLASS};
    const model_type *type = model_get_type(id);
    return type != NULL ? type : &none;
}

herr_t H5Tclose(hid_t id) { return id > 0 && id <= MODEL_TYPES ? -1 : model_close(id, MODEL_TYPE); }
H5T_class_t H5Tget_class(hid_t id) { return model_fails() ? H5T_NO_CLASS : type_at(id)->kind; }
size_t H5Tget_size(hid_t id) { return model_fails() ? 0 : type_at(id)->size; }
size_t H5Tget_precision(hid_t id) { return type_at(id)->precision; }
int H5Tget_nmembers(hid_t id) { return type_at(id)->members; }
size_t H5Tget_ebias(hid_t id) { return type_at(id)->bias; }
H5T_cset_t H5Tget_cset(hid_t id)
{
    return model_get_type(id) != NULL ? H5T_CSET_UTF8 : H5T_CSET_ERROR;
}
htri_t H5Tis_variable_str(hid_t id)
{
    return model_fails() || model_get_type(id) == NULL ? -1 : type_at(id)->variable;
}

H5T_order_t H5Tget_order(hid_t id) { return type_at(id)->big_endian ? H5T_ORDER_BE : H5T_ORDER_LE; }

H5T_sign_t H5Tget_sign(hid_t id) { return type_at(id)->is_signed ? H5T_SGN_2 : H5T_SGN_NONE; }

herr_t H5Tget_fields(hid_t id, size_t *sign, size_t *exponent_at, size_t *exponent,
                     size_t *mantissa_at, size_t *mantissa)
{
    if (model_fails()) return -1;
    const model_type *t = type_at(id);
    *sign = t->sign;
    *exponent_at = t->exponent_at;
    *exponent = t->exponent;
    *mantissa_at = t->mantissa_at;
    *mantissa = t->mantissa;
    return 0;
}

herr_t H5Tset_fields(hid_t id, size_t sign, size_t exponent_at, size_t exponent, size_t mantissa_at,
                     size_t mantissa)
{
    if (model_fails() || slot_of(id) == NULL) return -1;
    model_type *t = &slot_of(id)->type;
    t->sign = sign;
    t->exponent_at = exponent_at;
    t->exponent = exponent;
    t->mantissa_at = mantissa_at;
    t->mantissa = mantissa;
    return 0;
}

herr_t H5Tset_size(hid_t id, size_t size)
{
    if (model_fails() || slot_of(id) == NULL) return -1;
    model_type *t = &slot_of(id)->type;
    t->variable = size == H5T_VARIABLE;
    t->size = t->variable ? 16 : size;
    return 0;
}

herr_t H5Tset_ebias(hid_t id, size_t bias)
{
    if (slot_of(id) == NULL) return -1;
    slot_of(id)->type.bias = bias;
    return 0;
}

herr_t H5Tset_cset(hid_t id, H5T_cset_t cset)
{
    return model_fails() || slot_of(id) == NULL || cset == H5T_CSET_ERROR ? -1 : 0;
}

herr_t H5Tset_tag(hid_t id, const char *tag)
{
    (void)id, (void)tag;
    return model_fails() ? -1 : 0;
}

H5T_conv_t H5Tfind(hid_t from, hid_t to, H5T_cdata_t **conversion)
{
    (void)from, (void)to, (void)conversion;
    return NULL;
}

herr_t H5Tregister(H5T_pers_t pers, const char *name, hid_t from, hid_t to, H5T_conv_t function)
{
    (void)pers, (void)name, (void)from, (void)to, (void)function;
    return model_fails() ? -1 : 0;
}

herr_t H5Tconvert(hid_t from, hid_t to, size_t count, void *buffer, void *background,
                  hid_t transfer)
{
    (void)background, (void)transfer;
    if (model_fails() || model_get_type(from) == NULL || model_get_type(to) == NULL) return -1;
    return model_convert(model_get_type(from), model_get_type(to), count, buffer, buffer) ? 0 : -1;
}

hid_t H5T_NATIVE_INT8_g = 1 + MODEL_I8, H5T_NATIVE_UINT8_g = 1 + MODEL_U8,
      H5T_NATIVE_INT16_g = 1 + MODEL_I16, H5T_NATIVE_UINT16_g = 1 + MODEL_U16,
      H5T_NATIVE_INT32_g = 1 + MODEL_I32, H5T_NATIVE_UINT32_g = 1 + MODEL_U32,
      H5T_NATIVE_INT64_g = 1 + MODEL_I64, H5T_NATIVE_UINT64_g = 1 + MODEL_U64,
      H5T_NATIVE_FLOAT_g = 1 + MODEL_F32, H5T_NATIVE_DOUBLE_g = 1 + MODEL_F64,
      H5T_NATIVE_INT_g = 1 + MODEL_I32, H5T_NATIVE_LLONG_g = 1 + MODEL_I64,
      H5T_NATIVE_ULLONG_g = 1 + MODEL_U64, H5T_NATIVE_SCHAR_g = 1 + MODEL_I8,
      H5T_NATIVE_UCHAR_g = 1 + MODEL_U8, H5T_NATIVE_SHORT_g = 1 + MODEL_I16,
      H5T_NATIVE_USHORT_g = 1 + MODEL_U16, H5T_NATIVE_UINT_g = 1 + MODEL_U32,
      H5T_NATIVE_LONG_g = 1 + MODEL_I64, H5T_NATIVE_ULONG_g = 1 + MODEL_U64,
      H5T_STD_I8LE_g = 1 + MODEL_I8, H5T_STD_U8LE_g = 1 + MODEL_U8, H5T_STD_I16LE_g = 1 + MODEL_I16,
      H5T_STD_U16LE_g = 1 + MODEL_U16, H5T_STD_I32LE_g = 1 + MODEL_I32,
      H5T_STD_U32LE_g = 1 + MODEL_U32, H5T_STD_I64LE_g = 1 + MODEL_I64,
      H5T_STD_U64LE_g = 1 + MODEL_U64, H5T_IEEE_F32LE_g = 1 + MODEL_F32,
      H5T_IEEE_F64LE_g = 1 + MODEL_F64, H5T_C_S1_g = 1 + MODEL_FIXED,
      H5T_STD_REF_OBJ_g = 1 + MODEL_REFERENCE;

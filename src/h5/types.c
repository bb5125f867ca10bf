#include "h5/internal.h"

static const struct {
    const char *name;
    size_t size;
} kinds[] = {
    [ATS_H5_I8] = {"int8", 1},           [ATS_H5_U8] = {"uint8", 1},
    [ATS_H5_I16] = {"int16", 2},         [ATS_H5_U16] = {"uint16", 2},
    [ATS_H5_I32] = {"int32", 4},         [ATS_H5_U32] = {"uint32", 4},
    [ATS_H5_I64] = {"int64", 8},         [ATS_H5_U64] = {"uint64", 8},
    [ATS_H5_F16] = {"float16", 2},       [ATS_H5_BF16] = {"bfloat16", 2},
    [ATS_H5_F32] = {"float32", 4},       [ATS_H5_F64] = {"float64", 8},
    [ATS_H5_BOOL] = {"bool", 1},         [ATS_H5_TEXT] = {"text", 0},
    [ATS_H5_OTHER] = {"unsupported", 0},
};

const char *ats_h5_type_name(ats_h5_type type) { return kinds[type].name; }
size_t ats_h5_type_size(ats_h5_type type) { return kinds[type].size; }
bool ats_h5_type_is_integer(ats_h5_type type) { return type <= ATS_H5_U64; }

bool ats_h5_type_is_float(ats_h5_type type)
{
    return type == ATS_H5_F16 || type == ATS_H5_F32 || type == ATS_H5_F64;
}

ats_h5_dims ats_h5_to_dims(int rank, const int64_t *extent)
{
    ats_h5_dims dims = {{0}};
    for (int i = 0; i < rank; i++) dims.at[i] = (hsize_t)extent[i];
    return dims;
}

/* Indexed by ats_h5_type; the stored type is the little-endian one. */
typedef struct handles {
    hid_t native, stored;
} handles;

static handles handles_of(ats_h5_type type)
{
    const handles all[] = {
        [ATS_H5_I8] = {H5T_NATIVE_INT8, H5T_STD_I8LE},
        [ATS_H5_U8] = {H5T_NATIVE_UINT8, H5T_STD_U8LE},
        [ATS_H5_I16] = {H5T_NATIVE_INT16, H5T_STD_I16LE},
        [ATS_H5_U16] = {H5T_NATIVE_UINT16, H5T_STD_U16LE},
        [ATS_H5_I32] = {H5T_NATIVE_INT32, H5T_STD_I32LE},
        [ATS_H5_U32] = {H5T_NATIVE_UINT32, H5T_STD_U32LE},
        [ATS_H5_I64] = {H5T_NATIVE_INT64, H5T_STD_I64LE},
        [ATS_H5_U64] = {H5T_NATIVE_UINT64, H5T_STD_U64LE},
        [ATS_H5_F16] = {-1, -1},
        [ATS_H5_BF16] = {-1, -1},
        [ATS_H5_F32] = {H5T_NATIVE_FLOAT, H5T_IEEE_F32LE},
        [ATS_H5_F64] = {H5T_NATIVE_DOUBLE, H5T_IEEE_F64LE},
        [ATS_H5_BOOL] = {H5T_NATIVE_INT8, H5T_STD_I8LE},
        [ATS_H5_TEXT] = {-1, -1},
        [ATS_H5_OTHER] = {-1, -1},
    };
    return all[type];
}

hid_t ats_h5_native(ats_h5_type type) { return handles_of(type).native; }

static hid_t sixteen_bit_float(size_t exponent, size_t mantissa)
{
    hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    if (type < 0) return type;
    if (H5Tset_fields(type, 15, mantissa, exponent, 0, mantissa) < 0 || H5Tset_size(type, 2) < 0 ||
        H5Tset_ebias(type, ((size_t)1 << (exponent - 1)) - 1) < 0) {
        H5Tclose(type);
        return -1;
    }
    return type;
}

hid_t ats_h5_stored_type(ats_h5_type type)
{
    if (type == ATS_H5_F16) return sixteen_bit_float(5, 10);
    if (type == ATS_H5_BF16) return sixteen_bit_float(8, 7);
    const hid_t stored = handles_of(type).stored;
    return stored < 0 ? -1 : H5Tcopy(stored);
}

hid_t ats_h5_text_type(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type > 0 && (H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0)) {
        H5Tclose(type);
        return -1;
    }
    return type;
}

static ats_h5_type classify_integer(hid_t type)
{
    const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
    const size_t size = H5Tget_size(type);
    if (H5Tget_precision(type) != 8 * size) return ATS_H5_OTHER;
    switch (size) {
    case 1:
        return is_signed ? ATS_H5_I8 : ATS_H5_U8;
    case 2:
        return is_signed ? ATS_H5_I16 : ATS_H5_U16;
    case 4:
        return is_signed ? ATS_H5_I32 : ATS_H5_U32;
    case 8:
        return is_signed ? ATS_H5_I64 : ATS_H5_U64;
    default:
        return ATS_H5_OTHER;
    }
}

static ats_h5_type classify_float(hid_t type)
{
    static const struct {
        size_t size, exponent, mantissa;
        ats_h5_type kind;
    } known[] = {{2, 5, 10, ATS_H5_F16},
                 {2, 8, 7, ATS_H5_BF16},
                 {4, 8, 23, ATS_H5_F32},
                 {8, 11, 52, ATS_H5_F64}};
    size_t sign, exponent_at, exponent, mantissa_at, mantissa;
    if (H5Tget_fields(type, &sign, &exponent_at, &exponent, &mantissa_at, &mantissa) < 0)
        return ATS_H5_OTHER;
    const size_t size = H5Tget_size(type), bias = H5Tget_ebias(type);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (size == known[i].size && exponent == known[i].exponent &&
            mantissa == known[i].mantissa && mantissa_at == 0 && exponent_at == mantissa &&
            sign == 8 * size - 1 && bias == ((size_t)1 << (exponent - 1)) - 1)
            return known[i].kind;
    return ATS_H5_OTHER;
}

ats_h5_type ats_h5_classify(hid_t type)
{
    const H5T_class_t kind = H5Tget_class(type);
    if (kind == H5T_INTEGER) return classify_integer(type);
    if (kind == H5T_FLOAT) return classify_float(type);
    if (kind == H5T_STRING) return ATS_H5_TEXT;
    if (kind == H5T_ENUM && H5Tget_size(type) == 1 && H5Tget_nmembers(type) == 2)
        return ATS_H5_BOOL;
    return ATS_H5_OTHER;
}

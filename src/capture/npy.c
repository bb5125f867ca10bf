/* The npy format (numpy.lib.format), versions 1 to 3: magic, version, length, and a Python
 * dictionary of exactly three entries, read here without any Python. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "capture/tensor_formats.h"

enum { MAGIC = 6, SHOWN = 60 };

ats_code ats_npy_prefix(const char *where, const uint8_t *bytes, int64_t got, int64_t *before,
                        int64_t *length, ats_err *err)
{
    if (got < MAGIC + 2 || memcmp(bytes, "\x93NUMPY", MAGIC) != 0)
        return ats_fail(err, ATS_E_INPUT,
                        "%s: is not an npy file: it does not begin with "
                        "\\x93NUMPY and a version",
                        where);
    const int version = bytes[MAGIC], minor = bytes[MAGIC + 1];
    if (version < 1 || version > 3 || minor != 0)
        return ats_fail(err, ATS_E_INPUT, "%s: is npy version %d.%d; 1.0, 2.0 and 3.0 are read",
                        where, version, minor);
    const int width = version == 1 ? 2 : 4;
    if (got < MAGIC + 2 + width)
        return ats_fail(err, ATS_E_INPUT, "%s: ends inside the npy header", where);
    int64_t value = 0;
    for (int i = width - 1; i >= 0; i--) value = value << 8 | bytes[MAGIC + 2 + i];
    if (value > ATS_NPY_HEADER_MAX)
        return ats_fail(err, ATS_E_INPUT,
                        "%s: the npy header should have %" PRId64 " bytes; at most %d are read",
                        where, value, ATS_NPY_HEADER_MAX);
    *before = MAGIC + 2 + width;
    *length = value;
    return ATS_OK;
}

typedef struct cursor {
    const char *where, *text, *at;
    ats_err *err;
} cursor;

static void skip_space(cursor *c)
{
    while (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r') c->at++;
}

static bool take(cursor *c, char want)
{
    skip_space(c);
    if (*c->at != want) return false;
    c->at++;
    return true;
}

static ats_code fail_at(const cursor *c, const char *wanted)
{
    return ats_fail(c->err, ATS_E_INPUT,
                    "%s: the npy header is not as numpy writes it: %s is wanted at its byte %lld",
                    c->where, wanted, (long long)(c->at - c->text));
}

/* 'text' or "text", without escapes. */
static ats_code take_text(cursor *c, const char **text, int *length)
{
    skip_space(c);
    const char quote = *c->at;
    if (quote != '\'' && quote != '"') return fail_at(c, "a text in quotes");
    const char *begin = c->at + 1;
    const char *end = begin + strcspn(begin, "'\"\\\n");
    if (*end != quote || end - begin > 1000) return fail_at(c, "a text in quotes");
    *text = begin;
    *length = (int)(end - begin);
    c->at = end + 1;
    return ATS_OK;
}

static ats_code take_order(cursor *c, bool *fortran)
{
    skip_space(c);
    *fortran = strncmp(c->at, "True", 4) == 0;
    if (!*fortran && strncmp(c->at, "False", 5) != 0) return fail_at(c, "True or False");
    c->at += *fortran ? 4 : 5;
    return ATS_OK;
}

/* (2,) or (2, 3); L after a number is Python 2's. */
static ats_code take_shape(cursor *c, ats_tensor *out)
{
    if (!take(c, '(')) return fail_at(c, "the shape in brackets");
    out->rank = 0;
    out->count = 1;
    while (!take(c, ')')) {
        int64_t value = 0;
        skip_space(c);
        if (!isdigit((unsigned char)*c->at)) return fail_at(c, "a whole number from 0 on");
        for (; isdigit((unsigned char)*c->at); c->at++)
            if (__builtin_mul_overflow(value, 10, &value) ||
                __builtin_add_overflow(value, *c->at - '0', &value))
                return fail_at(c, "a number of at most 64 bits");
        if (*c->at == 'L') c->at++;
        if (out->rank == ATS_TENSOR_RANK) return fail_at(c, "a shape of at most 16 axes");
        out->extent[out->rank++] = value;
        if (__builtin_mul_overflow(out->count, value, &out->count))
            return fail_at(c, "a shape with fewer elements than 2^63");
        if (!take(c, ',')) {
            if (!take(c, ')')) return fail_at(c, "a comma or the closing bracket");
            break;
        }
    }
    return ATS_OK;
}

static ats_element real_element(char size)
{
    return size == '2' ? ATS_ELEMENT_F16 : size == '4' ? ATS_ELEMENT_F32 : ATS_ELEMENT_F64;
}

static ats_element integer_element(bool is_signed, char size)
{
    switch (size) {
    case '1':
        return is_signed ? ATS_ELEMENT_I8 : ATS_ELEMENT_U8;
    case '2':
        return is_signed ? ATS_ELEMENT_I16 : ATS_ELEMENT_U16;
    case '4':
        return is_signed ? ATS_ELEMENT_I32 : ATS_ELEMENT_U32;
    default:
        return is_signed ? ATS_ELEMENT_I64 : ATS_ELEMENT_U64;
    }
}

/* "<f4": byte order, kind, bytes. */
static void understand(const char *descr, ats_tensor *out)
{
    const char kind = descr[0] != '\0' ? descr[1] : '\0';
    const char *number = kind != '\0' ? descr + 2 : "";
    const bool single = strlen(number) == 1;
    out->element = ATS_ELEMENT_OTHER;
    out->reason = "this type is not read; convert it with .astype('float32')";
    out->size = 0;
    if (strchr("<>=|", descr[0]) == NULL || descr[0] == '\0') return;
    if (kind == 'O') {
        out->reason = "object arrays are not read (they are pickles); save numbers";
        return;
    }
    if (!single) return;
    if (kind == 'f' && strchr("248", number[0]) != NULL)
        out->element = real_element(number[0]);
    else if ((kind == 'i' || kind == 'u') && strchr("1248", number[0]) != NULL)
        out->element = integer_element(kind == 'i', number[0]);
    else if (kind == 'b' && number[0] == '1')
        out->element = ATS_ELEMENT_BOOL;
    else if (kind == 'V' && number[0] == '2')
        out->element = ATS_ELEMENT_WORDS2;
    else
        return;
    out->size = number[0] - '0';
    out->big_endian = descr[0] == '>' && kind != 'V';
}

static ats_code take_descr(cursor *c, ats_arena *arena, ats_tensor *out)
{
    const char *text = NULL;
    int length = 0;
    ats_code rc;
    skip_space(c);
    if (*c->at == '[')
        return ats_fail(c->err, ATS_E_INPUT,
                        "%s: is a structured array; save one plain array a tensor", c->where);
    ATS_TRY(take_text(c, &text, &length));
    ATS_TRY(ats_arena_printf(arena, &out->type, c->err, "%.*s", length, text));
    understand(out->type, out);
out:
    return rc;
}

static ats_code take_entry(cursor *c, ats_arena *arena, ats_tensor *out, unsigned *seen)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    const char *key = NULL;
    int length = 0;
    unsigned which = 0;
    ats_code rc;
    ATS_TRY(take_text(c, &key, &length));
    while (which < 3 &&
           (strlen(keys[which]) != (size_t)length || strncmp(keys[which], key, (size_t)length)))
        which++;
    if (which == 3 || (*seen & 1U << which) != 0)
        return ats_fail(c->err, ATS_E_INPUT,
                        "%s: the npy header has the %s key '%.*s'; it has descr, fortran_order and "
                        "shape, once each",
                        c->where, which == 3 ? "unknown" : "duplicate",
                        length < SHOWN ? length : SHOWN, key);
    *seen |= 1U << which;
    if (!take(c, ':')) return fail_at(c, "a colon");
    if (which == 0) return take_descr(c, arena, out);
    rc = which == 1 ? take_order(c, &out->fortran) : take_shape(c, out);
out:
    return rc;
}

ats_code ats_npy_describe(const char *where, const char *text, int64_t length, ats_arena *arena,
                          ats_tensor *out, ats_err *err)
{
    cursor c = {.where = where, .text = text, .at = text, .err = err};
    unsigned seen = 0;
    ats_code rc = ATS_OK;
    if (!take(&c, '{')) return fail_at(&c, "a dictionary");
    while (!take(&c, '}')) {
        ATS_TRY(take_entry(&c, arena, out, &seen));
        if (!take(&c, ',')) {
            if (!take(&c, '}')) return fail_at(&c, "a comma or the closing brace");
            break;
        }
    }
    skip_space(&c);
    if (c.at - text != length) return fail_at(&c, "nothing more");
    if (seen != 7)
        return ats_fail(err, ATS_E_INPUT,
                        "%s: the npy header lacks one of descr, fortran_order and shape", where);
    if (__builtin_mul_overflow(out->count, out->size, &out->bytes))
        return ats_fail(err, ATS_E_INPUT, "%s: its shape takes more bytes than 64 bits count",
                        where);
out:
    return rc;
}

/* "dir/layers.0.q.npy" holds the tensor "layers.0.q". */
static ats_code name_of(const char *path, ats_arena *arena, const char **out, ats_err *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    const int length =
        dot != NULL && strcmp(dot, ".npy") == 0 ? (int)(dot - name) : (int)strlen(name);
    return ats_arena_printf(arena, out, err, "%.*s", length, name);
}

ats_code ats_npy_read_header(ats_tensor_file *file, ats_arena *arena, ats_err *err)
{
    uint8_t prefix[ATS_NPY_PREFIX];
    const int64_t got = file->size < ATS_NPY_PREFIX ? file->size : ATS_NPY_PREFIX;
    int64_t before = 0, length = 0;
    char *text = NULL;
    ats_tensor *tensor = NULL;
    ats_code rc;
    ATS_TRY(ats_tensor_file_bytes(file, 0, got, prefix, err));
    ATS_TRY(ats_npy_prefix(file->path, prefix, got, &before, &length, err));
    if (before + length > file->size)
        return ats_fail(err, ATS_E_INPUT,
                        "%s: ends inside the npy header (%" PRId64 " bytes are wanted)", file->path,
                        before + length);
    ATS_TRY(ATS_NEW(arena, length + 1, &text, err));
    ATS_TRY(ATS_NEW0(arena, 1, &tensor, err));
    ATS_TRY(ats_tensor_file_bytes(file, before, length, text, err));
    text[length] = '\0';
    tensor->member = -1;
    tensor->offset = before + length;
    ATS_TRY(ats_npy_describe(file->path, text, length, arena, tensor, err));
    ATS_TRY(name_of(file->path, arena, &tensor->name, err));
    const int64_t left = file->size - tensor->offset;
    if (tensor->element != ATS_ELEMENT_OTHER && tensor->bytes != left) {
        char shape[200];
        rc = ats_fail(err, ATS_E_INPUT,
                      "%s: shape %s of %s takes %" PRId64 " bytes, but %" PRId64
                      " follow the header",
                      file->path, ats_tensor_shape(tensor, shape, sizeof shape), tensor->type,
                      tensor->bytes, left);
        goto out;
    }
    file->tensors = tensor;
    file->n_tensors = 1;
out:
    return rc;
}

/* Typed fields of a capture file, each checked as it is read. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/reader.h"
#include "h5/chunks.h"

typedef struct ats_capture_file capture_file;

ats_code ats_capture_path(capture_file *file, const char *parent, const char *name,
                          const char **out, ats_err *err)
{
    return ats_arena_printf(&file->arena, out, err, "%s/%s", parent, name);
}

/* A plain decimal number without sign or leading zero; -1: not one. */
static int64_t parse_number(const char *text)
{
    int64_t value = 0;
    if (text[0] == '\0' || (text[0] == '0' && text[1] != '\0') || strlen(text) > 15) return -1;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') return -1;
        value = 10 * value + (*text - '0');
    }
    return value;
}

typedef struct numbered {
    int64_t number;
    const char *path;
} numbered;

static int by_number(const void *a, const void *b)
{
    const int64_t x = ((const numbered *)a)->number, y = ((const numbered *)b)->number;
    return (x > y) - (x < y);
}

ats_code ats_capture_numbered(capture_file *file, const char *parent, const int64_t **numbers,
                              const char *const **paths, int64_t *count, ats_err *err)
{
    const char *const *names = NULL;
    const char **texts = NULL;
    int64_t *values = NULL, n = 0;
    numbered *list = NULL;
    ats_code rc;
    if (!ats_h5_exists(&file->h5, parent))
        return ats_h5_fail(err, ATS_E_INPUT, &file->h5, parent, "the group is missing");
    ATS_TRY(ats_h5_children(&file->h5, parent, &file->arena, &names, &n, err));
    if (n == 0) {
        rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, parent, "the group is empty");
        goto out;
    }
    ATS_TRY(ATS_NEW(&file->arena, n, &list, err));
    ATS_TRY(ATS_NEW(&file->arena, n, &values, err));
    ATS_TRY(ATS_NEW(&file->arena, n, &texts, err));
    for (int64_t i = 0; i < n; i++) {
        list[i].number = parse_number(names[i]);
        if (list[i].number < 0) {
            rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, parent,
                             "holds \"%s\"; its groups are named by plain numbers (0, 1, 2, ...)",
                             names[i]);
            goto out;
        }
        ATS_TRY(ats_capture_path(file, parent, names[i], &list[i].path, err));
    }
    qsort(list, (size_t)n, sizeof *list, by_number);
    for (int64_t i = 0; i < n; i++) {
        values[i] = list[i].number;
        texts[i] = list[i].path;
    }
    *numbers = values;
    *paths = texts;
    *count = n;
out:
    return rc;
}

static ats_code float8_or_unknown(const ats_h5_dataset *dataset, const char *word, ats_err *err)
{
    if (strncmp(word, "float8", 6) == 0 || strncmp(word, "F8", 2) == 0)
        return ats_h5_fail(err, ATS_E_UNSUPPORTED, dataset->file, dataset->name,
                           "storage_dtype is \"%s\": float8 is not read yet; store it as bfloat16, "
                           "which holds every float8 number exactly",
                           word);
    return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                       "storage_dtype is \"%s\"; should be float16, bfloat16 or float32", word);
}

static ats_code words_dtype(capture_file *file, const ats_h5_dataset *dataset, const char *word,
                            ats_dtype *out, ats_err *err)
{
    ats_dtype dtype;
    (void)file;
    if (!ats_dtype_parse(word, &dtype)) return float8_or_unknown(dataset, word, err);
    const bool same = (dataset->type == ATS_H5_U16 && dtype != ATS_F32) ||
                      (dataset->type == ATS_H5_F32 && dtype == ATS_F32) ||
                      (dataset->type == ATS_H5_F16 && dtype == ATS_F16) ||
                      (dataset->type == ATS_H5_BF16 && dtype == ATS_BF16);
    if (!same)
        return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                           "storage_dtype is \"%s\", but the elements are %s", word,
                           ats_h5_type_name(dataset->type));
    *out = dtype;
    return ATS_OK;
}

ats_code ats_capture_dtype(capture_file *file, const ats_h5_dataset *dataset, ats_dtype *out,
                           ats_err *err)
{
    const char *word = NULL;
    if (dataset->type == ATS_H5_F64)
        return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                           "holds float64; store it as float32");
    if (ats_h5_has_attr(&file->h5, dataset->name, "storage_dtype")) {
        const ats_code rc =
            ats_h5_get_text(&file->h5, dataset->name, "storage_dtype", &file->arena, &word, err);
        return rc != ATS_OK ? rc : words_dtype(file, dataset, word, out, err);
    }
    if (dataset->type == ATS_H5_F32 || dataset->type == ATS_H5_F16 ||
        dataset->type == ATS_H5_BF16) {
        *out = dataset->type == ATS_H5_F32   ? ATS_F32
               : dataset->type == ATS_H5_F16 ? ATS_F16
                                             : ATS_BF16;
        return ATS_OK;
    }
    return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                       "holds %s (%zu bytes an element) without storage_dtype; state the type: "
                       "uint16 words need the attribute storage_dtype = \"float16\" or "
                       "\"bfloat16\"",
                       ats_h5_type_name(dataset->type), dataset->size);
}

static ats_code all_finite(const ats_h5_dataset *dataset, const float *values, bool lowest,
                           ats_err *err)
{
    for (int64_t i = 0; i < dataset->count; i++)
        if (!isfinite(values[i]) && !(lowest && values[i] == -INFINITY)) {
            const int64_t last = dataset->rank > 0 ? dataset->extent[dataset->rank - 1] : 1;
            return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                               "holds a non-finite number at element %lld (row %lld, column %lld)",
                               (long long)i, (long long)(i / last), (long long)(i % last));
        }
    return ATS_OK;
}

/* Element for element into float32: raw words widened here, the rest by HDF5. */
static ats_code read_floats(capture_file *file, const ats_h5_dataset *dataset, float *out,
                            ats_err *err)
{
    ats_dtype dtype;
    void *words = NULL;
    ats_code rc;
    if (dataset->type == ATS_H5_F64 || dataset->type == ATS_H5_F32)
        return ats_h5_read(dataset, NULL, NULL, ATS_H5_F32, out, err);
    ATS_TRY(ats_capture_dtype(file, dataset, &dtype, err));
    words = malloc((size_t)dataset->count * sizeof(uint16_t) + 1);
    if (words == NULL) {
        rc = ats_fail(err, ATS_E_MEMORY, "out of memory for %lld words", (long long)dataset->count);
        goto out;
    }
    ATS_TRY(ats_h5_read_all(dataset, false, words, err));
    ats_widen(dtype, words, 0, dataset->count, out);
out:
    free(words);
    return rc;
}

static ats_code read_tensor(capture_file *file, const char *parent, const char *name, bool optional,
                            bool lowest, int rank, const int64_t *extent, const char *axes,
                            const float **out, ats_err *err)
{
    const char *path = NULL;
    ats_h5_dataset dataset = {.id = 0};
    float *values = NULL;
    ats_code rc;
    ATS_TRY(ats_capture_path(file, parent, name, &path, err));
    if (optional && !ats_h5_exists(&file->h5, path)) {
        *out = NULL;
        goto out;
    }
    ATS_TRY(ats_h5_dataset_open(&file->h5, path, &dataset, err));
    ATS_TRY(ats_h5_expect_shape(&dataset, rank, extent, axes, err));
    ATS_TRY(ats_h5_expect_stored(&dataset, false, err));
    ATS_TRY(ATS_NEW(&file->arena, dataset.count, &values, err));
    ATS_TRY(read_floats(file, &dataset, values, err));
    ATS_TRY(all_finite(&dataset, values, lowest, err));
    *out = values;
out:
    ats_h5_dataset_close(&dataset);
    return rc;
}

ats_code ats_capture_floats(capture_file *file, const char *parent, const char *name, bool optional,
                            int rank, const int64_t *extent, const char *axes, const float **out,
                            ats_err *err)
{
    return read_tensor(file, parent, name, optional, false, rank, extent, axes, out, err);
}

ats_code ats_capture_logits(capture_file *file, const char *parent, const char *name, int64_t n,
                            const char *axes, const float **out, ats_err *err)
{
    return read_tensor(file, parent, name, true, true, 1, &n, axes, out, err);
}

static ats_code check_range(const ats_h5_dataset *dataset, const int64_t *values, int64_t low,
                            int64_t high, ats_err *err)
{
    for (int64_t i = 0; i < dataset->count; i++)
        if (values[i] < low || values[i] > high)
            return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                               "element %lld is %lld, outside [%lld, %lld]", (long long)i,
                               (long long)values[i], (long long)low, (long long)high);
    return ATS_OK;
}

ats_code ats_capture_integers(capture_file *file, const char *parent, const char *name,
                              bool optional, int64_t *n, int64_t low, int64_t high,
                              const int64_t **out, ats_err *err)
{
    const char *path = NULL;
    ats_h5_dataset dataset = {.id = 0};
    int64_t *values = NULL;
    ats_code rc;
    ATS_TRY(ats_capture_path(file, parent, name, &path, err));
    if (optional && !ats_h5_exists(&file->h5, path)) {
        *out = NULL;
        goto out;
    }
    ATS_TRY(ats_h5_dataset_open(&file->h5, path, &dataset, err));
    if (!ats_h5_type_is_integer(dataset.type)) {
        rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, path, "holds %s, should hold integers",
                         ats_h5_type_name(dataset.type));
        goto out;
    }
    ATS_TRY(ats_h5_expect_shape(&dataset, 1, n, "one number each", err));
    ATS_TRY(ats_h5_expect_stored(&dataset, false, err));
    ATS_TRY(ATS_NEW(&file->arena, dataset.count, &values, err));
    ATS_TRY(ats_h5_read(&dataset, NULL, NULL, ATS_H5_I64, values, err));
    ATS_TRY(check_range(&dataset, values, low, high, err));
    *n = dataset.count;
    *out = values;
out:
    ats_h5_dataset_close(&dataset);
    return rc;
}

ats_code ats_capture_texts(capture_file *file, const char *parent, const char *name, bool optional,
                           bool strict, int64_t *n, const char *const **out, ats_err *err)
{
    const char *path = NULL;
    ats_h5_dataset dataset = {.id = 0};
    const char *const *texts = NULL;
    ats_code rc;
    ATS_TRY(ats_capture_path(file, parent, name, &path, err));
    if (optional && !ats_h5_exists(&file->h5, path)) {
        *out = NULL;
        goto out;
    }
    ATS_TRY(ats_h5_dataset_open(&file->h5, path, &dataset, err));
    /* An empty list has no text type in h5py. */
    if (dataset.count == 0 && dataset.rank == 1 && *n <= 0) {
        *n = 0;
        goto out;
    }
    ATS_TRY(ats_h5_expect_shape(&dataset, 1, n, "one text each", err));
    ATS_TRY(ats_h5_read_texts(&dataset, &file->arena, &texts, err));
    for (int64_t i = 0; strict && i < dataset.count; i++)
        if (!ats_utf8_valid(texts[i])) {
            rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, path, "text %lld is not valid UTF-8",
                             (long long)i);
            goto out;
        }
    *n = dataset.count;
    *out = texts;
out:
    ats_h5_dataset_close(&dataset);
    return rc;
}

ats_code ats_capture_text(capture_file *file, const char *object, const char *name, bool optional,
                          const char **out, ats_err *err)
{
    const char *text = NULL;
    if (optional && !ats_h5_has_attr(&file->h5, object, name)) {
        *out = "";
        return ATS_OK;
    }
    const ats_code rc = ats_h5_get_text(&file->h5, object, name, &file->arena, &text, err);
    if (rc != ATS_OK) return rc;
    if (!ats_utf8_valid(text))
        return ats_h5_fail(err, ATS_E_INPUT, &file->h5, object,
                           "the attribute \"%s\" is not valid UTF-8", name);
    *out = text;
    return ATS_OK;
}

ats_code ats_capture_integer(capture_file *file, const char *object, const char *name, int64_t low,
                             int64_t high, int64_t *out, ats_err *err)
{
    int64_t value = 0;
    const ats_code rc = ats_h5_get_i64(&file->h5, object, name, &value, err);
    if (rc != ATS_OK) return rc;
    if (value < low || value > high)
        return ats_h5_fail(err, ATS_E_INPUT, &file->h5, object,
                           "the attribute \"%s\" is %lld, outside [%lld, %lld]", name,
                           (long long)value, (long long)low, (long long)high);
    *out = value;
    return ATS_OK;
}

/* Length of the UTF-8 sequence at text, 0: not one (overlong, surrogate, above U+10FFFF). */
static int sequence(const unsigned char *text)
{
    const unsigned char c = text[0];
    if (c < 0x80) return 1;
    const int length = c >= 0xc2 && c <= 0xdf   ? 2
                       : c >= 0xe0 && c <= 0xef ? 3
                       : c >= 0xf0 && c <= 0xf4 ? 4
                                                : 0;
    for (int i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    if ((c == 0xe0 && text[1] < 0xa0) || (c == 0xed && text[1] > 0x9f) ||
        (c == 0xf0 && text[1] < 0x90) || (c == 0xf4 && text[1] > 0x8f))
        return 0;
    return length;
}

bool ats_utf8_valid(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    while (*at != '\0') {
        const int length = sequence(at);
        if (length == 0) return false;
        at += length;
    }
    return true;
}

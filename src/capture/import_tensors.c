#include "capture/import_tensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 100 };

/* Distance in elements between neighbours along each axis. */
static void strides_of(const ats_tensor *tensor, int64_t *stride)
{
    int64_t step = 1;
    for (int i = 0; i < tensor->rank; i++) {
        const int axis = tensor->fortran ? i : tensor->rank - 1 - i;
        stride[axis] = step;
        step *= tensor->extent[axis];
    }
}

static ats_code fail_axes(const ats_tensor *tensor, const char *axes, ats_err *err)
{
    char shape[200];
    return ats_fail(err, ATS_E_INPUT, "%s: tensor %.*s has the shape %s; its axes should be %s",
                    tensor->file->path, SHOWN, tensor->name,
                    ats_tensor_shape(tensor, shape, sizeof shape), axes);
}

static ats_code refuse_empty(const ats_tensor *tensor, ats_err *err)
{
    char shape[200];
    if (tensor->count > 0) return ATS_OK;
    return ats_fail(err, ATS_E_INPUT, "%s: tensor %.*s is empty: its shape is %s",
                    tensor->file->path, SHOWN, tensor->name,
                    ats_tensor_shape(tensor, shape, sizeof shape));
}

static const char *axes_text(const ats_import_header *header, bool flat, char *out, size_t size)
{
    static const char *const words[] = {"head", "token", "dim", "batch of 1"};
    size_t used = 0;
    for (int64_t i = 0; i < header->n_axes && used < size; i++) {
        if (flat && header->axes[i] == ATS_IMPORT_DIM) continue;
        const int n = snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "[",
                               words[header->axes[i]]);
        used += n > 0 ? (size_t)n : 0;
    }
    if (used < size) snprintf(out + used, size - used, "] (layout of the header)");
    return out;
}

ats_code ats_import_view_layout(const ats_import_header *header, const ats_tensor *tensor,
                                bool flat, ats_import_view *out, ats_err *err)
{
    ats_import_view view = {.tensor = tensor, .extent = {1, 1, 1}};
    int64_t stride[ATS_TENSOR_RANK];
    char axes[200];
    if (tensor->rank != header->n_axes - (flat ? 1 : 0))
        return fail_axes(tensor, axes_text(header, flat, axes, sizeof axes), err);
    const ats_code rc = refuse_empty(tensor, err);
    if (rc != ATS_OK) return rc;
    strides_of(tensor, stride);
    for (int64_t i = 0, at = 0; i < header->n_axes; i++) {
        const ats_import_axis axis = header->axes[i];
        if (flat && axis == ATS_IMPORT_DIM) continue;
        if (axis == ATS_IMPORT_BATCH && tensor->extent[at] != 1)
            return fail_axes(tensor, axes_text(header, flat, axes, sizeof axes), err);
        if (axis != ATS_IMPORT_BATCH) {
            view.extent[axis] = tensor->extent[at];
            view.stride[axis] = stride[at];
        }
        at++;
    }
    *out = view;
    return ATS_OK;
}

ats_code ats_import_view_last(const ats_tensor *tensor, int rank, const char *axes,
                              ats_import_view *out, ats_err *err)
{
    ats_import_view view = {.tensor = tensor, .extent = {1, 1, 1}};
    int64_t stride[ATS_TENSOR_RANK];
    int dropped = 0;
    while (tensor->rank - dropped > rank && tensor->extent[dropped] == 1) dropped++;
    if (tensor->rank - dropped != rank) return fail_axes(tensor, axes, err);
    const ats_code rc = refuse_empty(tensor, err);
    if (rc != ATS_OK) return rc;
    strides_of(tensor, stride);
    for (int i = 0; i < rank; i++) {
        view.extent[3 - rank + i] = tensor->extent[dropped + i];
        view.stride[3 - rank + i] = stride[dropped + i];
    }
    *out = view;
    return ATS_OK;
}

static ats_code read_raw(const ats_tensor *tensor, void **out, ats_err *err)
{
    void *raw = malloc((size_t)tensor->bytes + 1);
    if (raw == NULL)
        return ats_fail(err, ATS_E_MEMORY, "%s: out of memory for tensor %.*s (%lld bytes)",
                        tensor->file->path, SHOWN, tensor->name, (long long)tensor->bytes);
    const ats_code rc = ats_tensor_read(tensor, raw, err);
    if (rc != ATS_OK)
        free(raw);
    else
        *out = raw;
    return rc;
}

/* The view's box, row-major; rows as ats_import_take_words has them. */
static ats_code gather(const ats_import_view *view, const int64_t *rows, int64_t n_rows, void **out,
                       int64_t *count, ats_err *err)
{
    const ats_tensor *t = view->tensor;
    const int64_t size = t->size, width = view->extent[2];
    const int64_t taken = rows != NULL ? n_rows : view->extent[1];
    void *raw = NULL;
    ats_code rc = read_raw(t, &raw, err);
    if (rc != ATS_OK) return rc;
    char *box = malloc((size_t)(view->extent[0] * taken * width * size) + 1);
    if (box == NULL) {
        free(raw);
        return ats_fail(err, ATS_E_MEMORY, "out of memory for tensor %.*s", SHOWN, t->name);
    }
    char *to = box;
    for (int64_t head = 0; head < view->extent[0]; head++)
        for (int64_t r = 0; r < taken; r++) {
            const int64_t row = rows != NULL ? rows[r] : r;
            const char *from =
                (const char *)raw + (head * view->stride[0] + row * view->stride[1]) * size;
            if (view->stride[2] == 1) {
                memcpy(to, from, (size_t)(width * size));
                to += width * size;
                continue;
            }
            for (int64_t i = 0; i < width; i++, to += size)
                memcpy(to, from + i * view->stride[2] * size, (size_t)size);
        }
    free(raw);
    *out = box;
    *count = view->extent[0] * taken * width;
    return ATS_OK;
}

static ats_code fail_type(const ats_tensor *tensor, const char *wanted, ats_err *err)
{
    return ats_fail(err, ATS_E_INPUT, "%s: tensor %.*s has the type %s; %s", tensor->file->path,
                    SHOWN, tensor->name, tensor->type, wanted);
}

/* What the words of a float tensor are once float64 is rounded. */
static ats_code storage_of(const ats_tensor *tensor, const char *words, ats_dtype *out,
                           ats_err *err)
{
    switch (tensor->element) {
    case ATS_ELEMENT_F16:
        *out = ATS_F16;
        return ATS_OK;
    case ATS_ELEMENT_BF16:
        *out = ATS_BF16;
        return ATS_OK;
    case ATS_ELEMENT_F32:
    case ATS_ELEMENT_F64:
        *out = ATS_F32;
        return ATS_OK;
    case ATS_ELEMENT_WORDS2:
    case ATS_ELEMENT_U16:
        if (words != NULL && ats_dtype_parse(words, out)) return ATS_OK;
        return fail_type(tensor,
                         "if its 16-bit words are floats, state in the header which: words: "
                         "bfloat16 or words: float16",
                         err);
    case ATS_ELEMENT_BOOL:
    case ATS_ELEMENT_I8:
    case ATS_ELEMENT_U8:
    case ATS_ELEMENT_I16:
    case ATS_ELEMENT_I32:
    case ATS_ELEMENT_U32:
    case ATS_ELEMENT_I64:
    case ATS_ELEMENT_U64:
        return fail_type(tensor, "floats are wanted (float16, bfloat16, float32 or float64)", err);
    case ATS_ELEMENT_OTHER:
        break;
    }
    return ats_fail(err, ATS_E_INPUT, "%s: tensor %.*s has the type %s: %s", tensor->file->path,
                    SHOWN, tensor->name, tensor->type, tensor->reason);
}

/* In place of [count] doubles, the same numbers as floats. */
static ats_code round_doubles(const ats_tensor *tensor, void **data, int64_t count, ats_err *err)
{
    float *rounded = malloc((size_t)count * sizeof *rounded + 1);
    if (rounded == NULL)
        return ats_fail(err, ATS_E_MEMORY, "out of memory for tensor %.*s", SHOWN, tensor->name);
    const double *wide = *data;
    for (int64_t i = 0; i < count; i++) {
        rounded[i] = (float)wide[i];
        if (isfinite(wide[i]) && !isfinite(rounded[i])) {
            free(rounded);
            return ats_fail(err, ATS_E_INPUT,
                            "%s: tensor %.*s holds %g, which float32 cannot; captures hold float32",
                            tensor->file->path, SHOWN, tensor->name, wide[i]);
        }
    }
    free(*data);
    *data = rounded;
    return ATS_OK;
}

ats_code ats_import_take_words(ats_import_set *set, const ats_import_view *view,
                               const int64_t *rows, int64_t n_rows, const char *words,
                               ats_dtype *dtype, void **out, ats_err *err)
{
    void *box = NULL;
    int64_t count = 0;
    ats_code rc;
    ATS_TRY(storage_of(view->tensor, words, dtype, err));
    ATS_TRY(gather(view, rows, n_rows, &box, &count, err));
    if (view->tensor->element == ATS_ELEMENT_F64) {
        ATS_TRY(round_doubles(view->tensor, &box, count, err));
        set->rounded++;
    }
    *out = box;
    box = NULL;
out:
    free(box);
    return rc;
}

ats_code ats_import_take_floats(ats_import_set *set, const ats_import_view *view,
                                const int64_t *rows, int64_t n_rows, const char *words, float **out,
                                ats_err *err)
{
    ats_dtype dtype = ATS_F32;
    void *box = NULL;
    float *wide = NULL;
    ats_code rc = ats_import_take_words(set, view, rows, n_rows, words, &dtype, &box, err);
    if (rc != ATS_OK) return rc;
    const int64_t count =
        view->extent[0] * (rows != NULL ? n_rows : view->extent[1]) * view->extent[2];
    if (dtype == ATS_F32) {
        *out = box;
        return ATS_OK;
    }
    wide = malloc((size_t)count * sizeof *wide + 1);
    if (wide != NULL) ats_widen(dtype, box, 0, count, wide);
    free(box);
    if (wide == NULL) return ats_fail(err, ATS_E_MEMORY, "out of memory for a tensor of floats");
    *out = wide;
    return ATS_OK;
}

ats_code ats_import_take_mask(const ats_import_view *view, const int64_t *rows, int64_t n_rows,
                              uint8_t **out, ats_err *err)
{
    const ats_tensor *t = view->tensor;
    void *box = NULL;
    int64_t count = 0;
    if (t->element != ATS_ELEMENT_BOOL && t->element != ATS_ELEMENT_U8 &&
        t->element != ATS_ELEMENT_I8)
        return fail_type(t,
                         "a mask is of booleans or bytes; a mask of floats is additive: name it "
                         "under names.bias",
                         err);
    const ats_code rc = gather(view, rows, n_rows, &box, &count, err);
    if (rc != ATS_OK) return rc;
    uint8_t *bytes = box;
    for (int64_t i = 0; i < count; i++) bytes[i] = bytes[i] != 0;
    *out = bytes;
    return ATS_OK;
}

/* One element; false where it is above int64. */
static bool integer_at(const ats_tensor *tensor, const void *raw, int64_t i, int64_t *out)
{
    switch (tensor->element) {
    case ATS_ELEMENT_I8:
        *out = ((const int8_t *)raw)[i];
        return true;
    case ATS_ELEMENT_U8:
        *out = ((const uint8_t *)raw)[i];
        return true;
    case ATS_ELEMENT_I16:
        *out = ((const int16_t *)raw)[i];
        return true;
    case ATS_ELEMENT_U16:
        *out = ((const uint16_t *)raw)[i];
        return true;
    case ATS_ELEMENT_I32:
        *out = ((const int32_t *)raw)[i];
        return true;
    case ATS_ELEMENT_U32:
        *out = ((const uint32_t *)raw)[i];
        return true;
    case ATS_ELEMENT_I64:
        *out = ((const int64_t *)raw)[i];
        return true;
    case ATS_ELEMENT_U64:
        *out = (int64_t)((const uint64_t *)raw)[i];
        return *out >= 0;
    case ATS_ELEMENT_F16:
    case ATS_ELEMENT_BF16:
    case ATS_ELEMENT_F32:
    case ATS_ELEMENT_F64:
    case ATS_ELEMENT_BOOL:
    case ATS_ELEMENT_WORDS2:
    case ATS_ELEMENT_OTHER:
        break;
    }
    return false;
}

ats_code ats_import_take_integers(ats_import_set *set, const ats_tensor *tensor, int64_t n,
                                  int64_t low, int64_t high, const int64_t **out, ats_err *err)
{
    ats_import_view view;
    void *raw = NULL;
    int64_t *values = NULL;
    ats_code rc;
    ATS_TRY(ats_import_view_last(tensor, 1, "[key]", &view, err));
    if (tensor->count != n)
        return ats_fail(err, ATS_E_INPUT, "%s: tensor %.*s has %lld elements for %lld keys",
                        tensor->file->path, SHOWN, tensor->name, (long long)tensor->count,
                        (long long)n);
    if (tensor->element < ATS_ELEMENT_I8 || tensor->element > ATS_ELEMENT_U64)
        return fail_type(tensor, "whole numbers are wanted", err);
    ATS_TRY(ATS_NEW(set->arena, n, &values, err));
    ATS_TRY(read_raw(tensor, &raw, err));
    for (int64_t i = 0; i < n; i++)
        if (!integer_at(tensor, raw, i, &values[i]) || values[i] < low || values[i] > high) {
            rc = ats_fail(err, ATS_E_INPUT, "%s: tensor %.*s: element %lld is outside %lld to %lld",
                          tensor->file->path, SHOWN, tensor->name, (long long)i, (long long)low,
                          (long long)high);
            goto out;
        }
    *out = values;
out:
    free(raw);
    return rc;
}

ats_code ats_import_take_doubles(ats_import_set *set, const ats_tensor *tensor, const double **out,
                                 ats_err *err)
{
    void *raw = NULL;
    double *values = NULL;
    ats_dtype dtype = ATS_F32;
    ats_code rc;
    ATS_TRY(storage_of(tensor, NULL, &dtype, err));
    ATS_TRY(ATS_NEW(set->arena, tensor->count, &values, err));
    ATS_TRY(read_raw(tensor, &raw, err));
    for (int64_t i = 0; i < tensor->count; i++)
        values[i] = tensor->element == ATS_ELEMENT_F64 ? ((const double *)raw)[i]
                                                       : (double)ats_load(dtype, raw, i);
    *out = values;
out:
    free(raw);
    return rc;
}

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "h5/attr.h"
#include "h5/chunks.h"
#include "h5/scales.h"
#include "h5/version.h"
#include "report/results_private.h"

/* It is a result of this version, and whole. */
static ats_code check_head(const ats_h5_file *file, ats_arena *arena, ats_err *err)
{
    const char *format = NULL;
    int64_t complete = 0;
    ats_code rc;
    if (!ats_h5_has_attr(file, "/", "format"))
        return ats_h5_fail(err, ATS_E_INPUT, file, "/",
                           "has no attribute \"format\"; a result file says " ATS_RESULTS_FORMAT);
    ATS_TRY(ats_h5_get_text(file, "/", "format", arena, &format, err));
    if (strcmp(format, ATS_RESULTS_FORMAT) != 0)
        return ats_h5_fail(err, ATS_E_INPUT, file, "/",
                           "is \"%s\", should be a result file (" ATS_RESULTS_FORMAT ")", format);
    ATS_TRY(ats_h5_expect_version(file, "result", ATS_RESULTS_VERSION, err));
    if (ats_h5_has_attr(file, "/", "complete"))
        ATS_TRY(ats_h5_get_i64(file, "/", "complete", &complete, err));
    if (complete != 1)
        return ats_h5_fail(err, ATS_E_INPUT, file, "/",
                           "is not complete: the run that wrote it did not end; run it again");
out:
    return rc;
}

static ats_code open_result(const char *path, bool known, ats_result_file **out, ats_err *err)
{
    ats_arena arena = {.blocks = NULL};
    ats_result_file *result = calloc(1, sizeof *result);
    if (result == NULL) return ats_fail(err, ATS_E_MEMORY, "%s: out of memory", path);
    ats_code rc;
    ATS_TRY((known ? ats_h5_open_again : ats_h5_open)(path, &result->file, err));
    ATS_TRY(check_head(&result->file, &arena, err));
    *out = result;
    result = NULL;
out:
    ats_arena_fini(&arena);
    ats_result_close(result);
    return rc;
}

ats_code ats_result_open(const char *path, ats_result_file **out, ats_err *err)
{
    return open_result(path, false, out, err);
}

ats_code ats_result_open_again(const char *path, ats_result_file **out, ats_err *err)
{
    return open_result(path, true, out, err);
}

void ats_result_close(ats_result_file *file)
{
    if (file == NULL) return;
    ats_h5_close(&file->file);
    free(file);
}

/* Whole float32 or int32 variables through the parallel reader, others through HDF5. */
static ats_code read_numbers(const ats_h5_dataset *dataset, double *values, ats_err *err)
{
    const bool narrow = dataset->type == ATS_H5_F32 || dataset->type == ATS_H5_I32;
    if (!narrow) return ats_h5_read(dataset, NULL, NULL, ATS_H5_F64, values, err);
    /* read into the upper half, widened upwards from the start: never overtakes what is unread */
    char *raw = (char *)values + (size_t)dataset->count * 4;
    ats_code rc = ats_h5_read_all(dataset, true, raw, err);
    if (rc != ATS_OK) return rc;
    for (int64_t i = 0; i < dataset->count; i++) {
        float x;
        int32_t n;
        if (dataset->type == ATS_H5_F32) {
            memcpy(&x, raw + 4 * i, 4);
            values[i] = (double)x;
        } else {
            memcpy(&n, raw + 4 * i, 4);
            values[i] = n;
        }
    }
    return ATS_OK;
}

static ats_code blank_fill(const ats_h5_dataset *dataset, double *values, ats_err *err)
{
    if (!ats_h5_type_is_integer(dataset->type)) return ATS_OK;
    if (!ats_h5_has_attr(dataset->file, dataset->name, "_FillValue")) return ATS_OK;
    int64_t fill = 0;
    ats_code rc = ats_h5_get_i64(dataset->file, dataset->name, "_FillValue", &fill, err);
    for (int64_t i = 0; i < dataset->count && rc == ATS_OK; i++)
        if (values[i] == (double)fill) values[i] = (double)NAN;
    return rc;
}

ats_code ats_result_read(ats_result_file *file, const char *name, ats_result_variable *out,
                         ats_err *err)
{
    ats_h5_dataset dataset = {.id = 0};
    ats_result_variable variable = {.values = NULL};
    ats_code rc;
    ATS_TRY(ats_h5_dataset_open(&file->file, name, &dataset, err));
    if (dataset.rank > 6 || dataset.type == ATS_H5_TEXT || dataset.type == ATS_H5_OTHER) {
        rc = ats_h5_fail(err, ATS_E_INPUT, &file->file, name,
                         "holds %s of rank %d; numbers of rank 6 at most were asked for",
                         ats_h5_type_name(dataset.type), dataset.rank);
        goto out;
    }
    ATS_TRY(ats_h5_expect_stored(&dataset, true, err));
    variable.rank = dataset.rank;
    for (int i = 0; i < dataset.rank; i++) {
        variable.extent[i] = dataset.extent[i];
        ATS_TRY(ats_h5_scale_name(&dataset, i, variable.axis[i], sizeof variable.axis[i], err));
    }
    variable.values = malloc((size_t)(dataset.count > 0 ? dataset.count : 1) * sizeof(double));
    if (variable.values == NULL) {
        rc = ats_h5_fail(err, ATS_E_MEMORY, &file->file, name, "out of memory for %lld numbers",
                         (long long)dataset.count);
        goto out;
    }
    ATS_TRY(read_numbers(&dataset, variable.values, err));
    ATS_TRY(blank_fill(&dataset, variable.values, err));
    *out = variable;
    variable.values = NULL;
out:
    free(variable.values);
    ats_h5_dataset_close(&dataset);
    return rc;
}

ats_code ats_result_shape(ats_result_file *file, const char *name, ats_result_variable *out,
                          ats_err *err)
{
    ats_h5_dataset dataset = {.id = 0};
    ats_result_variable variable = {.values = NULL};
    ats_code rc;
    ATS_TRY(ats_h5_dataset_open(&file->file, name, &dataset, err));
    if (dataset.rank > 6) {
        rc = ats_h5_fail(err, ATS_E_INPUT, &file->file, name, "has rank %d, at most 6 is known",
                         dataset.rank);
        goto out;
    }
    variable.rank = dataset.rank;
    for (int i = 0; i < dataset.rank; i++) {
        variable.extent[i] = dataset.extent[i];
        ATS_TRY(ats_h5_scale_name(&dataset, i, variable.axis[i], sizeof variable.axis[i], err));
    }
    *out = variable;
out:
    ats_h5_dataset_close(&dataset);
    return rc;
}

ats_code ats_result_read_rows(ats_result_file *file, const char *name, int64_t first, int64_t count,
                              float *out, ats_err *err)
{
    ats_h5_dataset dataset = {.id = 0};
    int64_t start[ATS_H5_MAX_RANK] = {first}, extent[ATS_H5_MAX_RANK] = {count};
    ats_code rc;
    ATS_TRY(ats_h5_dataset_open(&file->file, name, &dataset, err));
    const bool narrow = dataset.type == ATS_H5_F32 || dataset.type == ATS_H5_I32;
    if (!narrow || dataset.rank < 1 || first < 0 || count < 0 ||
        first > dataset.extent[0] - count) {
        rc = ats_h5_fail(err, ATS_E_INPUT, &file->file, name,
                         "is no float32 or int32 variable with rows %lld to %lld", (long long)first,
                         (long long)(first + count));
        goto out;
    }
    ATS_TRY(ats_h5_expect_stored(&dataset, true, err));
    for (int i = 1; i < dataset.rank; i++) extent[i] = dataset.extent[i];
    rc = ats_h5_read_box(&dataset, start, extent, true, out, err);
out:
    ats_h5_dataset_close(&dataset);
    return rc;
}

bool ats_result_has(const ats_result_file *file, const char *name)
{
    return ats_h5_exists(&file->file, name);
}

static ats_code copy_texts(const char *const *from, int64_t count, char ***out, ats_err *err)
{
    char **texts = calloc((size_t)(count > 0 ? count : 1), sizeof *texts);
    bool failed = texts == NULL;
    for (int64_t i = 0; i < count && !failed; i++) failed = (texts[i] = strdup(from[i])) == NULL;
    if (failed) {
        ats_result_free_texts(texts, count);
        return ats_fail(err, ATS_E_MEMORY, "out of memory for %lld texts", (long long)count);
    }
    *out = texts;
    return ATS_OK;
}

ats_code ats_result_texts(ats_result_file *file, const char *name, char ***out, int64_t *count,
                          ats_err *err)
{
    ats_arena arena = {.blocks = NULL};
    ats_h5_dataset dataset = {.id = 0};
    const char *const *texts = NULL;
    const char *one = NULL;
    int64_t n = 1;
    ats_code rc;
    if (!ats_h5_exists(&file->file, name) && ats_h5_has_attr(&file->file, "/", name)) {
        ATS_TRY(ats_h5_get_text(&file->file, "/", name, &arena, &one, err));
        texts = &one;
    } else {
        ATS_TRY(ats_h5_dataset_open(&file->file, name, &dataset, err));
        ATS_TRY(ats_h5_read_texts(&dataset, &arena, &texts, err));
        n = dataset.count;
    }
    ATS_TRY(copy_texts(texts, n, out, err));
    *count = n;
out:
    ats_h5_dataset_close(&dataset);
    ats_arena_fini(&arena);
    return rc;
}

void ats_result_free_texts(char **texts, int64_t count)
{
    for (int64_t i = 0; texts != NULL && i < count; i++) free(texts[i]);
    free(texts);
}

ats_code ats_result_attribute(ats_result_file *file, const char *name, char *text, size_t size,
                              ats_err *err)
{
    ats_arena arena = {.blocks = NULL};
    const ats_h5_file *h5 = &file->file;
    const char *words = NULL;
    int64_t whole = 0;
    double real = 0;
    ats_code rc = ats_h5_get_text(h5, "/", name, &arena, &words, err);
    if (rc == ATS_OK) {
        snprintf(text, size, "%s", words);
    } else if (ats_h5_has_attr(h5, "/", name)) {
        rc = ats_h5_get_i64(h5, "/", name, &whole, err);
        if (rc == ATS_OK) snprintf(text, size, "%lld", (long long)whole);
        if (rc != ATS_OK && (rc = ats_h5_get_f64(h5, "/", name, &real, err)) == ATS_OK)
            snprintf(text, size, "%.17g", real);
    }
    ats_arena_fini(&arena);
    return rc;
}

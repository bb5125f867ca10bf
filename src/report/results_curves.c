/* The curve variables of a result: writer and reader. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "h5/attr.h"
#include "report/results_private.h"

static ats_code put_flags(const ats_results *results, const char *name, ats_err *err)
{
    static const int32_t values[] = {-1, 0, 1};
    ats_code rc = ats_h5_put_array(&results->file, name, "flag_values", ATS_H5_I32, 3, values, err);
    if (rc == ATS_OK)
        rc = ats_h5_put_text(&results->file, name, "flag_meanings",
                             "left_censored observed right_censored", err);
    return rc;
}

ats_code ats_results_curves(ats_results *results, const ats_curve_variable *curves, int64_t count,
                            ats_err *err)
{
    const ats_results_shape *shape = &results->shape;
    const ats_results_dims dims = {
        .rank = 3,
        .axis = {ATS_AXIS_CURVE, ATS_AXIS_LAYER, ATS_AXIS_HEAD},
        .extent = {shape->n_curves, shape->n_layers, shape->n_heads},
    };
    ats_code rc = ATS_OK;
    if (shape->n_curves == 0) return ATS_OK;
    for (int64_t i = 0; i < count && rc == ATS_OK; i++) {
        const ats_curve_variable *c = &curves[i];
        const bool integer = c->integers != NULL;
        rc = ats_results_put_kept(results, c->name, &dims, integer,
                                  integer ? (const void *)c->integers : (const void *)c->values,
                                  c->unit, c->long_name, c->definition, err);
        if (rc == ATS_OK && integer) rc = put_flags(results, c->name, err);
    }
    return rc;
}

ats_code ats_results_cells(ats_results *results, const char *name, const char *unit,
                           const char *long_name, const char *definition, const float *values,
                           ats_err *err)
{
    const ats_results_shape *shape = &results->shape;
    const ats_results_dims dims = {
        .rank = 3,
        .axis = {ATS_AXIS_CASE, ATS_AXIS_LAYER, ATS_AXIS_HEAD},
        .extent = {shape->n_cases, shape->n_layers, shape->n_heads},
    };
    return ats_results_put_kept(results, name, &dims, false, values, unit, long_name, definition,
                                err);
}

typedef struct curve_reader {
    ats_result_file *file;
    ats_arena *arena;
    ats_err *err;
    int64_t count; /* elements of the variable read last */
    int64_t extent[6];
} curve_reader;

static ats_code numbers(curve_reader *r, const char *name, const double **out)
{
    ats_result_variable v = {.values = NULL};
    double *copy = NULL;
    ats_code rc;
    ATS_TRY(ats_result_read(r->file, name, &v, r->err));
    r->count = 1;
    memset(r->extent, 0, sizeof r->extent);
    for (int i = 0; i < v.rank; i++) r->count *= r->extent[i] = v.extent[i];
    ATS_TRY(ATS_NEW(r->arena, r->count, &copy, r->err));
    memcpy(copy, v.values, (size_t)r->count * sizeof *copy);
    *out = copy;
out:
    free(v.values);
    return rc;
}

/* -1 for what no whole number stands for. */
static ats_code whole(curve_reader *r, const char *name, const int64_t **out)
{
    const double *read = NULL;
    int64_t *copy = NULL;
    ats_code rc;
    ATS_TRY(numbers(r, name, &read));
    ATS_TRY(ATS_NEW(r->arena, r->count, &copy, r->err));
    for (int64_t i = 0; i < r->count; i++) copy[i] = fabs(read[i]) < 9e15 ? (int64_t)read[i] : -1;
    *out = copy;
out:
    return rc;
}

/* An undefined cell counts as not censored: its value is NaN and is left out by that. So does what is
 * no flag. */
static ats_code flags(curve_reader *r, const char *name, const int8_t **out)
{
    const double *read = NULL;
    int8_t *copy = NULL;
    ats_code rc;
    ATS_TRY(numbers(r, name, &read));
    ATS_TRY(ATS_NEW(r->arena, r->count, &copy, r->err));
    for (int64_t i = 0; i < r->count; i++) copy[i] = fabs(read[i]) <= 1 ? (int8_t)read[i] : 0;
    *out = copy;
out:
    return rc;
}

static ats_code words(curve_reader *r, const char *name, const char *const **out)
{
    char **read = NULL;
    const char **copy = NULL;
    int64_t n = 0;
    ats_code rc;
    ATS_TRY(ats_result_texts(r->file, name, &read, &n, r->err));
    ATS_TRY(ATS_NEW(r->arena, n, &copy, r->err));
    for (int64_t i = 0; i < n; i++) ATS_TRY(ats_arena_strdup(r->arena, read[i], &copy[i], r->err));
    *out = copy;
out:
    ats_result_free_texts(read, n);
    return rc;
}

/* Everything along the axis is as long as it. */
static ats_code check_axis(const curve_reader *r, int64_t n)
{
    static const char *const names[] = {"curve_id",        "curve_perturbation", "curve_kind",
                                        "curve_positions", "curve_dose_name",    "curve_doses",
                                        "curve_dose_min",  "curve_dose_max"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ats_result_variable v;
        ats_code rc = ats_result_shape(r->file, names[i], &v, r->err);
        if (rc != ATS_OK) return rc;
        if (v.rank != 1 || v.extent[0] != n)
            return ats_h5_fail(r->err, ATS_E_INPUT, &r->file->file, names[i],
                               "should have %lld entries, one a curve", (long long)n);
    }
    return ATS_OK;
}

static ats_code read_axis(curve_reader *r, ats_result_curves *out)
{
    ats_code rc;
    ATS_TRY(whole(r, "curve_index", &out->of_case));
    out->n_cases = r->count;
    ATS_TRY(words(r, "curve_id", &out->id));
    ATS_TRY(words(r, "curve_perturbation", &out->perturbation));
    ATS_TRY(words(r, "curve_kind", &out->kind));
    ATS_TRY(words(r, "curve_positions", &out->positions));
    ATS_TRY(words(r, "curve_dose_name", &out->dose_name));
    ATS_TRY(numbers(r, "curve_doses", &out->doses));
    ATS_TRY(numbers(r, "curve_dose_min", &out->dose_min));
    ATS_TRY(numbers(r, "curve_dose_max", &out->dose_max));
    ATS_TRY(whole(r, "curve_sample", &out->sample));
    out->n = r->count;
    rc = check_axis(r, out->n);
out:
    return rc;
}

/* Numbers [curve, layer, head], of the extents of the first one that was read. */
static ats_code check_cells(curve_reader *r, const ats_result_curves *out, const char *name)
{
    if (r->count == out->n * out->n_layers * out->n_heads) return ATS_OK;
    return ats_h5_fail(r->err, ATS_E_INPUT, &r->file->file, name,
                       "has %lld numbers, should be %lld curves x %lld layers x %lld heads",
                       (long long)r->count, (long long)out->n, (long long)out->n_layers,
                       (long long)out->n_heads);
}

static ats_code read_cells(curve_reader *r, ats_result_curves *out)
{
    const struct {
        const char *name;
        const double **values;
        const int8_t **flags;
    } all[] = {
        {"competition_strength", &out->competition_strength, NULL},
        {"row_tolerance", &out->row_tolerance, NULL},
        {"half_dose", &out->half_dose, NULL},
        {"half_dose_censored", NULL, &out->half_dose_censored},
        {"control_half_dose", &out->control_half_dose, NULL},
        {"control_half_dose_censored", NULL, &out->control_half_dose_censored},
        {"breakdown_dose", &out->breakdown_dose, NULL},
        {"breakdown_dose_censored", NULL, &out->breakdown_dose_censored},
        {"excess", &out->excess, NULL},
        {"excess_over_control", &out->excess_over_control, NULL},
        {"position_dip", &out->position_dip, NULL},
        {"position_margin_dip", &out->position_margin_dip, NULL},
        {"position_lowest", &out->position_lowest, NULL},
    };
    ats_code rc = ATS_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && rc == ATS_OK; i++) {
        ATS_TRY(all[i].values != NULL ? numbers(r, all[i].name, all[i].values)
                                      : flags(r, all[i].name, all[i].flags));
        if (i == 0) {
            out->n_layers = r->extent[1];
            out->n_heads = r->extent[2];
        }
        rc = check_cells(r, out, all[i].name);
    }
out:
    return rc;
}

ats_code ats_result_curves_read(ats_result_file *file, ats_arena *arena, ats_result_curves *out,
                                ats_err *err)
{
    curve_reader r = {.file = file, .arena = arena, .err = err};
    ats_result_curves curves = {.n = 0};
    ats_code rc = ATS_OK;
    if (!ats_result_has(file, "curve_index")) {
        *out = curves;
        return ATS_OK;
    }
    ATS_TRY(read_axis(&r, &curves));
    ATS_TRY(read_cells(&r, &curves));
    *out = curves;
out:
    return rc;
}

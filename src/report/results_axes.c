#include <stdlib.h>
#include <string.h>

#include "h5/attr.h"
#include "h5/scales.h"
#include "report/results_private.h"

static const char *const part_names[ATS_N_PARTS] = {"removal", "intrusion", "dilution", "reroute",
                                                    "payload"};

static const char *const axis_titles[ATS_N_AXES] = {"case: sample x variant",
                                                    "captured sample",
                                                    "layer",
                                                    "query head",
                                                    "probe",
                                                    "span of the context",
                                                    "part of the output change",
                                                    "place in a list of keys, heaviest first",
                                                    "readout direction",
                                                    "dimension of the value space",
                                                    "dose curve: sample x family with its other "
                                                    "parameters fixed"};

static int axis_named(const char *name)
{
    for (int a = 0; a < ATS_N_AXES; a++)
        if (strcmp(ats_results_axis_name((ats_results_axis)a), name) == 0) return a;
    return -1;
}

static ats_code put_words(const ats_results *results, const char *object, const char *units,
                          const char *long_name, const char *definition, ats_err *err)
{
    ats_code rc;
    ATS_TRY(ats_h5_put_text(&results->file, object, "units", units != NULL ? units : "1", err));
    ATS_TRY(ats_h5_put_text(&results->file, object, "long_name", long_name, err));
    ATS_TRY(ats_h5_put_text(&results->file, object, "definition",
                            definition != NULL ? definition : long_name, err));
out:
    return rc;
}

ats_code ats_results_describe(const ats_results *results, const ats_h5_dataset *dataset,
                              const ats_results_dims *dims, const char *units,
                              const char *long_name, const char *definition, ats_err *err)
{
    ats_code rc = ATS_OK;
    const ats_h5_dataset *scales[ATS_H5_MAX_RANK];
    for (int i = 0; i < dims->rank; i++) scales[i] = &results->scales[dims->axis[i]];
    if (dims->rank > 0) ATS_TRY(ats_h5_scales_attach(dataset, scales, err));
    rc = put_words(results, dataset->name, units, long_name, definition, err);
out:
    return rc;
}

/* "0,1,2" as an attribute of the variable's own type, which CF asks for. */
static ats_code put_flags(const ats_results *results, const ats_coordinate *c, ats_err *err)
{
    int64_t values[64], count = 0;
    int8_t small[64];
    for (const char *at = c->flag_values; *at != '\0' && count < 64;) {
        char *end;
        values[count] = strtoll(at, &end, 10);
        if (end == at) break;
        small[count] = (int8_t)values[count];
        count++;
        at = *end == ',' ? end + 1 : end;
    }
    const bool byte = c->type == ATS_TYPE_BOOL;
    ats_code rc =
        ats_h5_put_array(&results->file, c->name, "flag_values", byte ? ATS_H5_I8 : ATS_H5_I64,
                         count, byte ? (const void *)small : (const void *)values, err);
    if (rc == ATS_OK && c->flag_meanings != NULL)
        rc = ats_h5_put_text(&results->file, c->name, "flag_meanings", c->flag_meanings, err);
    return rc;
}

/* The dataset of a coordinate, not yet attached or described. */
static ats_code make_coordinate(const ats_results *results, const ats_coordinate *c, int64_t size,
                                bool scale, ats_h5_dataset *out, ats_err *err)
{
    static const double nan_f64 = (double)__builtin_nanf("");
    if (c->type == ATS_TYPE_TEXT)
        return ats_h5_write_texts(&results->file, c->name, c->text, size, out, err);
    ats_h5_layout layout = {.rank = 1, .extent = {size}};
    const void *data = c->i64;
    layout.type = ATS_H5_I64;
    if (c->type == ATS_TYPE_F64) {
        layout.type = ATS_H5_F64;
        layout.fill = &nan_f64;
        data = c->f64;
    } else if (c->type == ATS_TYPE_BOOL) {
        layout.type = ATS_H5_I8;
        data = c->flag;
    }
    ats_h5_dataset dataset = {.id = 0};
    ats_code rc = ats_h5_dataset_create(&results->file, c->name, &layout, &dataset, err);
    if (rc != ATS_OK) return rc;
    ATS_TRY(ats_h5_write(&dataset, NULL, NULL, layout.type, data, err));
    if (c->type == ATS_TYPE_F64 && !scale)
        ATS_TRY(
            ats_h5_put_array(&results->file, c->name, "_FillValue", ATS_H5_F64, 1, &nan_f64, err));
    if (c->type == ATS_TYPE_BOOL)
        ATS_TRY(ats_h5_put_text(&results->file, c->name, "dtype", "bool", err));
    if (c->flag_values != NULL) ATS_TRY(put_flags(results, c, err));
    if (c->index_of != NULL)
        ATS_TRY(ats_h5_put_text(&results->file, c->name, "index_of", c->index_of, err));
    *out = dataset;
    return ATS_OK;
out:
    ats_h5_dataset_close(&dataset);
    return rc;
}

static ats_code make_scale(ats_results *results, ats_results_axis axis, const ats_coordinate *given,
                           ats_err *err)
{
    const char *name = ats_results_axis_name(axis);
    const int64_t size = ats_results_axis_size(&results->shape, axis);
    ats_coordinate c = {.name = name, .axis = name, .type = ATS_TYPE_TEXT};
    ats_code rc;
    if (given != NULL) {
        c = *given;
    } else if (axis == ATS_AXIS_SPAN && results->shape.span_names != NULL) {
        c.text = results->shape.span_names;
    } else if (axis == ATS_AXIS_READOUT && results->shape.readout_names != NULL) {
        c.text = results->shape.readout_names;
    } else if (axis == ATS_AXIS_PART) {
        c.text = part_names;
    } else {
        int64_t *index = NULL;
        ATS_TRY(ATS_NEW(&results->arena, size, &index, err));
        for (int64_t i = 0; i < size; i++) index[i] = i;
        c.type = ATS_TYPE_I64;
        c.i64 = index;
    }
    ATS_TRY(make_coordinate(results, &c, size, true, &results->scales[axis], err));
    ATS_TRY(ats_h5_scale_make(&results->scales[axis], name, err));
    rc = put_words(results, name, c.unit, c.long_name != NULL ? c.long_name : axis_titles[axis],
                   axis_titles[axis], err);
out:
    return rc;
}

ats_code ats_results_scales(ats_results *results, const ats_coordinate *coordinates, int64_t count,
                            bool vectors, ats_err *err)
{
    for (int a = 0; a < ATS_N_AXES; a++) {
        const ats_results_axis axis = (ats_results_axis)a;
        const ats_coordinate *given = NULL;
        if (ats_results_axis_size(&results->shape, axis) == 0) continue;
        if (axis == ATS_AXIS_DV && !vectors) continue;
        for (int64_t i = 0; i < count; i++)
            if (strcmp(coordinates[i].name, ats_results_axis_name(axis)) == 0) {
                if (axis_named(coordinates[i].axis) != a)
                    return ats_fail(err, ATS_E_INTERNAL,
                                    "the coordinate %s lies along %s, but its name is that of an "
                                    "axis; give it another name",
                                    coordinates[i].name, coordinates[i].axis);
                given = &coordinates[i];
            }
        ats_code rc = make_scale(results, axis, given, err);
        if (rc != ATS_OK) return rc;
    }
    return ATS_OK;
}

static ats_code add_coordinate(ats_results *results, const ats_coordinate *c, ats_err *err)
{
    const int axis = axis_named(c->axis);
    if (axis < 0 || results->scales[axis].id <= 0)
        return ats_fail(err, ATS_E_INTERNAL,
                        "the coordinate %s lies along %s, which is no axis of "
                        "this result",
                        c->name, c->axis);
    if (axis_named(c->name) >= 0)
        return ats_fail(err, ATS_E_INTERNAL,
                        "%s is the name of an axis and was given too late, or "
                        "twice",
                        c->name);
    ats_h5_dataset dataset = {.id = 0};
    const ats_results_dims dims = {.rank = 1, .axis = {(ats_results_axis)axis}};
    ats_code rc =
        make_coordinate(results, c, ats_results_axis_size(&results->shape, (ats_results_axis)axis),
                        false, &dataset, err);
    if (rc == ATS_OK)
        rc = ats_results_describe(results, &dataset, &dims, c->unit,
                                  c->long_name != NULL ? c->long_name : c->name, NULL, err);
    ats_h5_dataset_close(&dataset);
    return rc;
}

ats_code ats_results_coordinates(ats_results *results, const ats_coordinate *coordinates,
                                 int64_t count, ats_err *err)
{
    for (int64_t i = 0; i < count; i++) {
        if (strcmp(coordinates[i].name, coordinates[i].axis) == 0) continue; /* a scale */
        ats_code rc = add_coordinate(results, &coordinates[i], err);
        if (rc != ATS_OK) return rc;
    }
    return ATS_OK;
}

ats_code ats_results_attributes(const ats_results *results, const ats_attribute *attributes,
                                int64_t count, ats_err *err)
{
    ats_code rc = ATS_OK;
    for (int64_t i = 0; i < count && rc == ATS_OK; i++) {
        const ats_attribute *a = &attributes[i];
        if (a->type == ATS_TYPE_TEXT)
            rc = ats_h5_put_text(&results->file, "/", a->name, a->text != NULL ? a->text : "", err);
        else if (a->type == ATS_TYPE_F64)
            rc = ats_h5_put_f64(&results->file, "/", a->name, a->f64, err);
        else
            rc = ats_h5_put_i64(&results->file, "/", a->name, a->i64, err);
    }
    return rc;
}

/* Dimension scales, the way netCDF-4, xarray and h5netcdf read them: every axis has one. */
#ifndef ATS_H5_SCALES_H
#define ATS_H5_SCALES_H

#include "h5/dataset.h"

/* Makes a one-dimensional dataset the scale (coordinate variable) of the dimension `name`. */
ATS_MUST_CHECK ats_code ats_h5_scale_make(const ats_h5_dataset *dataset, const char *name,
                                          ats_err *err);
/* A dimension without a coordinate: a scale dataset that netCDF readers do not list. */
ATS_MUST_CHECK ats_code ats_h5_scale_bare(const ats_h5_file *file, const char *name, int64_t size,
                                          ats_h5_dataset *out, ats_err *err);
ATS_MUST_CHECK ats_code ats_h5_scale_attach(const ats_h5_dataset *dataset, int axis,
                                            const ats_h5_dataset *scale, ats_err *err);
/* Name of the scale of an axis; "" without one. */
ATS_MUST_CHECK ats_code ats_h5_scale_name(const ats_h5_dataset *dataset, int axis, char *out,
                                          size_t size, ats_err *err);

#endif

/* Dimension scales, the way netCDF-4, xarray and h5netcdf read them: every axis has one.
 * Formats of the attributes: HDF5 Dimension Scale Specification, 4.2. */
#ifndef ATS_H5_SCALES_H
#define ATS_H5_SCALES_H

#include "h5/dataset.h"

/* Makes a one-dimensional dataset the scale (coordinate variable) of the dimension `name`. */
ATS_MUST_CHECK ats_code ats_h5_scale_make(const ats_h5_dataset *dataset, const char *name,
                                          ats_err *err);
/* A dimension without a coordinate: a scale dataset that netCDF readers do not list. */
ATS_MUST_CHECK ats_code ats_h5_scale_bare(const ats_h5_file *file, const char *name, int64_t size,
                                          ats_h5_dataset *out, ats_err *err);
/* Gives every axis of a dataset of a created file its scale, [rank]. Once for a dataset. The lists
 * of a scale's users are written when the file is shut: HDF5's own attaching rewrites them each
 * time, which costs the square of the variables. */
ATS_MUST_CHECK ats_code ats_h5_scales_attach(const ats_h5_dataset *dataset,
                                             const ats_h5_dataset *const *scales, ats_err *err);
/* Name of the scale of an axis; "" without one. */
ATS_MUST_CHECK ats_code ats_h5_scale_name(const ats_h5_dataset *dataset, int axis, char *out,
                                          size_t size, ats_err *err);

#endif

/* Attributes of groups and datasets, named by the object's absolute path ("/" is the root).
 * Reading accepts integers of any width (h5py's booleans too), floats of any width, strings of
 * variable and fixed length. Written texts are variable-length UTF-8 scalars. */
#ifndef ATS_H5_ATTR_H
#define ATS_H5_ATTR_H

#include "h5/dataset.h"

bool ats_h5_has_attr(const ats_h5_file *file, const char *object, const char *name);
ATS_MUST_CHECK ats_code ats_h5_get_i64(const ats_h5_file *file, const char *object,
                                       const char *name, int64_t *out, ats_err *err);
/* Integers are accepted too. */
ATS_MUST_CHECK ats_code ats_h5_get_f64(const ats_h5_file *file, const char *object,
                                       const char *name, double *out, ats_err *err);
ATS_MUST_CHECK ats_code ats_h5_get_text(const ats_h5_file *file, const char *object,
                                        const char *name, ats_arena *arena, const char **out,
                                        ats_err *err);

ATS_MUST_CHECK ats_code ats_h5_put_i64(const ats_h5_file *file, const char *object,
                                       const char *name, int64_t value, ats_err *err);
ATS_MUST_CHECK ats_code ats_h5_put_f64(const ats_h5_file *file, const char *object,
                                       const char *name, double value, ats_err *err);
ATS_MUST_CHECK ats_code ats_h5_put_text(const ats_h5_file *file, const char *object,
                                        const char *name, const char *text, ats_err *err);
/* count -1: scalar, else a one-dimensional attribute of any numeric type. */
ATS_MUST_CHECK ats_code ats_h5_put_array(const ats_h5_file *file, const char *object,
                                         const char *name, ats_h5_type type, int64_t count,
                                         const void *values, ats_err *err);

#endif

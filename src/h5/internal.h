/* What the files of this folder share: HDF5's header and small helpers. Never included elsewhere.
 */
#ifndef ATS_H5_INTERNAL_H
#define ATS_H5_INTERNAL_H

#include <hdf5.h>

#include "h5/dataset.h"

enum { ATS_H5_COMPACT = 32 << 10 /* bytes up to which small data goes into an object's header */ };

/* Extents of a dataspace or chunk in HDF5's type. */
typedef struct ats_h5_dims {
    hsize_t at[ATS_H5_MAX_RANK];
} ats_h5_dims;

/* Closes a dataset; what HDF5 still had to write then, and could not, is counted. */
void ats_h5_close_dataset(const ats_h5_file *file, hid_t id);
ats_h5_dims ats_h5_to_dims(int rank, const int64_t *extent);
/* Native memory type (a predefined handle, never closed) of a numeric type; -1 for the others. */
hid_t ats_h5_native(ats_h5_type type);
/* A new handle of the stored type: little endian, bfloat16 as a custom float. */
hid_t ats_h5_stored_type(ats_h5_type type);
/* A new variable-length UTF-8 string type. */
hid_t ats_h5_text_type(void);
/* A new memory type: H5Aread and H5Dread then give the stored references of variable-length
 * strings, [count, 16] bytes for ats_h5_heaps_text, where their own conversion would follow them
 * unchecked.
 */
hid_t ats_h5_reference_type(void);
ats_h5_type ats_h5_classify(hid_t type);
/* malloc with a sentence; bytes 0 gives one byte. */
ATS_MUST_CHECK ats_code ats_h5_malloc(size_t bytes, void **out, ats_err *err);
/* Opens a group or dataset without leaving the file. */
ATS_MUST_CHECK ats_code ats_h5_object_open(const ats_h5_file *file, const char *name, hid_t *out,
                                           ats_err *err);
ATS_MUST_CHECK ats_code ats_h5_strdup(const char *text, char **out, ats_err *err);
/* Who uses which scale of a file that is being written. */
ATS_MUST_CHECK ats_code ats_h5_users_make(struct ats_h5_users **out, ats_err *err);
ATS_MUST_CHECK ats_code ats_h5_users_write(const ats_h5_file *file, ats_err *err);
void ats_h5_users_free(struct ats_h5_users *users);

#endif

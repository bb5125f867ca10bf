/* Copies of descriptions between files: what a dataset is, not what it holds.
 * Ownership: names and bytes live in the arena given. */
#ifndef ATS_H5_CLONE_H
#define ATS_H5_CLONE_H

#include "h5/dataset.h"

/* Names of the root's datasets in the order they were made; a group among them is an error. */
ATS_MUST_CHECK ats_code ats_h5_datasets(const ats_h5_file *file, ats_arena *arena,
                                        const char *const **out, int64_t *count, ats_err *err);
/* Names of an object's attributes in the order they were made. */
ATS_MUST_CHECK ats_code ats_h5_attr_names(const ats_h5_file *file, const char *object,
                                          ats_arena *arena, const char *const **out, int64_t *count,
                                          ats_err *err);
ATS_MUST_CHECK ats_code ats_h5_root_attr_copy(const ats_h5_file *from, const ats_h5_file *to,
                                              const char *name, ats_err *err);
/* What an attribute holds, as words: numbers in the shortest form that reads back. */
ATS_MUST_CHECK ats_code ats_h5_attr_words(const ats_h5_file *file, const char *object,
                                          const char *name, ats_arena *arena, const char **out,
                                          ats_err *err);
/* A dataset of the same name, type, storage, filters and fill value in another file. first: extent
 * of axis 0, -1: the same. */
ATS_MUST_CHECK ats_code ats_h5_dataset_like(const ats_h5_dataset *like, const ats_h5_file *file,
                                            int64_t first, ats_h5_dataset *out, ats_err *err);
/* All attributes but those of dimension scales, to another dataset. */
ATS_MUST_CHECK ats_code ats_h5_attrs_like(const ats_h5_dataset *like, const ats_h5_dataset *out,
                                          ats_err *err);
bool ats_h5_is_scale(const ats_h5_dataset *dataset);

#endif

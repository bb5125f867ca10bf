/* Tensors of an import by name, and their boxes as the capture wants them: [head, row, dim],
 * row-major, the probes' rows taken out, in a capture's types. Private to capture/.
 * Ownership: a set owns its files; what take functions return is the caller's to free(). */
#ifndef ATS_CAPTURE_IMPORT_TENSORS_H
#define ATS_CAPTURE_IMPORT_TENSORS_H

#include "base/half.h"
#include "capture/import_header.h"
#include "capture/tensor_file.h"

typedef struct ats_import_set {
    ats_arena *arena; /* the caller's */
    int64_t n_files, n_tensors;
    ats_tensor_file *files;     /* [n_files] */
    const ats_tensor **tensors; /* [n_tensors], by name */
    bool *used;                 /* [n_tensors] */
    int64_t rounded;            /* tensors of float64 that became float32 */
} ats_import_set;

/* Opens all; a name that two files hold is refused. */
ATS_MUST_CHECK ats_code ats_import_open(ats_import_set *set, const char *const *paths,
                                        int64_t n_paths, ats_err *err);
void ats_import_close(ats_import_set *set);

/* pattern with {layer} and {sample} filled in. NULL: optional and not there. key names the pattern
 * in messages ("q"). sample NULL, layer -1: not known. */
ATS_MUST_CHECK ats_code ats_import_find(ats_import_set *set, const char *key, const char *pattern,
                                        const char *sample, int64_t layer, bool optional,
                                        const ats_tensor **out, ats_err *err);

/* Three axes of a tensor in elements of its storage. */
typedef struct ats_import_view {
    const ats_tensor *tensor;
    int64_t extent[3], stride[3];
} ats_import_view;

/* Axes as the header's layout says, dim left out when `flat` (extent 1 then). */
ATS_MUST_CHECK ats_code ats_import_view_layout(const ats_import_header *header,
                                               const ats_tensor *tensor, bool flat,
                                               ats_import_view *out, ats_err *err);
/* The last `rank` axes (1 to 3), leading ones of extent 1 dropped, as axes 3 - rank to 2. */
ATS_MUST_CHECK ats_code ats_import_view_last(const ats_tensor *tensor, int rank, const char *axes,
                                             ats_import_view *out, ats_err *err);

/* rows: [n_rows] indices along axis 1, or NULL: all. Floats of 16 or 32 bits as they are, float64
 * rounded to float32. words: what WORDS2 and U16 are, NULL: refused. */
ATS_MUST_CHECK ats_code ats_import_take_words(ats_import_set *set, const ats_import_view *view,
                                              const int64_t *rows, int64_t n_rows,
                                              const char *words, ats_dtype *dtype, void **out,
                                              ats_err *err);
/* The same as float32. */
ATS_MUST_CHECK ats_code ats_import_take_floats(ats_import_set *set, const ats_import_view *view,
                                               const int64_t *rows, int64_t n_rows,
                                               const char *words, float **out, ats_err *err);
/* Booleans and 8-bit integers as 0 and 1. */
ATS_MUST_CHECK ats_code ats_import_take_mask(const ats_import_view *view, const int64_t *rows,
                                             int64_t n_rows, uint8_t **out, ats_err *err);
/* A whole tensor [n] of integers in [low, high]. In the arena. */
ATS_MUST_CHECK ats_code ats_import_take_integers(ats_import_set *set, const ats_tensor *tensor,
                                                 int64_t n, int64_t low, int64_t high,
                                                 const int64_t **out, ats_err *err);
/* A whole tensor of floats as doubles. In the arena. */
ATS_MUST_CHECK ats_code ats_import_take_doubles(ats_import_set *set, const ats_tensor *tensor,
                                                const double **out, ats_err *err);

#endif

/* Tensors of other programs (safetensors, npy, npz) and a YAML header become a capture file.
 *
 * docs/import.md says what the header holds. Words of 16 and 32 bits are kept bit for bit. The
 * finished file is opened and every tensor loaded before it takes its name, so what is written can
 * be run. */
#ifndef ATS_CAPTURE_IMPORT_H
#define ATS_CAPTURE_IMPORT_H

#include "base/arena.h"

typedef struct ats_import_options {
    const char *header; /* path of the YAML file */
    int64_t n_files;
    const char *const *files; /* [n_files] */
    const char *output;
    const char *producer;
} ats_import_options;

typedef struct ats_import_layer_note {
    int64_t layer;
    double stated_scale, scale; /* in the header; in the capture */
} ats_import_layer_note;

/* What was done. Ownership: in the arena given to ats_import. */
typedef struct ats_import_report {
    int64_t n_layers, n_samples, n_keys;  /* keys of all samples together */
    int64_t n_tensors, n_unused, rounded; /* rounded: float64 stored as float32 */
    const char *first_unused;             /* NULL: none */
    bool tokens_unknown;
    bool bias_like_mask; /* some bias holds 0 and 1 alone, as a boolean mask would */
    const ats_import_layer_note *layers; /* [n_layers] */
} ats_import_report;

ATS_MUST_CHECK ats_code ats_import(const ats_import_options *options, ats_arena *arena,
                                   ats_import_report *out, ats_err *err);

#endif

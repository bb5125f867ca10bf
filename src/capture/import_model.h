/* Layers and samples of an import, between header, tensors and writer. Private to capture/. */
#ifndef ATS_CAPTURE_IMPORT_MODEL_H
#define ATS_CAPTURE_IMPORT_MODEL_H

#include "capture/import.h"
#include "capture/import_tensors.h"

typedef struct ats_import_model {
    const ats_import_header *header;
    ats_import_set set;
    ats_arena *arena;
    ats_capture meta;               /* layers ascending, samples in the header's order */
    const ats_import_layer **entry; /* [n_layers] of the header */
    ats_import_report report;
} ats_import_model;

/* Fills meta from the header and the small tensors; shapes come from the first sample. */
ATS_MUST_CHECK ats_code ats_import_make_layers(ats_import_model *model, ats_err *err);
ATS_MUST_CHECK ats_code ats_import_make_samples(ats_import_model *model, ats_err *err);
ATS_MUST_CHECK ats_code ats_import_make_readouts(ats_import_model *model, ats_err *err);

/* Tensors of one sample and layer as the writer wants them; ats_attention_fini frees them. */
ATS_MUST_CHECK ats_code ats_import_load(ats_import_model *model, int64_t sample, int64_t layer,
                                        ats_attention *out, ats_err *err);

#endif

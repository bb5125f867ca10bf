/* A small capture that uses every feature of the format, in memory and as a file, and ways to
 * spoil the file. */
#ifndef ATS_TESTS_CAPTURE_MODEL_H
#define ATS_TESTS_CAPTURE_MODEL_H

#include "base/arena.h"
#include "capture/writer.h"
#include "h5/attr.h"

enum { MODEL_LAYERS = 3, MODEL_SAMPLES = 3, MODEL_PROBES = 2 };

/* Layer 3: rope half, window, soft cap, sink, w_o; float32 q, float16 k, bfloat16 v.
 * Layer 10: ALiBi, bias per head, keep; bfloat16. Layer 21: no positions, both directions, one
 * bias plane; float32. Samples "alpha" (segments, texts), "beta/2", and a variant of alpha. */
typedef struct model {
    ats_arena arena;
    ats_capture capture;
    ats_layer layers[MODEL_LAYERS];
    ats_sample samples[MODEL_SAMPLES];
    ats_attention tensors[MODEL_SAMPLES][MODEL_LAYERS];
} model;

void model_make(model *m);
/* One layer and one sample of it, as few bytes as the format allows. */
void model_shrink(model *m);
void model_write(const model *m, const char *path);
void model_free(model *m);

/* An existing file, opened to be changed; ats_h5_close closes it. */
ats_h5_file model_edit(const char *path);
/* Removes a group or dataset. */
void model_remove(const ats_h5_file *file, const char *name);
/* Replaces a dataset by a contiguous one. */
void model_replace(const ats_h5_file *file, const char *name, ats_h5_type type, int rank,
                   const int64_t *extent, const void *data);

#endif

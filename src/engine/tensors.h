/* Loaded tensors of a few samples and layers, the oldest dropped first.
 * Ownership: the cache owns what it hands out; it stays valid until a later get that pins less. */
#ifndef ATS_ENGINE_TENSORS_H
#define ATS_ENGINE_TENSORS_H

#include "capture/capture.h"

enum { ATS_TENSOR_SLOTS = 16 };

typedef struct ats_tensor_slot {
    const ats_capture *capture; /* NULL: empty */
    int64_t sample, layer;
    int64_t stamp; /* of the last use */
    ats_attention attention;
} ats_tensor_slot;

typedef struct ats_tensors {
    size_t budget; /* bytes to keep beyond the pair in use */
    int64_t clock;
    ats_tensor_slot slots[ATS_TENSOR_SLOTS];
} ats_tensors;

/* Tensors of a sample and layer (indices into the capture). The two latest stay valid. */
ATS_MUST_CHECK ats_code ats_tensors_get(ats_tensors *tensors, const ats_capture *capture,
                                        int64_t sample, int64_t layer, const ats_attention **out,
                                        ats_err *err);
void ats_tensors_fini(ats_tensors *tensors);

#endif

/* Memory for the tensors of one sample and layer, used again for the next one where it fits: new
 * pages would have to be cleared by the system, in a tenth of the time of reading. Private to
 * capture/. */
#ifndef ATS_CAPTURE_MEMORY_H
#define ATS_CAPTURE_MEMORY_H

#include "capture/capture.h"

/* In the order of ats_attention: q, k, v, keep, bias, out, lse. */
typedef struct ats_tensor_memory {
    void *at[ATS_TENSORS];
    size_t room[ATS_TENSORS]; /* bytes */
} ats_tensor_memory;

/* Takes what lies behind the tensors of `spare`, and empties it. */
ats_tensor_memory ats_tensor_memory_take(ats_attention *spare);
/* Room for so many bytes of each, 0: none. What is there is kept where it fits without much waste;
 * the rest is freed before anything is allocated. */
ATS_MUST_CHECK ats_code ats_tensor_memory_fit(ats_tensor_memory *memory,
                                              const size_t bytes[ATS_TENSORS], ats_err *err);
void ats_tensor_memory_fini(ats_tensor_memory *memory);

#endif

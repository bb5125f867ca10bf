#include "engine/tensors_plan.h"

int ats_tensors_wanted(const ats_plan *plan, int64_t sample, int64_t layer, int64_t first,
                       int64_t count, ats_tensor_want out[2])
{
    const ats_chosen *chosen = &plan->selection.samples[sample];
    out[0] = (ats_tensor_want){.capture = plan->captures[chosen->capture],
                               .sample = chosen->index,
                               .layer = plan->selection.layers[layer],
                               .first = first,
                               .count = count,
                               .stream = plan->streams ? &plan->stream : NULL};
    out[1] = out[0];
    out[1].sample = chosen->donor;
    return chosen->donor >= 0 ? 2 : 1;
}

ats_code ats_tensors_donors(ats_tensors *tensors, const ats_plan *plan, int64_t sample,
                            int64_t layer, int64_t first, int64_t count, ats_donor out[2],
                            int64_t *n, ats_err *err)
{
    ats_tensor_want want[2];
    const int wanted = ats_tensors_wanted(plan, sample, layer, first, count, want);
    ats_tensors_begin(tensors);
    for (int i = 0; i < wanted; i++) {
        out[i].sample = &want[i].capture->samples[want[i].sample];
        const ats_code rc = ats_tensors_get(tensors, &want[i], &out[i].attention, err);
        if (rc != ATS_OK) return rc;
    }
    *n = wanted;
    return ATS_OK;
}

#include "engine/tensors.h"

static void drop(ats_tensor_slot *slot)
{
    ats_attention_fini(&slot->attention);
    *slot = (ats_tensor_slot){0};
}

static ats_tensor_slot *find(ats_tensors *tensors, const ats_capture *capture, int64_t sample,
                             int64_t layer)
{
    for (int i = 0; i < ATS_TENSOR_SLOTS; i++) {
        ats_tensor_slot *slot = &tensors->slots[i];
        if (slot->capture == capture && slot->sample == sample && slot->layer == layer) return slot;
    }
    return NULL;
}

/* An empty slot; drops the oldest ones over the budget, but never the latest use. */
static ats_tensor_slot *make_room(ats_tensors *tensors)
{
    for (;;) {
        ats_tensor_slot *oldest = NULL, *empty = NULL;
        size_t bytes = 0;
        for (int i = 0; i < ATS_TENSOR_SLOTS; i++) {
            ats_tensor_slot *slot = &tensors->slots[i];
            if (slot->capture == NULL) {
                empty = slot;
                continue;
            }
            bytes += slot->attention.bytes;
            if (slot->stamp == tensors->clock) continue;
            if (oldest == NULL || slot->stamp < oldest->stamp) oldest = slot;
        }
        if (empty != NULL && (bytes <= tensors->budget || oldest == NULL)) return empty;
        drop(oldest);
    }
}

ats_code ats_tensors_get(ats_tensors *tensors, const ats_capture *capture, int64_t sample,
                         int64_t layer, const ats_attention **out, ats_err *err)
{
    ats_tensor_slot *slot = find(tensors, capture, sample, layer);
    if (slot == NULL) {
        slot = make_room(tensors);
        ats_code rc = ats_attention_load(capture, sample, layer, &slot->attention, err);
        if (rc != ATS_OK) return rc;
        slot->capture = capture;
        slot->sample = sample;
        slot->layer = layer;
    }
    slot->stamp = ++tensors->clock;
    *out = &slot->attention;
    return ATS_OK;
}

void ats_tensors_fini(ats_tensors *tensors)
{
    for (int i = 0; i < ATS_TENSOR_SLOTS; i++)
        if (tensors->slots[i].capture != NULL) drop(&tensors->slots[i]);
}

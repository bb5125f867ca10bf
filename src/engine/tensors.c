#include "engine/tensors.h"

#include "h5/file.h"

/* Keeps the memory of the latest that was dropped. */
static void drop(ats_tensors *tensors, ats_tensor_slot *slot)
{
    ats_attention_fini(&tensors->spare);
    tensors->spare = slot->attention;
    *slot = (ats_tensor_slot){0};
}

static ats_tensor_slot *find(ats_tensors *tensors, const ats_tensor_want *want)
{
    for (int i = 0; i < ATS_TENSOR_SLOTS; i++) {
        ats_tensor_slot *slot = &tensors->slots[i];
        if (slot->capture == want->capture && slot->sample == want->sample &&
            slot->layer == want->layer && slot->first == want->first && slot->count == want->count)
            return slot;
    }
    return NULL;
}

/* An empty slot; drops the oldest ones over the budget, but none in use. */
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
            if (slot->stamp > tensors->begun) continue;
            if (oldest == NULL || slot->stamp < oldest->stamp) oldest = slot;
        }
        if (empty != NULL && (bytes <= tensors->budget || oldest == NULL)) return empty;
        drop(tensors, oldest);
    }
}

static ats_code load(const ats_tensor_want *want, ats_attention *spare, ats_attention *out,
                     ats_err *err)
{
    return ats_attention_reload(want->capture, want->sample, want->layer, want->first, want->count,
                                want->stream, spare, out, err);
}

static ats_tensor_slot *put(ats_tensors *tensors, const ats_tensor_want *want,
                            const ats_attention *attention)
{
    ats_tensor_slot *slot = make_room(tensors);
    *slot = (ats_tensor_slot){.capture = want->capture,
                              .sample = want->sample,
                              .layer = want->layer,
                              .first = want->first,
                              .count = want->count,
                              .stamp = ++tensors->clock,
                              .attention = *attention};
    return slot;
}

/* A failure is found again, and said, by the get that needs the tensors. */
static void *read_ahead(void *ctx)
{
    ats_tensors *tensors = ctx;
    ats_err unsaid;
    ats_h5_quiet();
    for (int i = 0; i < tensors->n_ahead; i++)
        tensors->loaded[i] =
            load(&tensors->want[i], &tensors->spares[i], &tensors->ahead[i], &unsaid) == ATS_OK;
    return NULL;
}

/* Waits for the thread and takes what it has. */
void ats_tensors_settle(ats_tensors *tensors)
{
    if (!tensors->reading) return;
    pthread_join(tensors->thread, NULL);
    tensors->reading = false;
    for (int i = 0; i < tensors->n_ahead; i++)
        if (tensors->loaded[i]) put(tensors, &tensors->want[i], &tensors->ahead[i]);
    tensors->n_ahead = 0;
}

/* The oldest slot's memory, unless it is one of the pair in use or all fit the budget with one more
 * of its size. */
static void make_spare(ats_tensors *tensors)
{
    ats_tensor_slot *oldest = NULL;
    size_t bytes = 0;
    for (int i = 0; i < ATS_TENSOR_SLOTS; i++) {
        ats_tensor_slot *slot = &tensors->slots[i];
        if (slot->capture == NULL) continue;
        bytes += slot->attention.bytes;
        if (slot->stamp + 1 >= tensors->clock) continue;
        if (oldest == NULL || slot->stamp < oldest->stamp) oldest = slot;
    }
    if (oldest != NULL && bytes + oldest->attention.bytes > tensors->budget) drop(tensors, oldest);
}

void ats_tensors_ahead(ats_tensors *tensors, const ats_tensor_want *want, int count)
{
    ats_tensors_settle(tensors);
    for (int i = 0; i < count && i < 2; i++) {
        if (find(tensors, &want[i]) != NULL) continue;
        tensors->loaded[tensors->n_ahead] = false;
        if (tensors->spare.bytes == 0) make_spare(tensors);
        tensors->spares[tensors->n_ahead] = tensors->spare;
        tensors->spare = (ats_attention){.bytes = 0};
        tensors->want[tensors->n_ahead++] = want[i];
    }
    if (tensors->n_ahead == 0) return;
    tensors->reading = pthread_create(&tensors->thread, NULL, read_ahead, tensors) == 0;
    if (tensors->reading) return;
    for (int i = 0; i < tensors->n_ahead; i++) ats_attention_fini(&tensors->spares[i]);
    tensors->n_ahead = 0;
}

void ats_tensors_begin(ats_tensors *tensors)
{
    ats_tensors_settle(tensors);
    tensors->begun = tensors->clock;
}

ats_code ats_tensors_get(ats_tensors *tensors, const ats_tensor_want *want,
                         const ats_attention **out, ats_err *err)
{
    ats_tensors_settle(tensors);
    ats_tensor_slot *slot = find(tensors, want);
    if (slot == NULL) {
        ats_attention attention = {.bytes = 0};
        /* Before loading: there must never be more in memory than was planned. */
        make_room(tensors);
        const ats_code rc = load(want, &tensors->spare, &attention, err);
        if (rc != ATS_OK) return rc;
        slot = put(tensors, want, &attention);
    }
    slot->stamp = ++tensors->clock;
    *out = &slot->attention;
    return ATS_OK;
}

void ats_tensors_fini(ats_tensors *tensors)
{
    ats_tensors_settle(tensors);
    for (int i = 0; i < ATS_TENSOR_SLOTS; i++)
        if (tensors->slots[i].capture != NULL) drop(tensors, &tensors->slots[i]);
    ats_attention_fini(&tensors->spare);
}

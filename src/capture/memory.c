#include "capture/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE = 64, HUGE_PAGE = 2 << 20 }; /* bytes */

ats_tensor_memory ats_tensor_memory_take(ats_attention *spare)
{
    ats_tensor_memory memory = {
        .at = {spare->q, spare->k, spare->v, spare->keep, spare->bias, spare->out, spare->lse}};
    memcpy(memory.room, spare->room, sizeof memory.room);
    if (spare->scratch != NULL) memory.at[1] = memory.at[2] = NULL; /* k and v lie there */
    ats_scratch_free(spare->scratch);
    *spare = (ats_attention){.bytes = 0};
    return memory;
}

static void drop(ats_tensor_memory *memory, int i)
{
    free(memory->at[i]);
    memory->at[i] = NULL;
    memory->room[i] = 0;
}

static ats_code allocate(size_t bytes, void **out, size_t *room, ats_err *err)
{
    const size_t size = (bytes + LINE) & ~(size_t)(LINE - 1);
    const bool large = size >= HUGE_PAGE;
    void *memory = NULL; /* aligned_alloc would take whole pages alone */
    if (posix_memalign(&memory, large ? HUGE_PAGE : LINE, size) != 0)
        return ats_fail(err, ATS_E_MEMORY, "out of memory: %zu bytes", bytes);
    /* A wish: fewer faults where the system grants it. */
    if (large) (void)madvise(memory, size, MADV_HUGEPAGE);
    *out = memory;
    *room = size;
    return ATS_OK;
}

ats_code ats_tensor_memory_fit(ats_tensor_memory *memory, const size_t bytes[ATS_TENSORS],
                               ats_err *err)
{
    for (int i = 0; i < ATS_TENSORS; i++) {
        const size_t largest = bytes[i] + bytes[i] / 8 + LINE;
        if (bytes[i] == 0 || memory->room[i] < bytes[i] || memory->room[i] > largest)
            drop(memory, i);
    }
    for (int i = 0; i < ATS_TENSORS; i++) {
        if (bytes[i] == 0 || memory->at[i] != NULL) continue;
        const ats_code rc = allocate(bytes[i], &memory->at[i], &memory->room[i], err);
        if (rc != ATS_OK) return rc;
    }
    return ATS_OK;
}

void ats_tensor_memory_fini(ats_tensor_memory *memory)
{
    for (int i = 0; i < ATS_TENSORS; i++) drop(memory, i);
}

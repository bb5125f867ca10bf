#include "tensors.h"

#include <stdlib.h>
#include <string.h>

#include "capture/tensor_file.h"
#include "memory_file.h"

void ats_fuzz_tensors(const uint8_t *bytes, size_t size)
{
    ats_arena arena = {.blocks = NULL};
    ats_tensor_file file = {.path = NULL};
    ats_err err = {.code = ATS_OK};
    ats_fuzz_memory(bytes, size);
    if (ats_tensor_file_open(ATS_FUZZ_PATH, &arena, &file, &err) == ATS_OK) {
        for (int64_t i = 0; i < file.n_tensors; i++) {
            const ats_tensor *tensor = &file.tensors[i];
            if (tensor->element == ATS_ELEMENT_OTHER || tensor->bytes > 1 << 20) continue;
            void *out = malloc((size_t)tensor->bytes + 1);
            if (out == NULL || ats_tensor_read(tensor, out, &err) == ATS_E_INTERNAL) abort();
            free(out);
        }
    } else if (err.text[0] == '\0') {
        abort();
    }
    ats_tensor_file_close(&file);
    ats_arena_fini(&arena);
}

size_t ats_fuzz_npy(const uint8_t *data, size_t size, uint8_t *out)
{
    const uint8_t version = size > 0 ? data[0] : 1;
    const size_t words = size < 3 ? 0 : (data[1] | (size_t)data[2] << 8) % 1024,
                 width = version == 1 ? 2 : 4;
    const size_t skipped = size < 3 ? size : 3, header = size - skipped;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = version;
    out[7] = 0;
    for (size_t i = 0; i < width; i++) out[8 + i] = (uint8_t)(header >> 8 * i);
    if (header > 0) memcpy(out + 8 + width, data + skipped, header);
    for (size_t i = 0; i < words; i++) out[8 + width + header + i] = (uint8_t)i;
    return 8 + width + header + words;
}

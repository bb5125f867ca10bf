/* safetensors, npy and npz: every tensor that is described can be read or is refused. */
#include <stdlib.h>

#include "capture/tensor_file.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ats_arena arena = {.blocks = NULL};
    ats_tensor_file file = {.path = NULL};
    ats_err err = {.code = ATS_OK};
    const char *path = ats_fuzz_file(data, size);
    if (ats_tensor_file_open(path, &arena, &file, &err) == ATS_OK) {
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
    return 0;
}

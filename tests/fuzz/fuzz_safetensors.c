/* safetensors: the input is the bytes of data (two) and the JSON, so that every input has a header
 * of its true length. */
#include <string.h>

#include "fuzz.h"
#include "tensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t file[ATS_FUZZ_TENSOR_FILE];
    if (size < 2 || size > 1 << 12) return -1;
    const size_t header = size - 2, words = (data[0] | (size_t)data[1] << 8) % 1024;
    for (size_t i = 0; i < 8; i++) file[i] = (uint8_t)(header >> 8 * i);
    memcpy(file + 8, data + 2, header);
    for (size_t i = 0; i < words; i++) file[8 + header + i] = (uint8_t)i;
    ats_fuzz_tensors(file, 8 + header + words);
    return 0;
}

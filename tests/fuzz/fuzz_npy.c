/* npy: the input is version, bytes of data and dictionary, so that every input has a header of its
 * true length. */
#include "fuzz.h"
#include "tensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t file[ATS_FUZZ_TENSOR_FILE];
    if (size > 1 << 12) return -1;
    ats_fuzz_tensors(file, ats_fuzz_npy(data, size, file));
    return 0;
}

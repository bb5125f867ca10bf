/* safetensors, npy and npz, byte by byte: every tensor that is described can be read or is refused.
 */
#include "fuzz.h"
#include "tensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ats_fuzz_tensors(data, size);
    return 0;
}

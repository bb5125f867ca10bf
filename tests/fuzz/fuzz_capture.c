/* A capture: opened or refused, and every tensor loaded or refused. */
#include <stdlib.h>

#include "capture/capture.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ats_capture *capture = NULL;
    ats_err err = {.code = ATS_OK};
    const char *path = ats_fuzz_file(data, size);
    if (ats_capture_open(path, &capture, &err) != ATS_OK) {
        if (err.text[0] == '\0') abort();
        ats_fuzz_refused(err.text);
        return 0;
    }
    for (int64_t s = 0; s < capture->n_samples && s < 4; s++)
        for (int64_t l = 0; l < capture->n_layers && l < 4; l++) {
            ats_attention attention = {0};
            const ats_code rc = ats_attention_load(capture, s, l, &attention, &err);
            if (rc == ATS_E_INTERNAL) abort();
            ats_attention_fini(&attention);
        }
    ats_capture_close(capture);
    return 0;
}

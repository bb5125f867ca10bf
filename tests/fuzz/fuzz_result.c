/* A result file: opened or refused, with the variables that every command reads. */
#include <stdlib.h>

#include "fuzz.h"
#include "report/results.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const numbers[] = {"log_mass_shift", "status", "base_mass", "layer"};
    static const char *const words[] = {"variant", "suite", "span", "gates"};
    ats_result_file *file = NULL;
    ats_err err = {.code = ATS_OK};
    const char *path = ats_fuzz_file(data, size);
    if (ats_result_open(path, &file, &err) != ATS_OK) {
        if (err.text[0] == '\0') abort();
        ats_fuzz_refused(err.text);
        return 0;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        ats_result_variable variable = {.values = NULL};
        if (ats_result_read(file, numbers[i], &variable, &err) == ATS_OK) free(variable.values);
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char **texts = NULL;
        int64_t count = 0;
        if (ats_result_texts(file, words[i], &texts, &count, &err) == ATS_OK)
            ats_result_free_texts(texts, count);
    }
    ats_result_close(file);
    return 0;
}

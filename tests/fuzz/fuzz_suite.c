/* A suite document: loaded or refused; what loads comes back equal from its resolved form. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "suite/suite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = ats_fuzz_text(data, size);
    ats_suite *suite = NULL, *again = NULL;
    ats_err err = {.code = ATS_OK};
    if (ats_suite_parse("fuzz.yaml", text, NULL, 0, &suite, &err) == ATS_OK) {
        if (ats_suite_parse("again.yaml", suite->resolved, NULL, 0, &again, &err) != ATS_OK ||
            strcmp(suite->hash, again->hash) != 0 || suite->n_variants != again->n_variants)
            abort();
        ats_suite_free(again);
    } else if (err.text[0] == '\0') {
        abort();
    }
    ats_suite_free(suite);
    free(text);
    return 0;
}

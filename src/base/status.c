#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

ats_code ats_fail(ats_err *err, ats_code code, const char *fmt, ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, fmt);
        vsnprintf(err->text, sizeof err->text, fmt, args);
        va_end(args);
        err->code = code;
    }
    return code;
}

ats_code ats_prepend(ats_err *err, ats_code code, const char *fmt, ...)
{
    if (err != NULL) {
        char old[ATS_ERR_TEXT];
        memcpy(old, err->text, sizeof old);
        va_list args;
        va_start(args, fmt);
        int used = vsnprintf(err->text, sizeof err->text, fmt, args);
        va_end(args);
        if (used >= 0 && (size_t)used + 3 < sizeof err->text) {
            char *end = err->text + used;
            const size_t room = sizeof err->text - (size_t)used - 3; /* ": " and the NUL */
            const size_t length = strnlen(old, room);
            memcpy(end, ": ", 2);
            memcpy(end + 2, old, length);
            end[2 + length] = '\0';
        }
    }
    return code;
}

static const struct {
    const char *name;
    int exit_status;
    const char *meaning;
} codes[] = {
#define CODE_ROW(name, exit_status, meaning) {#name, exit_status, meaning},
    ATS_CODES(CODE_ROW)
#undef CODE_ROW
};

const char *ats_code_name(ats_code code) { return codes[code].name; }
int ats_code_exit(ats_code code) { return codes[code].exit_status; }
const char *ats_code_meaning(ats_code code) { return codes[code].meaning; }

void ats_assert_failed(const char *cond, const char *file, int line)
{
    char place[512];
    snprintf(place, sizeof place, "internal error: %s:%d: %s is false", file, line, cond);
    ats_log_failure("ATS_E_INTERNAL", "attnstress: ", place);
    abort();
}

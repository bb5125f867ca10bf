/* Status codes and the caller's error record.
 *
 * Every fallible function returns ats_code and takes ats_err * last. The site that
 * detects a fault writes the whole sentence (what, where, why, what next); callers
 * prepend only what they alone know. Out-parameters are written only on success.
 * Ownership: ats_err is a plain value of the caller; nothing is allocated. */
#ifndef ATS_BASE_STATUS_H
#define ATS_BASE_STATUS_H

#include <stdarg.h>
#include <stddef.h>

/* name, exit status of the program, meaning */
#define ATS_CODES(X)                                                                   \
    X(ATS_OK, 0, "success")                                                            \
    X(ATS_E_GATE, 1, "a gate failed")                                                  \
    X(ATS_E_INCONCLUSIVE, 2, "inconclusive")                                           \
    X(ATS_E_USAGE, 3, "bad command line")                                              \
    X(ATS_E_SUITE, 3, "bad suite")                                                     \
    X(ATS_E_INPUT, 3, "bad input file")                                                \
    X(ATS_E_UNSUPPORTED, 3, "not supported")                                           \
    X(ATS_E_IO, 4, "input or output failed")                                           \
    X(ATS_E_MEMORY, 4, "out of memory")                                                \
    X(ATS_E_LOCK, 4, "file is locked")                                                 \
    X(ATS_E_DEVICE, 4, "device unavailable")                                           \
    X(ATS_E_INTERNAL, 5, "internal error")                                             \
    X(ATS_E_INTERRUPTED, 75, "interrupted")

typedef enum ats_code {
#define ATS_CODE_ENUM(name, exit_status, meaning) name,
    ATS_CODES(ATS_CODE_ENUM)
#undef ATS_CODE_ENUM
} ats_code;

#define ATS_ERR_TEXT 4096

typedef struct ats_err {
    ats_code code;
    char text[ATS_ERR_TEXT]; /* NUL-terminated UTF-8, no trailing newline */
} ats_err;

#define ATS_MUST_CHECK __attribute__((warn_unused_result))
#define ATS_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

/* Sets err (may be NULL) and returns code. */
ats_code ats_fail(ats_err *err, ats_code code, const char *fmt, ...) ATS_PRINTF(3, 4);
/* Puts "prefix: " before the sentence already there; returns err->code. */
ats_code ats_prepend(ats_err *err, ats_code code, const char *fmt, ...) ATS_PRINTF(3, 4);
/* Symbol ("ATS_E_INPUT"), exit status and meaning of a code. */
const char *ats_code_name(ats_code code);
int ats_code_exit(ats_code code);
const char *ats_code_meaning(ats_code code);

/* Goes to the function's single `out:` label when expr fails; needs `ats_code rc`. */
#define ATS_TRY(expr)                                                                  \
    do {                                                                               \
        rc = (expr);                                                                   \
        if (rc != ATS_OK) goto out;                                                    \
    } while (0)

/* A programmer's mistake: prints the place and aborts. Never for user input. */
#define ATS_ASSERT(cond)                                                               \
    ((cond) ? (void)0 : ats_assert_failed(#cond, __FILE__, __LINE__))
_Noreturn void ats_assert_failed(const char *cond, const char *file, int line);

#endif

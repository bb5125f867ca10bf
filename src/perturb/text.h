/* Text of unknown length: one function writes it twice, first to measure, then into the arena.
 * Private to perturb/. */
#ifndef ATS_PERTURB_TEXT_H
#define ATS_PERTURB_TEXT_H

#include "base/arena.h"

typedef struct ats_text {
    char *text; /* NULL while measuring */
    size_t length, capacity;
} ats_text;

void ats_text_add(ats_text *text, const char *fmt, ...) ATS_PRINTF(2, 3);
typedef void (*ats_text_fn)(ats_text *text, const void *ctx);
ATS_MUST_CHECK ats_code ats_text_make(ats_arena *arena, ats_text_fn write, const void *ctx,
                                      const char **out, ats_err *err);

#endif

#include "perturb/text.h"

#include <stdarg.h>
#include <stdio.h>

void ats_text_add(ats_text *text, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *place = text->text != NULL ? text->text + text->length : NULL;
    const int n =
        vsnprintf(place, text->text != NULL ? text->capacity - text->length : 0, fmt, args);
    va_end(args);
    text->length += (size_t)n;
}

ats_code ats_text_make(ats_arena *arena, ats_text_fn write, const void *ctx, const char **out,
                       ats_err *err)
{
    ats_text text = {.text = NULL};
    ats_code rc;
    write(&text, ctx);
    text.capacity = text.length + 1;
    text.length = 0;
    ATS_TRY(ATS_NEW(arena, (int64_t)text.capacity, &text.text, err));
    if (text.text == NULL) goto out;
    text.text[0] = 0;
    write(&text, ctx);
    *out = text.text;
out:
    return rc;
}

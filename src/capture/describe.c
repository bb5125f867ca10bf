#include "capture/describe.h"

#include <stdio.h>
#include <string.h>

/* Bytes of the character at text that may be shown as they are; 0: a byte to escape. */
static size_t shown(const unsigned char *text)
{
    const unsigned char c = text[0];
    if (c >= 0x20 && c < 0x7f) return c == '"' || c == '\\' ? 0 : 1;
    const size_t length = c >= 0xc2 && c <= 0xdf   ? 2
                          : c >= 0xe0 && c <= 0xef ? 3
                          : c >= 0xf0 && c <= 0xf4 ? 4
                                                   : 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    return length;
}

static size_t escape(unsigned char c, char out[8])
{
    if (c == '\n') return (size_t)snprintf(out, 8, "\\n");
    if (c == '\t') return (size_t)snprintf(out, 8, "\\t");
    if (c == '"' || c == '\\') return (size_t)snprintf(out, 8, "\\%c", c);
    return (size_t)snprintf(out, 8, "\\x%02x", c);
}

bool ats_span_excerpt(const ats_sample *sample, const ats_span *span, size_t most, char *out,
                      size_t size)
{
    size_t used = 0;
    if (sample->token_text == NULL || size < most + 4) return false;
    for (int64_t i = span->start; i < span->stop; i++) {
        const unsigned char *at = (const unsigned char *)sample->token_text[i];
        while (*at != '\0') {
            char piece[8];
            size_t taken = shown(at), length = taken;
            if (taken > 0) {
                memcpy(piece, at, taken);
            } else {
                taken = 1;
                length = escape(*at, piece);
            }
            if (used + length > most) {
                memcpy(out + used, "...", 4);
                return true;
            }
            memcpy(out + used, piece, length);
            used += length;
            at += taken;
        }
    }
    out[used] = '\0';
    return true;
}

#include "report/html.h"

#include <math.h>
#include <string.h>

/* Length of the valid UTF-8 sequence at s and its code point; 0: none (RFC 3629, table 3-7 of the
 * Unicode standard: no overlong forms, no surrogates, nothing above 10FFFF). */
static int decode(const unsigned char *s, unsigned *code)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    const int length = s[0] < 0x80             ? 1
                       : (s[0] & 0xe0) == 0xc0 ? 2
                       : (s[0] & 0xf0) == 0xe0 ? 3
                       : (s[0] & 0xf8) == 0xf0 ? 4
                                               : 0;
    if (length < 2) {
        *code = s[0];
        return length;
    }
    unsigned value = s[0] & (0xffu >> (length + 1));
    for (int i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        value = value << 6 | (s[i] & 0x3fu);
    }
    if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return 0;
    *code = value;
    return length;
}

/* Controls, non-characters, and the marks that change the order or direction of what follows. */
static bool is_hidden(unsigned code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code & 0xfffe) == 0xfffe ||
           (code >= 0xfdd0 && code <= 0xfdef) || code == 0x061c ||
           (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
}

static void write_visible(ats_text *page, const char *value, bool markup)
{
    const unsigned char *s = (const unsigned char *)value;
    while (*s != '\0') {
        unsigned code = 0;
        const int length = decode(s, &code);
        if (length == 0)
            ats_text_add(page, "\\x%02X", *s);
        else if (code < 0x20 || code == 0x7f)
            ats_text_add(page, "\\x%02X", code);
        else if (is_hidden(code))
            ats_text_add(page, "\\u{%04X}", code);
        else if (markup && strchr("<>&\"'", (int)code) != NULL && code < 0x80)
            ats_text_add(page, "&#%u;", code);
        else
            ats_text_add(page, "%.*s", length, (const char *)s);
        s += length > 0 ? length : 1;
    }
}

void ats_html_escape(ats_text *page, const char *value) { write_visible(page, value, true); }

void ats_html_visible(ats_text *text, const char *value) { write_visible(text, value, false); }

void ats_html_element(ats_text *page, const char *tag, const char *class_name, const char *value)
{
    if (class_name != NULL)
        ats_text_add(page, "<%s class=\"%s\">", tag, class_name);
    else
        ats_text_add(page, "<%s>", tag);
    ats_html_escape(page, value);
    ats_text_add(page, "</%s>", tag);
}

void ats_html_number(ats_text *page, double value)
{
    if (isnan(value))
        ats_text_add(page, "\xe2\x80\x93");
    else if (isinf(value))
        ats_text_add(page, value < 0 ? "\xe2\x88\x92\xe2\x88\x9e" : "\xe2\x88\x9e");
    else
        ats_text_add(page, "%.4g", value == 0.0 ? 0.0 : value);
}

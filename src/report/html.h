/* Text that HTML and terminals can carry, whatever bytes it was made of.
 *
 * Token text and names come from files: markup is escaped, bytes that are no UTF-8, control
 * characters, lone surrogates, non-characters and marks that reorder text (bidi) are spelled out as
 * \xNN or \u{NNNN}. What is written is valid UTF-8, valid XML 1.0 character data and safe inside
 * double-quoted attributes. */
#ifndef ATS_REPORT_HTML_H
#define ATS_REPORT_HTML_H

#include "base/text.h"

void ats_html_escape(ats_text *page, const char *value);
/* The same without escaping markup: for terminals, JSON and CSV. */
void ats_html_visible(ats_text *text, const char *value);
/* <tag class="...">escaped value</tag>; class_name NULL: none. */
void ats_html_element(ats_text *page, const char *tag, const char *class_name, const char *value);
/* A number for people: 4 significant digits, "no number" glyph (an en dash) for NaN. */
void ats_html_number(ats_text *page, double value);

#endif

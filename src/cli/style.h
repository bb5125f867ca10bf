/* Looks of what is printed: colour on stdout, off by default, set once from --color, NO_COLOR and
 * the terminal; numbers in columns. */
#ifndef ATS_CLI_STYLE_H
#define ATS_CLI_STYLE_H

#include "base/status.h"

/* when: auto, always, never; NULL is auto. */
ATS_MUST_CHECK ats_code ats_style_set(const char *when, ats_err *err);

/* " %width.decimalsf" on stdout; "-" where the number is undefined, %g where it has no room. */
void ats_print_fixed(int width, int decimals, double value);

/* A text of a file on stdout, with what could move a terminal's cursor or colours as \\xNN. */
void ats_print_text(const char *text);

#endif

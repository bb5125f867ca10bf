/* The manual page and the completion of bash, both from the command and option tables. */
#ifndef ATS_CLI_MAN_H
#define ATS_CLI_MAN_H

#include <stdio.h>

void ats_man_print(FILE *stream);        /* troff, section 1 */
void ats_completion_print(FILE *stream); /* a bash script */

#endif

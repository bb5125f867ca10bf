/* Runs the built program in a fresh folder and keeps what it printed. */
#ifndef ATS_TESTS_CLI_PROGRAM_H
#define ATS_TESTS_CLI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

enum { PROGRAM_TEXT = 1 << 18 };

typedef struct program {
    char folder[128];
    char out[PROGRAM_TEXT], err[PROGRAM_TEXT];
    int status; /* exit status; 128 + signal when it was killed */
} program;

void program_enter(program *p); /* makes p->folder */
void program_leave(program *p); /* removes it */
/* `attnstress <line>` by a shell, in the folder; SUITES, CAPTURES name the repository's folders. */
void program_run(program *p, const char *line);
void program_write(const program *p, const char *name, const char *text);
bool program_has(const program *p, const char *name);
bool program_same(const program *p, const char *a, const char *b); /* bytes */

#endif

/* SIGINT and SIGTERM as a flag, for the length of a command that runs. The second signal ends the
 * process. A signal that came before the run itself began is kept; watching twice is watching once.
 * One run at a time. */
#ifndef ATS_ENGINE_INTERRUPT_H
#define ATS_ENGINE_INTERRUPT_H

#include <stdbool.h>

void ats_interrupt_hold(void); /* keeps both signals waiting until the watch, even across an exec */
void ats_interrupt_watch(void);
void ats_interrupt_unwatch(void); /* the handlers from before */
bool ats_interrupted(void);

#endif

/* SIGINT and SIGTERM as a flag, for the length of a run. The second signal ends the process.
 * One run at a time. */
#ifndef ATS_ENGINE_INTERRUPT_H
#define ATS_ENGINE_INTERRUPT_H

#include <stdbool.h>

void ats_interrupt_watch(void);
void ats_interrupt_unwatch(void); /* the handlers from before */
bool ats_interrupted(void);

#endif

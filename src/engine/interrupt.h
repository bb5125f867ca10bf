/* SIGINT, SIGTERM and SIGUSR1 as a flag, for the length of a command that runs. What is in flight
 * has `grace` seconds to end by itself; a second SIGINT ends the process. A signal that came before
 * the run itself began is kept; watching twice is watching once. One run at a time. */
#ifndef ATS_ENGINE_INTERRUPT_H
#define ATS_ENGINE_INTERRUPT_H

#include <stdbool.h>

void ats_interrupt_hold(void); /* keeps the signals waiting until the watch, even across an exec */
void ats_interrupt_watch(double grace);
void ats_interrupt_unwatch(void); /* the handlers from before */
/* A signal came: begin nothing new. */
bool ats_interrupt_asked(void);
/* A signal came and the time to end is over: stop now. */
bool ats_interrupted(void);
/* From what is known of the work in flight: it began at `start` (ats_clock) and `part` of it is
 * done. Without hope to end in time, ats_interrupted says so at once. */
void ats_interrupt_expect(double start, double part);

#endif

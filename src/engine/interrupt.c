#include "engine/interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t interrupted;
static struct sigaction old_int, old_term;
static int watchers;

static void note_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static void mask(int how)
{
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGINT);
    sigaddset(&both, SIGTERM);
    sigprocmask(how, &both, NULL);
}

void ats_interrupt_hold(void) { mask(SIG_BLOCK); }

void ats_interrupt_watch(void)
{
    struct sigaction action = {.sa_flags = (int)SA_RESETHAND};
    if (watchers++ > 0) return;
    action.sa_handler = note_signal;
    sigemptyset(&action.sa_mask);
    interrupted = 0;
    sigaction(SIGINT, &action, &old_int);
    sigaction(SIGTERM, &action, &old_term);
    mask(SIG_UNBLOCK);
}

void ats_interrupt_unwatch(void)
{
    if (--watchers > 0) return;
    sigaction(SIGINT, &old_int, NULL);
    sigaction(SIGTERM, &old_term, NULL);
}

bool ats_interrupted(void) { return interrupted != 0; }

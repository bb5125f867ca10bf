#include "engine/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/log.h"

static const int signals[] = {SIGINT, SIGTERM, SIGUSR1};
enum { N_SIGNALS = sizeof signals / sizeof signals[0] };

static volatile sig_atomic_t asked;
static struct sigaction before[N_SIGNALS];
static int watchers;
static double grace;
static _Atomic double noticed; /* ats_clock when the flag was first seen; 0: not yet */
static atomic_bool hopeless;

static void note_signal(int number)
{
    (void)number;
    asked = 1;
}

static void mask(int how)
{
    sigset_t all;
    sigemptyset(&all);
    for (int i = 0; i < N_SIGNALS; i++) sigaddset(&all, signals[i]);
    sigprocmask(how, &all, NULL);
}

void ats_interrupt_hold(void) { mask(SIG_BLOCK); }

void ats_interrupt_watch(double seconds)
{
    struct sigaction action = {.sa_flags = 0};
    grace = seconds;
    if (watchers++ > 0) return;
    action.sa_handler = note_signal;
    sigemptyset(&action.sa_mask);
    asked = 0;
    atomic_store(&noticed, 0.0);
    atomic_store(&hopeless, false);
    for (int i = 0; i < N_SIGNALS; i++) {
        action.sa_flags = SA_RESTART;
        if (signals[i] == SIGINT) action.sa_flags |= (int)SA_RESETHAND;
        sigaction(signals[i], &action, &before[i]);
    }
    mask(SIG_UNBLOCK);
}

void ats_interrupt_unwatch(void)
{
    if (--watchers > 0) return;
    for (int i = 0; i < N_SIGNALS; i++) sigaction(signals[i], &before[i], NULL);
}

bool ats_interrupt_asked(void) { return asked != 0; }

/* Seconds since a signal was first noticed; several threads may be the first. */
static double waited(void)
{
    const double now = ats_clock();
    double none = 0.0;
    if (atomic_compare_exchange_strong(&noticed, &none, now)) return 0;
    return now - atomic_load(&noticed);
}

bool ats_interrupted(void)
{
    if (asked == 0) return false;
    return atomic_load(&hopeless) || waited() >= grace;
}

void ats_interrupt_expect(double start, double part)
{
    if (asked == 0 || part >= 1) return;
    const double spent = ats_clock() - start, left = grace - waited();
    if (part <= 0 || spent * (1 - part) / part > left) atomic_store(&hopeless, true);
}

/* A lock file against two writers, that says who holds it: process, host, when.
 *
 * A lock of a dead process of this machine is taken over, one of another machine when it was not
 * renewed for ten minutes (a thread touches a held lock every half minute). Locks that exclude each
 * other may have different names: see ats_lock_take.
 * Ownership: the struct is the caller's and stays where it is while held; ats_lock_drop removes the
 * file, and accepts a zeroed lock. */
#ifndef ATS_BASE_LOCK_H
#define ATS_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

#include "base/status.h"

typedef struct ats_lock {
    char path[4096]; /* "": not held */
    char text[1024]; /* what stands in it */
    pthread_t renewer;
    pthread_mutex_t mutex;
    pthread_cond_t end;
    bool ends, renewed; /* renewed: the thread runs */
} ats_lock;

/* Takes `folder`/`name`. Refused with ATS_E_LOCK, in a sentence that names the other process, while
 * a living lock stands in the folder whose name ends in ".lock" and, unless it is this very name,
 * does not end as `friends` does (NULL: no other is allowed). purpose: what the holder does ("runs
 * suite x"), for others to read; job: an id that a scheduler gives one process at a time, or "":
 * an older lock of the same job is dead. */
ATS_MUST_CHECK ats_code ats_lock_take(const char *folder, const char *name, const char *friends,
                                      const char *purpose, const char *job, ats_lock *out,
                                      ats_err *err);
/* ATS_E_LOCK when someone else took it over, or the folder vanished. */
ATS_MUST_CHECK ats_code ats_lock_check(const ats_lock *lock, ats_err *err);
/* Is there a living lock in the folder? *who: the sentence about it, at most size bytes. */
bool ats_lock_held(const char *folder, char *who, size_t size);
/* Removes what locks that were never finished left in a folder, for who clears it away. */
void ats_lock_sweep(const char *folder);
void ats_lock_drop(ats_lock *lock);

#endif

/* Clearing away parts that nobody needs: of finished results, and old ones. */
#ifndef ATS_ENGINE_GC_H
#define ATS_ENGINE_GC_H

#include "base/arena.h"

typedef enum ats_gc_kind {
    ATS_GC_FINISHED, /* the result is there and complete */
    ATS_GC_OLD,      /* nothing in it changed for long */
    ATS_GC_YOUNG,    /* stays: it may be continued */
    ATS_GC_IN_USE    /* stays: a process holds its lock */
} ats_gc_kind;
const char *ats_gc_name(ats_gc_kind kind);

typedef struct ats_gc_folder {
    const char *path;
    ats_gc_kind kind;
    int64_t bytes; /* freed, or that would be */
    double days;   /* since the last change */
} ats_gc_folder;

/* Every "*.parts" folder in `folder`, or `folder` itself when it is one. days: age of old; remove
 * false: looks alone. The list lives in the arena. */
ATS_MUST_CHECK ats_code ats_gc(ats_arena *arena, const char *folder, double days, bool remove,
                               ats_gc_folder **out, int64_t *count, ats_err *err);

#endif

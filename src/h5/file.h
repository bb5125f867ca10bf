/* HDF5 files: open, create under a temporary name, groups, links, one conversion of HDF5's errors.
 *
 * No HDF5 header is needed to use this folder: a handle is an ats_h5_id. Objects are named by
 * absolute path; paths never leave the file (external links are refused). Sentences start with
 * "file: /object: ".
 * Ownership: an ats_h5_file owns its handle and names. HDF5 is called from one thread at a time. */
#ifndef ATS_H5_FILE_H
#define ATS_H5_FILE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

typedef int64_t ats_h5_id;

typedef struct ats_h5_file {
    ats_h5_id id;     /* > 0 while open */
    ats_h5_id access; /* how links are followed: never out of the file */
    char *path;       /* the name the user knows */
    char *temporary;  /* the name written to until ats_h5_commit; NULL: opened for reading */
    int64_t size;     /* bytes, when opened for reading */
    bool sealed;      /* the commit appends a seal (h5/seal.h) */
    int *unwritten; /* closings of written objects that failed, their bytes lost; NULL: read only */
    struct ats_h5_users *users; /* of its scales, written when it is shut; NULL: read only */
    pthread_mutex_t *hdf5; /* NULL: one thread at a time calls this folder. Else whoever calls it
                            * holds this; ats_h5_read_many lets go of it while it decodes */
} ats_h5_file;

/* Silences HDF5's own printing and registers the zstd filter. Idempotent; open and create call it.
 */
ATS_MUST_CHECK ats_code ats_h5_init(ats_err *err);
/* The silence alone, which HDF5 keeps for every thread apart: first in a thread that comes here. */
void ats_h5_quiet(void);

/* Read-only. ATS_E_INPUT: not there or not HDF5; ATS_E_LOCK: locked by a writer. */
ATS_MUST_CHECK ats_code ats_h5_open(const char *path, ats_h5_file *out, ats_err *err);
/* The same for a file that was opened before and has not changed since: its texts are not looked
 * through again. */
ATS_MUST_CHECK ats_code ats_h5_open_again(const char *path, ats_h5_file *out, ats_err *err);
/* Writes to "<path>.tmp": format bounds (V18, V18), creation order tracked, no object times.
 * An existing file at path stays until the commit; it is refused when someone holds its lock. */
ATS_MUST_CHECK ats_code ats_h5_create(const char *path, ats_h5_file *out, ats_err *err);
/* Refuses what ats_h5_create would refuse at path, before any work for it is done. */
ATS_MUST_CHECK ats_code ats_h5_target_check(const char *path, ats_err *err);
/* Makes the entry of a file or folder in its folder last. */
ATS_MUST_CHECK ats_code ats_h5_sync_folder(const char *path, ats_err *err);
/* Closes what was created as far as HDF5 has a part in it; a commit or close still follows. */
ATS_MUST_CHECK ats_code ats_h5_shut(ats_h5_file *file, ats_err *err);
/* Shuts, syncs, renames the temporary name to path, syncs the folder. Releases the file always. */
ATS_MUST_CHECK ats_code ats_h5_commit(ats_h5_file *file, ats_err *err);
/* Closes; removes the temporary file of an uncommitted one. Accepts a zeroed file. */
void ats_h5_close(ats_h5_file *file);

ATS_MUST_CHECK ats_code ats_h5_group_create(const ats_h5_file *file, const char *name,
                                            ats_err *err);
/* False also where a parent is missing. */
bool ats_h5_exists(const ats_h5_file *file, const char *name);
/* Names of a group's links, ascending by name (strcmp). */
ATS_MUST_CHECK ats_code ats_h5_children(const ats_h5_file *file, const char *name, ats_arena *arena,
                                        const char *const **out, int64_t *count, ats_err *err);

/* "file: /object: <what>". object may be NULL. */
ats_code ats_h5_fail(ats_err *err, ats_code code, const ats_h5_file *file, const char *object,
                     const char *fmt, ...) ATS_PRINTF(5, 6);
/* The same, then what HDF5 itself reports about the call that just failed; call it before any
 * other HDF5 call. A lock or a missing filter in that report changes code and advice. */
ats_code ats_h5_error(ats_err *err, ats_code code, const ats_h5_file *file, const char *object,
                      const char *fmt, ...) ATS_PRINTF(5, 6);

#endif

#include "h5/file.h"

#include <stdio.h>
#include <string.h>

#include "h5/internal.h"

typedef struct report {
    char inner[512]; /* the innermost description */
    bool lock, filter, external, signature;
} report;

/* A failed read or write is described with time, buffer address and sizes: the system's own words
 * among them are what helps. */
static void note_inner(report *found, const char *text)
{
    static const char mark[] = "error message = '";
    const char *system = strstr(text, mark), *colon = strstr(text, ": time = ");
    if (system == NULL || colon == NULL) {
        snprintf(found->inner, sizeof found->inner, "%s", text);
        return;
    }
    system += sizeof mark - 1;
    snprintf(found->inner, sizeof found->inner, "%.*s: %.*s", (int)(colon - text), text,
             (int)strcspn(system, "'"), system);
}

static herr_t note(unsigned n, const H5E_error2_t *record, void *ctx)
{
    report *found = ctx;
    const char *text = record->desc != NULL ? record->desc : "";
    const char *where = record->func_name != NULL ? record->func_name : "";
    if (n == 0) note_inner(found, text);
    if (strstr(text, "lock file") != NULL || strstr(text, "lock the file") != NULL) {
        found->lock = true;
        snprintf(found->inner, sizeof found->inner, "%s", text);
    }
    if (strstr(text, "required filter") != NULL) {
        found->filter = true;
        snprintf(found->inner, sizeof found->inner, "%s", text);
    }
    if (strstr(where, "extern_traverse") != NULL) found->external = true;
    if (strstr(text, "file signature not found") != NULL) found->signature = true;
    return 0;
}

static ats_code compose(ats_err *err, ats_code code, const ats_h5_file *file, const char *object,
                        const char *what, const char *why)
{
    const char *path = file != NULL && file->path != NULL ? file->path : "(no file)";
    if (object == NULL) return ats_fail(err, code, "%s: %s%s", path, what, why);
    return ats_fail(err, code, "%s: %s: %s%s", path, object, what, why);
}

ats_code ats_h5_fail(ats_err *err, ats_code code, const ats_h5_file *file, const char *object,
                     const char *fmt, ...)
{
    char what[2048];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return compose(err, code, file, object, what, "");
}

ats_code ats_h5_error(ats_err *err, ats_code code, const ats_h5_file *file, const char *object,
                      const char *fmt, ...)
{
    report found = {.inner = ""};
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, note, &found);
    H5Eclear2(H5E_DEFAULT); /* a thread that ends does not free its stack's words */
    char what[1024], why[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    if (found.lock) {
        snprintf(why, sizeof why,
                 ": another process holds the file's lock, or the storage cannot lock (HDF5: %s); "
                 "wait for the writer, or set HDF5_USE_FILE_LOCKING=FALSE when nobody writes",
                 found.inner);
        return compose(err, ATS_E_LOCK, file, object, what, why);
    }
    if (found.external)
        snprintf(why, sizeof why,
                 ": it is behind an external link to another file, which is never followed; copy "
                 "the object into this file");
    else if (found.signature)
        snprintf(why, sizeof why, ": this is not an HDF5 file (no HDF5 signature)");
    else if (found.filter)
        snprintf(why, sizeof why, ": HDF5 says %s; point HDF5_PLUGIN_PATH at the filter's plugin",
                 found.inner);
    else if (found.inner[0] != '\0')
        snprintf(why, sizeof why, ": HDF5 says: %s", found.inner);
    else
        why[0] = '\0';
    return compose(err, code, file, object, what, why);
}

#include "h5/version.h"

/* Who wrote it, where the file says so: results by tool_version, captures by producer. */
static const char *writer_of(const ats_h5_file *file, ats_arena *arena)
{
    static const char *const names[] = {"tool_version", "producer"};
    const char *text = NULL;
    ats_err unsaid;
    for (int i = 0; i < 2; i++)
        if (ats_h5_has_attr(file, "/", names[i]) &&
            ats_h5_get_text(file, "/", names[i], arena, &text, &unsaid) == ATS_OK)
            return text;
    return "a program that does not name itself";
}

ats_code ats_h5_expect_version(const ats_h5_file *file, const char *what, int64_t major,
                               ats_err *err)
{
    ats_arena arena = {.blocks = NULL};
    int64_t version = 0;
    ats_code rc = ats_h5_get_i64(file, "/", "format_version", &version, err);
    if (rc == ATS_OK && version != major)
        rc = ats_h5_fail(err, ATS_E_UNSUPPORTED, file, "/",
                         "has format_version %lld, written by %.80s; this program reads %ss of "
                         "format version %lld: %s",
                         (long long)version, writer_of(file, &arena), what, (long long)major,
                         version > major ? "install a newer attnstress"
                                         : "no such version was ever released, so the file is "
                                           "damaged or of another program");
    ats_arena_fini(&arena);
    return rc;
}

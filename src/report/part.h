/* Parts: sealed result files of one sample each, OUT.parts/000.h5, 001.h5, ...
 *
 * A part is there whole or not at all; what was cut short or altered since is found by its seal.
 * Ownership: names live in the arena given. */
#ifndef ATS_REPORT_PART_H
#define ATS_REPORT_PART_H

#include "report/results.h"

/* "OUT.h5.parts", and "OUT.h5.parts/007.h5". */
ATS_MUST_CHECK ats_code ats_parts_folder(ats_arena *arena, const char *result, const char **out,
                                         ats_err *err);
ATS_MUST_CHECK ats_code ats_part_path(ats_arena *arena, const char *folder, int64_t number,
                                      const char **out, ats_err *err);
/* The number in a file name that a part has; -1: it is no part's. */
int64_t ats_part_number(const char *name);

typedef enum ats_part_state {
    ATS_PART_ABSENT,
    ATS_PART_WHOLE,
    ATS_PART_DAMAGED, /* `why`: "does not fit its seal: ..." */
    ATS_PART_OTHER,   /* of another run; `why`: "its suite_hash is ..., here ..." */
    ATS_PART_PARTIAL  /* a joined result that says itself that parts are missing */
} ats_part_state;

/* expected: root attributes that must be the same, part and part_count among them. why lives in
 * the arena. */
ATS_MUST_CHECK ats_code ats_part_check(ats_arena *arena, const char *path,
                                       const ats_attribute *expected, int64_t n_expected,
                                       ats_part_state *state, const char **why, ats_err *err);
/* The same for a finished result, which has no seal; ATS_PART_DAMAGED: it is not complete, or no
 * result at all. */
ATS_MUST_CHECK ats_code ats_result_check(ats_arena *arena, const char *path,
                                         const ats_attribute *expected, int64_t n_expected,
                                         ats_part_state *state, const char **why, ats_err *err);

/* Paths of the parts in a folder, ascending by number. ATS_E_IO: it cannot be read. */
ATS_MUST_CHECK ats_code ats_parts_list(ats_arena *arena, const char *folder,
                                       const char *const **out, int64_t *count, ats_err *err);
/* Takes parts, their temporary files and the folder away; what is no part's stays, and the folder
 * then too. *bytes: freed. dry: counts alone. */
ATS_MUST_CHECK ats_code ats_parts_remove(const char *folder, bool dry, int64_t *bytes,
                                         ats_err *err);

#endif

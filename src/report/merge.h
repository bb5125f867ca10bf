/* Joining parts into one result: a part is a result file of one sample's cases, with a seal.
 *
 * Chunks are copied as they are stored; coordinates and attributes are joined in the order of the
 * parts' numbers, indices moved along. The bytes written depend on the parts alone.
 * Ownership: a merge owns its lists; the paths given must outlive it. One thread. */
#ifndef ATS_REPORT_MERGE_H
#define ATS_REPORT_MERGE_H

#include "report/results.h"

typedef struct ats_merge_options {
    int64_t n_parts;
    const char *const *parts; /* paths, in any order; the same part twice counts once */
    bool partial;             /* parts may be missing: the result is marked */
    bool sealed;              /* the caller has checked the seals */
} ats_merge_options;

typedef struct ats_merge_part {
    const char *path;
    int64_t number; /* index of the sample in the whole run */
} ats_merge_part;

typedef struct ats_merge ats_merge;

/* Every part: its seal, that all are of one run, and that none is missing. ATS_E_INPUT names what
 * is wrong, the missing ones by number. */
ATS_MUST_CHECK ats_code ats_merge_open(const ats_merge_options *options, ats_merge **out,
                                       ats_err *err);
/* Those that are joined, ascending by number. */
const ats_merge_part *ats_merge_parts(const ats_merge *merge, int64_t *count);
int64_t ats_merge_missing(const ats_merge *merge);
/* Part `i` of those, open until it is given back; two then stay open for the next time, as
 * opening costs more than most reading. The file stays the merge's. */
ATS_MUST_CHECK ats_code ats_merge_take(ats_merge *merge, int64_t i, ats_result_file **out,
                                       ats_err *err);
void ats_merge_give_back(ats_merge *merge, int64_t i);
/* The joined result under `path`, by a rename. attributes: of the whole, after those of the
 * parts. */
ATS_MUST_CHECK ats_code ats_merge_write(ats_merge *merge, const char *path,
                                        const ats_attribute *attributes, int64_t n_attributes,
                                        ats_err *err);
void ats_merge_free(ats_merge *merge);

#endif

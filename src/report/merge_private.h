/* What the files of merge share. Internal to report/. */
#ifndef ATS_REPORT_MERGE_PRIVATE_H
#define ATS_REPORT_MERGE_PRIVATE_H

#include "h5/clone.h"
#include "report/merge.h"
#include "report/results_private.h"

typedef struct ats_merge_one {
    const char *path;
    int64_t number, of, ok, skipped, failed;
    ats_result_file *file; /* NULL: not open now */
    int64_t takers;        /* who have not given it back */
    bool known;            /* was open before */
} ats_merge_one;

struct ats_merge {
    ats_arena arena;
    int64_t count, missing, n_open;
    ats_merge_one *ones;       /* [count] ascending by number */
    ats_merge_part *list;      /* [count] the same for the caller */
    const char *missing_names; /* NULL: none */
    int64_t n_words;           /* root attributes that all parts share */
    const char **word_names, **words;
};

/* Is it an attribute of one part, and not of the whole? */
bool ats_merge_of_one_part(const char *name);

#endif

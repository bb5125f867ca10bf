/* Memory of one ats_stats: one block, laid out once, reused for every variant.
 * Ownership: the block belongs to the arena it was made in. */
#ifndef ATS_KERNELS_STATS_H
#define ATS_KERNELS_STATS_H

#include "base/arena.h"
#include "kernels/backend.h"

/* pair: also the arrays that compare with a base. */
ATS_MUST_CHECK ats_code ats_stats_new(ats_arena *arena, const ats_problem *problem, bool pair,
                                      ats_stats *out, ats_err *err);
/* The same arrays, not filled: for who clears them before each use. */
ATS_MUST_CHECK ats_code ats_stats_room(ats_arena *arena, const ats_problem *problem, bool pair,
                                       ats_stats *out, ats_err *err);
/* Fills every array with NaN, -1 or 0: nothing an evaluation forgot can look like a result. */
void ats_stats_clear(const ats_problem *problem, ats_stats *stats);
/* The same for all but value sums, and for the value sums of one row. */
void ats_stats_clear_numbers(const ats_problem *problem, ats_stats *stats);
void ats_stats_clear_sums(const ats_problem *problem, ats_stats *stats, int64_t row);

/* out: the arrays of src from row `first` on. */
void ats_stats_rows(const ats_problem *problem, const ats_stats *src, int64_t first,
                    ats_stats *out);

/* dst and src: two statistics of the same problem; pair arrays are copied where both have them. */
void ats_stats_copy(const ats_problem *problem, const ats_stats *src, ats_stats *dst);

typedef enum ats_array_type { ATS_ARRAY_F64, ATS_ARRAY_F32, ATS_ARRAY_I64 } ats_array_type;

/* One array of an ats_stats, by the name of its field. */
typedef struct ats_stats_array {
    const char *name;
    void **place; /* the field itself */
    ats_array_type type;
    int64_t per_row; /* elements */
    int64_t blank;   /* what `clear` writes into integers */
} ats_stats_array;

#define ATS_STATS_ARRAYS 40
/* Lists every array (the pair's only when pair); returns the count, at most ATS_STATS_ARRAYS. */
int64_t ats_stats_list(const ats_problem *problem, ats_stats *stats, bool pair,
                       ats_stats_array *out);

#endif

/* Edit scripts: a builder that starts from "keep everything", the check that every script
 * passes once, and a printer.
 *
 * The builder takes operations in any order and emits the segments in sequence order; a base row
 * named twice is refused. Ownership: everything lives in the builder's arena. */
#ifndef ATS_PERTURB_SCRIPT_H
#define ATS_PERTURB_SCRIPT_H

#include "base/arena.h"
#include "base/edit.h"
#include "capture/capture.h"

typedef struct ats_script_op {
    ats_segment segment;
    int64_t at;    /* base row that it starts at, or that ROWS go before */
    int64_t order; /* of the calls: ROWS at one place stay in call order */
} ats_script_op;

typedef struct ats_script {
    ats_arena *arena;
    int64_t n_keys; /* base rows */
    int64_t n_ops, capacity;
    ats_script_op *ops; /* [capacity] */
} ats_script;

ats_script ats_script_begin(ats_arena *arena, int64_t n_keys);
/* Side rows [row, row + count) before base row `at` (n_keys: at the end). */
ATS_MUST_CHECK ats_code ats_script_insert(ats_script *script, int64_t at, int64_t row,
                                          int64_t count, ats_err *err);
ATS_MUST_CHECK ats_code ats_script_hide(ats_script *script, int64_t start, int64_t stop,
                                        ats_err *err);
/* Base rows [start, stop) keep their content and move by delta positions. */
ATS_MUST_CHECK ats_code ats_script_move(ats_script *script, int64_t start, int64_t stop,
                                        int64_t delta, ats_err *err);
/* Base rows stay themselves; key and/or value come from side rows from `row` on. */
ATS_MUST_CHECK ats_code ats_script_swap(ats_script *script, int64_t start, int64_t stop,
                                        int64_t row, bool key, bool value, ats_err *err);
/* Base rows leave, side rows from `row` on stand in their place: hide and insert. */
ATS_MUST_CHECK ats_code ats_script_overwrite(ats_script *script, int64_t start, int64_t stop,
                                             int64_t row, ats_err *err);
/* The segments, in order; what no operation named is kept. Refuses overlapping operations.
 * Writes segments and n_segments, and factor 1 where temperature is 0. */
ATS_MUST_CHECK ats_code ats_script_emit(ats_script *script, ats_edit *out, ats_err *err);

/* Segments in order, every base row named once, every side row used once, positions >= 0 and,
 * unless allow_past_max, <= max_position (0 or less: no limit); SWAP rows at their base row's
 * position. No tensors are read. */
ATS_MUST_CHECK ats_code ats_edit_validate(ats_arena *arena, const ats_edit *edit,
                                          const ats_sample *sample, const ats_layer *layer,
                                          bool allow_past_max, ats_err *err);

/* Inserted rows hold finite numbers; nothing to check while there are no tensors. */
ATS_MUST_CHECK ats_code ats_edit_check_rows(const ats_edit *edit, const ats_layer *layer,
                                            ats_err *err);

/* One line a segment, then what changes for the whole variant; at most max_lines segment lines
 * (0: all), the rest counted. */
ATS_MUST_CHECK ats_code ats_edit_print(ats_arena *arena, const ats_edit *edit, int64_t max_lines,
                                       const char **out, ats_err *err);

#endif

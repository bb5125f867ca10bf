/* Where side rows go: placement and position mode into segments and positions.
 *
 * Rows come in units that stay together (one row, a copy, a version). docs/perturbations.md states
 * the rules. Private to perturb/. No tensors; everything lives in ctx->arena. */
#ifndef ATS_PERTURB_PLACE_H
#define ATS_PERTURB_PLACE_H

#include "perturb/family.h"

typedef struct ats_place {
    int64_t start, stop; /* the span that `before`, `after` and `around` mean */
    int64_t units, unit_rows;
    bool joined;           /* units at one point form one block: its last row ends it */
    const char *placement; /* before | after | around | depth | random */
    double depth;          /* 0..1 */
    int64_t free_zone;     /* rows */
    int64_t gap;           /* rows between consecutive units of before and after */
} ats_place;

/* placement, depth and free_zone from the parameters of those names. */
ats_place ats_place_of(const ats_build *ctx, const ats_span *span, int64_t units, int64_t unit_rows,
                       bool joined);
/* Segments, side.count, side.position and query_delta of out->edit for ctx->mode. */
ATS_MUST_CHECK ats_code ats_place_layout(const ats_build *ctx, const ats_place *place,
                                         ats_built *out, ats_err *err);
/* Base rows that `replace` would overwrite, ascending: [units * unit_rows] in the arena. */
ATS_MUST_CHECK ats_code ats_place_filler(const ats_build *ctx, const ats_place *place,
                                         int64_t **out, ats_err *err);
/* The insertion point at a depth, moved to the nearest end of a span that it would split. */
int64_t ats_place_depth(const ats_build *ctx, const ats_place *place, double depth);
/* A script that swaps these base rows (ascending, [count]), side row j for rows[j]. */
ATS_MUST_CHECK ats_code ats_place_swap(const ats_build *ctx, const int64_t *rows, int64_t count,
                                       bool key, bool value, ats_built *out, ats_err *err);

#endif

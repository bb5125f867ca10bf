/* Reading one cell's statistics: the few look-ups that every metric is written in.
 * NaN where the row has no legal key and no sink. Private to metrics/. */
#ifndef ATS_METRICS_CELL_H
#define ATS_METRICS_CELL_H

#include <math.h>

#include "metrics/metric.h"

/* L of a route; NaN when the row is undefined. */
static inline double ats_cell_lse(const ats_cell *cell, const ats_route_stats *route)
{
    const double lse = route->lse[cell->row];
    return lse == -(double)INFINITY ? (double)NAN : lse;
}

/* Index of (row, region) in the region arrays. */
static inline int64_t ats_cell_region(const ats_cell *cell)
{
    return cell->row * cell->problem->n_regions + cell->span;
}

/* A span that this sample does not have: everything about it is undefined. */
static inline bool ats_cell_absent(const ats_cell *cell)
{
    return cell->span != ATS_SPAN_INSERTED && cell->problem->regions[cell->span].n_ranges == 0;
}

/* LSE over the span's legal keys: -inf when there are none, NaN when the span is absent. `base`:
 * in the base, where nothing is inserted. */
double ats_cell_span_lse(const ats_cell *cell, bool base);
/* sum of w v over the span [d_v]; NULL: zero (inserted rows of the base). */
const float *ats_cell_span_output(const ats_cell *cell, bool base);

/* May the row see the key in the base: masks, segments, biases and positions together. */
bool ats_row_sees(const ats_problem *problem, int64_t row, int64_t key);
/* Keys of the span that the row may see in the base; the span is not ATS_SPAN_INSERTED. */
int64_t ats_cell_legal_rows(const ats_cell *cell);

#endif

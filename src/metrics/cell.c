#include "metrics/cell.h"

double ats_cell_span_lse(const ats_cell *cell, bool base)
{
    if (ats_cell_absent(cell)) return (double)NAN;
    if (cell->span == ATS_SPAN_INSERTED)
        return base || cell->pair == NULL ? -(double)INFINITY : cell->pair->inserted_lse[cell->row];
    return (base ? cell->base : cell->route)->region_lse[ats_cell_region(cell)];
}

const float *ats_cell_span_output(const ats_cell *cell, bool base)
{
    const int64_t d_v = cell->problem->d_v;
    if (cell->span == ATS_SPAN_INSERTED)
        return base || cell->pair == NULL ? NULL : cell->pair->inserted_output + cell->row * d_v;
    return (base ? cell->base : cell->route)->region_output + ats_cell_region(cell) * d_v;
}

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

bool ats_row_sees(const ats_problem *p, int64_t row, int64_t key)
{
    const int64_t probe = row % p->n_probes;
    if (p->keep != NULL && !p->keep[probe * p->n_keys + key]) return false;
    if (p->key_segment != NULL && p->q_segment != NULL && p->key_segment[key] != p->q_segment[row])
        return false;
    if (p->bias != NULL && p->bias[row][key] <= ATS_BIAS_HIDES) return false;
    return ats_legal_position(&p->contract, p->q_pos[row], p->key_pos[key]);
}

/* Only causality hides keys from rows. */
static bool only_causal(const ats_problem *p)
{
    return p->keep == NULL && p->bias == NULL && p->contract.window == 0 &&
           p->contract.chunk == 0 && (p->key_segment == NULL || p->q_segment == NULL);
}

static int64_t range_legal_rows(const ats_problem *p, int64_t row, ats_range range)
{
    int64_t rows = 0;
    if (only_causal(p) && !p->contract.causal) return range.stop - range.start;
    if (only_causal(p)) {
        for (int64_t key = range.start; key < range.stop; key++)
            rows += p->key_pos[key] <= p->q_pos[row];
        return rows;
    }
    for (int64_t key = range.start; key < range.stop; key++) rows += ats_row_sees(p, row, key);
    return rows;
}

int64_t ats_cell_legal_rows(const ats_cell *cell)
{
    const ats_region *region = &cell->problem->regions[cell->span];
    int64_t rows = 0;
    for (int64_t r = 0; r < region->n_ranges; r++)
        rows += range_legal_rows(cell->problem, cell->row, region->ranges[r]);
    return rows;
}

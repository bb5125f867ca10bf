/* The edit script: what a perturbed key sequence consists of, as plain data.
 *
 * Perturbations write it, backends read it, and neither knows the other. Segments are in
 * sequence order and name every base row exactly once; perturb/script.h builds and checks them.
 * Ownership: all pointers belong to the arena that the script was built in. */
#ifndef ATS_BASE_EDIT_H
#define ATS_BASE_EDIT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum ats_segment_kind {
    ATS_SEG_KEEP, /* base rows [start, stop), positions moved by delta */
    ATS_SEG_HIDE, /* base rows [start, stop), illegal, positions unchanged */
    ATS_SEG_ROWS, /* side rows [row, row + stop - start), inserted; start == stop's base place unused */
    ATS_SEG_SWAP  /* base rows [start, stop), key and/or value from side rows [row, ...) */
} ats_segment_kind;

typedef struct ats_segment {
    ats_segment_kind kind;
    int64_t start, stop; /* base rows; for ROWS: 0 and the number of side rows */
    int64_t delta;       /* KEEP only, positions */
    int64_t row;         /* ROWS, SWAP: first side row */
    bool swap_key, swap_value; /* SWAP only */
} ats_segment;

/* Rows of the side buffer: inserted or replacing rows of one key head, in fp32. */
typedef struct ats_side {
    int64_t count;
    const float *k;          /* [count, d_qk], already rotated to `position` */
    const float *v;          /* [count, d_v] */
    const int64_t *position; /* [count]; for SWAP rows the base row's own position */
} ats_side;

typedef struct ats_edit {
    int64_t n_segments;
    const ats_segment *segments;
    ats_side side;
    int64_t query_delta; /* probes move by this many positions */
    double temperature;  /* extra factor on the contract's temperature; 1: none */
    double scale;        /* replaces the contract's scale; 0: keep */
    const float *q;      /* [rows, d_qk] replaces the queries (before query_delta); NULL: keep */
    bool apart;          /* evaluate by a pass of its own: nothing is taken over from the base */
} ats_edit;

#endif

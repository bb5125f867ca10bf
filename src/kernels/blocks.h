/* A problem whose rows are evaluated block by block, so that what a backend holds at a time fits in
 * problem->memory. Rows do not look at each other, so every number keeps its bits.
 * Ownership: nothing outlives a call. */
#ifndef ATS_KERNELS_BLOCKS_H
#define ATS_KERNELS_BLOCKS_H

#include "kernels/backend.h"

/* Bytes of an evaluation of these rows with so many variants at work at a time, statistics of the
 * workers included; SIZE_MAX: it cannot be counted. */
typedef size_t (*ats_block_bytes_fn)(const ats_problem *problem, int64_t workers);

typedef struct ats_blocks {
    int64_t rows; /* of a block, a multiple of ATS_BLOCK_ROWS unless it is all */
    int workers;  /* variants at work at a time */
    size_t bytes; /* in all; over problem->memory: it does not fit, and this is the least */
} ats_blocks;

enum { ATS_BLOCK_ROWS = 16 };

/* All rows and threads where they fit, then fewer rows, then fewer workers. */
ats_blocks ats_blocks_choose(const ats_problem *problem, int64_t n_variants,
                             ats_block_bytes_fn bytes);

/* Evaluates rows of a problem, as ats_backend.evaluate does. */
typedef ats_code (*ats_block_fn)(const ats_problem *problem, const ats_edit *variants,
                                 int64_t n_variants, int workers, ats_emit_fn emit, void *ctx,
                                 ats_err *err);

/* Every block of rows through `evaluate`; emits whole statistics once the last block is done. A
 * single block goes through as it is. What does not fit is ATS_E_MEMORY with the number that would.
 */
ATS_MUST_CHECK ats_code ats_blocks_evaluate(const ats_problem *problem, const ats_edit *variants,
                                            int64_t n_variants, const ats_blocks *blocks,
                                            ats_block_fn evaluate, ats_emit_fn emit, void *ctx,
                                            ats_err *err);

#endif

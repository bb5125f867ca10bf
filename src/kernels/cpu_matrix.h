/* Products of bfloat16 keys and values by matrix units. Keys and values go in as they are stored;
 * the fp32 operand is split into bfloat16 terms, hi + lo, whose sum differs from it by less than
 * 2^-17 of its size (2^-9 lost by each rounding), inside the bars for 16-bit matrix units.
 *
 * Every sum runs over the dimensions (or keys) in blocks of 32 and over the terms within a block,
 * whatever else is computed with it. Pure functions; no state between two calls. */
#ifndef ATS_KERNELS_CPU_MATRIX_H
#define ATS_KERNELS_CPU_MATRIX_H

#include <stdint.h>

enum {
    ATS_MATRIX_BLOCK = 32, /* dimensions or keys that one operation sums over */
    ATS_MATRIX_SIDE = 16,  /* rows and columns of a tile */
    ATS_MATRIX_WORDS = ATS_MATRIX_BLOCK * ATS_MATRIX_SIDE, /* of a tile */
    ATS_MATRIX_TERMS = 2
};

static inline int64_t ats_matrix_blocks(int64_t n)
{
    return (n + ATS_MATRIX_BLOCK - 1) / ATS_MATRIX_BLOCK;
}

/* Words of packed fp32 operands: n dimensions or keys, of `lanes` rows (a multiple of 16). */
static inline int64_t ats_matrix_packed(int64_t n, int64_t lanes)
{
    return ats_matrix_blocks(n) * ATS_MATRIX_BLOCK * lanes * ATS_MATRIX_TERMS;
}

typedef struct ats_cpu_matrix {
    const char *name; /* NULL: not compiled */
    /* NULL where this process may use it, else what is missing: "this machine lacks ...". */
    const char *(*missing)(void);
    /* Queries q [d, lanes] in terms; how many of the terms are not all zero. */
    int (*pack_queries)(int64_t lanes, int64_t d, const float *q, uint16_t *packed);
    /* z [keys, lanes] = scale k [keys, d] . q; room [ATS_MATRIX_BLOCK, d rounded up to 32]. */
    void (*dot)(int64_t keys, int64_t lanes, int64_t d, const uint16_t *k, const uint16_t *packed,
                int terms, float scale, uint16_t *room, float *z);
    /* Values v [keys, width] in pairs of keys, width a multiple of 16. packed [keys rounded up to
     * 32, width]. */
    void (*pack_values)(int64_t keys, int64_t width, const uint16_t *v, uint16_t *packed);
    /* o [rows, width] = sum over keys of p [keys, lanes] times packed values; room: the words of
     * packed weights. */
    void (*mix)(int64_t keys, int64_t rows, int64_t lanes, int64_t width, const float *p,
                const uint16_t *packed, uint16_t *room, float *o);
    /* Ceiling, for `bench`: burn_flops a step, tiles alone. */
    double burn_flops;
    float (*burn)(int64_t steps);
} ats_cpu_matrix;

extern const ats_cpu_matrix ats_cpu_matrix_amx;

/* Why the level "amx" is not to be had here, or NULL. */
const char *ats_cpu_matrix_missing(void);

#endif

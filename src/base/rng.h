/* Counter-based random streams (Philox 4x32-10 of Random123).
 *
 * A stream is named by what it is for, never by when it is drawn: (seed, sample id,
 * variant id, layer, key head, purpose) hashed (XXH3) into the Philox key. The same
 * numbers come whatever the order, thread, shard or backend. */
#ifndef ATS_BASE_RNG_H
#define ATS_BASE_RNG_H

#include <stdint.h>

typedef struct ats_rng {
    uint32_t key[2];
    uint64_t stream;  /* upper half of the counter */
    uint64_t counter; /* lower half: blocks drawn so far */
    uint32_t buffer[4];
    int left; /* unread words in buffer */
} ats_rng;

ats_rng ats_rng_stream(uint64_t seed, const char *sample, const char *variant, int64_t layer,
                       int64_t head, const char *purpose);
uint32_t ats_rng_u32(ats_rng *rng);
double ats_rng_unit(ats_rng *rng);                  /* uniform in [0, 1), 53 bits */
int64_t ats_rng_below(ats_rng *rng, int64_t bound); /* unbiased in [0, bound), bound > 0 */
double ats_rng_normal(ats_rng *rng);                /* standard normal, Box-Muller */
/* out[i] = the next standard normals: those that count calls of ats_rng_normal give. */
void ats_rng_normals(ats_rng *rng, int64_t count, double *out);
/* Fisher-Yates: the first `take` entries of index[0..n) become a random sample in random order. */
void ats_rng_choose(ats_rng *rng, int64_t *index, int64_t n, int64_t take);

#endif

#include "base/rng.h"

#include <math.h>
#include <string.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <Random123/philox.h>
#pragma GCC diagnostic pop
#include <xxhash.h>

ats_rng ats_rng_stream(uint64_t seed, const char *sample, const char *variant, int64_t layer,
                       int64_t head, const char *purpose)
{
    /* Each text is hashed alone and the fixed-size record of all parts is hashed again, so
     * that no two different tuples share a byte string. */
    const uint64_t record[6] = {seed,
                                XXH3_64bits(sample, strlen(sample)),
                                XXH3_64bits(variant, strlen(variant)),
                                (uint64_t)layer,
                                (uint64_t)head,
                                XXH3_64bits(purpose, strlen(purpose))};
    const XXH128_hash_t hash = XXH3_128bits(record, sizeof record);
    return (ats_rng){.key = {(uint32_t)hash.low64, (uint32_t)(hash.low64 >> 32)},
                     .stream = hash.high64};
}

static philox4x32_ctr_t next_block(ats_rng *rng)
{
    philox4x32_ctr_t counter = {{(uint32_t)rng->counter, (uint32_t)(rng->counter >> 32),
                                 (uint32_t)rng->stream, (uint32_t)(rng->stream >> 32)}};
    philox4x32_key_t key = {{rng->key[0], rng->key[1]}};
    rng->counter++;
    return philox4x32(counter, key);
}

uint32_t ats_rng_u32(ats_rng *rng)
{
    if (rng->left == 0) {
        const philox4x32_ctr_t block = next_block(rng);
        memcpy(rng->buffer, block.v, sizeof rng->buffer);
        rng->left = 4;
    }
    return rng->buffer[4 - rng->left--];
}

static uint64_t next_u64(ats_rng *rng)
{
    const uint64_t high = ats_rng_u32(rng);
    return high << 32 | ats_rng_u32(rng);
}

double ats_rng_unit(ats_rng *rng) { return (double)(next_u64(rng) >> 11) * 0x1p-53; }

int64_t ats_rng_below(ats_rng *rng, int64_t bound)
{
    const uint64_t n = (uint64_t)bound, limit = UINT64_MAX - UINT64_MAX % n;
    uint64_t x;
    do x = next_u64(rng);
    while (x >= limit);
    return (int64_t)(x % n);
}

/* Box-Muller. */
static double normal(double u, double v)
{
    return sqrt(-2.0 * log(1.0 - u)) * cos(2.0 * 3.14159265358979323846 * v);
}

double ats_rng_normal(ats_rng *rng)
{
    const double u = ats_rng_unit(rng), v = ats_rng_unit(rng);
    return normal(u, v);
}

static double unit_of(uint32_t high, uint32_t low)
{
    return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}

void ats_rng_normals(ats_rng *rng, int64_t count, double *out)
{
    if (rng->left != 0) { /* normals straddle blocks */
        for (int64_t i = 0; i < count; i++) out[i] = ats_rng_normal(rng);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const philox4x32_ctr_t b = next_block(rng);
        out[i] = normal(unit_of(b.v[0], b.v[1]), unit_of(b.v[2], b.v[3]));
    }
}

void ats_rng_choose(ats_rng *rng, int64_t *index, int64_t n, int64_t take)
{
    for (int64_t i = 0; i < take && i < n; i++) {
        const int64_t j = i + ats_rng_below(rng, n - i);
        const int64_t swap = index[i];
        index[i] = index[j];
        index[j] = swap;
    }
}

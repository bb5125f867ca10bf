/* Stands in for xxhash in kernels-only builds on machines without it: FNV-1a under the names that
 * base/rng.c uses. Streams of random numbers are then others than the program's, which tests and
 * benchmarks do not mind. */
#ifndef ATS_BARE_XXHASH_H
#define ATS_BARE_XXHASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct XXH128_hash {
    uint64_t low64, high64;
} XXH128_hash_t;

static inline uint64_t ats_bare_hash(uint64_t h, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++) h = (h ^ bytes[i]) * 0x100000001b3u;
    h ^= h >> 32;
    return h * 0x9e3779b97f4a7c15u;
}

static inline uint64_t XXH3_64bits(const void *data, size_t size)
{
    return ats_bare_hash(0xcbf29ce484222325u, data, size);
}

static inline XXH128_hash_t XXH3_128bits(const void *data, size_t size)
{
    return (XXH128_hash_t){XXH3_64bits(data, size), ats_bare_hash(0x6c62272e07bb0142u, data, size)};
}

#endif

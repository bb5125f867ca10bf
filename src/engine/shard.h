/* Shards: which samples a process of several computes.
 *
 * "i/n" counts from 1; "auto" asks the scheduler's environment. Samples go to shards by their
 * estimated cost, the same way in every process. */
#ifndef ATS_ENGINE_SHARD_H
#define ATS_ENGINE_SHARD_H

#include "engine/plan.h"

typedef struct ats_shard {
    int64_t index, count; /* index from 0; count 0: not sharded */
    const char *from;     /* "--shard" or the environment's variable */
} ats_shard;

/* count: --shards, 0: not given. look: getenv, or a test's. ATS_E_USAGE says what is wrong. */
ATS_MUST_CHECK ats_code ats_shard_parse(const char *text, int64_t count,
                                        char *(*look)(const char *), ats_shard *out, ats_err *err);
/* mine [n_samples]: 1 where the sample is the shard's. */
ATS_MUST_CHECK ats_code ats_shard_split(const ats_plan *plan, const ats_shard *shard,
                                        ats_arena *arena, uint8_t *mine, ats_err *err);
/* The same from costs alone: dearest first, each to the shard with the least work so far. */
ATS_MUST_CHECK ats_code ats_shard_deal(const double *cost, int64_t n, int64_t count,
                                       ats_arena *arena, int64_t *shard_of, ats_err *err);
/* An id that the scheduler gives one process at a time ("slurm 12_3"), "" without one. */
void ats_shard_job(char *(*look)(const char *), char *out, size_t size);

#endif

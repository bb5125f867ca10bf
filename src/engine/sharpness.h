/* Sharpness of the base rows of one key head: metrics/diagnose.h on a capture's sample.
 *
 * `run` and `diagnose` both come here, so that equal seeds give equal answers: the query rotations
 * belong to the seed, the sample's id, the head and the probe, whatever else was selected.
 * Ownership: results are the caller's; scratch is reset in the threads' arenas. */
#ifndef ATS_ENGINE_SHARPNESS_H
#define ATS_ENGINE_SHARPNESS_H

#include "engine/problem.h"
#include "metrics/diagnose.h"

/* [n_keys] 1 for the first rows and rows of role "sink". */
ATS_MUST_CHECK ats_code ats_sharpness_sinks(ats_arena *arena, const ats_sample *sample,
                                            uint8_t **out, ats_err *err);

typedef struct ats_sharpness {
    const ats_problem *problem;
    const ats_pick *pick; /* what the problem was made of */
    const ats_sample *sample;
    const uint8_t *sinks; /* [n_keys] */
    uint64_t seed;
    ats_arena *arenas; /* [ats_threads()] */
} ats_sharpness;

/* out: [problem->n_rows] */
ATS_MUST_CHECK ats_code ats_sharpness_rows(const ats_sharpness *sharpness, ats_diagnosis *out,
                                           ats_err *err);

#endif

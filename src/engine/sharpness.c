#include "engine/sharpness.h"

#include <string.h>

#include "base/parallel.h"

ats_code ats_sharpness_sinks(ats_arena *arena, const ats_sample *sample, uint8_t **out,
                             ats_err *err)
{
    ats_code rc = ATS_NEW0(arena, sample->n_keys, out, err);
    if (rc != ATS_OK) return rc;
    for (int64_t i = 0; i < ATS_DIAGNOSE_SINK_ROWS && i < sample->n_keys; i++) (*out)[i] = 1;
    for (int64_t s = 0; s < sample->n_spans; s++) {
        const ats_span *span = &sample->spans[s];
        if (strcmp(span->role, "sink") == 0)
            memset(*out + span->start, 1, (size_t)(span->stop - span->start));
    }
    return ATS_OK;
}

typedef struct job {
    const ats_sharpness *sharpness;
    ats_diagnosis *out;
} job;

static ats_code diagnose_one(void *ctx, int64_t row, int worker, ats_err *err)
{
    const job *j = ctx;
    const ats_sharpness *s = j->sharpness;
    const ats_pick *pick = s->pick;
    const ats_diagnose_draw draw = {.seed = s->seed,
                                    .name = s->sample->id,
                                    .number =
                                        pick->heads[row / pick->n_probes] * s->sample->n_probes +
                                        pick->probes[row % pick->n_probes]};
    ats_arena_reset(&s->arenas[worker]);
    return ats_diagnose_row(s->problem, row, s->sinks, &draw, &s->arenas[worker], &j->out[row],
                            err);
}

ats_code ats_sharpness_rows(const ats_sharpness *sharpness, ats_diagnosis *out, ats_err *err)
{
    job j = {sharpness, out};
    return ats_parallel_for(sharpness->problem->n_rows, diagnose_one, &j, err);
}

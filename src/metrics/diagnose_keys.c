#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "metrics/cell.h"
#include "metrics/diagnose_private.h"

/* Turns pairs of q by independent random angles: the layer's rotary pairs, and the elements
 * outside them paired as halves. */
static void turn(const ats_rope *rope, const float *q, int64_t d, ats_rng *rng, double *out)
{
    const int64_t pairs = rope->layout != ATS_ROPE_NONE ? rope->pairs : 0;
    const int64_t rest = (d - 2 * pairs) / 2;
    for (int64_t i = 0; i < d; i++) out[i] = (double)q[i];
    for (int64_t i = 0; i < pairs + rest; i++) {
        int64_t a = i, b = i + pairs;
        if (i >= pairs) {
            a = 2 * pairs + (i - pairs);
            b = a + rest;
        } else if (rope->layout == ATS_ROPE_INTERLEAVED) {
            a = 2 * i;
            b = a + 1;
        }
        const double angle = 2 * M_PI * ats_rng_unit(rng), c = cos(angle), s = sin(angle);
        const double x = out[a], y = out[b];
        out[a] = x * c - y * s;
        out[b] = y * c + x * s;
    }
}

static double offset_of(const ats_problem *p, int64_t row, int64_t key, bool seen)
{
    double offset = 0;
    if (p->bias != NULL && seen) offset += (double)p->bias[row][key];
    if (p->alibi_slope != NULL)
        offset -= (double)p->alibi_slope[row] * (double)(p->q_pos[row] - p->key_pos[key]);
    return offset;
}

typedef struct directions {
    double *vector; /* [1 + ATS_DIAGNOSE_ROTATIONS, d], unit norm; the first is the query's */
    double norm;
} directions;

static ats_code make_directions(const ats_problem *p, int64_t row, const ats_diagnose_draw *draw,
                                ats_arena *arena, directions *out, ats_err *err)
{
    const int64_t d = p->d_qk;
    const float *q = p->q + row * d;
    double norm = 0;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, (1 + ATS_DIAGNOSE_ROTATIONS) * d, &out->vector, err));
    for (int64_t i = 0; i < d; i++) {
        out->vector[i] = (double)q[i];
        norm += out->vector[i] * out->vector[i];
    }
    out->norm = norm = sqrt(norm);
    for (int64_t r = 0; r < ATS_DIAGNOSE_ROTATIONS; r++) {
        char purpose[48];
        snprintf(purpose, sizeof purpose, "diagnose rotation %lld", (long long)r);
        ats_rng rng = ats_rng_stream(draw->seed, draw->name, "diagnose", 0, draw->number, purpose);
        turn(&p->contract.rope, q, d, &rng, out->vector + (r + 1) * d);
    }
    for (int64_t i = 0; norm > 0 && i < (1 + ATS_DIAGNOSE_ROTATIONS) * d; i++)
        out->vector[i] /= norm;
out:
    return rc;
}

/* Norm and cosines of one key; false: not finite, which only a key behind a mask may be. */
static bool measure(const directions *q, const float *k, int64_t d, int64_t stride, double *norm,
                    double *cosine, double *rotated)
{
    double sum = 0;
    for (int64_t i = 0; i < d; i++) sum += (double)k[i] * (double)k[i];
    *norm = sqrt(sum);
    if (!isfinite(sum)) return false;
    for (int64_t r = 0; r <= ATS_DIAGNOSE_ROTATIONS; r++) {
        double dot = 0;
        for (int64_t i = 0; i < d; i++) dot += q->vector[r * d + i] * (double)k[i];
        *(r == 0 ? cosine : rotated + (r - 1) * stride) = *norm > 0 ? dot / *norm : 0;
    }
    return true;
}

static ats_code allocate(const ats_problem *p, ats_arena *arena, diagnose_keys *out, ats_err *err)
{
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, p->n_keys, &out->key, err));
    ATS_TRY(ATS_NEW(arena, p->n_keys, &out->legal, err));
    ATS_TRY(ATS_NEW(arena, p->n_keys, &out->sink, err));
    ATS_TRY(ATS_NEW(arena, p->n_keys, &out->norm, err));
    ATS_TRY(ATS_NEW(arena, p->n_keys, &out->cosine, err));
    ATS_TRY(ATS_NEW(arena, p->n_keys, &out->offset, err));
    ATS_TRY(ATS_NEW(arena, p->n_keys * ATS_DIAGNOSE_ROTATIONS, &out->rotated, err));
out:
    return rc;
}

ats_code ats_diagnose_keys(const ats_problem *p, int64_t row, const uint8_t *sinks,
                           const ats_diagnose_draw *draw, ats_arena *arena, diagnose_keys *out,
                           ats_err *err)
{
    diagnose_keys keys = {.scale = p->contract.scale,
                          .softcap = p->contract.softcap,
                          .temperature = p->contract.temperature,
                          .null_logit = p->sink != NULL ? (double)p->sink[row] : -(double)INFINITY};
    directions q = {.norm = 0};
    float *k = NULL;
    ats_code rc;
    ATS_TRY(allocate(p, arena, &keys, err));
    ATS_TRY(ATS_NEW(arena, p->d_qk, &k, err));
    ATS_TRY(make_directions(p, row, draw, arena, &q, err));
    keys.q_norm = q.norm;
    for (int64_t i = 0; i < p->n_keys; i++) {
        const int64_t at = keys.n;
        const bool seen = ats_row_sees(p, row, i);
        if (!seen && p->contract.causal && p->key_pos[i] > p->q_pos[row]) continue;
        ats_problem_use_k(p, i, 1);
        ats_widen(p->k_dtype, p->k, i * p->d_qk, p->d_qk, k);
        if (!measure(&q, k, p->d_qk, p->n_keys, &keys.norm[at], &keys.cosine[at],
                     keys.rotated + at))
            continue;
        keys.key[at] = i;
        keys.legal[at] = seen;
        keys.sink[at] = sinks != NULL ? sinks[i] : i < ATS_DIAGNOSE_SINK_ROWS;
        keys.offset[at] = offset_of(p, row, i, seen);
        keys.n++;
    }
    /* rotations were written with stride n_keys; close the gap */
    for (int64_t r = 1; r < ATS_DIAGNOSE_ROTATIONS; r++)
        for (int64_t i = 0; i < keys.n; i++)
            keys.rotated[r * keys.n + i] = keys.rotated[r * p->n_keys + i];
    *out = keys;
out:
    return rc;
}

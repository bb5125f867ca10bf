#include "perturb/observe.h"

#include <math.h>

#include "perturb/pool.h"
#include "perturb/realise.h"
#include "perturb/target.h"

static bool sees(const ats_build *ctx, int64_t p, int64_t key, const float *bias)
{
    const ats_sample *sample = ctx->sample;
    const ats_probe *probe = &sample->probes[p];
    const uint8_t *keep = ctx->attention->keep;
    if (keep != NULL && !keep[p * sample->n_keys + key]) return false;
    if (bias != NULL && bias[key] <= ATS_BIAS_HIDES) return false;
    if (sample->segment != NULL && probe->index >= 0 &&
        sample->segment[key] != sample->segment[probe->index])
        return false;
    return ats_legal_position(&ctx->layer->contract, probe->position, sample->position[key]);
}

static const float *bias_row(const ats_build *ctx, int64_t head, int64_t p)
{
    const ats_attention *a = ctx->attention;
    if (a->bias == NULL) return NULL;
    const int64_t plane = a->bias_heads == 1 ? 0 : head;
    return a->bias + (plane * ctx->sample->n_probes + p) * ctx->sample->n_keys;
}

/* One query's weights, added to mass; key [d_qk] and z [n_keys]: room. */
static void add_weights(const ats_build *ctx, const float *q, int64_t head, int64_t p, float *key,
                        double *z, double *mass)
{
    const ats_donor own = ats_own(ctx);
    const ats_sample *sample = ctx->sample;
    const ats_layer *layer = ctx->layer;
    const float *bias = bias_row(ctx, head, p);
    const double slope = layer->alibi_slope != NULL ? (double)layer->alibi_slope[head] : 0;
    const double sink = layer->sink != NULL ? (double)layer->sink[head] : -(double)INFINITY;
    double most = sink, sum = 0;
    for (int64_t i = 0; i < sample->n_keys; i++) {
        z[i] = -(double)INFINITY;
        if (!sees(ctx, p, i, bias)) continue;
        ats_key_row(ctx, &own, i, key);
        const double product = ats_vector_dot(q, key, layer->d_qk);
        z[i] = ats_logit(layer, product, slope, sample->probes[p].position - sample->position[i]);
        if (bias != NULL) z[i] += (double)bias[i];
        if (z[i] > most) most = z[i];
    }
    if (most == -(double)INFINITY) return;
    for (int64_t i = 0; i < sample->n_keys; i++) sum += exp(z[i] - most);
    sum += exp(sink - most);
    for (int64_t i = 0; i < sample->n_keys; i++) mass[i] += exp(z[i] - most) / sum;
}

ats_code ats_observe_mass(const ats_build *ctx, bool earlier, double *mass, ats_err *err)
{
    const ats_sample *sample = ctx->sample;
    const int64_t d = ctx->layer->d_qk, group = ctx->layer->n_q_heads / ctx->layer->n_kv_heads;
    int64_t first = INT64_MAX, seen = 0;
    float *key = NULL, *q = NULL;
    double *z = NULL;
    ats_code rc;
    for (int64_t i = 0; i < ats_probe_count(ctx); i++) {
        const int64_t position = sample->probes[ats_probe_at(ctx, i)].position;
        if (position < first) first = position;
    }
    ATS_TRY(ATS_NEW(ctx->arena, d, &key, err));
    ATS_TRY(ATS_NEW(ctx->arena, d, &q, err));
    ATS_TRY(ATS_NEW(ctx->arena, sample->n_keys, &z, err));
    for (int64_t p = 0; p < sample->n_probes; p++) {
        if (earlier && sample->probes[p].position >= first) continue;
        seen++;
        for (int64_t h = 0; h < group; h++) {
            const int64_t head = ctx->kv_head * group + h;
            ats_widen(ctx->attention->q_dtype, ctx->attention->q, (head * sample->n_probes + p) * d,
                      d, q);
            add_weights(ctx, q, head, p, key, z, mass);
        }
    }
    if (seen == 0)
        rc = ats_fail(
            err, ATS_E_SUITE,
            "%s: `observe: earlier` needs a captured probe before the first evaluated one; "
            "sample %s has none; write `observe: all`, or capture more probes",
            ctx->family->kind, sample->id);
out:
    return rc;
}

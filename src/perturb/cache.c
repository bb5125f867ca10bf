#include "perturb/cache.h"

#include <math.h>
#include <stdlib.h>

#include "perturb/rows.h"

void ats_build_move(const ats_build *ctx, int64_t delta, int64_t rows, const float *src, float *dst)
{
    ats_turns_move(ctx->cache != NULL ? &ctx->cache->turns : NULL, &ctx->layer->contract.rope,
                   delta, rows, ctx->layer->d_qk, src, dst);
}

ats_build_cache *ats_build_cache_of(const ats_build *ctx, ats_build_cache *scratch)
{
    ats_build_cache *cache = ctx->cache != NULL ? ctx->cache : scratch;
    if (cache == scratch) *scratch = (ats_build_cache){.kv_head = ctx->kv_head};
    if (cache->sample == ctx->sample && cache->layer == ctx->layer &&
        cache->kv_head == ctx->kv_head)
        return cache;
    ats_arena_reset(&cache->arena);
    cache->sample = ctx->sample;
    cache->layer = ctx->layer;
    cache->kv_head = ctx->kv_head;
    cache->norms[0] = cache->norms[1] = cache->mean = NULL;
    return cache;
}

static int compare_doubles(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

ats_code ats_build_norms(const ats_build *ctx, bool values, const double **out, int64_t *count,
                         ats_err *err)
{
    ats_build_cache scratch;
    ats_build_cache *cache = ats_build_cache_of(ctx, &scratch);
    const ats_donor own = ats_own(ctx);
    const int64_t n = ctx->sample->n_keys, d = values ? ctx->layer->d_v : ctx->layer->d_qk;
    double *norms = NULL;
    float *x = NULL;
    int64_t found = 0;
    ats_code rc = ATS_OK;
    if (cache->norms[values] == NULL) {
        ATS_TRY(ATS_NEW(cache == &scratch ? ctx->arena : &cache->arena, n, &norms, err));
        ATS_TRY(ATS_NEW(ctx->arena, d, &x, err));
        for (int64_t i = 0; i < n; i++) {
            if (values)
                ats_value_row(ctx, &own, i, x);
            else
                ats_key_row(ctx, &own, i, x);
            const double norm = ats_vector_norm(x, d);
            if (isfinite(norm)) norms[found++] = norm;
        }
        if (found == 0)
            ATS_TRY(ats_fail(err, ATS_E_INPUT, "key head %lld has no finite row",
                             (long long)ctx->kv_head));
        qsort(norms, (size_t)found, sizeof *norms, compare_doubles);
        cache->norms[values] = norms;
        cache->n_norms[values] = found;
    }
    *out = cache->norms[values];
    *count = cache->n_norms[values];
out:
    return rc;
}

void ats_build_cache_fini(ats_build_cache *cache)
{
    ats_turns_fini(&cache->turns);
    ats_arena_fini(&cache->arena);
    *cache = (ats_build_cache){.sample = NULL};
}

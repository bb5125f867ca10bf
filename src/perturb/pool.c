#include "perturb/pool.h"

#include <math.h>
#include <string.h>

#include "perturb/target.h"

ats_donor ats_own(const ats_build *ctx)
{
    return (ats_donor){.sample = ctx->sample, .attention = ctx->attention};
}

/* Row of this build's key head in a tensor [key head, n_keys, d] of the donor. */
static void head_row(const ats_build *ctx, const ats_donor *donor, ats_dtype dtype,
                     const void *tensor, int64_t row, int64_t d, float *out)
{
    const int64_t head = ctx->kv_head - donor->attention->first_kv_head;
    const int64_t at = head * donor->sample->n_keys + row;
    const int64_t row_bytes = d * (int64_t)ats_dtype_size(dtype);
    ats_scratch_use_rows(donor->attention->scratch, tensor, row_bytes, at, 1);
    ats_widen(dtype, tensor, at * d, d, out);
}

void ats_key_row(const ats_build *ctx, const ats_donor *donor, int64_t row, float *out)
{
    head_row(ctx, donor, donor->attention->k_dtype, donor->attention->k, row, ctx->layer->d_qk,
             out);
}

void ats_value_row(const ats_build *ctx, const ats_donor *donor, int64_t row, float *out)
{
    head_row(ctx, donor, donor->attention->v_dtype, donor->attention->v, row, ctx->layer->d_v, out);
}

static int64_t donor_count(const ats_build *ctx) { return ctx->n_donors > 0 ? ctx->n_donors : 1; }

static const ats_sample *donor_sample(const ats_build *ctx, int64_t i)
{
    return ctx->n_donors > 0 ? ctx->donors[i].sample : ctx->sample;
}

/* First row at or after `row` that no excluded span covers; *stop: where the next one starts. */
static int64_t next_free(const ats_sample *sample, bool own, int64_t row, int64_t *stop)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int64_t i = 0; i < sample->n_spans; i++) {
            const ats_span *span = &sample->spans[i];
            const bool out =
                own ? strcmp(span->role, "filler") != 0 : strcmp(span->role, "sink") == 0;
            if (out && row >= span->start && row < span->stop) {
                row = span->stop;
                moved = true;
            }
        }
    }
    for (int64_t i = 0; i < sample->n_spans; i++) {
        const ats_span *span = &sample->spans[i];
        const bool out = own ? strcmp(span->role, "filler") != 0 : strcmp(span->role, "sink") == 0;
        if (out && span->start >= row && span->start < *stop) *stop = span->start;
    }
    return row;
}

ats_code ats_pool_make(const ats_build *ctx, int64_t needed, ats_pool *out, ats_err *err)
{
    ats_pool_range *ranges = NULL;
    int64_t capacity = 0, n = 0, count = 0;
    ats_code rc;
    for (int64_t i = 0; i < donor_count(ctx); i++) capacity += donor_sample(ctx, i)->n_spans + 1;
    ATS_TRY(ATS_NEW(ctx->arena, capacity, &ranges, err));
    for (int64_t i = 0; i < donor_count(ctx); i++) {
        const ats_sample *sample = donor_sample(ctx, i);
        const bool own = sample == ctx->sample;
        const int64_t end = own ? ats_row_cap(ctx) : sample->n_keys;
        for (int64_t row = ATS_DONOR_FIRST; row < end;) {
            int64_t stop = end;
            const int64_t start = next_free(sample, own, row, &stop);
            if (start >= end) break;
            ranges[n++] = (ats_pool_range){i, start, stop, count};
            count += stop - start;
            row = stop;
        }
    }
    if (count < needed)
        ATS_TRY(ats_fail(err, ATS_E_SUITE,
                         "%s needs %lld donor rows, and the donor pool has %lld (%lld samples, "
                         "without their first %d rows, sinks and named spans); ask for fewer rows "
                         "or give a longer capture",
                         ctx->family->kind, (long long)needed, (long long)count,
                         (long long)donor_count(ctx), ATS_DONOR_FIRST));
    *out = (ats_pool){.count = count, .n_ranges = n, .ranges = ranges};
out:
    return rc;
}

static ats_pool_row row_of(const ats_build *ctx, const ats_pool *pool, int64_t index,
                           const ats_donor *own)
{
    int64_t low = 0, high = pool->n_ranges;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (pool->ranges[middle].before <= index)
            low = middle;
        else
            high = middle;
    }
    const ats_pool_range *range = &pool->ranges[low];
    return (ats_pool_row){ctx->n_donors > 0 ? &ctx->donors[range->donor] : own,
                          range->start + index - range->before};
}

static bool is_finite(const ats_build *ctx, const ats_pool_row *row, float *scratch)
{
    const int64_t d = ctx->layer->d_qk, dv = ctx->layer->d_v;
    ats_key_row(ctx, row->donor, row->row, scratch);
    ats_value_row(ctx, row->donor, row->row, scratch + d);
    for (int64_t i = 0; i < d + dv; i++)
        if (!isfinite(scratch[i])) return false;
    return true;
}

/* Open addressing set of drawn indices; entries are index + 1. */
static bool insert(int64_t *set, int64_t capacity, int64_t index)
{
    uint64_t hash = (uint64_t)index * 0x9e3779b97f4a7c15u;
    int64_t slot = (int64_t)(hash >> 32) & (capacity - 1);
    while (set[slot] != 0) {
        if (set[slot] == index + 1) return false;
        slot = (slot + 1) & (capacity - 1);
    }
    set[slot] = index + 1;
    return true;
}

ats_code ats_pool_draw(const ats_build *ctx, const ats_pool *pool, ats_rng *rng, int64_t count,
                       ats_pool_row **out, ats_err *err)
{
    ats_pool_row *rows = NULL;
    ats_donor *own = NULL;
    float *scratch = NULL;
    int64_t *set = NULL, capacity = 2, n = 0, seen = 0;
    ats_code rc;
    while (capacity < 2 * pool->count && capacity < 64 * (count + 1)) capacity *= 2;
    ATS_TRY(ATS_NEW(ctx->arena, count, &rows, err));
    ATS_TRY(ATS_NEW(ctx->arena, 1, &own, err));
    ATS_TRY(ATS_NEW(ctx->arena, ctx->layer->d_qk + ctx->layer->d_v, &scratch, err));
    ATS_TRY(ATS_NEW0(ctx->arena, capacity, &set, err));
    *own = ats_own(ctx);
    while (n < count && seen < pool->count && 2 * seen < capacity) {
        const int64_t index = ats_rng_below(rng, pool->count);
        if (!insert(set, capacity, index)) continue;
        seen++;
        rows[n] = row_of(ctx, pool, index, own);
        if (is_finite(ctx, &rows[n], scratch)) n++;
    }
    if (n < count)
        ATS_TRY(ats_fail(err, ATS_E_SUITE,
                         "%s needs %lld donor rows; of %lld looked at only %lld hold finite "
                         "numbers",
                         ctx->family->kind, (long long)count, (long long)seen, (long long)n));
    *out = rows;
out:
    return rc;
}

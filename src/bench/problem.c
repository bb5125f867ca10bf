#include <string.h>

#include "base/rng.h"
#include "bench/bench.h"

/* A sum of four uniform numbers: near enough to normal, and fast; variance 1. */
static float random_normal(ats_rng *rng)
{
    double sum = 0;
    for (int i = 0; i < 2; i++) {
        const uint32_t word = ats_rng_u32(rng);
        sum += (double)(word & 0xffff) + (double)(word >> 16);
    }
    return (float)((sum / 65536 - 2) * 1.7320508075688772);
}

static ats_code random_floats(ats_arena *arena, ats_rng *rng, int64_t count, float **out,
                              ats_err *err)
{
    float *x = NULL;
    const ats_code rc = ATS_NEW(arena, count, &x, err);
    if (rc != ATS_OK) return rc;
    for (int64_t i = 0; i < count; i++) x[i] = random_normal(rng);
    *out = x;
    return ATS_OK;
}

static ats_code random_words(ats_arena *arena, ats_rng *rng, ats_dtype dtype, int64_t count,
                             const void **out, ats_err *err)
{
    unsigned char *words = NULL;
    const ats_code rc = ATS_NEW(arena, count * (int64_t)ats_dtype_size(dtype), &words, err);
    if (rc != ATS_OK) return rc;
    for (int64_t i = 0; i < count; i++) {
        const float x = random_normal(rng);
        ats_narrow(dtype, &x, 1, words, i);
    }
    *out = words;
    return ATS_OK;
}

/* As a capture of this type stores them: widened, so that no bit is left that it could not hold. */
static ats_code random_queries(ats_arena *arena, ats_rng *rng, ats_dtype dtype, int64_t count,
                               float **out, ats_err *err)
{
    float *x = NULL;
    uint16_t word;
    const ats_code rc = random_floats(arena, rng, count, &x, err);
    if (rc != ATS_OK) return rc;
    for (int64_t i = 0; dtype != ATS_F32 && i < count; i++) {
        ats_narrow(dtype, &x[i], 1, &word, 0);
        x[i] = ats_load(dtype, &word, 0);
    }
    *out = x;
    return ATS_OK;
}

/* Target, sink and recent rows, and the rest: what a run always has. */
static ats_code make_regions(ats_arena *arena, int64_t n, ats_problem *p, ats_err *err)
{
    ats_region *regions = NULL;
    ats_range *ranges = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, 4, &regions, err));
    ATS_TRY(ATS_NEW(arena, 5, &ranges, err));
    const int64_t gold = n / 3, recent = n - 64 > gold + 24 ? n - 64 : gold + 24;
    ranges[0] = (ats_range){gold, gold + 24};
    ranges[1] = (ats_range){0, 4};
    ranges[2] = (ats_range){recent, n};
    ranges[3] = (ats_range){4, gold};
    ranges[4] = (ats_range){gold + 24, recent};
    for (int r = 0; r < 4; r++) regions[r] = (ats_region){r < 3 ? 1 : 2, &ranges[r]};
    p->n_regions = 4;
    p->regions = regions;
out:
    return rc;
}

ats_code ats_bench_problem(ats_arena *arena, const ats_bench_shape *shape, ats_problem *out,
                           ats_err *err)
{
    const int64_t n = shape->n_keys, d = shape->d, rows = shape->heads * shape->probes;
    ats_rng rng = ats_rng_stream(1, "", "", n, rows, "bench");
    ats_problem p = {.n_keys = n,
                     .d_qk = d,
                     .d_v = d,
                     .k_dtype = shape->dtype,
                     .v_dtype = shape->dtype,
                     .n_rows = rows,
                     .n_probes = shape->probes,
                     .top_k = 8};
    p.contract =
        (ats_contract){.scale = 2 / __builtin_sqrt((double)d), .temperature = 1, .causal = true};
    int64_t *key_pos = NULL, *q_pos = NULL;
    float *q = NULL;
    ats_code rc;
    ATS_TRY(random_words(arena, &rng, shape->dtype, n * d, &p.k, err));
    ATS_TRY(random_words(arena, &rng, shape->dtype, n * d, &p.v, err));
    ATS_TRY(random_queries(arena, &rng, shape->dtype, rows * d, &q, err));
    ATS_TRY(ATS_NEW(arena, n, &key_pos, err));
    ATS_TRY(ATS_NEW(arena, rows, &q_pos, err));
    for (int64_t i = 0; i < n; i++) key_pos[i] = i;
    for (int64_t i = 0; i < rows; i++) q_pos[i] = n - 1;
    p.q = q;
    p.key_pos = key_pos;
    p.q_pos = q_pos;
    ATS_TRY(make_regions(arena, n, &p, err));
    *out = p;
out:
    return rc;
}

static ats_code make_side(ats_arena *arena, ats_rng *rng, const ats_problem *p, int64_t rows,
                          int64_t position, ats_side *out, ats_err *err)
{
    float *k = NULL, *v = NULL;
    int64_t *at = NULL;
    ats_code rc;
    ATS_TRY(random_floats(arena, rng, rows * p->d_qk, &k, err));
    ATS_TRY(random_floats(arena, rng, rows * p->d_v, &v, err));
    ATS_TRY(ATS_NEW(arena, rows, &at, err));
    for (int64_t i = 0; i < rows; i++) at[i] = position;
    *out = (ats_side){.count = rows, .k = k, .v = v, .position = at};
out:
    return rc;
}

ats_code ats_bench_edits(ats_arena *arena, const ats_problem *problem, int64_t count, int64_t rows,
                         ats_edit *out, ats_err *err)
{
    const int64_t n = problem->n_keys;
    ats_rng rng = ats_rng_stream(2, "", "", n, count, "bench");
    ats_code rc = ATS_OK;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = 4 + ats_rng_below(&rng, n - rows - 4);
        ats_segment *s = NULL;
        ats_edit edit = {.n_segments = 3, .temperature = 1};
        ATS_TRY(ATS_NEW0(arena, 3, &s, err));
        s[0] = (ats_segment){.kind = ATS_SEG_KEEP, .start = 0, .stop = at};
        if (i % 2 == 0) {
            s[1] = (ats_segment){.kind = ATS_SEG_ROWS, .stop = rows};
            s[2] = (ats_segment){.kind = ATS_SEG_KEEP, .start = at, .stop = n};
            ATS_TRY(make_side(arena, &rng, problem, rows, at - 1, &edit.side, err));
        } else {
            s[1] = (ats_segment){.kind = ATS_SEG_HIDE, .start = at, .stop = at + rows};
            s[2] = (ats_segment){.kind = ATS_SEG_KEEP, .start = at + rows, .stop = n};
        }
        edit.segments = s;
        out[i] = edit;
    }
out:
    return rc;
}

ats_code ats_bench_ignore(void *ctx, int64_t variant, int worker, const ats_stats *base,
                          const ats_stats *stats, ats_err *err)
{
    (void)ctx;
    (void)variant;
    (void)worker;
    (void)base;
    (void)stats;
    (void)err;
    return ATS_OK;
}

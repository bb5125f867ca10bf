#include "support/problems.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/check.h"

#define NEW(arena, count, pointer)                                                                 \
    do {                                                                                           \
        ats_err new_err = {.code = ATS_OK};                                                        \
        assert_ok(ATS_NEW0((arena), (count), (pointer), &new_err), &new_err);                      \
    } while (0)

static bool chance(ats_rng *rng, double p) { return ats_rng_unit(rng) < p; }

static int64_t pick(ats_rng *rng, const int64_t *from, int64_t count)
{
    return from[ats_rng_below(rng, count)];
}

void problem_spec_draw(uint64_t seed, problem_spec *out)
{
    static const int64_t WIDTHS[][2] = {{1, 1},     {5, 3},     {64, 64},  {80, 80},
                                        {128, 128}, {192, 128}, {256, 256}};
    static const int64_t KEYS[] = {1, 31, 33, 65, 257, 1000}, GROUPS[] = {1, 4, 7, 8};
    static const double CAPS[] = {0.7, 5, 30}, TEMPERATURES[] = {0.5, 1, 2};
    ats_rng rng = ats_rng_stream(seed, "", "", 0, 0, "problem specification");
    const int64_t *width = WIDTHS[ats_rng_below(&rng, 7)];
    problem_spec s = {.seed = seed, .d_qk = width[0], .d_v = width[1]};
    s.n_keys = pick(&rng, KEYS, 6);
    s.group = pick(&rng, GROUPS, 4);
    s.n_probes = 1 + ats_rng_below(&rng, s.n_keys > 100 ? 2 : 4); /* keeps the reference quick */
    s.dtype = (ats_dtype)ats_rng_below(&rng, 3);
    s.rope = (ats_rope_layout)ats_rng_below(&rng, 3);
    s.spread = 0.5 + 2.5 * ats_rng_unit(&rng);
    if (chance(&rng, 0.3)) s.softcap = CAPS[ats_rng_below(&rng, 3)];
    s.temperature = TEMPERATURES[ats_rng_below(&rng, 3)];
    if (chance(&rng, 0.3)) s.window = 1 + ats_rng_below(&rng, s.n_keys + 2);
    if (chance(&rng, 0.2)) s.chunk = 1 + ats_rng_below(&rng, s.n_keys + 2);
    s.bidirectional = chance(&rng, 0.25);
    s.sink = chance(&rng, 0.4);
    s.alibi = chance(&rng, 0.25);
    s.bias = chance(&rng, 0.25);
    s.segments = chance(&rng, 0.2);
    s.keep = chance(&rng, 0.4);
    s.gaps = chance(&rng, 0.4);
    s.empty_rows = chance(&rng, 0.2);
    s.top_k = 1 + ats_rng_below(&rng, 9);
    *out = s;
}

const char *problem_spec_text(const problem_spec *s, char *text, size_t size)
{
    static const char *const ROPES[] = {"none", "half", "interleaved"};
    snprintf(text, size,
             "seed %llu n %lld d %lld/%lld group %lld probes %lld %s rope %s cap %g tau %g window "
             "%lld chunk %lld%s%s%s%s%s%s%s%s",
             (unsigned long long)s->seed, (long long)s->n_keys, (long long)s->d_qk,
             (long long)s->d_v, (long long)s->group, (long long)s->n_probes,
             ats_dtype_name(s->dtype), ROPES[s->rope], s->softcap, s->temperature,
             (long long)s->window, (long long)s->chunk, s->bidirectional ? " bidirectional" : "",
             s->sink ? " sink" : "", s->alibi ? " alibi" : "", s->bias ? " bias" : "",
             s->segments ? " segments" : "", s->keep ? " keep" : "", s->gaps ? " gaps" : "",
             s->empty_rows ? " empty rows" : "");
    return text;
}

static void *narrowed(ats_arena *arena, ats_dtype dtype, const float *wide, int64_t count)
{
    unsigned char *words = NULL;
    NEW(arena, count * (int64_t)ats_dtype_size(dtype), &words);
    ats_narrow(dtype, wide, count, words, 0);
    return words;
}

static float *normals(ats_arena *arena, ats_rng *rng, int64_t count, double sd)
{
    float *x = NULL;
    NEW(arena, count, &x);
    for (int64_t i = 0; i < count; i++) x[i] = (float)(sd * ats_rng_normal(rng));
    return x;
}

static void make_positions(ats_arena *arena, const problem_spec *s, ats_rng *rng, ats_problem *p)
{
    int64_t *key_pos = NULL, *q_pos = NULL, position = s->gaps ? 5 : 0;
    NEW(arena, s->n_keys, &key_pos);
    NEW(arena, p->n_rows, &q_pos);
    for (int64_t i = 0; i < s->n_keys; i++) {
        key_pos[i] = position;
        position += s->gaps && chance(rng, 0.2) ? 1 + ats_rng_below(rng, 9) : 1;
    }
    for (int64_t probe = 0; probe < s->n_probes; probe++) {
        const int64_t last = s->n_keys - 1;
        const int64_t at = probe == s->n_probes - 1 ? last : ats_rng_below(rng, s->n_keys);
        int64_t where = s->n_keys > 0 ? key_pos[at] : 0;
        if (s->empty_rows && probe == 0) where = -1;
        for (int64_t head = 0; head < s->group; head++) q_pos[head * s->n_probes + probe] = where;
    }
    p->key_pos = key_pos;
    p->q_pos = q_pos;
    if (!s->segments) return;
    int32_t *key_segment = NULL, *q_segment = NULL;
    NEW(arena, s->n_keys, &key_segment);
    NEW(arena, p->n_rows, &q_segment);
    for (int64_t i = 0; i < s->n_keys; i++) key_segment[i] = (int32_t)(i * 2 / s->n_keys);
    for (int64_t row = 0; row < p->n_rows; row++) q_segment[row] = q_pos[row] > s->n_keys / 2;
    p->key_segment = key_segment;
    p->q_segment = q_segment;
}

/* A keep mask; a tenth of the keys is hidden from every probe and then holds no finite number. */
static void make_keep(ats_arena *arena, ats_rng *rng, ats_problem *p, float *k, float *v)
{
    uint8_t *keep = NULL;
    NEW(arena, p->n_probes * p->n_keys, &keep);
    for (int64_t i = 0; i < p->n_keys; i++) {
        const bool hidden = chance(rng, 0.1);
        for (int64_t probe = 0; probe < p->n_probes; probe++)
            keep[probe * p->n_keys + i] = !hidden && chance(rng, 0.8);
        if (!hidden) continue;
        const float bad = i % 3 == 0 ? INFINITY : NAN;
        for (int64_t j = 0; j < p->d_qk; j++) k[i * p->d_qk + j] = bad;
        for (int64_t j = 0; j < p->d_v; j++) v[i * p->d_v + j] = -bad;
    }
    p->keep = keep;
}

static void make_row_terms(ats_arena *arena, const problem_spec *s, ats_rng *rng, ats_problem *p)
{
    if (s->sink) {
        float *sink = normals(arena, rng, p->n_rows, 2);
        if (p->n_rows > 2) sink[p->n_rows / 2] = -INFINITY;
        p->sink = sink;
    }
    if (s->alibi) {
        float *slope = NULL;
        NEW(arena, p->n_rows, &slope);
        for (int64_t row = 0; row < p->n_rows; row++)
            slope[row] = exp2f(-3.0F - (float)(row / p->n_probes));
        p->alibi_slope = slope;
    }
    if (s->bias) {
        const float **planes = NULL;
        NEW(arena, p->n_rows, &planes);
        for (int64_t row = 0; row < p->n_rows; row++)
            planes[row] = row % 3 == 2 ? planes[row - 1] : normals(arena, rng, p->n_keys, 1);
        p->bias = planes;
    }
}

/* A few keys along a query, so that some routes are sharp. */
static void plant_sharp_keys(ats_rng *rng, const ats_problem *p, const float *q, float *k)
{
    for (int64_t i = 0; i < 2 && p->n_keys > 3; i++) {
        const int64_t key = ats_rng_below(rng, p->n_keys), row = ats_rng_below(rng, p->n_rows);
        double norm = 0;
        for (int64_t j = 0; j < p->d_qk; j++)
            norm += (double)q[row * p->d_qk + j] * (double)q[row * p->d_qk + j];
        const double factor = 0.7 * sqrt((double)p->d_qk / (norm + 1e-6));
        for (int64_t j = 0; j < p->d_qk; j++)
            k[key * p->d_qk + j] = (float)(factor * (double)q[row * p->d_qk + j]);
    }
}

static void make_regions(ats_arena *arena, ats_problem *p)
{
    const int64_t n = p->n_keys, third = n / 3;
    const ats_range ranges[] = {{0, n < 4 ? n : 4},
                                {third, third + (n + 9) / 10},
                                {third / 2, third / 2 + 1},
                                {n - (n + 4) / 5, n},
                                {0, n}};
    ats_range *copy = NULL;
    ats_region *regions = NULL;
    NEW(arena, 5, &copy);
    NEW(arena, 5, &regions);
    memcpy(copy, ranges, sizeof ranges);
    regions[0] = (ats_region){.n_ranges = 1, .ranges = copy};
    regions[1] = (ats_region){.n_ranges = 1, .ranges = copy + 1};
    regions[2] = (ats_region){.n_ranges = n > 4 ? 2 : 1, .ranges = copy + 2};
    regions[3] = (ats_region){.n_ranges = 0};
    regions[4] = (ats_region){.n_ranges = 1, .ranges = copy + 4};
    p->regions = regions;
    p->n_regions = 5;
}

void problem_make(ats_arena *arena, const problem_spec *s, ats_problem *out)
{
    ats_rng rng = ats_rng_stream(s->seed, "", "", 0, 0, "problem");
    ats_problem p = {.n_keys = s->n_keys,
                     .d_qk = s->d_qk,
                     .d_v = s->d_v,
                     .k_dtype = s->dtype,
                     .v_dtype = s->dtype,
                     .n_rows = s->group * s->n_probes,
                     .n_probes = s->n_probes,
                     .top_k = s->top_k > 0 ? s->top_k : 8};
    const double spread = s->spread > 0 ? s->spread : 1.5;
    p.contract = (ats_contract){.scale = spread / sqrt((double)s->d_qk),
                                .softcap = s->softcap,
                                .temperature = s->temperature > 0 ? s->temperature : 1,
                                .window = s->window,
                                .chunk = s->chunk,
                                .causal = !s->bidirectional};
    if (s->rope != ATS_ROPE_NONE) {
        double *inv_freq = NULL;
        const int64_t pairs = s->d_qk * 3 / 8;
        NEW(arena, pairs, &inv_freq);
        for (int64_t i = 0; i < pairs; i++) inv_freq[i] = pow(10000.0, -(double)i / (double)pairs);
        p.contract.rope = (ats_rope){.layout = s->rope, .pairs = pairs, .inv_freq = inv_freq};
    }
    float *q = normals(arena, &rng, p.n_rows * p.d_qk, 1);
    float *k = normals(arena, &rng, p.n_keys * p.d_qk, 1);
    float *v = normals(arena, &rng, p.n_keys * p.d_v, 1);
    plant_sharp_keys(&rng, &p, q, k);
    make_positions(arena, s, &rng, &p);
    if (s->keep) make_keep(arena, &rng, &p, k, v);
    make_row_terms(arena, s, &rng, &p);
    make_regions(arena, &p);
    /* Stored queries have the type of the keys; others are what turning leaves. */
    if (s->dtype != ATS_F32 && s->seed / 10 % 2 == 1)
        for (int64_t i = 0; i < p.n_rows * p.d_qk; i++) {
            uint16_t word;
            ats_narrow(s->dtype, &q[i], 1, &word, 0);
            q[i] = ats_load(s->dtype, &word, 0);
        }
    p.q = q;
    p.k = narrowed(arena, s->dtype, k, p.n_keys * p.d_qk);
    p.v = narrowed(arena, s->dtype, v, p.n_keys * p.d_v);
    *out = p;
}

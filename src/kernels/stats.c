#include "kernels/stats.h"

#include <math.h>
#include <string.h>

#define F64(field, count) #field, (void **)&s->field, ATS_ARRAY_F64, (count), 0
#define F32(field, count) #field, (void **)&s->field, ATS_ARRAY_F32, (count), 0
#define I64(field, count, blank) #field, (void **)&s->field, ATS_ARRAY_I64, (count), (blank)

static int64_t list_route(const ats_problem *p, ats_route_stats *s, ats_stats_array *out)
{
    const int64_t k = p->top_k, regions = p->n_regions;
    const ats_stats_array arrays[] = {
        {F64(lse, 1)},
        {F64(lse_keys, 1)},
        {F64(null_weight, 1)},
        {F64(entropy, 1)},
        {F64(sum_w2, 1)},
        {F64(max_weight, 1)},
        {I64(legal_keys, 1, 0)},
        {F32(output, p->d_v)},
        {I64(top_index, k, -1)},
        {F64(top_weight, k)},
        {I64(topc_index, k, -1)},
        {F64(topc_weight, k)},
        {F64(topc_norm, k)},
        {F64(region_lse, regions)},
        {F64(region_max, regions)},
        {F64(region_max_out, regions)},
        {I64(region_heavier, regions, 0)},
        {F32(region_output, regions * p->d_v)},
        {F64(region_abs, regions)},
    };
    const int64_t count = (int64_t)(sizeof arrays / sizeof *arrays);
    for (int64_t i = 0; i < count; i++) out[i] = arrays[i];
    return count;
}

static int64_t list_pair(const ats_problem *p, ats_pair_stats *s, ats_stats_array *out)
{
    const ats_stats_array arrays[] = {
        {F64(intrusion, 1)},
        {F64(removal, 1)},
        {F64(survivors_base, 1)},
        {F64(survivors, 1)},
        {F64(tv, 1)},
        {F64(js, 1)},
        {F64(hellinger, 1)},
        {F64(reroute_tv, 1)},
        {F64(reroute_js, 1)},
        {I64(overlap_all, 1, 0)},
        {I64(overlap_survivors, 1, 0)},
        {I64(overlap_k_all, 1, 0)},
        {I64(overlap_k_survivors, 1, 0)},
        {F64(inserted_lse, 1)},
        {F64(inserted_abs, 1)},
        {F32(inserted_output, p->d_v)},
        {F32(delta, ATS_N_PARTS * p->d_v)},
    };
    const int64_t count = (int64_t)(sizeof arrays / sizeof *arrays);
    for (int64_t i = 0; i < count; i++) out[i] = arrays[i];
    return count;
}

int64_t ats_stats_list(const ats_problem *problem, ats_stats *stats, bool pair,
                       ats_stats_array *out)
{
    const int64_t count = list_route(problem, &stats->route, out);
    return pair ? count + list_pair(problem, &stats->pair, out + count) : count;
}

static size_t element_bytes(ats_array_type type)
{
    return type == ATS_ARRAY_F32 ? sizeof(float) : sizeof(int64_t);
}

ats_code ats_stats_room(ats_arena *arena, const ats_problem *problem, bool pair, ats_stats *out,
                        ats_err *err)
{
    ats_stats stats = {.route = {.lse = NULL}};
    ats_stats_array arrays[ATS_STATS_ARRAYS];
    const int64_t count = ats_stats_list(problem, &stats, pair, arrays);
    for (int64_t i = 0; i < count; i++) {
        int64_t elements;
        if (__builtin_mul_overflow(problem->n_rows, arrays[i].per_row, &elements))
            return ats_fail(err, ATS_E_MEMORY, "statistics of %lld rows do not fit in memory",
                            (long long)problem->n_rows);
        const ats_code rc =
            ats_arena_alloc(arena, elements, element_bytes(arrays[i].type), arrays[i].place, err);
        if (rc != ATS_OK) return rc;
    }
    *out = stats;
    return ATS_OK;
}

ats_code ats_stats_new(ats_arena *arena, const ats_problem *problem, bool pair, ats_stats *out,
                       ats_err *err)
{
    const ats_code rc = ats_stats_room(arena, problem, pair, out, err);
    if (rc == ATS_OK && !arena->count_only) ats_stats_clear(problem, out);
    return rc;
}

static void clear_array(const ats_stats_array *array, int64_t first, int64_t rows)
{
    const int64_t count = rows * array->per_row, start = first * array->per_row;
    double *f64 = (double *)*array->place + start;
    float *f32 = (float *)*array->place + start;
    int64_t *i64 = (int64_t *)*array->place + start;
    switch (array->type) {
    case ATS_ARRAY_F64:
        for (int64_t i = 0; i < count; i++) f64[i] = (double)NAN;
        break;
    case ATS_ARRAY_F32:
        for (int64_t i = 0; i < count; i++) f32[i] = NAN;
        break;
    case ATS_ARRAY_I64:
        for (int64_t i = 0; i < count; i++) i64[i] = array->blank;
        break;
    }
}

void ats_stats_clear(const ats_problem *problem, ats_stats *stats)
{
    ats_stats_array arrays[ATS_STATS_ARRAYS];
    const int64_t count = ats_stats_list(problem, stats, stats->pair.tv != NULL, arrays);
    for (int64_t i = 0; i < count; i++) clear_array(&arrays[i], 0, problem->n_rows);
}

void ats_stats_clear_numbers(const ats_problem *problem, ats_stats *stats)
{
    ats_stats_array arrays[ATS_STATS_ARRAYS];
    const int64_t count = ats_stats_list(problem, stats, stats->pair.tv != NULL, arrays);
    for (int64_t i = 0; i < count; i++)
        if (arrays[i].type != ATS_ARRAY_F32) clear_array(&arrays[i], 0, problem->n_rows);
}

void ats_stats_clear_sums(const ats_problem *problem, ats_stats *stats, int64_t row)
{
    ats_stats_array arrays[ATS_STATS_ARRAYS];
    const int64_t count = ats_stats_list(problem, stats, stats->pair.tv != NULL, arrays);
    for (int64_t i = 0; i < count; i++)
        if (arrays[i].type == ATS_ARRAY_F32) clear_array(&arrays[i], row, 1);
}

void ats_stats_copy(const ats_problem *problem, const ats_stats *src, ats_stats *dst)
{
    ats_stats from = *src;
    ats_stats_array sources[ATS_STATS_ARRAYS], targets[ATS_STATS_ARRAYS];
    const bool pair = src->pair.tv != NULL && dst->pair.tv != NULL;
    const int64_t count = ats_stats_list(problem, &from, pair, sources);
    ats_stats_list(problem, dst, pair, targets);
    for (int64_t i = 0; i < count; i++) {
        const int64_t elements = problem->n_rows * sources[i].per_row;
        if (elements > 0)
            memcpy(*targets[i].place, *sources[i].place,
                   (size_t)elements * element_bytes(sources[i].type));
    }
}

void ats_stats_rows(const ats_problem *problem, const ats_stats *src, int64_t first, ats_stats *out)
{
    ats_stats_array arrays[ATS_STATS_ARRAYS];
    ats_stats rows = *src;
    const int64_t count = ats_stats_list(problem, &rows, src->pair.tv != NULL, arrays);
    for (int64_t i = 0; i < count; i++)
        if (*arrays[i].place != NULL)
            *arrays[i].place = (char *)*arrays[i].place +
                               (size_t)(first * arrays[i].per_row) * element_bytes(arrays[i].type);
    *out = rows;
}

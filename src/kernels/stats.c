#include "kernels/stats.h"

#include <math.h>

typedef enum array_type { F64, F32, I64 } array_type;

/* One array of an ats_stats: where its pointer is, its type, elements per row, what `clear` writes
 * into integers. */
typedef struct array_def {
    void **place;
    array_type type;
    int64_t per_row;
    int64_t blank;
} array_def;

enum { MAX_ARRAYS = 40 };

#define F64_ARRAY(field, count)                                                                    \
    {                                                                                              \
        (void **)&(field), F64, (count), 0                                                         \
    }
#define F32_ARRAY(field, count)                                                                    \
    {                                                                                              \
        (void **)&(field), F32, (count), 0                                                         \
    }
#define I64_ARRAY(field, count, blank)                                                             \
    {                                                                                              \
        (void **)&(field), I64, (count), (blank)                                                   \
    }

static int64_t list_route(const ats_problem *p, ats_route_stats *s, array_def *out)
{
    const int64_t k = p->top_k, regions = p->n_regions;
    const array_def arrays[] = {
        F64_ARRAY(s->lse, 1),
        F64_ARRAY(s->lse_keys, 1),
        F64_ARRAY(s->null_weight, 1),
        F64_ARRAY(s->entropy, 1),
        F64_ARRAY(s->sum_w2, 1),
        F64_ARRAY(s->max_weight, 1),
        I64_ARRAY(s->legal_keys, 1, 0),
        F32_ARRAY(s->output, p->d_v),
        I64_ARRAY(s->top_index, k, -1),
        F64_ARRAY(s->top_weight, k),
        I64_ARRAY(s->topc_index, k, -1),
        F64_ARRAY(s->topc_weight, k),
        F64_ARRAY(s->topc_norm, k),
        F64_ARRAY(s->region_lse, regions),
        F64_ARRAY(s->region_max, regions),
        F64_ARRAY(s->region_max_out, regions),
        I64_ARRAY(s->region_heavier, regions, 0),
        F32_ARRAY(s->region_output, regions * p->d_v),
        F64_ARRAY(s->region_abs, regions),
    };
    const int64_t count = (int64_t)(sizeof arrays / sizeof *arrays);
    for (int64_t i = 0; i < count; i++) out[i] = arrays[i];
    return count;
}

static int64_t list_pair(const ats_problem *p, ats_pair_stats *s, array_def *out)
{
    const array_def arrays[] = {
        F64_ARRAY(s->intrusion, 1),
        F64_ARRAY(s->removal, 1),
        F64_ARRAY(s->survivors_base, 1),
        F64_ARRAY(s->survivors, 1),
        F64_ARRAY(s->tv, 1),
        F64_ARRAY(s->js, 1),
        F64_ARRAY(s->hellinger, 1),
        F64_ARRAY(s->reroute_tv, 1),
        F64_ARRAY(s->reroute_js, 1),
        I64_ARRAY(s->overlap_all, 1, 0),
        I64_ARRAY(s->overlap_survivors, 1, 0),
        I64_ARRAY(s->overlap_k_all, 1, 0),
        I64_ARRAY(s->overlap_k_survivors, 1, 0),
        F64_ARRAY(s->inserted_lse, 1),
        F64_ARRAY(s->inserted_abs, 1),
        F32_ARRAY(s->inserted_output, p->d_v),
        F32_ARRAY(s->delta, ATS_N_PARTS * p->d_v),
    };
    const int64_t count = (int64_t)(sizeof arrays / sizeof *arrays);
    for (int64_t i = 0; i < count; i++) out[i] = arrays[i];
    return count;
}

static size_t element_bytes(array_type type) { return type == F32 ? sizeof(float) : 8; }

ats_code ats_stats_new(ats_arena *arena, const ats_problem *problem, bool pair, ats_stats *out,
                       ats_err *err)
{
    ats_stats stats = {.route = {.lse = NULL}};
    array_def arrays[MAX_ARRAYS];
    int64_t count = list_route(problem, &stats.route, arrays);
    if (pair) count += list_pair(problem, &stats.pair, arrays + count);
    for (int64_t i = 0; i < count; i++) {
        int64_t elements;
        if (__builtin_mul_overflow(problem->n_rows, arrays[i].per_row, &elements))
            return ats_fail(err, ATS_E_MEMORY, "statistics of %lld rows do not fit in memory",
                            (long long)problem->n_rows);
        const ats_code rc =
            ats_arena_alloc(arena, elements, element_bytes(arrays[i].type), arrays[i].place, err);
        if (rc != ATS_OK) return rc;
    }
    if (!arena->count_only) ats_stats_clear(problem, &stats);
    *out = stats;
    return ATS_OK;
}

static void clear_array(const array_def *array, int64_t rows)
{
    const int64_t count = rows * array->per_row;
    for (int64_t i = 0; i < count; i++) {
        switch (array->type) {
        case F64:
            ((double *)*array->place)[i] = (double)NAN;
            break;
        case F32:
            ((float *)*array->place)[i] = NAN;
            break;
        case I64:
            ((int64_t *)*array->place)[i] = array->blank;
            break;
        }
    }
}

void ats_stats_clear(const ats_problem *problem, ats_stats *stats)
{
    array_def arrays[MAX_ARRAYS];
    int64_t count = list_route(problem, &stats->route, arrays);
    if (stats->pair.tv != NULL) count += list_pair(problem, &stats->pair, arrays + count);
    for (int64_t i = 0; i < count; i++) clear_array(&arrays[i], problem->n_rows);
}

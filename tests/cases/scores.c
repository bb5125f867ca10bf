#include "cases/scores.h"

#include <math.h>
#include <string.h>

const ats_backend *cases_backend;

#define NEW(arena, count, pointer)                                                                 \
    do {                                                                                           \
        ats_err new_err = {.code = ATS_OK};                                                        \
        assert_ok(ATS_NEW0((arena), (count), (pointer), &new_err), &new_err);                      \
    } while (0)

bool cases_exact(void) { return strcmp(cases_backend->name, "reference") == 0; }

static void split(double x, float *out)
{
    for (int i = 0; i < SCORE_WIDTH; i++) {
        out[i] = (float)x;
        x -= (double)out[i];
    }
}

void scores_problem(ats_arena *arena, int64_t n, const double *scores, const double *values,
                    ats_problem *out)
{
    static const float ONES[SCORE_WIDTH] = {1, 1, 1};
    float *k = NULL, *v = NULL;
    int64_t *key_pos = NULL, *q_pos = NULL;
    ats_range *ranges = NULL;
    ats_region *regions = NULL;
    NEW(arena, n * SCORE_WIDTH, &k);
    NEW(arena, n, &v);
    NEW(arena, n, &key_pos);
    NEW(arena, 1, &q_pos);
    NEW(arena, n, &ranges);
    NEW(arena, n, &regions);
    for (int64_t i = 0; i < n; i++) {
        split(scores[i], k + i * SCORE_WIDTH);
        v[i] = values != NULL ? (float)values[i] : (float)i;
        key_pos[i] = i;
        ranges[i] = (ats_range){i, i + 1};
        regions[i] = (ats_region){.n_ranges = 1, .ranges = &ranges[i]};
    }
    q_pos[0] = n - 1;
    *out = (ats_problem){.contract = {.scale = 1, .temperature = 1},
                         .n_keys = n,
                         .d_qk = SCORE_WIDTH,
                         .d_v = 1,
                         .k = k,
                         .v = v,
                         .key_pos = key_pos,
                         .n_rows = 1,
                         .n_probes = 1,
                         .q = ONES,
                         .q_pos = q_pos,
                         .n_regions = n,
                         .regions = regions,
                         .top_k = n};
}

void scores_rows(ats_arena *arena, ats_problem *p, int64_t rows)
{
    float *q = NULL;
    int64_t *q_pos = NULL;
    NEW(arena, rows * SCORE_WIDTH, &q);
    NEW(arena, rows, &q_pos);
    for (int64_t i = 0; i < rows * SCORE_WIDTH; i++) q[i] = 1;
    for (int64_t i = 0; i < rows; i++) q_pos[i] = p->n_keys - 1;
    p->q = q;
    p->q_pos = q_pos;
    p->n_rows = p->n_probes = rows;
}

void scores_run(ats_arena *arena, const ats_problem *problem, const ats_edit *edits, int64_t count,
                stats_set *out)
{
    evaluate_all(arena, cases_backend, problem, edits, count, out);
}

double weight_of(const ats_problem *p, const ats_route_stats *route, int64_t row, int64_t key)
{
    return exp(route->region_lse[row * p->n_regions + key] - route->lse[row]);
}

void check_weight(double got, double want, double largest_score, const char *file, int line)
{
    const double mass = ats_bars_of(ATS_BAR_FP32, largest_score, 0).mass;
    const double bar = cases_exact() ? 1e-9 * want : fmax(1e-6, mass * want);
    check_near(got, want, want == 0 ? 0 : bar + 1e-12, "weight", file, line);
}

void check_lse(double got, double want, const char *file, int line)
{
    const double single = fmax(1e-5, fabs(want) * 0x1p-22);
    check_near(got, want, cases_exact() ? 1e-9 * fabs(want) + 1e-12 : single, "LSE", file, line);
}

void check_value(double got, double want, double largest_score, const char *file, int line)
{
    const double output = ats_bars_of(ATS_BAR_FP32, largest_score, 0).output;
    const double exact = 2 * ATS_BAR_FLOAT_STORE; /* the statistic itself is a float */
    check_near(got, want, (cases_exact() ? exact : output) * fmax(1, fabs(want)), "output", file,
               line);
}

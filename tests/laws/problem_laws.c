#include <math.h>
#include <string.h>

#include "laws/laws.h"

/* Masses of disjoint regions that cover all keys, the inserted rows and the null route add to 1;
 * the regions' outputs add to the output. */
void test_shares_add_up(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < LAW_SEEDS; seed++) {
        law_case c;
        problem_spec spec;
        law_spec(seed, &spec);
        law_start(&c, &spec);
        const int64_t n = c.problem.n_keys, dv = c.problem.d_v;
        const ats_range ranges[] = {{0, n / 3}, {n / 2, n / 2 + 3}, {n / 3, n / 2}, {n / 2 + 3, n}};
        const ats_region regions[] = {{2, ranges}, {2, ranges + 2}};
        c.problem.regions = regions;
        c.problem.n_regions = 2;
        law_edit(&c, EDIT_MIXTURE);
        law_run(&c);
        const ats_route_stats *route = &c.set.variants[0].route;
        const ats_pair_stats *pair = &c.set.variants[0].pair;
        for (int64_t row = 0; row < c.problem.n_rows; row++) {
            if (!law_defined(&c, row)) continue;
            const ats_bars bars = law_bars(&c, row);
            const double total = exp(route->region_lse[2 * row] - route->lse[row]) +
                                 exp(route->region_lse[2 * row + 1] - route->lse[row]) +
                                 exp(pair->inserted_lse[row] - route->lse[row]) +
                                 route->null_weight[row];
            law_near(&c, row, "sum of shares", total, 1, 2 * bars.mass);
            float sum[512];
            assert_true(dv <= 512);
            for (int64_t j = 0; j < dv; j++)
                sum[j] = (float)((double)route->region_output[2 * row * dv + j] +
                                 (double)route->region_output[(2 * row + 1) * dv + j] +
                                 (double)pair->inserted_output[row * dv + j]);
            law_vector(&c, row, "sum of contributions", sum, route->output + row * dv,
                       2 * bars.output * law_scale(&c, row) + ATS_BAR_TINY);
        }
        law_end(&c);
    }
}

/* dst[i] = src[order[i]] for rows of `bytes` bytes, in fresh memory. */
static void *permuted(ats_arena *arena, const void *src, const int64_t *order, int64_t n,
                      size_t bytes)
{
    unsigned char *dst = NULL;
    const unsigned char *from = src;
    assert_int_equal(ATS_NEW(arena, n * (int64_t)bytes, &dst, NULL), ATS_OK);
    for (int64_t i = 0; i < n; i++)
        memcpy(dst + (size_t)i * bytes, from + (size_t)order[i] * bytes, bytes);
    return dst;
}

static void permute_keys(law_case *c)
{
    ats_problem *p = &c->problem;
    const int64_t n = p->n_keys;
    int64_t *order = NULL;
    ats_rng rng = ats_rng_stream(c->spec.seed, "", "", 0, 0, "permutation");
    assert_int_equal(ATS_NEW(&c->arena, n, &order, NULL), ATS_OK);
    for (int64_t i = 0; i < n; i++) order[i] = i;
    ats_rng_choose(&rng, order, n, n);
    p->k = permuted(&c->arena, p->k, order, n, (size_t)p->d_qk * ats_dtype_size(p->k_dtype));
    p->v = permuted(&c->arena, p->v, order, n, (size_t)p->d_v * ats_dtype_size(p->v_dtype));
    p->key_pos = permuted(&c->arena, p->key_pos, order, n, sizeof *p->key_pos);
    if (p->key_segment != NULL)
        p->key_segment = permuted(&c->arena, p->key_segment, order, n, sizeof *p->key_segment);
    if (p->keep != NULL) {
        uint8_t *keep = NULL;
        assert_int_equal(ATS_NEW(&c->arena, n * p->n_probes, &keep, NULL), ATS_OK);
        for (int64_t probe = 0; probe < p->n_probes; probe++)
            for (int64_t i = 0; i < n; i++) keep[probe * n + i] = p->keep[probe * n + order[i]];
        p->keep = keep;
    }
    if (p->bias != NULL) {
        const float **planes = NULL;
        assert_int_equal(ATS_NEW(&c->arena, p->n_rows, &planes, NULL), ATS_OK);
        for (int64_t row = 0; row < p->n_rows; row++)
            planes[row] = permuted(&c->arena, p->bias[row], order, n, sizeof(float));
        p->bias = planes;
    }
}

/* Permuting keys together with everything that belongs to them changes no sum. */
void test_permuted_keys(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < LAW_SEEDS; seed++) {
        law_case c;
        problem_spec spec;
        law_spec(seed, &spec);
        law_start(&c, &spec);
        c.problem.regions += c.problem.n_regions - 1;
        c.problem.n_regions = 1;
        law_edit(&c, EDIT_IDENTITY);
        law_run(&c);
        const stats_set before = c.set;
        permute_keys(&c);
        law_run(&c);
        const ats_route_stats *x = &before.base.route, *y = &c.set.base.route;
        for (int64_t row = 0; row < c.problem.n_rows; row++) {
            assert_int_equal(x->legal_keys[row], y->legal_keys[row]);
            if (!law_defined(&c, row)) continue;
            const ats_bars bars = law_bars(&c, row);
            law_near(&c, row, "lse", y->lse[row], x->lse[row], 2 * bars.lse);
            law_near(&c, row, "entropy", y->entropy[row], x->entropy[row], 2 * bars.entropy);
            law_near(&c, row, "sum_w2", y->sum_w2[row], x->sum_w2[row],
                     4 * bars.mass * x->sum_w2[row]);
            law_vector(&c, row, "output", x->output + row * c.problem.d_v,
                       y->output + row * c.problem.d_v,
                       bars.output * law_scale(&c, row) + ATS_BAR_TINY);
        }
        law_end(&c);
    }
}

/* A constant on every logit after the cap moves the LSE by constant / temperature, nothing else. */
void test_constant_added(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < LAW_SEEDS; seed++) {
        law_case c;
        problem_spec spec;
        law_spec(seed, &spec);
        spec.sink = false;
        spec.bias = true;
        law_start(&c, &spec);
        law_edit(&c, EDIT_IDENTITY);
        law_run(&c);
        const stats_set before = c.set;
        const double added = 3.25;
        const float **planes = NULL;
        assert_int_equal(ATS_NEW(&c.arena, c.problem.n_rows, &planes, NULL), ATS_OK);
        for (int64_t row = 0; row < c.problem.n_rows; row++) {
            float *plane = NULL;
            assert_int_equal(ATS_NEW(&c.arena, c.problem.n_keys, &plane, NULL), ATS_OK);
            for (int64_t i = 0; i < c.problem.n_keys; i++)
                plane[i] = c.problem.bias[row][i] + (float)added;
            planes[row] = plane;
        }
        c.problem.bias = planes;
        law_run(&c);
        const ats_route_stats *x = &before.base.route, *y = &c.set.base.route;
        for (int64_t row = 0; row < c.problem.n_rows; row++) {
            if (!law_defined(&c, row)) continue;
            /* The sum bias + constant was itself rounded to a float. */
            const double rounding = 16 * ATS_BAR_FLOAT_STORE / c.problem.contract.temperature;
            const ats_bars bars = law_bars(&c, row);
            law_near(&c, row, "lse", y->lse[row],
                     x->lse[row] + added / c.problem.contract.temperature, 2 * bars.lse + rounding);
            law_near(&c, row, "max_weight", y->max_weight[row], x->max_weight[row],
                     2 * bars.mass + 2 * rounding);
            law_vector(&c, row, "output", x->output + row * c.problem.d_v,
                       y->output + row * c.problem.d_v,
                       (bars.output + 2 * rounding) * law_scale(&c, row) + ATS_BAR_TINY);
        }
        law_end(&c);
    }
}

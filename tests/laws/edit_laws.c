#include <math.h>
#include <string.h>

#include "laws/laws.h"

static const float *part_of(const law_case *c, int64_t row, enum ats_part part)
{
    return c->set.variants[0].pair.delta + (row * ATS_N_PARTS + (int64_t)part) * c->problem.d_v;
}

/* The identity script is the base: the same bits, every distance exactly 0. */
void test_identity(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < LAW_SEEDS; seed++) {
        law_case c;
        problem_spec spec;
        law_spec(seed, &spec);
        law_start(&c, &spec);
        law_edit(&c, EDIT_IDENTITY);
        law_run(&c);
        const ats_stats *base = &c.set.base, *variant = &c.set.variants[0];
        assert_null(stats_difference(&c.problem, base, variant));
        for (int64_t row = 0; row < c.problem.n_rows; row++) {
            if (!law_defined(&c, row)) continue;
            assert_near(variant->pair.tv[row], 0, 0);
            assert_near(variant->pair.js[row], 0, 0);
            assert_near(variant->pair.hellinger[row], 0, 0);
            assert_near(variant->pair.intrusion[row], 0, 0);
            assert_int_equal(variant->pair.overlap_all[row], variant->pair.overlap_k_all[row]);
        }
        law_end(&c);
    }
}

/* js of an overlay with intrusion e, bits. */
static double overlay_js(double e)
{
    const double kept = e < 1 ? (1 - e) * log1p(-e) : 0;
    return (e * log(2.0) + kept - (2 - e) * log1p(-e / 2)) / (2 * log(2.0));
}

static void check_overlay_row(law_case *c, int64_t row)
{
    const ats_route_stats *base = &c->set.base.route, *route = &c->set.variants[0].route;
    const ats_pair_stats *pair = &c->set.variants[0].pair;
    const ats_bars bars = law_bars(c, row);
    const double scale = law_scale(c, row), shift = route->lse[row] - base->lse[row];
    const double kept = exp(-shift), e = pair->intrusion[row];
    law_near(c, row, "intrusion", e, -expm1(-shift), 2 * bars.divergence);
    law_near(c, row, "intrusion from its LSE", e, exp(pair->inserted_lse[row] - route->lse[row]),
             bars.mass * e + ATS_BAR_TINY);
    law_near(c, row, "tv", pair->tv[row], 1 - kept, 2 * bars.divergence);
    law_near(c, row, "hellinger^2", pair->hellinger[row] * pair->hellinger[row],
             e / (1 + sqrt(1 - e)), bars.divergence);
    law_near(c, row, "js", pair->js[row], overlay_js(e), 2 * bars.divergence);
    law_near(c, row, "reroute_tv", pair->reroute_tv[row], 0, 2 * bars.divergence);
    for (int64_t g = 0; g < c->problem.n_regions; g++) {
        const int64_t i = row * c->problem.n_regions + g;
        law_near(c, row, "own logits", route->region_lse[i], base->region_lse[i], 2 * bars.lse);
    }
    law_near(c, row, "null", route->null_weight[row], kept * base->null_weight[row],
             2 * bars.divergence);
    const double bar = 2 * bars.output * scale + ATS_BAR_TINY;
    law_vector(c, row, "removal", part_of(c, row, ATS_PART_REMOVAL), NULL, 0);
    law_vector(c, row, "payload", part_of(c, row, ATS_PART_PAYLOAD), NULL, 0);
    law_vector(c, row, "reroute", part_of(c, row, ATS_PART_REROUTE), NULL, bar);
    law_vector(c, row, "intrusion part", part_of(c, row, ATS_PART_INTRUSION),
               pair->inserted_output + row * c->problem.d_v, bar);
}

/* Overlay: every old weight scales by exp(-lse_shift); the closed forms follow. */
void test_overlay(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < LAW_SEEDS; seed++) {
        law_case c;
        problem_spec spec;
        law_spec(seed, &spec);
        law_start(&c, &spec);
        law_edit(&c, EDIT_OVERLAY);
        law_run(&c);
        for (int64_t row = 0; row < c.problem.n_rows; row++)
            if (isfinite(c.set.base.route.lse[row])) check_overlay_row(&c, row);
        law_end(&c);
    }
}

/* An exact copy of the span [start, stop) right behind it, each row at its own position. */
static void duplicate_span(law_case *c, int64_t start, int64_t stop)
{
    const ats_problem *p = &c->problem;
    const int64_t count = stop - start;
    ats_segment *segments = NULL;
    float *k = NULL, *v = NULL;
    assert_int_equal(ATS_NEW0(&c->arena, 3, &segments, NULL), ATS_OK);
    assert_int_equal(ATS_NEW(&c->arena, count * p->d_qk, &k, NULL), ATS_OK);
    assert_int_equal(ATS_NEW(&c->arena, count * p->d_v, &v, NULL), ATS_OK);
    ats_widen(p->k_dtype, p->k, start * p->d_qk, count * p->d_qk, k);
    ats_widen(p->v_dtype, p->v, start * p->d_v, count * p->d_v, v);
    segments[0] = (ats_segment){.kind = ATS_SEG_KEEP, .stop = stop};
    segments[1] = (ats_segment){.kind = ATS_SEG_ROWS, .stop = count};
    segments[2] = (ats_segment){.kind = ATS_SEG_KEEP, .start = stop, .stop = p->n_keys};
    c->edit = (ats_edit){.n_segments = 3,
                         .segments = segments,
                         .temperature = 1,
                         .side = {.count = count, .k = k, .v = v, .position = p->key_pos + start}};
}

/* Copy of a span of mass G: the pair holds 2G / (1 + G), original and copy the same share. */
void test_duplicate(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < LAW_SEEDS; seed++) {
        law_case c;
        problem_spec spec;
        law_spec(seed, &spec);
        spec.keep = spec.bias = spec.segments = false;
        law_start(&c, &spec);
        const ats_range span = c.problem.regions[1].ranges[0];
        duplicate_span(&c, span.start, span.stop);
        law_run(&c);
        for (int64_t row = 0; row < c.problem.n_rows; row++) {
            const ats_route_stats *base = &c.set.base.route, *route = &c.set.variants[0].route;
            if (!law_defined(&c, row)) continue;
            const int64_t i = row * c.problem.n_regions + 1;
            const double mass = exp(base->region_lse[i] - base->lse[row]);
            const double original = exp(route->region_lse[i] - route->lse[row]);
            const double copy = c.set.variants[0].pair.intrusion[row];
            const double bar = 3 * law_bars(&c, row).mass * original + ATS_BAR_TINY;
            law_near(&c, row, "copy", copy, original, bar);
            law_near(&c, row, "pair", original + copy, 2 * mass / (1 + mass), 2 * bar);
        }
        law_end(&c);
    }
}

/* Masking rows of mass M: every other weight scales by 1 / (1 - M), tv = M. */
void test_masking(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < LAW_SEEDS; seed++) {
        law_case c;
        problem_spec spec;
        law_spec(seed, &spec);
        law_start(&c, &spec);
        law_edit(&c, EDIT_HIDE);
        law_run(&c);
        for (int64_t row = 0; row < c.problem.n_rows; row++) {
            const ats_pair_stats *pair = &c.set.variants[0].pair;
            if (!law_defined(&c, row)) continue;
            const ats_bars bars = law_bars(&c, row);
            const double removed = pair->removal[row];
            const double shift = c.set.variants[0].route.lse[row] - c.set.base.route.lse[row];
            law_near(&c, row, "tv", pair->tv[row], removed, 2 * bars.divergence);
            law_near(&c, row, "kept + removed", exp(shift) + removed, 1, 2 * bars.divergence);
            law_near(&c, row, "reroute_tv", pair->reroute_tv[row], 0, 2 * bars.divergence);
            law_near(&c, row, "intrusion", pair->intrusion[row], 0, 0);
            law_vector(&c, row, "payload", part_of(&c, row, ATS_PART_PAYLOAD), NULL, 0);
        }
        law_end(&c);
    }
}

static void same_array(const law_case *c, const char *what, const double *x, const double *y,
                       int64_t per_row)
{
    if (memcmp(x, y, (size_t)(c->problem.n_rows * per_row) * sizeof *x) != 0)
        fail_msg("%s: other bits in %s", c->text, what);
}

/* Payload swap: the route keeps every bit, only the payload part moves the output. */
void test_payload_swap(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < LAW_SEEDS; seed++) {
        law_case c;
        problem_spec spec;
        law_spec(seed, &spec);
        law_start(&c, &spec);
        law_edit(&c, EDIT_SWAP_VALUE);
        law_run(&c);
        const ats_route_stats *x = &c.set.base.route, *y = &c.set.variants[0].route;
        same_array(&c, "lse", x->lse, y->lse, 1);
        same_array(&c, "entropy", x->entropy, y->entropy, 1);
        same_array(&c, "sum_w2", x->sum_w2, y->sum_w2, 1);
        same_array(&c, "null_weight", x->null_weight, y->null_weight, 1);
        same_array(&c, "top_weight", x->top_weight, y->top_weight, c.problem.top_k);
        same_array(&c, "region_lse", x->region_lse, y->region_lse, c.problem.n_regions);
        for (int64_t row = 0; row < c.problem.n_rows; row++) {
            if (!law_defined(&c, row)) continue;
            const ats_pair_stats *pair = &c.set.variants[0].pair;
            const double bar = law_bars(&c, row).output * law_scale(&c, row) + ATS_BAR_TINY;
            law_near(&c, row, "tv", pair->tv[row], 0, 0);
            law_near(&c, row, "js", pair->js[row], 0, 0);
            law_near(&c, row, "hellinger", pair->hellinger[row], 0, 0);
            law_vector(&c, row, "removal", part_of(&c, row, ATS_PART_REMOVAL), NULL, 0);
            law_vector(&c, row, "intrusion", part_of(&c, row, ATS_PART_INTRUSION), NULL, 0);
            law_vector(&c, row, "dilution", part_of(&c, row, ATS_PART_DILUTION), NULL, bar);
            law_vector(&c, row, "reroute", part_of(&c, row, ATS_PART_REROUTE), NULL, bar);
        }
        law_end(&c);
    }
}

/* Temperature: the keys keep their order; keys the bars cannot tell apart may swap places. */
void test_temperature(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < LAW_SEEDS; seed++) {
        law_case c;
        problem_spec spec;
        law_spec(seed, &spec);
        law_start(&c, &spec);
        law_edit(&c, EDIT_TEMPERATURE);
        law_run(&c);
        const ats_route_stats *x = &c.set.base.route, *y = &c.set.variants[0].route;
        for (int64_t row = 0; row < c.problem.n_rows; row++) {
            const double near_tie = 1 - 4 * law_bars(&c, row).mass;
            for (int64_t t = 0; t < c.problem.top_k; t++) {
                const int64_t i = row * c.problem.top_k + t;
                if (x->top_index[i] == y->top_index[i]) continue;
                const bool tied_before =
                    t > 0 && x->top_weight[i] > near_tie * x->top_weight[i - 1];
                const bool tied_after =
                    t + 1 == c.problem.top_k || x->top_weight[i + 1] > near_tie * x->top_weight[i];
                if (!tied_before && !tied_after)
                    fail_msg("%s: row %lld: key %lld of the top list changed with temperature",
                             c.text, (long long)row, (long long)t);
            }
        }
        law_end(&c);
    }
}

/* Every key and the probes move alike: nothing changes. Chunks have an origin, so not with them. */
void test_move_all(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < LAW_SEEDS; seed++) {
        law_case c;
        problem_spec spec;
        law_spec(seed, &spec);
        spec.chunk = 0;
        law_start(&c, &spec);
        law_edit(&c, EDIT_MOVE_ALL);
        law_run(&c);
        const ats_route_stats *x = &c.set.base.route, *y = &c.set.variants[0].route;
        for (int64_t row = 0; row < c.problem.n_rows; row++) {
            if (!law_defined(&c, row)) continue;
            const ats_bars bars = law_bars(&c, row);
            law_near(&c, row, "lse", y->lse[row], x->lse[row], 2 * bars.lse);
            law_near(&c, row, "tv", c.set.variants[0].pair.tv[row], 0, 2 * bars.divergence);
            assert_int_equal(x->legal_keys[row], y->legal_keys[row]);
            law_vector(&c, row, "output", x->output + row * c.problem.d_v,
                       y->output + row * c.problem.d_v, bars.output * law_scale(&c, row));
        }
        law_end(&c);
    }
}

/* Five parts add up to o' - o, under every kind of edit. */
void test_parts_add_up(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < LAW_SEEDS; seed++)
        for (int kind = 0; kind < EDIT_KINDS; kind++) {
            law_case c;
            problem_spec spec;
            law_spec(seed, &spec);
            if (spec.n_keys > 65) spec.n_keys = 65;
            law_start(&c, &spec);
            law_edit(&c, (enum edit_kind)kind);
            law_run(&c);
            const int64_t dv = c.problem.d_v;
            float sum[512], change[512];
            assert_true(dv <= 512);
            for (int64_t row = 0; row < c.problem.n_rows; row++) {
                if (!law_defined(&c, row)) continue;
                for (int64_t j = 0; j < dv; j++) {
                    const double before = (double)c.set.base.route.output[row * dv + j];
                    double total = 0;
                    for (int part = 0; part < ATS_N_PARTS; part++)
                        total += (double)part_of(&c, row, (enum ats_part)part)[j];
                    sum[j] = (float)total;
                    change[j] =
                        (float)((double)c.set.variants[0].route.output[row * dv + j] - before);
                }
                /* Parts may be larger than what they add up to: dilution holds sum_S w vbar. */
                double size = law_scale(&c, row);
                for (int part = 0; part < ATS_N_PARTS; part++)
                    for (int64_t j = 0; j < dv; j++)
                        size += fabs((double)part_of(&c, row, (enum ats_part)part)[j]);
                law_vector(&c, row, "sum of parts", sum, change,
                           2 * law_bars(&c, row).output * size);
            }
            law_end(&c);
        }
}

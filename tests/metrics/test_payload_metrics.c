/* Payload metrics against numbers worked out by hand. */
#include <math.h>
#include <string.h>

#include "metrics/fold.h"
#include "metrics/metric.h"
#include "metrics/tiny.h"
#include "support/check.h"

static const double bar = 1e-6;

#define VALUE(name, span) tiny_value(p, base, v, name, span, 0)
#define BASE(name, span) tiny_value(p, base, base, name, span, 0)
#define PART(name, part) tiny_value(p, base, v, name, 0, part)

/* Equal weights 1/4 on (4,0) (0,4) (4,4) (-4,4): o = (1, 3). A row of weight 4 and value (0, 2)
 * halves them: o' = (0.5, 1.5) + (0, 1). */
static const float values[] = {4, 0, 0, 4, 4, 4, -4, 4};
static const float logits[4];

static void check_payload(const ats_problem *p, const ats_stats *base, const ats_stats *v)
{
    const double o = sqrt(10);
    assert_near(BASE("output_norm", 0), o, bar);
    assert_near(VALUE("output_norm", 0), sqrt(0.25 + 6.25), bar);
    assert_near(VALUE("output_norm_ratio", 0), sqrt(6.5 / 10), bar);
    assert_near(VALUE("output_change", 0), sqrt(0.25 + 0.25) / o, bar);
    assert_near(VALUE("output_cosine", 0), (0.5 + 7.5) / sqrt(65), bar);
    assert_near(PART("delta_norm", ATS_PART_REMOVAL), 0, bar);
    assert_near(PART("delta_norm", ATS_PART_INTRUSION), 1, bar);
    assert_near(PART("delta_norm", ATS_PART_DILUTION), o / 2, bar);
    assert_near(PART("delta_norm", ATS_PART_REROUTE), 0, bar);
    assert_near(PART("delta_norm", ATS_PART_PAYLOAD), 0, bar);
    assert_near(PART("delta_share", ATS_PART_INTRUSION), 0.3, bar);
    assert_near(PART("delta_share", ATS_PART_DILUTION), -0.5, bar);
    assert_near(BASE("contribution_norm", TINY_GOLD), 1, bar);
    assert_near(VALUE("contribution_norm", TINY_GOLD), 0.5, bar);
    assert_near(VALUE("contribution_norm", ATS_SPAN_INSERTED), 1, bar);
    assert_near(BASE("contribution_norm", ATS_SPAN_INSERTED), 0, 0);
    assert_near(BASE("contribution_share", TINY_GOLD), 0.3, bar);
    double sum = VALUE("contribution_share", ATS_SPAN_INSERTED);
    for (int64_t s = 0; s < TINY_REGIONS; s++)
        if (s != TINY_ABSENT) sum += VALUE("contribution_share", s);
    assert_near(sum, 1, bar);
    assert_near(VALUE("contribution_change", TINY_GOLD), 0.5, bar);
    assert_near(VALUE("contribution_change", ATS_SPAN_INSERTED), 1, bar);
    assert_near(VALUE("cancellation", TINY_GOLD), 1, bar);
    assert_near(VALUE("cancellation", ATS_SPAN_INSERTED), 1, bar);
    assert_near(tiny_value(p, base, v, "contribution", TINY_GOLD, 1), 0.5, bar);
    assert_near(BASE("topk_contribution_index", 0), 2, 0);
    assert_near(BASE("topk_contribution_weight", 0), 0.25, bar);
    assert_near(BASE("topk_contribution_norm", 0), sqrt(2), bar);
    assert_true(isnan(VALUE("output_norm_resid", 0)));
    assert_true(isnan(VALUE("readout", TINY_GOLD)));
}

static void check_projected(const ats_problem *p, const ats_stats *base, const ats_stats *v)
{
    const float w_o[] = {1, 0, 2, 0, 3, 0}; /* [2, 3]: o W_O = (o0, 3 o1, 2 o0) */
    const float r[] = {0, 1, 0};
    double gram[4], row[2];
    ats_fold_gram(w_o, 2, 3, gram);
    ats_fold_readout(w_o, r, 2, 3, row);
    assert_near_array(gram, ((const double[]){5, 0, 0, 9}), 4, 0);
    ats_cell cell = {.problem = p,
                     .base = &base->route,
                     .route = &v->route,
                     .pair = &v->pair,
                     .span = TINY_RECENT, /* c = (1, 1), c' = (.5, .5) */
                     .part = ATS_PART_INTRUSION,
                     .w_o = w_o,
                     .d_model = 3,
                     .readout = r};
    for (int folded = 0; folded < 2; folded++) {
        cell.gram = folded ? gram : NULL;
        cell.readout_row = folded ? row : NULL;
#define RESID(name) ats_metric_find(name)->value(&cell)
        assert_near(RESID("output_norm_resid"), sqrt(5 * 0.25 + 9 * 6.25), bar);
        assert_near(RESID("output_change_resid"), sqrt(5 * 0.25 + 9 * 0.25) / sqrt(5 + 81), bar);
        assert_near(RESID("delta_norm_resid"), 3, bar);
        assert_near(RESID("contribution_norm_resid"), sqrt(14) / 2, bar);
        assert_near(RESID("contribution_change_resid"), sqrt(14) / 2, bar);
        assert_near(RESID("readout"), 1.5, bar);
        assert_near(RESID("readout_change"), -1.5, bar);
    }
}

static void run_with(tiny_check check)
{
    const float in = logf(4), in_value[] = {0, 2};
    ats_arena arena = {.blocks = NULL};
    ats_problem p;
    ats_edit edit;
    tiny_problem(logits, values, 4, &p);
    tiny_edit(&arena, &p, 0, 0, &in, in_value, 1, &edit);
    tiny_run(&p, &edit, check);
    ats_arena_fini(&arena);
}

static void test_payload(void **state)
{
    (void)state;
    run_with(check_payload);
}

static void test_residual_stream(void **state)
{
    (void)state;
    run_with(check_projected);
}

static void check_no_output(const ats_problem *p, const ats_stats *base, const ats_stats *v)
{
    assert_true(isnan(VALUE("output_cosine", 0)));
    assert_true(isnan(VALUE("output_change", 0)));
    assert_true(isnan(VALUE("output_norm_ratio", 0)));
    assert_true(isnan(VALUE("contribution_share", TINY_GOLD)));
    assert_near(VALUE("output_norm", 0), 0, 0);
}

static void test_ratios_to_nothing_are_undefined(void **state)
{
    (void)state;
    const float zeros[8] = {0};
    ats_arena arena = {.blocks = NULL};
    ats_problem p;
    ats_edit edit;
    tiny_problem(logits, zeros, 4, &p);
    tiny_edit(&arena, &p, 0, 0, NULL, NULL, 0, &edit);
    tiny_run(&p, &edit, check_no_output);
    ats_arena_fini(&arena);
}

/* Both ways of a projected norm agree on sizes past a block. */
static void test_projected_norms_agree(void **state)
{
    (void)state;
    enum { D = 300, MODEL = 517 };
    static float w_o[D * MODEL], a[D], b[D];
    static double gram[D * D];
    for (int i = 0; i < D * MODEL; i++) w_o[i] = (float)((i * 7919) % 1000) / 500 - 1;
    for (int i = 0; i < D; i++) {
        a[i] = (float)((i * 31) % 17) - 8;
        b[i] = (float)((i * 13) % 29) - 14;
    }
    ats_fold_gram(w_o, D, MODEL, gram);
    const double direct = ats_norm_projected(w_o, MODEL, a, b, D);
    assert_near(ats_norm_gram(gram, a, b, D) / direct, 1, 1e-12);
    assert_near(ats_norm_gram(gram, NULL, NULL, D), 0, 0);
    assert_near(ats_norm(a, NULL, D), ats_norm(NULL, a, D), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_payload),
        cmocka_unit_test(test_residual_stream),
        cmocka_unit_test(test_ratios_to_nothing_are_undefined),
        cmocka_unit_test(test_projected_norms_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

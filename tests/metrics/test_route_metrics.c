/* Route metrics against numbers worked out by hand. */
#include <math.h>
#include <string.h>

#include "metrics/metric.h"
#include "metrics/tiny.h"
#include "support/check.h"

/* the keys are float32 logarithms */
static const double bar = 1e-6;

#define VALUE(name, span) tiny_value(p, base, v, name, span, 0)
#define BASE(name, span) tiny_value(p, base, base, name, span, 0)

static const float values[] = {1, 0, 0, 1, 1, 1, -1, 0};

/* Base weights 1/8, 4/8, 2/8, 1/8; a row of weight e^z = 8 comes in: all old weights halve. */
static void check_overlay(const ats_problem *p, const ats_stats *base, const ats_stats *v)
{
    assert_near(BASE("lse", 0), log(8), bar);
    assert_near(VALUE("lse", 0), log(16), bar);
    assert_near(VALUE("lse_keys", 0), log(16), bar);
    assert_near(VALUE("lse_shift", 0), log(2), bar);
    assert_near(VALUE("competition_shift", 0), -log(2), bar);
    assert_near(BASE("mass", TINY_GOLD), 0.5, bar);
    assert_near(VALUE("mass", TINY_GOLD), 0.25, bar);
    assert_near(VALUE("mass", ATS_SPAN_INSERTED), 0.5, bar);
    assert_near(BASE("mass", ATS_SPAN_INSERTED), 0, 0);
    assert_near(VALUE("log_mass_shift", TINY_GOLD), -log(2), bar);
    assert_near(VALUE("own_logit_shift", TINY_GOLD), 0, bar);
    assert_near(VALUE("retention", TINY_GOLD), 0.5, bar);
    assert_near(BASE("rank", TINY_GOLD), 1, 0);
    assert_near(VALUE("rank", TINY_GOLD), 2, 0);
    assert_near(BASE("margin", TINY_GOLD), log(2), bar);
    assert_near(VALUE("margin", TINY_GOLD), -log(2), bar);
    assert_near(VALUE("intrusion", 0), 0.5, bar);
    assert_near(VALUE("removal", 0), 0, 0);
    assert_near(VALUE("tv", 0), 0.5, bar);
    assert_near(VALUE("hellinger", 0), sqrt(1 - sqrt(0.5)), bar);
    assert_near(VALUE("reroute_tv", 0), 0, bar);
    assert_near(BASE("entropy", 0), 1.75 * log(2), bar);
    assert_near(BASE("effective_keys", 0), exp2(1.75), 4 * bar);
    assert_near(BASE("effective_keys_n2", 0), 64.0 / (1 + 16 + 4 + 1), 4 * bar);
    assert_near(BASE("max_weight", 0), 0.5, bar);
    assert_near(VALUE("max_weight", 0), 0.5, bar);
    assert_near(BASE("top_key", 0), 1, 0);
    assert_near(VALUE("top_key", 0), -1, 0);
    assert_near(VALUE("topk_index", 0), -2, 0);
    assert_near(tiny_value(p, base, v, "topk_index", 0, 1), 1, 0);
    assert_near(tiny_value(p, base, v, "topk_weight", 0, 2), 0.125, bar);
    assert_near(VALUE("topk_overlap", 0), 2.0 / 3, bar);
    assert_near(VALUE("null_mass", 0), 0, 0);
    assert_near(BASE("sink_mass", 0), 0.125, bar);
    assert_near(VALUE("sink_mass", 0), 0.0625, bar);
    assert_near(BASE("legal_keys", 0), 4, 0);
    assert_near(VALUE("legal_keys", 0), 5, 0);
}

static void test_overlay_halves_every_old_weight(void **state)
{
    (void)state;
    const float logits[] = {0, logf(4), logf(2), 0}, in = logf(8), in_value[] = {0, 2};
    ats_arena arena = {.blocks = NULL};
    ats_problem p;
    ats_edit edit;
    tiny_problem(logits, values, 4, &p);
    tiny_edit(&arena, &p, 0, 0, &in, in_value, 1, &edit);
    tiny_run(&p, &edit, check_overlay);
    ats_arena_fini(&arena);
}

/* The gold key is hidden: its mass is 0, its logarithm and everything built on it undefined. */
static void check_hidden(const ats_problem *p, const ats_stats *base, const ats_stats *v)
{
    assert_near(VALUE("mass", TINY_GOLD), 0, 0);
    assert_near(VALUE("retention", TINY_GOLD), 0, 0);
    assert_true(isnan(VALUE("log_mass_shift", TINY_GOLD)));
    assert_true(isnan(VALUE("own_logit_shift", TINY_GOLD)));
    assert_true(isnan(VALUE("rank", TINY_GOLD)));
    assert_true(isnan(VALUE("margin", TINY_GOLD)));
    assert_near(VALUE("removal", 0), 0.5, bar);
    assert_near(VALUE("tv", 0), 0.5, bar);
    assert_near(VALUE("mass", TINY_RECENT), 0.5, bar);
    assert_near(VALUE("log_mass_shift", TINY_RECENT), log(2), bar);
    assert_near(VALUE("topk_overlap_survivors", 0), 1, 0);
    const char *const of_span[] = {
        "mass",   "log_mass_shift",    "retention",          "rank",
        "margin", "contribution_norm", "contribution_share", "cancellation"};
    for (size_t i = 0; i < sizeof of_span / sizeof *of_span; i++)
        assert_true(isnan(VALUE(of_span[i], TINY_ABSENT)));
    assert_true(isnan(BASE("mass", TINY_ABSENT)));
    assert_near(VALUE("mass", ATS_SPAN_INSERTED), 0, 0);
    assert_true(isnan(VALUE("retention", ATS_SPAN_INSERTED)));
    assert_true(isnan(VALUE("rank", ATS_SPAN_INSERTED)));
}

static void test_hidden_and_absent_spans(void **state)
{
    (void)state;
    const float logits[] = {0, logf(4), logf(2), 0};
    ats_arena arena = {.blocks = NULL};
    ats_problem p;
    ats_edit edit;
    tiny_problem(logits, values, 4, &p);
    tiny_edit(&arena, &p, 1, 2, NULL, NULL, 0, &edit);
    tiny_run(&p, &edit, check_hidden);
    ats_arena_fini(&arena);
}

static void check_undefined(const ats_problem *p, const ats_stats *base, const ats_stats *v)
{
    int64_t count = 0;
    const ats_metric *const *all = ats_metrics(&count);
    for (int64_t i = 0; i < count; i++) {
        const double value = VALUE(all[i]->name, TINY_GOLD);
        if (all[i]->integer)
            assert_near(value, all[i]->fill, 0);
        else if (strcmp(all[i]->name, "legal_keys") == 0)
            assert_near(value, 0, 0);
        else if (!isnan(value))
            fail_msg("%s of an undefined row is %g", all[i]->name, value);
    }
}

/* RC-01: a row without a legal key is undefined in every metric, never 0. */
static void test_row_without_a_key_is_undefined(void **state)
{
    (void)state;
    const float logits[] = {0, 1, 2, 3};
    ats_arena arena = {.blocks = NULL};
    ats_problem p;
    ats_edit edit;
    tiny_problem(logits, values, 4, &p);
    tiny_edit(&arena, &p, 0, 4, NULL, NULL, 0, &edit);
    tiny_run(&p, &edit, check_undefined);
    ats_arena_fini(&arena);
}

/* RC-14: P = [.3 .3 .4], Q = [.5 .5 0]. */
static void check_zero(const ats_problem *p, const ats_stats *base, const ats_stats *v)
{
    assert_near(VALUE("entropy", 0), log(2), bar);
    assert_near(VALUE("js", 0), 0.236452797660, bar);
    assert_near(VALUE("tv", 0), 0.4, bar);
}

/* RC-14: one key of two is left: entropy is 0, and not -0. */
static void check_certain(const ats_problem *p, const ats_stats *base, const ats_stats *v)
{
    assert_near(VALUE("entropy", 0), 0, 1e-15);
    assert_near(VALUE("effective_keys", 0), 1, 1e-15);
}

/* RC-14: [1, 0] against [0, 1]. */
static void check_disjoint(const ats_problem *p, const ats_stats *base, const ats_stats *v)
{
    assert_near(VALUE("js", 0), 1, 1e-12);
    assert_near(VALUE("tv", 0), 1, 1e-12);
    assert_near(VALUE("hellinger", 0), 1, 1e-12);
    assert_true(isnan(VALUE("reroute_tv", 0)));
}

static void check_uniform(const ats_problem *p, const ats_stats *base, const ats_stats *v)
{
    (void)v;
    assert_near(BASE("entropy", 0), 1.386294361120, 1e-12);
}

static void test_divergences_with_zero_probabilities(void **state)
{
    (void)state;
    const float thirds[] = {logf(0.3F), logf(0.3F), logf(0.4F)}, zeros[4] = {0};
    ats_arena arena = {.blocks = NULL};
    ats_problem p;
    ats_edit edit;
    tiny_problem(thirds, values, 3, &p);
    tiny_edit(&arena, &p, 2, 3, NULL, NULL, 0, &edit);
    tiny_run(&p, &edit, check_zero);
    tiny_problem(zeros, values, 2, &p);
    tiny_edit(&arena, &p, 1, 2, NULL, NULL, 0, &edit);
    tiny_run(&p, &edit, check_certain);
    tiny_problem(zeros, values, 1, &p);
    p.n_regions = 0;
    tiny_edit(&arena, &p, 0, 1, zeros, values, 1, &edit);
    tiny_run(&p, &edit, check_disjoint);
    tiny_problem(zeros, values, 4, &p);
    tiny_edit(&arena, &p, 0, 0, NULL, NULL, 0, &edit);
    tiny_run(&p, &edit, check_uniform);
    ats_arena_fini(&arena);
}

static const float sink_logit;

static void check_sink(const ats_problem *p, const ats_stats *base, const ats_stats *v)
{
    (void)v;
    assert_near(BASE("null_mass", 0), 0.2, bar);
    assert_near(BASE("mass", TINY_GOLD), 0.2, bar);
    assert_near(BASE("lse", 0), log(5), bar);
    assert_near(BASE("lse_keys", 0), log(4), bar);
}

static void test_null_route(void **state)
{
    (void)state;
    const float zeros[4] = {0};
    ats_arena arena = {.blocks = NULL};
    ats_problem p;
    ats_edit edit;
    tiny_problem(zeros, values, 4, &p);
    p.sink = &sink_logit;
    tiny_edit(&arena, &p, 0, 0, NULL, NULL, 0, &edit);
    tiny_run(&p, &edit, check_sink);
    ats_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overlay_halves_every_old_weight),
        cmocka_unit_test(test_hidden_and_absent_spans),
        cmocka_unit_test(test_row_without_a_key_is_undefined),
        cmocka_unit_test(test_divergences_with_zero_probabilities),
        cmocka_unit_test(test_null_route),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

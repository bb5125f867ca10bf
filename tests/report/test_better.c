/* compare on a planted change in one head, for gates on metrics of each direction. */
#include <math.h>

#include "report/compare.h"
#include "report/planted.h"
#include "support/check.h"

static ats_err err;

/* Both results compared by these gates; the head's log mass shift moved by so much, tv by minus
 * that. Alpha is wide because Holm has many gates and eight clusters. */
static ats_comparison *compare(const ats_compare_gate *gates, int64_t n, double shift, bool exact)
{
    planted base = planted_standard(), cand = base;
    base.value = cand.value = planted_one_head;
    cand.shift = shift;
    if (!exact) cand.capture_hash = "bb";
    assert_ok(planted_write(planted_base, &base, &err), &err);
    assert_ok(planted_write(planted_cand, &cand, &err), &err);
    const ats_compare_options options = {.base = planted_base,
                                         .candidate = planted_cand,
                                         .n_gates = n,
                                         .gates = gates,
                                         .alpha = 0.2,
                                         .resamples = 2000,
                                         .noise_floor = -1};
    ats_comparison *c = NULL;
    assert_ok(ats_compare(&options, &c, &err), &err);
    return c;
}

#define R ATS_CLAIM_REGRESSED
#define I ATS_CLAIM_IMPROVED
#define U ATS_CLAIM_UNCHANGED
#define Q ATS_CLAIM_INCONCLUSIVE
static const double none = (double)NAN;

/* Limits, and the claim where the metric's mean falls and rises by 0.1. */
static const struct {
    const char *metric;
    ats_better better;
    double max_drop, max_rise, equivalence;
    ats_claim fall, rise;
} cases[] = {
    {"log_mass_shift", ATS_BETTER_MORE, 0.05, none, none, R, I},
    {"log_mass_shift", ATS_BETTER_MORE, none, none, 0.05, R, I},
    {"log_mass_shift", ATS_BETTER_MORE, 0.2, none, 0.05, Q, I},
    {"log_mass_shift", ATS_BETTER_MORE, 0.05, 0.05, none, R, R},
    {"log_mass_shift", ATS_BETTER_MORE, none, 0.05, 0.05, R, R},
    {"log_mass_shift", ATS_BETTER_MORE, 0.2, none, none, U, U},
    {"tv", ATS_BETTER_LESS, none, 0.05, none, I, R},
    {"tv", ATS_BETTER_LESS, none, none, 0.05, I, R},
    {"tv", ATS_BETTER_LESS, none, 0.2, 0.05, I, Q},
    {"tv", ATS_BETTER_LESS, 0.05, 0.05, none, R, R},
    {"tv", ATS_BETTER_LESS, none, 0.2, none, U, U},
    {"tv", ATS_BETTER_NEITHER, 0.05, none, none, R, I},
    {"tv", ATS_BETTER_NEITHER, none, 0.05, none, I, R},
    {"tv", ATS_BETTER_NEITHER, none, none, 0.05, R, R},
    {"tv", ATS_BETTER_NEITHER, 0.2, 0.05, none, Q, R},
    {"tv", ATS_BETTER_NEITHER, 0.2, 0.2, 0.05, Q, Q},
};

enum { N_CASES = sizeof cases / sizeof *cases };

static void a_change_in_one_head_is_called_by_its_direction(void **state)
{
    (void)state;
    ats_compare_gate gates[N_CASES];
    for (int i = 0; i < N_CASES; i++)
        gates[i] = (ats_compare_gate){.name = "g",
                                      .metric = cases[i].metric,
                                      .span = cases[i].metric[0] == 'l' ? "gold" : NULL,
                                      .better = cases[i].better,
                                      .max_drop = cases[i].max_drop,
                                      .max_rise = cases[i].max_rise,
                                      .equivalence = cases[i].equivalence,
                                      .n_variants = 2,
                                      .variants = planted_variants};
    for (int exact = 0; exact < 2; exact++)
        for (int way = -1; way <= 1; way++) {
            ats_comparison *c = compare(gates, N_CASES, 0.6 * way, exact != 0);
            for (int i = 0; i < N_CASES; i++) {
                const bool rises = (gates[i].span != NULL) == (way > 0);
                const ats_claim wanted = way == 0 ? U : rises ? cases[i].rise : cases[i].fall;
                if (c->rows[i].claim != wanted)
                    fail_msg("gate %d, exact %d, wanted %s: %s", i, exact, ats_claim_name(wanted),
                             c->rows[i].sentence);
            }
            ats_comparison_free(c);
        }
}

static void a_sentence_says_which_way(void **state)
{
    (void)state;
    static const char *const says[] = {"gate 'g' regressed: tv", "(less is better)",
                                       "max_rise 0.05", "a rise within max_rise",
                                       "and neither way is better"};
    ats_compare_gate gates[3];
    for (int i = 0; i < 3; i++)
        gates[i] = (ats_compare_gate){.name = "g",
                                      .metric = "tv",
                                      .better = i < 2 ? ATS_BETTER_LESS : ATS_BETTER_NEITHER,
                                      .max_drop = i == 2 ? 0.2 : none,
                                      .max_rise = i == 0 ? 0.05 : 0.2,
                                      .equivalence = i == 0 ? none : 0.05,
                                      .n_variants = 2,
                                      .variants = planted_variants};
    ats_comparison *c = compare(gates, 3, -0.6, false);
    assert_says(c->rows[0].sentence, says[0], says[1], says[2]);
    assert_says(c->rows[1].sentence, says[3], "that is not within equivalence");
    assert_says(c->rows[2].sentence, says[4]);
    ats_comparison_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_in_one_head_is_called_by_its_direction),
        cmocka_unit_test(a_sentence_says_which_way),
    };
    return cmocka_run_group_tests(tests, planted_make_folder, planted_remove_folder);
}

/* Rotary scaling against transformers (rope_scaling.inc) and RC-12's magnitudes. */
#include "support/check.h"

#include <math.h>
#include <stdbool.h>

#include "base/rope_scaling.h"

/* transformers computes in float32: the exponent 2i/dim times ln(theta) <= 14 is rounded, then
 * some more operations: 32 units of 2^-24, relative. */
#define FLOAT32 (32 * 0x1p-24)

static const struct {
    const char *name;
    ats_rope_scaling scaling;
    double magnitude;
    double inv_freq[64];
} rows[] = {
#include "rope_scaling.inc"
};

static void frequencies_are_those_of_transformers(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const ats_rope_scaling *s = &rows[r].scaling;
        double got[64];
        ats_err err;
        assert_ok(ats_rope_scaling_check(s, &err), &err);
        ats_rope_scaling_frequencies(s, got);
        for (int64_t i = 0; i < s->rotary_dim / 2; i++)
            assert_near(got[i], rows[r].inv_freq[i], FLOAT32 * rows[r].inv_freq[i]);
        assert_near(ats_rope_scaling_magnitude(s), rows[r].magnitude, 1e-15);
    }
}

/* The default type in closed form; a context stretched by 1 has the same frequencies in all types.
 */
static void types_meet_where_nothing_is_stretched(void **state)
{
    (void)state;
    ats_rope_scaling s = {.type = ATS_ROPE_DEFAULT, .rotary_dim = 8, .theta = 10000};
    double plain[4], got[4];
    ats_rope_scaling_frequencies(&s, plain);
    for (int i = 0; i < 4; i++) assert_near(plain[i], pow(10, -i), 1e-15);
    s = (ats_rope_scaling){.rotary_dim = 8,
                           .theta = 10000,
                           .factor = 1,
                           .original_max_position = 2048,
                           .low_freq_factor = 1,
                           .high_freq_factor = 4};
    for (int type = ATS_ROPE_LINEAR; type <= ATS_ROPE_YARN; type++) {
        s.type = (ats_rope_type)type;
        ats_rope_scaling_frequencies(&s, got);
        assert_near_array(got, plain, 4, 1e-15);
        assert_near(ats_rope_scaling_magnitude(&s), 1, 0);
    }
}

/* RC-12 a to e */
static void magnitudes_of_the_regression_case(void **state)
{
    (void)state;
    static const struct {
        ats_rope_scaling scaling;
        double magnitude, softmax, bar;
    } cases[] = {
        {{.factor = 64}, 1.415888308336, 1, 1e-12},
        {{.factor = 64, .attention_factor = 1}, 1, 1, 0},
        {{.factor = 128, .attention_factor = 1.4852030264}, 1.4852030264, 1, 0},
        {{.factor = 0.5}, 1, 1, 0},
        {{.factor = 40, .mscale = 1, .mscale_all_dim = 1}, 1, 1.873854207093, 1e-12},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ats_rope_scaling s = cases[i].scaling;
        s.type = ATS_ROPE_YARN;
        assert_near(ats_rope_scaling_magnitude(&s), cases[i].magnitude, cases[i].bar);
        assert_near(ats_rope_scaling_softmax(&s), cases[i].softmax, cases[i].bar);
    }
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    const ats_rope_scaling good = {.type = ATS_ROPE_YARN,
                                   .rotary_dim = 64,
                                   .theta = 10000,
                                   .factor = 4,
                                   .original_max_position = 4096,
                                   .low_freq_factor = 1,
                                   .high_freq_factor = 4};
    ats_rope_scaling bad[7] = {good, good, good, good, good, good, good};
    static const char *const words[] = {"rotary_dim", "rope_theta", "factor",      "original_max",
                                        "beta_slow",  "llama3",     "original_max"};
    ats_err err;
    assert_ok(ats_rope_scaling_check(&good, &err), &err);
    bad[0].rotary_dim = 63;
    bad[1].theta = 1;
    bad[2].factor = (double)NAN;
    bad[3].original_max_position = 0;
    bad[4].beta_slow = 64;
    bad[5].type = bad[6].type = ATS_ROPE_LLAMA3;
    bad[5].high_freq_factor = 1;
    bad[6].original_max_position = 0;
    for (int i = 0; i < 7; i++) {
        assert_int_equal(ats_rope_scaling_check(&bad[i], &err), ATS_E_INPUT);
        assert_says(err.text, words[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frequencies_are_those_of_transformers),
        cmocka_unit_test(types_meet_where_nothing_is_stretched),
        cmocka_unit_test(magnitudes_of_the_regression_case),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <math.h>
#include <string.h>

#include "perturb/variant.h"

enum { D = 16 };

static tiny half, interleaved, bare;

static int setup(void **state)
{
    (void)state;
    tiny_options o = tiny_defaults();
    tiny_make(&half, &o);
    o.layout = ATS_ROPE_INTERLEAVED;
    tiny_make(&interleaved, &o);
    o.layout = ATS_ROPE_NONE;
    tiny_make(&bare, &o);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tiny_free(&half);
    tiny_free(&interleaved);
    tiny_free(&bare);
    return 0;
}

static void stored_query(const tiny *t, int64_t head, int64_t probe, double *out)
{
    tiny_row(ATS_F32, t->attention[0].q, 3, D, head, probe, out);
}

static double norm(const float *x)
{
    double sum = 0;
    for (int i = 0; i < D; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

static void a_fixed_angle_turns_every_pair(void **state)
{
    (void)state;
    const tiny *worlds[] = {&half, &interleaved, &bare};
    for (int w = 0; w < 3; w++) {
        variant v;
        variant_begin(&v, worlds[w], "query_rotate", ATS_MODE_NONE);
        variant_number(&v, "angle", 90);
        variant_build(&v);
        for (int64_t row = 0; row < 6; row++) {
            double q[D];
            stored_query(worlds[w], row / 3, row % 3, q);
            for (int i = 0; i < D / 2; i++) {
                const int a = w == 1 ? 2 * i : i, b = w == 1 ? 2 * i + 1 : i + D / 2;
                assert_near((double)v.built.edit.q[row * D + a], -q[b], 1e-6);
                assert_near((double)v.built.edit.q[row * D + b], q[a], 1e-6);
            }
        }
        assert_near(v.built.dose, 90, 0);
        variant_free(&v);
    }
}

static void rows_follow_the_chosen_heads_and_probes(void **state)
{
    (void)state;
    const int64_t heads[] = {3}, probes[] = {2, 0};
    variant v;
    variant_begin(&v, &half, "query_rotate", ATS_MODE_NONE);
    variant_number(&v, "angle", 0);
    v.build.kv_head = 1;
    v.build.n_heads = 1;
    v.build.heads = heads;
    v.build.n_probes = 2;
    v.build.probes = probes;
    variant_build(&v);
    for (int64_t row = 0; row < 2; row++) {
        double q[D];
        stored_query(&half, 3, probes[row], q);
        for (int i = 0; i < D; i++) assert_near((double)v.built.edit.q[row * D + i], q[i], 0);
    }
    variant_free(&v);
}

static void random_rotations_keep_norms_and_follow_the_seed(void **state)
{
    (void)state;
    float first[6 * D];
    for (int seed = 0; seed < 3; seed++) {
        variant v;
        variant_begin(&v, &half, "query_rotate", ATS_MODE_NONE);
        variant_word(&v, "rotation", "random");
        variant_number(&v, "seed", seed % 2);
        variant_build(&v);
        for (int64_t row = 0; row < 6; row++) {
            double q[D];
            stored_query(&half, row / 3, row % 3, q);
            assert_near(norm(v.built.edit.q + row * D), sqrt(tiny_dot(q, q, D)), 1e-5);
        }
        assert_true(isnan(v.built.dose));
        if (seed == 0) memcpy(first, v.built.edit.q, sizeof first);
        if (seed == 1) assert_memory_not_equal(first, v.built.edit.q, sizeof first);
        if (seed == 2) assert_memory_equal(first, v.built.edit.q, sizeof first);
        variant_free(&v);
    }
}

static void normalising_sets_the_norms(void **state)
{
    (void)state;
    const float *k = half.attention[0].k;
    double rms = 0;
    for (int64_t i = 0; i < 200; i++) rms += norm(k + i * D) * norm(k + i * D) / 200;
    static const char *const to[] = {"unit", "equal_norm"};
    for (int t = 0; t < 2; t++) {
        variant v;
        variant_begin(&v, &half, "normalise", ATS_MODE_NONE);
        variant_word(&v, "to", to[t]);
        variant_build(&v);
        const ats_side *side = &v.built.edit.side;
        assert_int_equal(side->count, 200);
        for (int64_t i = 0; i < 200; i++)
            assert_near(norm(side->k + i * D), t == 0 ? 1 : sqrt(rms), 1e-5);
        assert_near(v.built.realised.cosine, 1, 1e-6);
        assert_int_equal(v.built.edit.q != NULL, t == 0);
        for (int64_t row = 0; t == 0 && row < 6; row++)
            assert_near(norm(v.built.edit.q + row * D), 1, 1e-6);
        variant_free(&v);
    }
    variant v;
    variant_begin(&v, &half, "normalise", ATS_MODE_NONE);
    variant_word(&v, "to", "unscaled");
    variant_build(&v);
    assert_near(v.built.edit.scale, 1, 0);
    assert_int_equal(v.built.edit.side.count, 0);
    variant_free(&v);
}

static void temperature_is_a_factor(void **state)
{
    (void)state;
    variant v;
    variant_begin(&v, &half, "temperature", ATS_MODE_NONE);
    variant_number(&v, "tau", 2.5);
    variant_build(&v);
    assert_near(v.built.edit.temperature, 2.5, 0);
    assert_near(v.built.dose, 2.5, 0);
    assert_int_equal(v.built.edit.n_segments, 1);
    variant_free(&v);
}

static void noise_has_the_relative_size(void **state)
{
    (void)state;
    const float *k = half.attention[0].k;
    variant v;
    variant_begin(&v, &half, "noise", ATS_MODE_NONE);
    variant_number(&v, "sigma", 0.1);
    variant_build(&v);
    double sum = 0;
    for (int64_t i = 0; i < 200; i++) {
        float change[D];
        for (int j = 0; j < D; j++) change[j] = v.built.edit.side.k[i * D + j] - k[i * D + j];
        sum += norm(change) * norm(change) / (norm(k + i * D) * norm(k + i * D)) / 200;
    }
    /* 3200 normal numbers: the mean square is within 4 standard errors, sqrt(2/3200). */
    assert_near(sum / 0.01, 1, 4 * sqrt(2.0 / 3200));
    variant_free(&v);
}

static void rounding_changes_keys_to_the_format(void **state)
{
    (void)state;
    static const char *const formats[] = {"bf16", "fp8"};
    static const double bars[] = {1.0 / 256, 1.0 / 16};
    const float *k = half.attention[0].k;
    for (int f = 0; f < 2; f++) {
        variant v;
        variant_begin(&v, &half, "noise", ATS_MODE_NONE);
        variant_word(&v, "round", formats[f]);
        variant_build(&v);
        int64_t changed = 0;
        for (int64_t i = 0; i < 200 * D; i++) {
            const double x = (double)k[i], y = (double)v.built.edit.side.k[i];
            assert_near(y, x, bars[f] * fmax(fabs(x), 1.0 / 64));
            changed += x != y;
        }
        assert_true(changed > 190 * D);
        assert_true(isnan(v.built.dose));
        variant_free(&v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fixed_angle_turns_every_pair),
        cmocka_unit_test(rows_follow_the_chosen_heads_and_probes),
        cmocka_unit_test(random_rotations_keep_norms_and_follow_the_seed),
        cmocka_unit_test(normalising_sets_the_norms),
        cmocka_unit_test(temperature_is_a_factor),
        cmocka_unit_test(noise_has_the_relative_size),
        cmocka_unit_test(rounding_changes_keys_to_the_format),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

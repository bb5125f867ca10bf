/* Synthetic heads whose cause of sharpness is known, and entropies against a plain softmax. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "metrics/diagnose.h"
#include "support/check.h"

enum { SEEDS = 60, MOST = 640, WIDEST = 128 };

typedef struct head {
    ats_problem problem;
    int64_t n, d;
    float k[MOST * WIDEST], q[WIDEST];
    int64_t position[MOST], q_position;
    float sink;
    ats_region region;
} head;

static head h;

/* Unit normal elements everywhere, scale 1/sqrt(d): nothing to explain. */
static ats_rng plain_head(int seed)
{
    static const int64_t widths[] = {48, 64, 96, 128};
    ats_rng rng = ats_rng_stream(4242, "head", "diagnose", seed, 0, "head");
    h.n = 256 + ats_rng_below(&rng, MOST - 256);
    h.d = widths[seed % 4];
    for (int64_t i = 0; i < h.n * h.d; i++) h.k[i] = (float)ats_rng_normal(&rng);
    for (int64_t i = 0; i < h.d; i++) h.q[i] = (float)ats_rng_normal(&rng);
    for (int64_t i = 0; i < h.n; i++) h.position[i] = i;
    h.q_position = h.n - 1;
    h.problem = (ats_problem){
        .contract = {.scale = 1 / sqrt((double)h.d), .temperature = 1, .causal = true},
        .n_keys = h.n,
        .d_qk = h.d,
        .d_v = 1,
        .k = h.k,
        .key_pos = h.position,
        .n_rows = 1,
        .n_probes = 1,
        .q = h.q,
        .q_pos = &h.q_position,
        .top_k = 1,
    };
    return rng;
}

static double norm_of(const float *x)
{
    double sum = 0;
    for (int64_t i = 0; i < h.d; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

static int64_t any_row(ats_rng *rng) { return 16 + ats_rng_below(rng, h.n - 32); }

/* Row gets cosine `cosine` to the query and `ratio` times its norm; the rest of it stays random. */
static void set_key(int64_t row, double cosine, double ratio)
{
    float *k = h.k + row * h.d;
    const double norm = norm_of(k), q = norm_of(h.q);
    double dot = 0, rest = 0;
    for (int64_t i = 0; i < h.d; i++) dot += (double)k[i] * (double)h.q[i] / q;
    for (int64_t i = 0; i < h.d; i++) {
        k[i] = (float)((double)k[i] - dot * (double)h.q[i] / q);
        rest += (double)k[i] * (double)k[i];
    }
    const double side = sqrt(1 - cosine * cosine) * norm / sqrt(rest);
    for (int64_t i = 0; i < h.d; i++)
        k[i] = (float)(ratio * ((double)k[i] * side + cosine * norm * (double)h.q[i] / q));
}

static void lengthen_query(double factor)
{
    for (int64_t i = 0; i < h.d; i++) h.q[i] = (float)(factor * (double)h.q[i]);
}

static void aligned(ats_rng *rng, int seed)
{
    set_key(any_row(rng), 0.97 + 0.03 * ats_rng_unit(rng), 1);
    if (seed % 4 < 2) lengthen_query(1 + ats_rng_unit(rng));
}

static void long_key(ats_rng *rng, int seed)
{
    (void)seed;
    const double ratio = 12 + 30 * ats_rng_unit(rng);
    set_key(any_row(rng), (1 + ats_rng_unit(rng)) / sqrt((double)h.d), ratio);
}

static void no_scale(ats_rng *rng, int seed)
{
    (void)rng, (void)seed;
    h.problem.contract.scale = 1;
}

/* As the contract's own temperature, as a larger scale, or inside the queries. */
static void cold(ats_rng *rng, int seed)
{
    const double tau = 0.08 + 0.1 * ats_rng_unit(rng);
    if (seed % 3 == 0) h.problem.contract.temperature = tau;
    if (seed % 3 == 1) h.problem.contract.scale = 0.5;
    if (seed % 3 == 1) lengthen_query(2 / (tau * sqrt((double)h.d)));
    if (seed % 3 == 2) lengthen_query(1 / tau);
}

static void narrow(ats_rng *rng, int seed)
{
    (void)seed;
    h.problem.contract.window = 2 + ats_rng_below(rng, 6);
}

static void sunk(ats_rng *rng, int seed)
{
    h.sink = (float)(log((double)h.n) + 2 + 3 * ats_rng_unit(rng));
    if (seed % 2 == 0)
        h.problem.sink = &h.sink;
    else
        set_key(0, 0.95, 1.6);
}

typedef void (*maker)(ats_rng *rng, int seed);

static void aligned_and_long(ats_rng *rng, int seed)
{
    aligned(rng, seed);
    long_key(rng, seed);
}

static void cold_and_aligned(ats_rng *rng, int seed)
{
    set_key(any_row(rng), 0.99, 1);
    cold(rng, seed);
}

static void sunk_and_aligned(ats_rng *rng, int seed)
{
    set_key(any_row(rng), 0.98, 1);
    lengthen_query(1.4);
    h.sink = (float)(1.4 * sqrt((double)h.d));
    h.problem.sink = &h.sink;
    (void)seed;
}

static void unscaled_and_long(ats_rng *rng, int seed)
{
    long_key(rng, seed);
    no_scale(rng, seed);
}

static ats_diagnosis diagnose(int seed)
{
    ats_arena arena = {.blocks = NULL};
    ats_diagnosis out;
    ats_err err = {.code = ATS_OK};
    char name[16];
    snprintf(name, sizeof name, "head %d", seed);
    const ats_diagnose_draw draw = {.seed = 1, .name = name};
    assert_ok(ats_diagnose_row(&h.problem, 0, NULL, &draw, &arena, &out, &err), &err);
    ats_arena_fini(&arena);
    return out;
}

/* Heads of width 128 alone where mixed: there an aligned key is as sharp as the other causes are. */
static void expect(maker make, ats_cause label)
{
    int right = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        ats_rng rng = plain_head(label == ATS_CAUSE_MIXED ? 4 * seed + 3 : seed);
        make(&rng, seed);
        const ats_diagnosis d = diagnose(seed);
        right += d.label == label;
        if (d.label != label)
            print_message("seed %d: %s; alignment %.2f norm %.2f scale %.2f temperature %.2f "
                          "mask %.2f, H %.2f of %.2f, weight %.2f\n",
                          seed, ats_cause_name(d.label), d.share[0], d.share[1], d.share[2],
                          d.share[3], d.share[4], d.entropy, d.entropy_limit, d.max_weight);
    }
    print_message("%s: %d of %d\n", ats_cause_name(label), right, SEEDS);
    assert_true(right * 100 >= 95 * SEEDS);
}

static void nothing(ats_rng *rng, int seed) { (void)rng, (void)seed; }

static void aligned_content_is_named(void **s) { (void)s, expect(aligned, ATS_CAUSE_ALIGNMENT); }
static void a_long_key_is_named(void **s) { (void)s, expect(long_key, ATS_CAUSE_NORM); }
static void a_missing_scale_is_named(void **s) { (void)s, expect(no_scale, ATS_CAUSE_SCALE); }
static void a_low_temperature_is_named(void **s) { (void)s, expect(cold, ATS_CAUSE_TEMPERATURE); }
static void a_mask_is_named(void **s) { (void)s, expect(narrow, ATS_CAUSE_MASK_OR_SINK); }
static void a_sink_is_named(void **s) { (void)s, expect(sunk, ATS_CAUSE_MASK_OR_SINK); }
static void a_plain_head_is_diffuse(void **s) { (void)s, expect(nothing, ATS_CAUSE_DIFFUSE); }

static void mixtures_say_mixed(void **state)
{
    (void)state;
    expect(aligned_and_long, ATS_CAUSE_MIXED);
    expect(cold_and_aligned, ATS_CAUSE_MIXED);
    expect(sunk_and_aligned, ATS_CAUSE_MIXED);
    expect(unscaled_and_long, ATS_CAUSE_MIXED);
}

static double entropy_of(const double *z, int64_t n)
{
    double most = -INFINITY, sum = 0, entropy = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, z[i]);
    for (int64_t i = 0; i < n; i++) sum += exp(z[i] - most);
    for (int64_t i = 0; i < n; i++) {
        const double w = exp(z[i] - most) / sum;
        if (w > 0) entropy -= w * log(w);
    }
    return entropy;
}

/* Base and responses from their definitions, in a loop that shares nothing with the product. */
static void responses_are_plain_softmaxes(void **state)
{
    (void)state;
    static double z[5][MOST];
    for (int seed = 0; seed < 12; seed++) {
        ats_rng rng = plain_head(seed);
        long_key(&rng, seed);
        h.problem.contract.window = seed % 2 ? 100 : 0;
        h.problem.contract.softcap = seed % 3 == 0 ? 6 : 0;
        const double cap = h.problem.contract.softcap, q = norm_of(h.q);
        const int64_t first = seed % 2 ? h.n - 100 : 0;
        double rms = 0;
        for (int64_t i = first; i < h.n; i++) rms += pow(norm_of(h.k + i * h.d), 2);
        rms = sqrt(rms / (double)(h.n - first));
        for (int64_t i = first; i < h.n; i++) {
            double dot = 0;
            for (int64_t j = 0; j < h.d; j++) dot += (double)h.q[j] * (double)h.k[i * h.d + j];
            const double norm = norm_of(h.k + i * h.d), x = dot / sqrt((double)h.d);
            const double kinds[5] = {x, x / norm / q, x / norm * rms, x, dot};
            for (int c = 0; c < 5; c++) {
                z[c][i - first] = cap > 0 ? cap * tanh(kinds[c] / cap) : kinds[c];
                if (c == 3) z[c][i - first] /= 4;
            }
        }
        const ats_diagnosis d = diagnose(seed);
        const double got[5] = {d.entropy, d.unit, d.equal_norm, d.tau4, d.unscaled};
        for (int c = 0; c < 5; c++) assert_near(got[c], entropy_of(z[c], h.n - first), 1e-6);
        assert_int_equal(d.legal_keys, h.n - first);
    }
}

/* The shares of the five causes add up to what all of them together explain. */
static void shares_are_bounded_by_the_entropy_there_is(void **state)
{
    (void)state;
    for (int seed = 0; seed < 20; seed++) {
        ats_rng rng = plain_head(seed);
        cold_and_aligned(&rng, seed);
        const ats_diagnosis d = diagnose(seed);
        assert_true(d.explained >= d.entropy_limit - d.entropy - 3);
        assert_true(d.explained <= d.entropy_limit - d.entropy + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aligned_content_is_named),
        cmocka_unit_test(a_long_key_is_named),
        cmocka_unit_test(a_missing_scale_is_named),
        cmocka_unit_test(a_low_temperature_is_named),
        cmocka_unit_test(a_mask_is_named),
        cmocka_unit_test(a_sink_is_named),
        cmocka_unit_test(a_plain_head_is_diffuse),
        cmocka_unit_test(mixtures_say_mixed),
        cmocka_unit_test(responses_are_plain_softmaxes),
        cmocka_unit_test(shares_are_bounded_by_the_entropy_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

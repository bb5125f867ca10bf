/* States of key sets and their merge, against plain sums in long double. RC-10. */
#include "support/check.h"

#include <math.h>

#include "base/rng.h"
#include "kernels/state.h"

/* Logits in nats of a key set, summed directly about its own maximum. */
static ats_state direct(const double *z, int64_t n)
{
    ats_state s = ats_state_identity();
    long double l = 0, e = 0, s2 = 0;
    for (int64_t i = 0; i < n; i++)
        if (z[i] > s.m) s.m = z[i];
    for (int64_t i = 0; i < n; i++) {
        if (isinf(z[i])) continue;
        const long double p = expl((long double)z[i] - (long double)s.m);
        l += p;
        e += p * ((long double)z[i] - (long double)s.m);
        s2 += p * p;
        s.n += 1;
    }
    s.l = (double)l;
    s.e = (double)e;
    s.s2 = (double)s2;
    return s;
}

static void check_same(const ats_state *a, const ats_state *b)
{
    const double bar = 64 * 0x1p-52; /* some hundred terms of double sums */
    assert_near(a->m, b->m, 0);
    assert_near(a->l, b->l, bar * fabs(b->l));
    assert_near(a->e, b->e, bar * (fabs(b->e) + fabs(b->l)));
    assert_near(a->s2, b->s2, bar * fabs(b->s2));
    assert_near(a->n, b->n, 0);
}

static void merging_parts_is_the_whole(void **state)
{
    (void)state;
    ats_rng rng = ats_rng_stream(5, "", "", 0, 0, "state");
    for (int trial = 0; trial < 200; trial++) {
        double z[64];
        for (int i = 0; i < 64; i++)
            z[i] = ats_rng_unit(&rng) < 0.2 ? (double)-INFINITY
                                            : 300 * (ats_rng_unit(&rng) - 0.5) * (trial % 3);
        const int64_t cut = ats_rng_below(&rng, 65), other = cut + ats_rng_below(&rng, 65 - cut);
        const ats_state a = direct(z, cut), b = direct(z + cut, other - cut),
                        c = direct(z + other, 64 - other), whole = direct(z, 64);
        const ats_state ab = ats_state_merge(&a, &b), left = ats_state_merge(&ab, &c);
        const ats_state bc = ats_state_merge(&b, &c), right = ats_state_merge(&a, &bc);
        check_same(&left, &whole);
        check_same(&right, &whole);
    }
}

static void identity_changes_nothing(void **state)
{
    (void)state;
    const double z[3] = {1, -4, 2};
    const ats_state id = ats_state_identity(), a = direct(z, 3);
    const ats_state none = ats_state_merge(&id, &id), left = ats_state_merge(&id, &a),
                    right = ats_state_merge(&a, &id);
    check_same(&none, &id);
    check_same(&left, &a);
    check_same(&right, &a);
    assert_near(ats_state_lse(&id), (double)-INFINITY, 0);
    assert_near(ats_log_add((double)-INFINITY, (double)-INFINITY), (double)-INFINITY, 0);
    assert_near(ats_log_add(1000, (double)-INFINITY), 1000, 0);
}

/* RC-10b: three keys and one, all scores 0. */
static void unit_of_the_log_sum(void **state)
{
    (void)state;
    const double z[4] = {0, 0, 0, 0};
    const ats_state a = direct(z, 3), b = direct(z + 3, 1), both = ats_state_merge(&a, &b);
    assert_near(ats_state_lse(&a), log(3), 0x1p-50);
    assert_near(ats_state_lse(&both), log(4), 0x1p-50);
    const ats_state_factors f = ats_state_common(a.m, b.m);
    const float x[1] = {3 * 1.0f}, y[1] = {5.0f};
    float out[1];
    ats_state_merge_values(&f, 1, x, y, out);
    assert_near((double)out[0] / both.l, 2.0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merging_parts_is_the_whole),
        cmocka_unit_test(identity_changes_nothing),
        cmocka_unit_test(unit_of_the_log_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

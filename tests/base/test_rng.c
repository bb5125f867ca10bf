/* Random streams: named, independent, of the right distribution. */
#include "support/check.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

static ats_rng stream(const char *purpose)
{
    return ats_rng_stream(20261129, "s00", "near/overlay/count=4", 5, 0, purpose);
}

static void known_answer(void **state)
{
    /* Philox4x32-10 of counter 0 and key 0: the vector published with Random123. */
    (void)state;
    ats_rng rng = {.counter = 0};
    static const uint32_t words[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    for (int i = 0; i < 4; i++) assert_int_equal(ats_rng_u32(&rng), words[i]);
}

static void names_decide(void **state)
{
    (void)state;
    ats_rng a = stream("place"), b = stream("place"), c = stream("donor");
    ats_rng d = ats_rng_stream(20261129, "s00", "near/overlay/count=4", 5, 1, "place");
    ats_rng e = ats_rng_stream(20261129, "s0", "0near/overlay/count=4", 5, 0, "place");
    int equal_c = 0, equal_d = 0, equal_e = 0;
    for (int i = 0; i < 1000; i++) {
        const uint32_t x = ats_rng_u32(&a);
        assert_int_equal(x, ats_rng_u32(&b));
        equal_c += x == ats_rng_u32(&c);
        equal_d += x == ats_rng_u32(&d);
        equal_e += x == ats_rng_u32(&e);
    }
    assert_true(equal_c + equal_d + equal_e < 3);
}

static void moments(void **state)
{
    (void)state;
    ats_rng rng = stream("moments");
    const int n = 200000;
    double sum = 0, square = 0, fourth = 0, unit = 0;
    for (int i = 0; i < n; i++) {
        const double z = ats_rng_normal(&rng), u = ats_rng_unit(&rng);
        assert_true(u >= 0 && u < 1);
        sum += z;
        square += z * z;
        fourth += z * z * z * z;
        unit += u;
    }
    const double six_sigma = 6 / sqrt(n);
    assert_near(sum / n, 0, six_sigma);
    assert_near(square / n, 1, six_sigma * sqrt(2));
    assert_near(fourth / n, 3, six_sigma * sqrt(96));
    assert_near(unit / n, 0.5, six_sigma * sqrt(1.0 / 12));
}

static void many_normals_are_the_single_ones(void **state)
{
    (void)state;
    for (int words = 0; words < 5; words++) { /* from every place in a block */
        ats_rng a = stream("normals"), b = stream("normals");
        double many[37];
        for (int i = 0; i < words; i++) assert_int_equal(ats_rng_u32(&a), ats_rng_u32(&b));
        ats_rng_normals(&a, 37, many);
        for (int i = 0; i < 37; i++) {
            const double one = ats_rng_normal(&b);
            assert_memory_equal(&many[i], &one, sizeof one);
        }
        assert_int_equal(ats_rng_u32(&a), ats_rng_u32(&b));
    }
}

static void choice_is_a_permutation(void **state)
{
    (void)state;
    ats_rng rng = stream("choose");
    int64_t index[100], count[100] = {0};
    for (int i = 0; i < 100; i++) index[i] = i;
    ats_rng_choose(&rng, index, 100, 40);
    for (int i = 0; i < 100; i++) count[index[i]]++;
    for (int i = 0; i < 100; i++) assert_int_equal(count[i], 1);
    int64_t seen[7] = {0};
    for (int i = 0; i < 70000; i++) seen[ats_rng_below(&rng, 7)]++;
    for (int i = 0; i < 7; i++) assert_near((double)seen[i], 10000, 6 * sqrt(10000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answer),
        cmocka_unit_test(names_decide),
        cmocka_unit_test(moments),
        cmocka_unit_test(many_normals_are_the_single_ones),
        cmocka_unit_test(choice_is_a_permutation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

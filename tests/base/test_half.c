/* 16-bit floats: every bit pattern, and rounding to nearest even. RC-19. */
#include "support/check.h"

#include <math.h>
#include <string.h>

#include "base/half.h"

static void every_word_round_trips(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        const uint16_t word = (uint16_t)bits;
        const float b = ats_bf16_to_f32(word), h = ats_f16_to_f32(word);
        if (isnan(b))
            assert_true(isnan(ats_bf16_to_f32(ats_f32_to_bf16(b))));
        else
            assert_int_equal(ats_f32_to_bf16(b), word);
        if (isnan(h))
            assert_true(isnan(ats_f16_to_f32(ats_f32_to_f16(h))));
        else
            assert_int_equal(ats_f32_to_f16(h), word);
    }
}

static void bfloat16_patterns(void **state)
{
    (void)state;
    static const struct {
        uint16_t bits;
        double value;
    } rows[] = {{0x3f80, 1.0},
                {0x4049, 3.140625},
                {0xc2f7, -123.5},
                {0x0001, 9.183549615799121e-41},
                {0x7f7f, 3.3895313892515355e38},
                {0x7f80, INFINITY},
                {0xff80, -INFINITY},
                {0x8000, -0.0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_near((double)ats_bf16_to_f32(rows[i].bits), rows[i].value, 0);
    assert_true(isnan(ats_bf16_to_f32(0x7fc0)));
    assert_true(signbit(ats_bf16_to_f32(0x8000)));
}

static void bfloat16_rounds_to_even(void **state)
{
    (void)state;
    static const struct {
        float in;
        double out;
    } rows[] = {{1.00390625f, 1.0}, {1.01171875f, 1.015625}, {257.0f, 256.0}, {0.1f, 0.10009765625}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_near((double)ats_bf16_to_f32(ats_f32_to_bf16(rows[i].in)), rows[i].out, 0);
    assert_true(isinf(ats_bf16_to_f32(ats_f32_to_bf16(3.4e38f))));
}

/* The nearest binary16 by search over neighbours, ties to the even word. */
static uint16_t nearest_f16(float x)
{
    uint16_t best = 0;
    double least = INFINITY;
    for (uint32_t bits = 0; bits < 0x7c00; bits++) {
        const double distance = fabs((double)ats_f16_to_f32((uint16_t)bits) - (double)fabsf(x));
        if (distance < least || (distance == least && bits % 2 == 0)) {
            least = distance;
            best = (uint16_t)bits;
        }
    }
    return (uint16_t)(best | (signbit(x) ? 0x8000 : 0));
}

static void float16_rounds_to_even(void **state)
{
    (void)state;
    static const float values[] = {1.0f,    1.00048828125f, 1.00146484375f, 6.1e-5f, 6.09e-5f,
                                   5.96e-8f, 2.98e-8f,      2.9e-8f,        65504.f, -0.33333f,
                                   1e-7f,   3.1415926f,     -2049.f,        2051.f,  1e-10f};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        assert_int_equal(ats_f32_to_f16(values[i]), nearest_f16(values[i]));
    assert_int_equal(ats_f32_to_f16(65519.0f), 0x7bff);
    assert_int_equal(ats_f32_to_f16(65520.0f), 0x7c00);
}

static void names_and_rows(void **state)
{
    (void)state;
    ats_dtype dtype;
    assert_true(ats_dtype_parse("bfloat16", &dtype) && dtype == ATS_BF16);
    assert_true(ats_dtype_parse("F16", &dtype) && dtype == ATS_F16);
    assert_false(ats_dtype_parse("float8", &dtype));
    const float in[5] = {1, -2, 3.5f, 0.25f, 1024};
    uint16_t words[8];
    float out[5];
    for (int t = ATS_F16; t <= ATS_BF16; t++) {
        ats_narrow((ats_dtype)t, in, 5, words, 3);
        ats_widen((ats_dtype)t, words, 3, 5, out);
        assert_memory_equal(in, out, sizeof in);
        assert_near((double)ats_load((ats_dtype)t, words, 4), -2.0, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_word_round_trips),  cmocka_unit_test(bfloat16_patterns),
        cmocka_unit_test(bfloat16_rounds_to_even), cmocka_unit_test(float16_rounds_to_even),
        cmocka_unit_test(names_and_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

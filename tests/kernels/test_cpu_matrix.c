/* Matrix units through tiles in plain C (tile/kernels/cpu_tile.h), which are held against numbers
 * worked out by hand and against a fused multiply-add; products of keys and values against sums in
 * double; and the level that uses them. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/rng.h"
#include "kernels/backend.h"
#include "kernels/cpu_matrix.h"
#include "kernels/cpu_ops.h"
#include "kernels/cpu_tile.h"

enum { MOST_KEYS = 256, MOST_LANES = 64, MOST_WIDTH = 256 };

static const ats_cpu_matrix *const matrix = &ats_cpu_matrix_amx;
static uint16_t words[MOST_KEYS * MOST_WIDTH], room[MOST_KEYS * MOST_LANES * ATS_MATRIX_TERMS];
static uint16_t packed[MOST_KEYS * MOST_WIDTH * ATS_MATRIX_TERMS];
static float fp32[MOST_KEYS * MOST_WIDTH], out[MOST_KEYS * MOST_WIDTH + 64];

static float uniform(ats_rng *rng) { return (float)(2 * ats_rng_unit(rng) - 1); }

static void fill_words(ats_rng *rng, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        words[i] = ats_f32_to_bf16(uniform(rng) * ldexpf(1, (int)ats_rng_below(rng, 8) - 4));
}

/* As it is written: even and odd words apart, each step a fused multiply-add. */
static float dot_by_hand(float c, const uint16_t *a, const uint16_t *b, int column)
{
    float sums[2] = {0, 0};
    for (int k = 0; k < 16; k++)
        for (int odd = 0; odd < 2; odd++)
            sums[odd] = fmaf(ats_bf16_to_f32(a[2 * k + odd]),
                             ats_bf16_to_f32(b[k * 32 + 2 * column + odd]), sums[odd]);
    return c + (sums[0] + sums[1]);
}

static void tiles_do_as_the_manual_says(void **state)
{
    (void)state;
    uint16_t a[16 * 32], b[16 * 32];
    float c[16 * 16], got[16 * 16];
    ats_rng rng = ats_rng_stream(1, "", "", 0, 0, "tile");
    for (int round = 0; round < 50; round++) {
        fill_words(&rng, 2 * 16 * 32);
        memcpy(a, words, sizeof a);
        memcpy(b, words + 16 * 32, sizeof b);
        for (int i = 0; i < 256; i++) c[i] = uniform(&rng);
        tile_begin();
        TILE_LOAD(0, c, 64);
        TILE_LOAD(4, a, 64);
        TILE_LOAD(6, b, 64);
        TILE_DOT(0, 4, 6);
        TILE_STORE(0, got, 64);
        tile_end();
        for (int i = 0; i < 256; i++)
            assert_true(got[i] == dot_by_hand(c[i], a + i / 16 * 32, b, i % 16));
    }
    /* Subnormal words and results are 0: 2^-127 is no normal number, 2^-100 2^-50 gives none. */
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    a[0] = 0x0040, b[0] = 0x7f00;            /* 2^-127, 2^127 */
    a[32] = (127 - 100) << 7, b[0] = 0x7f00; /* 2^-100 in the second row */
    b[2] = (127 - 50) << 7;                  /* 2^-50 in the second column */
    tile_begin();
    TILE_ZERO(1);
    TILE_LOAD(4, a, 64);
    TILE_LOAD(6, b, 64);
    TILE_DOT(1, 4, 6);
    TILE_STORE(1, got, 64);
    tile_end();
    assert_true(got[0] == 0 && got[1] == 0);
    assert_true(got[16] == 0x1p27f && got[17] == 0);
}

/* Small integers: an index that is wrong anywhere changes an exact number. */
static void products_are_exact(void **state)
{
    (void)state;
    static const int64_t KEYS[] = {1, 2, 15, 16, 17, 31, 33, 64, 100, 256};
    static const int64_t WIDTHS[] = {1, 5, 16, 31, 32, 48, 64, 80, 128};
    ats_rng rng = ats_rng_stream(2, "", "", 0, 0, "tile");
    for (int i = 0; i < 10 * 9; i++) {
        const int64_t keys = KEYS[i % 10], d = WIDTHS[i / 10], lanes = 16 * (1 + i % 4);
        for (int64_t j = 0; j < keys * d; j++)
            words[j] = ats_f32_to_bf16((float)(ats_rng_below(&rng, 17) - 8));
        for (int64_t j = 0; j < d * lanes; j++)
            fp32[j] = (float)(ats_rng_below(&rng, 2049) - 1024); /* 11 bits: two terms */
        const int terms = matrix->pack_queries(lanes, d, fp32, packed);
        memset(out, 0xff, sizeof out);
        matrix->dot(keys, lanes, d, words, packed, terms, 0.5f, room, out);
        for (int64_t key = 0; key < keys; key++)
            for (int64_t lane = 0; lane < lanes; lane++) {
                double sum = 0;
                for (int64_t j = 0; j < d; j++)
                    sum += (double)ats_bf16_to_f32(words[key * d + j]) *
                           (double)fp32[j * lanes + lane];
                assert_true((double)out[key * lanes + lane] == 0.5 * sum);
            }
        for (int64_t j = 0; j < 64; j++) assert_true(isnan(out[keys * lanes + j]));
    }
}

static void value_sums_are_exact(void **state)
{
    (void)state;
    static const int64_t ROWS[] = {1, 9, 16, 17, 31, 32, 33, 50, 64};
    ats_rng rng = ats_rng_stream(3, "", "", 0, 0, "tile");
    for (int i = 0; i < 9 * 7; i++) {
        const int64_t rows = ROWS[i % 9], lanes = (rows + 15) / 16 * 16;
        const int64_t keys = (int64_t[]){1, 2, 31, 32, 64, 77, 256}[i / 9],
                      width = 16 * (1 + i % 8);
        for (int64_t j = 0; j < keys * width; j++)
            words[j] = ats_f32_to_bf16((float)(ats_rng_below(&rng, 17) - 8));
        for (int64_t j = 0; j < keys * lanes; j++)
            fp32[j] = (float)ats_rng_below(&rng, 2049) / 2048;
        matrix->pack_values(keys, width, words, packed);
        memset(out, 0xff, sizeof out);
        matrix->mix(keys, rows, lanes, width, fp32, packed, room, out);
        for (int64_t row = 0; row < rows; row++)
            for (int64_t j = 0; j < width; j++) {
                double sum = 0;
                for (int64_t key = 0; key < keys; key++)
                    sum += (double)fp32[key * lanes + row] *
                           (double)ats_bf16_to_f32(words[key * width + j]);
                assert_true((double)out[row * width + j] == sum);
            }
        for (int64_t j = 0; j < 64; j++) assert_true(isnan(out[rows * width + j]));
    }
}

/* What two terms leave of an fp32 operand: at most 2^-17 of each product, and the rounding of fp32
 * sums; one term alone would leave a hundred times as much. */
static void two_terms_leave_little(void **state)
{
    (void)state;
    enum { KEYS = 64, LANES = 64, D = 128 };
    double worst[3] = {0, 0, 0};
    ats_rng rng = ats_rng_stream(4, "", "", 0, 0, "tile");
    fill_words(&rng, KEYS * D);
    for (int64_t j = 0; j < D * LANES; j++) fp32[j] = uniform(&rng);
    assert_int_equal(matrix->pack_queries(LANES, D, fp32, packed), 2);
    for (int terms = 1; terms <= 2; terms++) {
        matrix->dot(KEYS, LANES, D, words, packed, terms, 1, room, out);
        for (int64_t i = 0; i < KEYS * LANES; i++) {
            double sum = 0, size = 0;
            for (int64_t j = 0; j < D; j++) {
                const double x = (double)ats_bf16_to_f32(words[i / LANES * D + j]) *
                                 (double)fp32[j * LANES + i % LANES];
                sum += x;
                size += fabs(x);
            }
            worst[terms] = fmax(worst[terms], fabs((double)out[i] - sum) / size);
        }
    }
    print_message("of the sum of magnitudes: one term %.1e, two terms %.1e\n", worst[1], worst[2]);
    assert_true(worst[2] <= 0x1p-17 + 32 * 0x1p-24);
    assert_true(worst[1] > 50 * worst[2]);
}

/* Queries that are bfloat16 numbers need one term; the largest floats stay finite, NaN stays NaN.
 */
static void terms_are_counted_and_finite(void **state)
{
    (void)state;
    const float cases[] = {3.4028234e38f, -3.4028234e38f, 1e-40f, NAN};
    ats_rng rng = ats_rng_stream(5, "", "", 0, 0, "tile");
    fill_words(&rng, 32 * 16);
    for (int j = 0; j < 32 * 16; j++) fp32[j] = ats_bf16_to_f32(words[j]);
    assert_int_equal(matrix->pack_queries(16, 32, fp32, packed), 1);
    for (int j = 0; j < 32; j++) words[j] = ats_f32_to_bf16(j == 7 ? 2.0f : 0.0f);
    matrix->dot(1, 16, 32, words, packed, 1, 1, room, out);
    for (int lane = 0; lane < 16; lane++) assert_true(out[lane] == 2 * fp32[7 * 16 + lane]);
    memset(words, 0, sizeof words);
    words[0] = ats_f32_to_bf16(0.5f);
    for (int i = 0; i < 4; i++) {
        memset(fp32, 0, sizeof fp32);
        fp32[0] = cases[i];
        const int terms = matrix->pack_queries(16, 1, fp32, packed);
        matrix->dot(1, 16, 1, words, packed, terms, 1, room, out);
        if (isnan(cases[i]))
            assert_true(isnan(out[0]));
        else
            assert_true(fabs((double)out[0] - 0.5 * (double)cases[i]) <=
                        0x1p-16 * fabs(0.5 * (double)cases[i]) + 1e-37);
    }
}

static void level_names_itself(void **state)
{
    (void)state;
    const ats_cpu_ops *ops = NULL;
    const ats_backend *cpu = NULL;
    ats_err err = {.code = ATS_OK};
    assert_int_equal(setenv("ATTNSTRESS_CPU", "amx", 1), 0);
    assert_ok(ats_cpu_ops_find(&ops, &err), &err);
    assert_string_equal(ops->name, "amx");
    assert_ptr_equal(ops->matrix, matrix);
    assert_null(ats_cpu_matrix_missing());
    assert_ok(ats_backend_find("cpu", &cpu, &err), &err);
    assert_string_equal(cpu->detail(), "amx");
    assert_int_equal(setenv("ATTNSTRESS_CPU", "portable", 1), 0);
    assert_ok(ats_cpu_ops_find(&ops, &err), &err);
    assert_null(ops->matrix);
    assert_int_equal(unsetenv("ATTNSTRESS_CPU"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_do_as_the_manual_says),  cmocka_unit_test(products_are_exact),
        cmocka_unit_test(value_sums_are_exact),         cmocka_unit_test(two_terms_leave_little),
        cmocka_unit_test(terms_are_counted_and_finite), cmocka_unit_test(level_names_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

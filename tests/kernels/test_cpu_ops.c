/* The vector kernels of every instruction set that the machine has, against plain loops in double;
 * small integers where any wrong index must change an exact number. And the choice of the set. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/cpu_ops.h"

static const char *const LEVELS[] = {"portable", "avx2", "avx512", "avx512_bf16"};
enum { N_LEVELS = 4, MOST = 1 << 16 };

static float a[MOST], b[MOST], c[MOST];

/* NULL: the machine lacks it. */
static const ats_cpu_ops *level(int i)
{
    const ats_cpu_ops *ops = NULL;
    assert_int_equal(setenv("ATTNSTRESS_CPU", LEVELS[i], 1), 0);
    const ats_code rc = ats_cpu_ops_find(&ops, NULL);
    assert_int_equal(unsetenv("ATTNSTRESS_CPU"), 0);
    if (rc != ATS_OK) return NULL;
    assert_string_equal(ops->name, LEVELS[i]);
    return ops;
}

static void fill(uint64_t seed, float *x, int64_t count, int64_t span)
{
    ats_rng rng = ats_rng_stream(seed, "", "", 0, 0, "ops");
    for (int64_t i = 0; i < count; i++) x[i] = (float)(ats_rng_below(&rng, 2 * span + 1) - span);
}

static void unknown_levels_are_refused(void **state)
{
    (void)state;
    const ats_cpu_ops *ops = NULL;
    ats_err err = {.code = ATS_OK};
    assert_int_equal(setenv("ATTNSTRESS_CPU", "quantum", 1), 0);
    assert_int_equal(ats_cpu_ops_find(&ops, &err), ATS_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "\"quantum\""));
    assert_non_null(strstr(err.text, "portable, avx2, avx512, avx512_bf16 or amx"));
    assert_int_equal(setenv("ATTNSTRESS_CPU", "", 1), 0);
    assert_ok(ats_cpu_ops_find(&ops, &err), &err);
    assert_int_equal(unsetenv("ATTNSTRESS_CPU"), 0);
    assert_non_null(level(0));
}

static void products_are_exact(void **state)
{
    (void)state;
    static const int64_t ROWS[] = {1, 2, 3, 5, 6, 8, 12, 16, 17, 31, 64, 128};
    static const int64_t COLUMNS[] = {16, 32, 48, 64, 80, 128};
    fill(1, a, MOST, 3);
    fill(2, b, MOST, 3);
    for (int l = 0; l < N_LEVELS; l++) {
        const ats_cpu_ops *ops = level(l);
        for (int i = 0; ops != NULL && i < 12 * 6; i++) {
            const int64_t m = ROWS[i % 12], n = COLUMNS[i / 12], k = 1 + i % 40;
            for (int turned = 0; turned < 2; turned++) {
                const int64_t row = turned ? 1 : k, step = turned ? m : 1;
                ops->gemm(m, n, k, a, row, step, b, n, c, n);
                for (int64_t r = 0; r < m; r++)
                    for (int64_t j = 0; j < n; j++) {
                        double sum = 0;
                        for (int64_t t = 0; t < k; t++)
                            sum += (double)a[r * row + t * step] * (double)b[t * n + j];
                        assert_true((double)c[r * n + j] == sum);
                    }
            }
        }
    }
}

/* 0 to 5 terms, counts that fill no vector, and strips of 8 vectors and the rest. */
static void combinations_are_exact(void **state)
{
    (void)state;
    const float *terms[5] = {a, a + 300, a + 600, a + 900, a + 1200};
    fill(8, a, 1500, 9);
    fill(9, b, 5, 9);
    for (int l = 0; l < N_LEVELS; l++) {
        const ats_cpu_ops *ops = level(l);
        for (int i = 0; ops != NULL && i < 6 * 5; i++) {
            const int64_t n = i % 6, count = (int64_t[]){1, 7, 48, 128, 300}[i / 6];
            memset(c, 0xff, 301 * sizeof *c);
            ops->combine(count, n, b, terms, c);
            for (int64_t j = 0; j < count; j++) {
                double sum = 0;
                for (int64_t t = 0; t < n; t++) sum += (double)b[t] * (double)terms[t][j];
                assert_true((double)c[j] == sum);
            }
            assert_true(isnan(c[count]));
        }
    }
}

/* Keys of three types, 1 to 8 rows, counts that fill no vector. */
static void few_rows_are_exact(void **state)
{
    (void)state;
    static uint16_t words[MOST];
    static const ats_dtype TYPES[] = {ATS_F32, ATS_BF16, ATS_F16};
    enum { D = 48, FIRST = 3 };
    fill(3, a, MOST, 3);
    fill(4, b, ATS_CPU_FEW * D, 3);
    for (int l = 0; l < N_LEVELS; l++) {
        const ats_cpu_ops *ops = level(l);
        for (int i = 0; ops != NULL && i < 3 * 8 * 4; i++) {
            const ats_dtype type = TYPES[i % 3];
            const int64_t rows = 1 + i / 3 % 8, keys = (int64_t[]){1, 7, 40, 256}[i / 24];
            const void *k = a;
            if (type != ATS_F32) ats_narrow(type, a, (FIRST + keys) * D, words, 0);
            if (type != ATS_F32) k = words;
            const ats_cpu_ahead ahead = {(const char *)a, i % 2 == 0 ? (int64_t)sizeof a : 0};
            memset(c, 0xff, sizeof c);
            float q[ATS_CPU_FEW * D] = {0};
            memcpy(q, b, (size_t)(rows * D) * sizeof *q);
            if (!ops->dot(keys, rows, D, type, k, FIRST, q, c, &ahead)) {
                assert_true(l == 0 && rows > 4);
                continue;
            }
            for (int64_t key = 0; key < keys; key++)
                for (int64_t r = 0; r < ATS_CPU_FEW; r++) {
                    double sum = 0;
                    for (int64_t j = 0; j < D; j++)
                        sum += (double)a[(FIRST + key) * D + j] * (double)q[r * D + j];
                    assert_true((double)c[key * ATS_CPU_FEW + r] == sum);
                }
            float *o = c + 256 * ATS_CPU_FEW;
            assert_true(ops->mix(keys, rows, D, type, k, FIRST, c, o, &ahead));
            for (int64_t r = 0; r < rows; r++)
                for (int64_t j = 0; j < D; j++) {
                    double sum = 0;
                    for (int64_t key = 0; key < keys; key++)
                        sum += (double)c[key * ATS_CPU_FEW + r] * (double)a[(FIRST + key) * D + j];
                    assert_true((double)o[r * D + j] == sum);
                }
        }
    }
}

/* Queries that bfloat16 holds, any number of keys; others are not taken. */
static void pairs_are_exact(void **state)
{
    (void)state;
    static uint16_t words[MOST];
    static const int64_t WIDTHS[] = {4, 48, 64, 128};
    uint32_t packed[ATS_CPU_FEW * 64];
    fill(10, a, MOST, 100);
    fill(11, b, ATS_CPU_FEW * 128, 100);
    ats_narrow(ATS_BF16, a, MOST, words, 0);
    for (int l = 0; l < N_LEVELS; l++) {
        const ats_cpu_ops *ops = level(l);
        if (ops == NULL || ops->pack_pairs == NULL) continue;
        for (int i = 0; i < 4 * 6 * 8; i++) {
            const int64_t d = WIDTHS[i % 4], keys = (int64_t[]){1, 3, 4, 13, 31, 256}[i / 4 % 6];
            const int64_t first = 3, rows = 1 + i / 24;
            float q[ATS_CPU_FEW * 128] = {0};
            memcpy(q, b, (size_t)(rows * d) * sizeof *q);
            const ats_cpu_ahead ahead = {(const char *)a, i % 2 == 0 ? (int64_t)sizeof a : 0};
            assert_true(ops->pack_pairs(rows, d, q, packed));
            memset(c, 0xff, sizeof c);
            ops->dot_pairs(keys, rows, d, words, first, packed, 0.5f, c, &ahead);
            for (int64_t key = 0; key < keys; key++)
                for (int64_t r = 0; r < ATS_CPU_FEW; r++) {
                    double sum = 0;
                    for (int64_t j = 0; j < d; j++)
                        sum += (double)a[(first + key) * d + j] * (double)q[r * d + j];
                    assert_true((double)c[key * ATS_CPU_FEW + r] == 0.5 * sum);
                }
            assert_true(isnan(c[keys * ATS_CPU_FEW]));
        }
        assert_false(ops->pack_pairs(8, 6, b, packed));
        b[7] += 0x1p-8f;
        assert_false(ops->pack_pairs(8, 4, b, packed));
        b[7] -= 0x1p-8f;
    }
}

static void words_widen_exactly(void **state)
{
    (void)state;
    static uint16_t words[MOST];
    for (int i = 0; i < MOST; i++) words[i] = (uint16_t)i;
    for (int l = 0; l < N_LEVELS; l++) {
        const ats_cpu_ops *ops = level(l);
        for (int t = 0; ops != NULL && t < 2; t++) {
            const ats_dtype type = t == 0 ? ATS_BF16 : ATS_F16;
            ops->widen(type, words, 0, MOST, c);
            for (int i = 0; i < MOST; i++) {
                const float want = ats_load(type, words, i);
                assert_true(isnan(want) ? isnan(c[i]) : memcmp(&c[i], &want, sizeof want) == 0);
            }
        }
    }
}

static void exponentials_are_double(void **state)
{
    (void)state;
    enum { ROWS = 64 };
    double peak[ROWS], less[ROWS], out[ROWS];
    fill(5, a, ROWS, 600);
    for (int i = 0; i < ROWS; i++) {
        peak[i] = i % 7 == 6 ? -(double)INFINITY : 600.25;
        less[i] = 0.125 * i;
        if (i % 5 == 4) a[i] = -INFINITY;
    }
    for (int l = 0; l < N_LEVELS; l++) {
        const ats_cpu_ops *ops = level(l);
        if (ops == NULL) continue;
        for (int with = 0; with < 2; with++) {
            ops->exponentials(ROWS, a, peak, with ? less : NULL, out);
            for (int i = 0; i < ROWS; i++) {
                const double x = (double)a[i] - peak[i] - (with ? less[i] : 0);
                const bool none = i % 7 == 6 || i % 5 == 4 || x <= -700;
                const double want = none ? 0 : exp(x);
                assert_true(fabs(out[i] - want) <= 0x1p-50 * want);
            }
        }
    }
}

/* Places and counts, by plain loops. */
static void scans_find_everything(void **state)
{
    (void)state;
    enum { KEYS = 37, LANES = 32 };
    static uint16_t hits[2][KEYS * LANES];
    float bound[LANES], low[LANES], limit[LANES], count[LANES] = {0};
    fill(6, a, KEYS * LANES, 9);
    fill(7, b, KEYS, 2);
    for (int j = 0; j < LANES; j++) {
        limit[j] = (float)(j % 11) - 3;
        bound[j] = 100;
        low[j] = j < LANES / 2 ? -100 : 100; /* nothing to look for in some lanes */
    }
    for (int l = 0; l < N_LEVELS; l++) {
        const ats_cpu_ops *ops = level(l);
        if (ops == NULL) continue;
        const float *const thresholds[] = {limit, limit};
        uint16_t *const out[] = {hits[0], hits[1]};
        memset(count, 0, sizeof count);
        ops->count_above(KEYS, LANES, a, limit, count);
        for (int j = 0; j < LANES; j++) {
            int heavier = 0;
            for (int i = 0; i < KEYS; i++) heavier += a[i * LANES + j] > limit[j];
            assert_true(count[j] == (float)heavier);
        }
        for (int skips = 0; skips < 4; skips++) {
            const float *const bounds[] = {skips & 1 ? low : bound, skips & 2 ? low : bound};
            int64_t n[2];
            ops->above(KEYS, LANES, a, b, bounds, thresholds, out, n);
            for (int list = 0; list < 2; list++) {
                int64_t want = 0;
                for (int j = bounds[list] == low ? LANES / 2 : 0; j < LANES; j++)
                    for (int i = 0; i < KEYS; i++)
                        want += a[i * LANES + j] + (list ? b[i] : 0) > limit[j];
                assert_int_equal(n[list], want);
                for (int64_t i = 0; i < n[list]; i++) {
                    const int key = out[list][i] >> 8, lane = out[list][i] & 0xff;
                    assert_true(a[key * LANES + lane] + (list ? b[key] : 0) > limit[lane]);
                    for (int64_t k = 0; k < i; k++) assert_true(out[list][k] != out[list][i]);
                }
            }
        }
    }
}

/* Whole pairs of vectors, others, and the width of most heads; small integers: the same as words.
 */
static void norms_are_found(void **state)
{
    (void)state;
    enum { KEYS = 37, FIRST = 2, WIDEST = 128 };
    static const int64_t WIDTHS[] = {16, 32, 48, 64, WIDEST};
    static uint16_t words[2][(FIRST + KEYS) * WIDEST];
    static const ats_dtype TYPES[] = {ATS_F32, ATS_BF16, ATS_F16};
    float norm[KEYS], log_norm[KEYS];
    fill(6, a, (FIRST + KEYS) * WIDEST, 9);
    for (int t = 1; t < 3; t++) ats_narrow(TYPES[t], a, (FIRST + KEYS) * WIDEST, words[t - 1], 0);
    for (int l = 0; l < N_LEVELS; l++) {
        const ats_cpu_ops *ops = level(l);
        for (int i = 0; ops != NULL && i < 3 * 5; i++) {
            const int64_t width = WIDTHS[i / 3];
            const void *rows = i % 3 == 0 ? (const void *)a : words[i % 3 - 1];
            ops->norms(KEYS, width, TYPES[i % 3], rows, FIRST, norm, log_norm);
            for (int64_t key = 0; key < KEYS; key++) {
                double sum = 0;
                for (int64_t j = (FIRST + key) * width; j < (FIRST + key + 1) * width; j++)
                    sum += (double)a[j] * (double)a[j];
                assert_true(fabs((double)norm[key] - sqrt(sum)) <= 0x1p-22 * sqrt(sum));
                assert_true(fabs((double)log_norm[key] - 0.5 * log(sum)) <=
                            0x1p-21 * fabs(log(sum)));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_levels_are_refused),
        cmocka_unit_test(products_are_exact),
        cmocka_unit_test(combinations_are_exact),
        cmocka_unit_test(few_rows_are_exact),
        cmocka_unit_test(pairs_are_exact),
        cmocka_unit_test(words_widen_exactly),
        cmocka_unit_test(exponentials_are_double),
        cmocka_unit_test(scans_find_everything),
        cmocka_unit_test(norms_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

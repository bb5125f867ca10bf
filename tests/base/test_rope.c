/* Rotary moves. RC-11: numbers of both pair layouts; moving the key is rotating the query back. */
#include "support/check.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "base/rope.h"

static const double inv_freq[2] = {1.0, 0.01};
/* float storage of values of size 4, two products each */
static const double bar = 4 * 3 * 0x1p-24;

static double dot(const float *a, const float *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

static void published_numbers(void **state)
{
    (void)state;
    const float q0[4] = {1, 2, 3, 4}, k0[4] = {4, 3, 2, 1};
    static const struct {
        ats_rope_layout layout;
        double q[4], k[4], score;
    } rows[] = {
        {ATS_ROPE_INTERLEAVED,
         {-1.142639663748, 1.922075596544, 2.959850667913, 4.029799501669},
         {-4.383330010581, -2.405497457562, 1.969104567295, 1.059541034154},
         5.241506084395},
        {ATS_ROPE_HALF,
         {-1.984110648556, 1.959900667497, 2.462377902412, 4.019799668335},
         {-4.242210002522, 2.968654601044, -1.415504960961, 1.089536534356},
         7.564746318192},
    };
    for (int r = 0; r < 2; r++) {
        const ats_rope rope = {.layout = rows[r].layout, .pairs = 2, .inv_freq = inv_freq};
        float q[4], k[4];
        ats_rope_move(&rope, 1, 1, 4, q0, q);
        ats_rope_move(&rope, 3, 1, 4, k0, k);
        for (int i = 0; i < 4; i++) {
            assert_near((double)q[i], rows[r].q[i], bar);
            assert_near((double)k[i], rows[r].k[i], bar);
        }
        assert_near(0.5 * dot(q, k, 4), rows[r].score, 8 * bar);
    }
}

static void moving_a_key_is_rotating_the_query_back(void **state)
{
    (void)state;
    double freq[16];
    for (int i = 0; i < 16; i++) freq[i] = pow(10000.0, -i / 16.0);
    ats_rng rng = ats_rng_stream(1, "", "", 0, 0, "rope");
    for (int layout = ATS_ROPE_HALF; layout <= ATS_ROPE_INTERLEAVED; layout++) {
        const ats_rope rope = {.layout = (ats_rope_layout)layout, .pairs = 16, .inv_freq = freq};
        float rows[2][40], moved[40], turned[40], back[40];
        for (int i = 0; i < 80; i++) rows[i / 40][i % 40] = (float)ats_rng_normal(&rng);
        for (int64_t delta = -100003; delta <= 100003; delta += 66668) {
            ats_rope_move(&rope, delta, 1, 40, rows[1], moved);
            ats_rope_move(&rope, -delta, 1, 40, rows[0], turned);
            ats_rope_move(&rope, -delta, 1, 40, moved, back);
            const double size = sqrt(dot(rows[0], rows[0], 40) * dot(rows[1], rows[1], 40));
            assert_near(dot(rows[0], moved, 40), dot(turned, rows[1], 40), size * 0x1p-21);
            for (int i = 0; i < 40; i++) assert_near((double)back[i], (double)rows[1][i], 0x1p-20);
            assert_memory_equal(moved + 32, rows[1] + 32, 8 * sizeof(float));
        }
    }
}

static void nothing_moves_without_rope(void **state)
{
    (void)state;
    const ats_rope none = {.layout = ATS_ROPE_NONE};
    const float in[3] = {1, 2, 3};
    float out[3] = {0};
    ats_rope_move(&none, 17, 1, 3, in, out);
    assert_memory_equal(in, out, sizeof in);
}

/* A table of turns changes no bit, whatever it held before. */
static void remembered_turns_are_the_same(void **state)
{
    (void)state;
    enum { PAIRS = 70, D = 150, ROWS = 3 };
    double freq[2][PAIRS];
    float rows[ROWS * D], plain[ROWS * D], kept[ROWS * D];
    ats_turns turns = {.slots = 0};
    ats_rng rng = ats_rng_stream(2, "", "", 0, 0, "turns");
    for (int i = 0; i < 2 * PAIRS; i++)
        freq[i / PAIRS][i % PAIRS] = pow(i < PAIRS ? 1e4 : 1e6, -(i % PAIRS) / (double)PAIRS);
    for (int i = 0; i < ROWS * D; i++) rows[i] = (float)ats_rng_normal(&rng);
    for (int step = 0; step < 600; step++) {
        const ats_rope rope = {.layout = step / 9 % 2 ? ATS_ROPE_HALF : ATS_ROPE_INTERLEAVED,
                               .pairs = step / 100 % 3 ? PAIRS : PAIRS - 6,
                               .inv_freq = freq[step / 50 % 2]};
        const int64_t delta = (ats_rng_below(&rng, 40) - 20) * (step % 2 ? 1 : 8192);
        ats_rope_move(&rope, delta, ROWS, D, rows, plain);
        ats_turns_move(&turns, &rope, delta, ROWS, D, rows, kept);
        assert_memory_equal(plain, kept, sizeof kept);
    }
    ats_turns_fini(&turns);
    const ats_rope none = {.layout = ATS_ROPE_NONE};
    ats_turns_move(&turns, &none, 3, ROWS, D, rows, kept);
    assert_memory_equal(rows, kept, sizeof kept);
    ats_turns_fini(&turns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_numbers),
        cmocka_unit_test(moving_a_key_is_rotating_the_query_back),
        cmocka_unit_test(remembered_turns_are_the_same),
        cmocka_unit_test(nothing_moves_without_rope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rope.h"
#include "perturb/round.h"
#include "perturb/rows.h"

/* RC-11: both pairings of d = 4, base 10000, positions 1 and 3. */
static void rotary_pairing_gives_the_published_numbers(void **state)
{
    (void)state;
    const double inv_freq[2] = {1, 0.01};
    const float q[4] = {1, 2, 3, 4}, k[4] = {4, 3, 2, 1};
    static const double want_q[2][4] = {
        {-1.984110648556, 1.959900667497, 2.462377902412, 4.019799668335},
        {-1.142639663748, 1.922075596544, 2.959850667913, 4.029799501669}};
    static const double want_k[2][4] = {
        {-4.242210002522, 2.968654601044, -1.415504960961, 1.089536534356},
        {-4.383330010581, -2.405497457562, 1.969104567295, 1.059541034154}};
    static const double score[2] = {7.564746318192, 5.241506084395};
    for (int i = 0; i < 2; i++) {
        const ats_rope rope = {i == 0 ? ATS_ROPE_HALF : ATS_ROPE_INTERLEAVED, 2, inv_freq};
        float qr[4], kr[4];
        double product = 0;
        ats_rope_move(&rope, 1, 1, 4, q, qr);
        ats_rope_move(&rope, 3, 1, 4, k, kr);
        for (int j = 0; j < 4; j++) {
            assert_near((double)qr[j], want_q[i][j], 1e-6);
            assert_near((double)kr[j], want_k[i][j], 1e-6);
            product += (double)qr[j] * (double)kr[j];
        }
        assert_near(product / 2, score[i], 2e-6);
    }
}

/* Moving the key by delta and rotating the query by -delta are the same logit. */
static void a_moved_key_is_a_query_rotated_back(void **state)
{
    (void)state;
    const tiny *worlds[] = {&half, &interleaved};
    for (int w = 0; w < 2; w++)
        for (int64_t delta = -150; delta <= 150; delta += 75) {
            const ats_rope *rope = &worlds[w]->layer.contract.rope;
            float moved[D], back[D], k[D];
            double q[D], a = 0, b = 0, key[D];
            tiny_row(ATS_F32, worlds[w]->attention[0].q, 3, D, 0, 1, q);
            base_key(worlds[w], 0, 0, 77, key);
            for (int i = 0; i < D; i++) {
                k[i] = (float)key[i];
                back[i] = (float)q[i];
            }
            ats_rope_move(rope, delta, 1, D, k, moved);
            ats_rope_move(rope, -delta, 1, D, back, back);
            for (int i = 0; i < D; i++) {
                a += q[i] * (double)moved[i];
                b += (double)back[i] * (double)k[i];
            }
            assert_near(a, b, 1e-5);
        }
}

static void donor_rows_are_moved_real_rows(void **state)
{
    (void)state;
    const tiny *worlds[] = {&half, &interleaved, &bare};
    for (int w = 0; w < 3; w++)
        for (ats_position_mode mode = ATS_MODE_OVERLAY; mode <= ATS_MODE_SHIFT; mode++) {
            variant v;
            begin(&v, worlds[w], mode, "donor", 20);
            v.build.kv_head = 1;
            variant_build(&v);
            const ats_realised *r = &v.built.realised;
            const ats_side *side = &v.built.edit.side;
            for (int64_t j = 0; j < 20; j++) {
                double want[D], got[D], value[DV];
                const int64_t from = r->donor_row[j], sample = r->donor_sample[j];
                assert_true(sample >= 0 && sample < TINY_SAMPLES);
                assert_true(from >= 32);
                base_key(worlds[w], sample, 1, from, want);
                tiny_rotate(&worlds[w]->layer.contract.rope, (double)(side->position[j] - from),
                            want);
                side_row(side->k, D, j, got);
                assert_near_array(got, want, D, 2e-6);
                base_value(worlds[w], sample, 1, from, want);
                side_row(side->v, DV, j, value);
                assert_near_array(value, want, DV, 0);
            }
            variant_free(&v);
        }
}

static void donors_are_different_and_never_named_rows_of_the_sample(void **state)
{
    (void)state;
    variant v;
    begin(&v, &half, ATS_MODE_OVERLAY, "donor", 150);
    v.build.n_donors = 1;
    const ats_code rc = variant_try(&v);
    assert_int_equal(rc, ATS_E_SUITE);
    assert_says(v.err.text, "donor pool has 134");
    variant_free(&v);
    begin(&v, &half, ATS_MODE_OVERLAY, "donor", 134);
    v.build.n_donors = 1;
    variant_build(&v);
    uint8_t seen[200] = {0};
    for (int64_t j = 0; j < 134; j++) seen[v.built.realised.donor_row[j]]++;
    for (int64_t i = 0; i < 200; i++) {
        const bool named = (i >= 40 && i < 46) || (i >= 60 && i < 66) || (i >= 90 && i < 96) ||
                           (i >= 120 && i < 128) || i >= 192;
        assert_int_equal(seen[i], i >= 32 && !named);
    }
    variant_free(&v);
}

static void rows_with_garbage_are_no_donors(void **state)
{
    (void)state;
    float *k = half.attention[1].k, *v1 = half.attention[1].v;
    const float k_before = k[100 * D], v_before = v1[101 * DV];
    variant v;
    k[100 * D] = NAN;
    v1[101 * DV] = INFINITY;
    begin(&v, &half, ATS_MODE_OVERLAY, "donor", 166);
    v.donors[0] = v.donors[1];
    v.build.n_donors = 1;
    variant_build(&v);
    for (int64_t j = 0; j < 166; j++)
        assert_true(v.built.realised.donor_row[j] != 100 && v.built.realised.donor_row[j] != 101);
    variant_free(&v);
    k[100 * D] = k_before;
    v1[101 * DV] = v_before;
}

static void similar_keys_have_the_cosine_and_norm_asked_for(void **state)
{
    (void)state;
    const tiny *worlds[] = {&half, &interleaved, &bare};
    static const double cosines[] = {-1, -0.3, 0, 0.5, 0.95, 0.999, 1};
    for (int w = 0; w < 3; w++)
        for (int c = 0; c < 7; c++) {
            variant v;
            begin(&v, worlds[w], c % 2 == 0 ? ATS_MODE_OVERLAY : ATS_MODE_SHIFT, "similar", 9);
            variant_number(&v, "cosine", cosines[c]);
            variant_number(&v, "norm_ratio", 0.5 + c);
            if (c == 3) variant_word(&v, "basis", "isotropic");
            variant_build(&v);
            const ats_side *side = &v.built.edit.side;
            for (int64_t j = 0; j < 9; j++) {
                double target[D], got[D];
                base_key(worlds[w], 0, 0, 60 + j % 6, target);
                side_row(side->k, D, j, got);
                tiny_rotate(&worlds[w]->layer.contract.rope, (double)-(60 + j % 6), target);
                tiny_rotate(&worlds[w]->layer.contract.rope, (double)-side->position[j], got);
                assert_near(cosine(target, got, D), cosines[c], 1e-5);
                assert_near(norm(got, D) / norm(target, D), 0.5 + c, 1e-5);
            }
            assert_near(v.built.realised.cosine, cosines[c], 1e-5);
            assert_near(v.built.realised.norm_ratio, 0.5 + c, 1e-5);
            variant_free(&v);
        }
}

/* All keys of key head 0 are put into a plane of content space; the target stands outside it. */
static void the_orthogonal_part_lies_in_the_span_of_key_differences(void **state)
{
    (void)state;
    tiny_options o = tiny_defaults();
    o.layout = ATS_ROPE_NONE;
    tiny flat;
    tiny_make(&flat, &o);
    for (int s = 0; s < TINY_SAMPLES; s++) {
        float *k = flat.attention[s].k;
        for (int64_t i = 0; i < 200; i++)
            for (int64_t j = 2; j < D; j++) k[i * D + j] = (float)(j + 1);
    }
    variant v;
    begin(&v, &flat, ATS_MODE_OVERLAY, "similar", 8);
    variant_number(&v, "cosine", 0.6);
    variant_build(&v);
    for (int64_t j = 0; j < 8; j++) {
        const float *k = v.built.edit.side.k + j * D;
        /* Outside the plane of differences, k' is a multiple of (target, plane): ratio is one. */
        const double factor = (double)k[2] / 3;
        for (int64_t i = 2; i < D; i++) assert_near((double)k[i], factor * (double)(i + 1), 1e-4);
    }
    variant_free(&v);
    tiny_free(&flat);
}

static void payloads_are_what_they_say(void **state)
{
    (void)state;
    static const char *const payloads[] = {"same", "opposed", "zero", "orthogonal"};
    for (int p = 0; p < 4; p++) {
        variant v;
        begin(&v, &half, ATS_MODE_OVERLAY, "similar", 7);
        variant_number(&v, "cosine", 0.9);
        variant_word(&v, "payload", payloads[p]);
        variant_build(&v);
        for (int64_t j = 0; j < 7; j++) {
            double want[DV], got[DV];
            base_value(&half, 0, 0, 60 + j % 6, want);
            side_row(v.built.edit.side.v, DV, j, got);
            if (p == 3) {
                assert_near(cosine(want, got, DV), 0, 1e-6);
                assert_near(norm(got, DV), norm(want, DV), 1e-5);
                continue;
            }
            for (int i = 0; i < DV; i++) want[i] *= p == 0 ? 1 : (p == 1 ? -1 : 0);
            assert_near_array(got, want, DV, 0);
        }
        assert_int_equal(v.built.realised.donor_row != NULL, p == 3);
        variant_free(&v);
    }
}

static void exact_duplicates_are_the_same_bits(void **state)
{
    (void)state;
    variant v;
    variant_begin(&v, &half, "duplicates", ATS_MODE_OVERLAY);
    variant_number(&v, "copies", 3);
    variant_build(&v);
    const float *k = (const float *)half.attention[0].k + 60 * D;
    const float *value = (const float *)half.attention[0].v + 60 * DV;
    for (int64_t c = 0; c < 3; c++) {
        assert_memory_equal(v.built.edit.side.k + c * 6 * D, k, 6 * D * sizeof *k);
        assert_memory_equal(v.built.edit.side.v + c * 6 * DV, value, 6 * DV * sizeof *k);
    }
    assert_near(v.built.realised.cosine, 1, 1e-12);
    variant_free(&v);
}

static void stale_versions_have_the_similarity_and_payload_distance(void **state)
{
    (void)state;
    for (int interleave = 0; interleave < 2; interleave++) {
        variant v;
        variant_begin(&v, &half, "superseded", ATS_MODE_SHIFT);
        variant_number(&v, "versions", 3);
        variant_number(&v, "similarity", 0.8);
        variant_number(&v, "payload_distance", 0.7);
        if (interleave) variant_word(&v, "arrangement", "interleaved");
        variant_build(&v);
        for (int64_t j = 0; j < 18; j++) {
            const int64_t row = 60 + (interleave ? j / 3 : j % 6);
            double want[DV], got[DV], key[D], side[D];
            base_value(&half, 0, 0, row, want);
            side_row(v.built.edit.side.v, DV, j, got);
            assert_near(cosine(want, got, DV), 0.3, 1e-5);
            assert_near(norm(got, DV), norm(want, DV), 1e-5);
            base_key(&half, 0, 0, row, key);
            side_row(v.built.edit.side.k, D, j, side);
            tiny_rotate(&half.layer.contract.rope, (double)(v.built.edit.side.position[j] - row),
                        key);
            assert_near(cosine(key, side, D), 0.8, 1e-5);
        }
        variant_free(&v);
    }
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The norms of key head 0 of sample 0, ascending. */
static void sorted_norms(const tiny *t, bool values, double *out)
{
    for (int64_t i = 0; i < 200; i++) {
        double x[D];
        if (values)
            base_value(t, 0, 0, i, x);
        else
            base_key(t, 0, 0, i, x);
        out[i] = norm(x, values ? DV : D);
    }
    qsort(out, 200, sizeof *out, compare);
}

static void high_norm_keys_have_the_multiple_of_the_quantile(void **state)
{
    (void)state;
    static const char *const directions[] = {"keep", "orthogonal", "mean_key", "sink_like"};
    double keys[200], values[200];
    sorted_norms(&half, false, keys);
    sorted_norms(&half, true, values);
    const double q95 = keys[189] + 0.05 * (keys[190] - keys[189]);
    const double small = values[9] + 0.95 * (values[10] - values[9]);
    for (int dir = 0; dir < 4; dir++) {
        variant v;
        variant_begin(&v, &half, "high_norm", ATS_MODE_REPLACE);
        variant_word(&v, "direction", directions[dir]);
        variant_word(&v, "value", "small");
        variant_number(&v, "multiple", 4);
        variant_number(&v, "count", 3);
        variant_build(&v);
        for (int64_t j = 0; j < 3; j++) {
            const int64_t position = v.built.edit.side.position[j];
            double got[D], want[D], value[DV];
            side_row(v.built.edit.side.k, D, j, got);
            side_row(v.built.edit.side.v, DV, j, value);
            assert_near(norm(got, D), 4 * q95, 1e-4);
            assert_near(norm(value, DV), small, 1e-5);
            tiny_rotate(&half.layer.contract.rope, (double)-position, got);
            base_key(&half, 0, 0, dir == 0 ? position : (dir == 1 ? 60 + j : 0), want);
            tiny_rotate(&half.layer.contract.rope,
                        dir == 0 ? (double)-position : (dir == 1 ? (double)-(60 + j) : 0), want);
            if (dir != 2) assert_near(cosine(got, want, D), dir == 1 ? 0 : 1, 1e-5);
        }
        for (int64_t i = 0; dir == 0 && i < v.built.edit.n_segments; i++)
            assert_int_not_equal(v.built.edit.segments[i].kind, ATS_SEG_ROWS);
        variant_free(&v);
    }
}

static void values_of_two_spans_are_exchanged(void **state)
{
    (void)state;
    variant v;
    variant_begin(&v, &half, "payload_swap", ATS_MODE_NONE);
    variant_word(&v, "other", "current");
    variant_build(&v);
    const ats_edit *edit = &v.built.edit;
    assert_int_equal(edit->side.count, 14);
    for (int64_t j = 0; j < 14; j++) {
        double want[DV], got[DV];
        base_value(&half, 0, 0, j < 6 ? 120 + j : 60 + (j - 6) % 6, want);
        side_row(edit->side.v, DV, j, got);
        assert_near_array(got, want, DV, 0);
    }
    for (int64_t i = 0; i < edit->n_segments; i++)
        if (edit->segments[i].kind == ATS_SEG_SWAP)
            assert_true(edit->segments[i].swap_value && !edit->segments[i].swap_key);
    variant_free(&v);
    variant_begin(&v, &half, "payload_swap", ATS_MODE_NONE);
    variant_build(&v);
    assert_int_equal(v.built.edit.side.count, 6);
    assert_non_null(v.built.realised.donor_row);
    variant_free(&v);
}

static void replaced_keys_stay_at_their_place(void **state)
{
    (void)state;
    variant v;
    variant_begin(&v, &half, "key_replace", ATS_MODE_NONE);
    variant_word(&v, "source", "similar");
    variant_number(&v, "cosine", 0.25);
    variant_build(&v);
    assert_int_equal(v.built.edit.side.count, 6);
    assert_near(v.built.realised.cosine, 0.25, 1e-5);
    assert_near(v.built.dose, 0.25, 0);
    for (int64_t i = 0; i < v.built.edit.n_segments; i++)
        if (v.built.edit.segments[i].kind == ATS_SEG_SWAP)
            assert_true(v.built.edit.segments[i].swap_key && !v.built.edit.segments[i].swap_value);
    variant_free(&v);
}

static void fp8_rounding_is_nearest_even(void **state)
{
    (void)state;
    static const float in[] = {0, 1, 1.0625F, 1.1875F, 17, 19, 449, 1e9F, 0.001F, 0.0009F, -3.3F};
    static const double out[] = {0, 1, 1, 1.25, 16, 20, 448, 448, 0.001953125, 0, -3.25};
    for (int i = 0; i < 11; i++) assert_near((double)ats_round_e4m3(in[i]), out[i], 0);
    assert_true(isnan(ats_round_e4m3(NAN)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rotary_pairing_gives_the_published_numbers),
        cmocka_unit_test(a_moved_key_is_a_query_rotated_back),
        cmocka_unit_test(donor_rows_are_moved_real_rows),
        cmocka_unit_test(donors_are_different_and_never_named_rows_of_the_sample),
        cmocka_unit_test(rows_with_garbage_are_no_donors),
        cmocka_unit_test(similar_keys_have_the_cosine_and_norm_asked_for),
        cmocka_unit_test(the_orthogonal_part_lies_in_the_span_of_key_differences),
        cmocka_unit_test(payloads_are_what_they_say),
        cmocka_unit_test(exact_duplicates_are_the_same_bits),
        cmocka_unit_test(stale_versions_have_the_similarity_and_payload_distance),
        cmocka_unit_test(high_norm_keys_have_the_multiple_of_the_quantile),
        cmocka_unit_test(values_of_two_spans_are_exchanged),
        cmocka_unit_test(replaced_keys_stay_at_their_place),
        cmocka_unit_test(fp8_rounding_is_nearest_even),
    };
    return cmocka_run_group_tests(tests, rows_setup, rows_teardown);
}

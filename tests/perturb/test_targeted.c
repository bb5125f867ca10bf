/* Rows aimed at a margin over the target's best logit, and the logit that is recorded. */
#include <math.h>
#include <string.h>

#include "perturb/rows.h"

/* logit of one query head at one probe for a key, from the definition. */
static double logit_of(const tiny *t, const double *q, const double *k, double slope,
                       double distance)
{
    double x = t->layer.contract.scale * tiny_dot(q, k, D);
    if (t->layer.contract.softcap > 0)
        x = t->layer.contract.softcap * tanh(x / t->layer.contract.softcap);
    return x - slope * distance;
}

static void mean_query(const tiny *t, int64_t first, int64_t heads, int64_t delta, double *q,
                       double *slope)
{
    memset(q, 0, D * sizeof *q);
    *slope = 0;
    for (int64_t h = first; h < first + heads; h++) {
        double one[D];
        tiny_row(ATS_F32, t->attention[0].q, 3, D, h, 2, one);
        tiny_rotate(&t->layer.contract.rope, (double)delta, one);
        for (int i = 0; i < D; i++) q[i] += one[i] / (double)heads;
        if (t->layer.alibi_slope != NULL) *slope += (double)t->layer.alibi_slope[h] / (double)heads;
    }
}

/* Best logit of gold [60, 66) when its rows moved by delta. */
static double best_of_gold(const tiny *t, int64_t head, int64_t delta, const double *q,
                           double slope, double at)
{
    double best = -INFINITY;
    for (int64_t row = 60; row < 66; row++) {
        double k[D];
        base_key(t, 0, head, row, k);
        tiny_rotate(&t->layer.contract.rope, (double)delta, k);
        best = fmax(best, logit_of(t, q, k, slope, at - (double)(row + delta)));
    }
    return best;
}

static void targeted_rows_reach_the_margin_exactly(void **state)
{
    (void)state;
    const tiny *worlds[] = {&half, &interleaved, &bare, &capped};
    for (int w = 0; w < 4; w++)
        for (ats_position_mode mode = ATS_MODE_OVERLAY; mode <= ATS_MODE_SHIFT; mode++)
            for (double margin = -2; margin <= 2; margin += 2) {
                const tiny *t = worlds[w];
                const int64_t heads = t->layer.n_q_heads / t->layer.n_kv_heads;
                variant v;
                begin(&v, t, mode, "targeted", 4);
                variant_number(&v, "margin", margin);
                variant_word(&v, "placement", "before");
                v.build.kv_head = 1;
                variant_build(&v);
                const int64_t delta = v.built.edit.query_delta;
                double q[D], slope, k[D];
                mean_query(t, heads, heads, delta, q, &slope);
                const double at = (double)(199 + delta);
                const double best =
                    best_of_gold(t, 1, mode == ATS_MODE_SHIFT ? delta : 0, q, slope, at);
                for (int64_t j = 0; j < 4; j++) {
                    side_row(v.built.edit.side.k, D, j, k);
                    const double distance = at - (double)v.built.edit.side.position[j];
                    assert_near(logit_of(t, q, k, slope, distance) - best, margin, 1e-5);
                }
                variant_free(&v);
            }
}

/* With one query head a key and only the last probe, the recorded logit is the aimed one. */
static void the_recorded_logit_is_the_contracts_logit(void **state)
{
    (void)state;
    const int64_t last[] = {2};
    double q[D], slope;
    variant v;
    begin(&v, &interleaved, ATS_MODE_OVERLAY, "targeted", 5);
    variant_number(&v, "margin", 1.5);
    v.build.n_probes = 1;
    v.build.probes = last;
    variant_build(&v);
    mean_query(&interleaved, 0, 1, 0, q, &slope);
    assert_near(v.built.realised.logit, best_of_gold(&interleaved, 0, 0, q, 0, 199) + 1.5, 1e-5);
    variant_free(&v);
    double sum = 0;
    begin(&v, &capped, ATS_MODE_SHIFT, "donor", 3);
    variant_build(&v);
    for (int64_t h = 0; h < 2; h++)
        for (int64_t p = 0; p < 3; p++)
            for (int64_t j = 0; j < 3; j++) {
                double k[D];
                tiny_row(ATS_F32, capped.attention[0].q, 3, D, h, p, q);
                tiny_rotate(&capped.layer.contract.rope, 3, q);
                side_row(v.built.edit.side.k, D, j, k);
                sum += logit_of(&capped, q, k, (double)capped.layer.alibi_slope[h],
                                (double)(197 + p + 3 - v.built.edit.side.position[j]));
            }
    assert_near(v.built.realised.logit, sum / 18, 1e-5);
    variant_free(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targeted_rows_reach_the_margin_exactly),
        cmocka_unit_test(the_recorded_logit_is_the_contracts_logit),
    };
    return cmocka_run_group_tests(tests, rows_setup, rows_teardown);
}

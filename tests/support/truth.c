#include "support/truth.h"

#include <math.h>

#include "kernels/bars.h"
#include "kernels/reference.h"
#include "support/check.h"

static double norm_of(const float *x, int64_t d)
{
    double sum = 0;
    for (int64_t j = 0; j < d; j++) sum += (double)x[j] * (double)x[j];
    return sqrt(sum);
}

static double stored_norm(ats_dtype dtype, const void *x, int64_t row, int64_t d)
{
    double sum = 0;
    for (int64_t j = 0; j < d; j++) {
        const double element = (double)ats_load(dtype, x, row * d + j);
        sum += element * element;
    }
    return sqrt(sum);
}

/* |v| of every entry: from the side rows where inserted or swapped. */
static void fill_norms(const ats_problem *p, const ats_edit *edit, row_truth *truth)
{
    int64_t t = 0;
    const ats_segment all = {.kind = ATS_SEG_KEEP, .stop = p->n_keys};
    const int64_t count = edit != NULL ? edit->n_segments : 1;
    for (int64_t i = 0; i < count; i++) {
        const ats_segment *s = edit != NULL ? &edit->segments[i] : &all;
        const bool side = s->kind == ATS_SEG_ROWS || (s->kind == ATS_SEG_SWAP && s->swap_value);
        for (int64_t j = 0; j < s->stop - s->start; j++, t++)
            truth->norm[t] = side ? norm_of(edit->side.v + (s->row + j) * p->d_v, p->d_v)
                                  : stored_norm(p->v_dtype, p->v, s->start + j, p->d_v);
    }
}

static double largest_key(const ats_problem *p, const ats_edit *edit)
{
    double largest = 0;
    for (int64_t i = 0; i < p->n_keys; i++) {
        const double norm = stored_norm(p->k_dtype, p->k, i, p->d_qk);
        if (isfinite(norm) && norm > largest) largest = norm;
    }
    for (int64_t i = 0; edit != NULL && i < edit->side.count; i++)
        largest = fmax(largest, norm_of(edit->side.k + i * p->d_qk, p->d_qk));
    return largest;
}

static double largest_bias(const ats_problem *p, const ats_edit *edit, int64_t row,
                           const row_truth *truth, const int64_t *position)
{
    const int64_t q_pos = p->q_pos[row] + (edit != NULL ? edit->query_delta : 0);
    double largest = 0;
    for (int64_t t = 0; t < truth->length; t++) {
        if (!isfinite(truth->z[t])) continue;
        double bias = 0;
        if (p->alibi_slope != NULL)
            bias += fabs((double)p->alibi_slope[row] * (double)(q_pos - position[t]));
        if (p->bias != NULL && truth->key[t] >= 0)
            bias += fabs((double)p->bias[row][truth->key[t]]);
        largest = fmax(largest, bias);
    }
    return largest;
}

static void fill_moments(const ats_problem *p, int64_t row, double temperature, double lse,
                         row_truth *truth)
{
    double mean = 0, square = 0;
    for (int64_t t = 0; t < truth->length; t++) {
        if (!(truth->w[t] > 0)) continue;
        mean += truth->w[t] * (truth->z[t] - lse);
        square += truth->w[t] * (truth->z[t] - lse) * (truth->z[t] - lse);
        truth->abs_sum += truth->w[t] * truth->norm[t];
    }
    const double sink = p->sink != NULL ? (double)p->sink[row] / temperature : -(double)INFINITY;
    if (isfinite(sink)) {
        const double log_null = sink - lse, null = exp(log_null);
        mean += null * log_null;
        square += null * log_null * log_null;
    }
    truth->sd = sqrt(fmax(0, square - mean * mean));
}

void row_truth_make(ats_arena *arena, const ats_problem *p, const ats_edit *edit, int64_t row,
                    row_truth *out)
{
    ats_err err = {.code = ATS_OK};
    row_truth truth = {.length = ats_reference_length(p, edit)};
    int64_t *position = NULL;
    double lse;
    assert_ok(ATS_NEW(arena, truth.length, &truth.key, &err), &err);
    assert_ok(ATS_NEW(arena, truth.length, &position, &err), &err);
    assert_ok(ATS_NEW(arena, truth.length, &truth.z, &err), &err);
    assert_ok(ATS_NEW(arena, truth.length, &truth.w, &err), &err);
    assert_ok(ATS_NEW(arena, truth.length, &truth.norm, &err), &err);
    assert_ok(ats_reference_row(p, edit, row, truth.key, position, truth.z, truth.w, &lse, &err),
              &err);
    truth.defined = isfinite(lse);
    fill_norms(p, edit, &truth);
    const double scale = edit != NULL && edit->scale != 0 ? edit->scale : p->contract.scale;
    const double temperature = p->contract.temperature * (edit != NULL ? edit->temperature : 1);
    const float *q = edit != NULL && edit->q != NULL ? edit->q : p->q;
    const double sink = p->sink != NULL && isfinite(p->sink[row]) ? fabs((double)p->sink[row]) : 0;
    truth.bound = ats_bar_bound(scale, norm_of(q + row * p->d_qk, p->d_qk), largest_key(p, edit),
                                largest_bias(p, edit, row, &truth, position), sink, temperature);
    if (truth.defined) fill_moments(p, row, temperature, lse, &truth);
    *out = truth;
}

int64_t row_truth_find(const row_truth *truth, int64_t key)
{
    for (int64_t t = 0; t < truth->length; t++)
        if (truth->key[t] == key) return t;
    return -1;
}

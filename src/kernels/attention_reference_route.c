#include "kernels/attention_reference.h"

#include <math.h>

int64_t ref_length(const ats_problem *problem, const ats_edit *edit)
{
    if (edit == NULL) return problem->n_keys;
    int64_t length = 0;
    for (int64_t i = 0; i < edit->n_segments; i++)
        length += edit->segments[i].stop - edit->segments[i].start;
    return length;
}

static ref_entry base_entry(const ats_problem *problem, int64_t index)
{
    return (ref_entry){.key = index,
                       .base = index,
                       .side_k = -1,
                       .side_v = -1,
                       .position = problem->key_pos[index]};
}

static ref_entry segment_entry(const ats_problem *problem, const ats_edit *edit,
                               const ats_segment *segment, int64_t offset)
{
    const int64_t side = segment->row + offset;
    if (segment->kind == ATS_SEG_ROWS)
        return (ref_entry){.key = -2 - side,
                           .base = -1,
                           .side_k = side,
                           .side_v = side,
                           .position = edit->side.position[side]};
    ref_entry entry = base_entry(problem, segment->start + offset);
    if (segment->kind == ATS_SEG_HIDE) entry.hidden = true;
    if (segment->kind == ATS_SEG_KEEP) {
        entry.delta = segment->delta;
        entry.position += segment->delta;
    }
    if (segment->kind == ATS_SEG_SWAP) {
        if (segment->swap_key) entry.side_k = side;
        if (segment->swap_value) entry.side_v = side;
    }
    return entry;
}

static void list_entries(const ats_problem *problem, const ats_edit *edit, ref_entry *out)
{
    if (edit == NULL) {
        for (int64_t i = 0; i < problem->n_keys; i++) out[i] = base_entry(problem, i);
        return;
    }
    int64_t t = 0;
    for (int64_t i = 0; i < edit->n_segments; i++) {
        const ats_segment *segment = &edit->segments[i];
        for (int64_t offset = 0; offset < segment->stop - segment->start; offset++)
            out[t++] = segment_entry(problem, edit, segment, offset);
    }
}

ats_code ref_scratch_make(ats_arena *arena, const ats_problem *problem, ref_scratch *out,
                          ats_err *err)
{
    ats_code rc;
    ref_scratch s = {.narrow = NULL};
    const int64_t d = problem->d_qk, dv = problem->d_v, k = problem->top_k;
    ATS_TRY(ATS_NEW(arena, d > dv ? d : dv, &s.narrow, err));
    ATS_TRY(ATS_NEW(arena, d, &s.q, err));
    ATS_TRY(ATS_NEW(arena, d, &s.key, err));
    ATS_TRY(ATS_NEW(arena, dv, &s.value, err));
    ATS_TRY(ATS_NEW(arena, dv, &s.other, err));
    ATS_TRY(ATS_NEW(arena, (ATS_N_PARTS + 2) * dv, &s.vectors, err));
    ATS_TRY(ATS_NEW(arena, 2 * k, &s.top_score, err));
    ATS_TRY(ATS_NEW(arena, 2 * k, &s.top, err));
    *out = s;
out:
    return rc;
}

ats_code ref_route_make(ats_arena *arena, int64_t length, ref_route *out, ats_err *err)
{
    ats_code rc;
    ref_route route = {.legal = 0};
    ATS_TRY(ATS_NEW(arena, length, &route.z, err));
    ATS_TRY(ATS_NEW(arena, length, &route.w, err));
    ATS_TRY(ATS_NEW(arena, length, &route.log_w, err));
    *out = route;
out:
    return rc;
}

/* Row `index` of a stored or side tensor of width d, as doubles. */
static void widen_row(ats_dtype dtype, const void *stored, const float *side, int64_t base,
                      int64_t row, int64_t d, float *narrow, double *out)
{
    if (row >= 0)
        for (int64_t j = 0; j < d; j++) out[j] = (double)side[row * d + j];
    else {
        ats_widen(dtype, stored, base * d, d, narrow);
        for (int64_t j = 0; j < d; j++) out[j] = (double)narrow[j];
    }
}

void ref_value(const ref_sequence *sequence, int64_t t, ref_scratch *scratch, double *out)
{
    const ats_problem *p = sequence->problem;
    const ref_entry *e = &sequence->entries[t];
    const float *side = sequence->edit != NULL ? sequence->edit->side.v : NULL;
    if (e->side_v < 0) ats_problem_use_v(p, e->base, 1);
    widen_row(p->v_dtype, p->v, side, e->base, e->side_v, p->d_v, scratch->narrow, out);
}

ats_code ref_sequence_make(ats_arena *arena, const ats_problem *problem, const ats_edit *edit,
                           ref_sequence *out, ats_err *err)
{
    ats_code rc;
    ref_scratch scratch;
    ref_sequence s = {.problem = problem,
                      .edit = edit,
                      .scale = problem->contract.scale,
                      .temperature = problem->contract.temperature,
                      .length = ref_length(problem, edit)};
    if (edit != NULL) {
        if (edit->scale != 0) s.scale = edit->scale;
        s.temperature *= edit->temperature;
    }
    ATS_TRY(ref_scratch_make(arena, problem, &scratch, err));
    ATS_TRY(ATS_NEW(arena, s.length, &s.entries, err));
    ATS_TRY(ATS_NEW(arena, s.length, &s.value_norm, err));
    list_entries(problem, edit, s.entries);
    for (int64_t t = 0; t < s.length; t++) {
        double squares = 0;
        ref_value(&s, t, &scratch, scratch.value);
        for (int64_t j = 0; j < problem->d_v; j++) squares += scratch.value[j] * scratch.value[j];
        s.value_norm[t] = sqrt(squares);
    }
    *out = s;
out:
    return rc;
}

/* x [d] <- R(delta) x: pair (a, b) -> (a cos - b sin, b cos + a sin), angle = delta * inv_freq. */
static void rotate(const ats_rope *rope, int64_t delta, double *x)
{
    if (delta == 0 || rope->layout == ATS_ROPE_NONE) return;
    for (int64_t i = 0; i < rope->pairs; i++) {
        const int64_t first = rope->layout == ATS_ROPE_HALF ? i : 2 * i;
        const int64_t second = rope->layout == ATS_ROPE_HALF ? i + rope->pairs : 2 * i + 1;
        const double angle = (double)delta * rope->inv_freq[i];
        const double a = x[first], b = x[second];
        x[first] = a * cos(angle) - b * sin(angle);
        x[second] = b * cos(angle) + a * sin(angle);
    }
}

static void load_query(const ref_sequence *s, int64_t row, double *q)
{
    const ats_problem *p = s->problem;
    const float *source = s->edit != NULL && s->edit->q != NULL ? s->edit->q : p->q;
    for (int64_t j = 0; j < p->d_qk; j++) q[j] = (double)source[row * p->d_qk + j];
    if (s->edit != NULL) rotate(&p->contract.rope, s->edit->query_delta, q);
}

/* Index of the chunk of `size` positions that holds a position, rounded towards minus infinity. */
static int64_t chunk_of(int64_t position, int64_t size)
{
    const int64_t within = ((position % size) + size) % size;
    return (position - within) / size;
}

static bool visible(const ats_problem *p, const ref_entry *e, int64_t row, int64_t q_pos)
{
    const ats_contract *c = &p->contract;
    const int64_t back = q_pos - e->position;
    if (e->hidden) return false;
    if (c->causal && e->position > q_pos) return false;
    if (c->window > 0 && back >= c->window) return false;
    if (c->window > 0 && !c->causal && -back >= c->window) return false;
    if (c->chunk > 0 && chunk_of(e->position, c->chunk) != chunk_of(q_pos, c->chunk)) return false;
    if (e->base < 0) return true;
    if (p->bias != NULL && p->bias[row][e->base] <= ATS_BIAS_HIDES) return false;
    if (p->key_segment != NULL && p->key_segment[e->base] != p->q_segment[row]) return false;
    return p->keep == NULL || p->keep[(row % p->n_probes) * p->n_keys + e->base] != 0;
}

/* scale (q . k), soft cap, bias, temperature: in this order. */
static double logit(const ref_sequence *s, const ref_entry *e, int64_t row, int64_t q_pos,
                    ref_scratch *scratch)
{
    const ats_problem *p = s->problem;
    const float *side = s->edit != NULL ? s->edit->side.k : NULL;
    if (e->side_k < 0) ats_problem_use_k(p, e->base, 1);
    widen_row(p->k_dtype, p->k, side, e->base, e->side_k, p->d_qk, scratch->narrow, scratch->key);
    rotate(&p->contract.rope, e->delta, scratch->key);
    double dot = 0;
    for (int64_t j = 0; j < p->d_qk; j++) dot += scratch->q[j] * scratch->key[j];
    double x = s->scale * dot;
    const double cap = p->contract.softcap;
    if (cap > 0) x = cap * tanh(x / cap);
    if (p->alibi_slope != NULL) x -= (double)p->alibi_slope[row] * (double)(q_pos - e->position);
    if (p->bias != NULL && e->base >= 0) x += (double)p->bias[row][e->base];
    return x / s->temperature;
}

static int64_t first_bad(const double *x, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        if (!isfinite(x[j])) return j;
    return -1;
}

/* The sentence for a legal key with a non-finite number: which tensor, row and column. */
static ats_code not_finite(const ref_sequence *s, int64_t t, int64_t row, ref_scratch *scratch,
                           ats_err *err)
{
    const ats_problem *p = s->problem;
    const ref_entry *e = &s->entries[t];
    const char *what = "the logit";
    int64_t column = -1, index = row;
    double number = NAN;
    if ((column = first_bad(scratch->q, p->d_qk)) >= 0) {
        what = "q";
        number = scratch->q[column];
    } else if ((column = first_bad(scratch->key, p->d_qk)) >= 0) {
        what = e->side_k >= 0 ? "inserted k" : "k";
        index = e->side_k >= 0 ? e->side_k : e->base;
        number = scratch->key[column];
    } else if ((column = first_bad(scratch->value, p->d_v)) >= 0) {
        what = e->side_v >= 0 ? "inserted v" : "v";
        index = e->side_v >= 0 ? e->side_v : e->base;
        number = scratch->value[column];
    } else if (p->bias != NULL && e->base >= 0 && !isfinite(p->bias[row][e->base])) {
        what = "bias";
        column = e->base;
        number = (double)p->bias[row][e->base];
    }
    return ats_fail(err, ATS_E_INPUT,
                    "%s, row %lld, column %lld is %g, and query row %lld may see that key; legal "
                    "keys, values and logits must be finite, so mask the key or repair the tensor",
                    what, (long long)index, (long long)column, number, (long long)row);
}

/* Logits into route->z; legal keys are checked, illegal ones are not read. */
static ats_code fill_logits(const ref_sequence *s, int64_t row, ref_scratch *scratch,
                            ref_route *route, ats_err *err)
{
    const int64_t q_pos = s->problem->q_pos[row] + (s->edit != NULL ? s->edit->query_delta : 0);
    load_query(s, row, scratch->q);
    route->legal = 0;
    for (int64_t t = 0; t < s->length; t++) {
        const ref_entry *e = &s->entries[t];
        route->z[t] = -(double)INFINITY;
        if (!visible(s->problem, e, row, q_pos)) continue;
        route->z[t] = logit(s, e, row, q_pos, scratch);
        route->legal++;
        if (isfinite(route->z[t]) && isfinite(s->value_norm[t])) continue;
        ref_value(s, t, scratch, scratch->value);
        if (isfinite(route->z[t]) && first_bad(scratch->value, s->problem->d_v) < 0) continue;
        return not_finite(s, t, row, scratch, err);
    }
    return ATS_OK;
}

/* Position of the largest logit, -1: none legal. */
static int64_t heaviest(const ref_route *route)
{
    int64_t best = -1;
    for (int64_t t = 0; t < route->sequence->length; t++)
        if (isfinite(route->z[t]) && (best < 0 || route->z[t] > route->z[best])) best = t;
    return best;
}

/* log sum exp with the largest term taken out: m + log1p(sum of the others), so that a sharp route
 * keeps the digits of 1 - max weight. */
static void fill_weights(ref_route *route, double sink)
{
    const int64_t length = route->sequence->length, best = heaviest(route);
    const bool has_sink = sink > -(double)INFINITY;
    route->defined = best >= 0 || has_sink;
    route->lse = route->lse_keys = route->log_null = -(double)INFINITY;
    route->null_weight = 0;
    if (!route->defined) return;
    const double peak_keys = best >= 0 ? route->z[best] : -(double)INFINITY;
    double others = 0;
    for (int64_t t = 0; t < length; t++)
        if (t != best && best >= 0) others += exp(route->z[t] - peak_keys);
    if (best >= 0) route->lse_keys = peak_keys + log1p(others);
    double peak = peak_keys, log_sum = best >= 0 ? log1p(others) : 0;
    if (has_sink && sink > peak_keys) {
        peak = sink;
        log_sum = best >= 0 ? log1p(exp(peak_keys - sink) * (1 + others)) : 0;
    } else if (has_sink) {
        log_sum = log1p(others + exp(sink - peak_keys));
    }
    route->lse = peak + log_sum;
    if (has_sink) {
        route->log_null = (sink - peak) - log_sum;
        route->null_weight = exp(route->log_null);
    }
    for (int64_t t = 0; t < length; t++) {
        route->log_w[t] = (route->z[t] - peak) - log_sum;
        route->w[t] = exp(route->log_w[t]);
    }
}

ats_code ref_route_compute(const ref_sequence *sequence, int64_t row, ref_scratch *scratch,
                           ref_route *route, ats_err *err)
{
    const ats_problem *p = sequence->problem;
    route->sequence = sequence;
    const ats_code rc = fill_logits(sequence, row, scratch, route, err);
    if (rc != ATS_OK) return rc;
    fill_weights(route, p->sink != NULL ? (double)p->sink[row] / sequence->temperature
                                        : -(double)INFINITY);
    return ATS_OK;
}

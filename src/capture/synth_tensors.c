#include "capture/synth_plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "base/rope.h"

enum { BLOCK = 1024, MAX_FACT_ROWS = 8 };

/* What the workers of one (sample, layer) share; every item writes only its own rows. */
typedef struct work {
    const ats_synth_plan *plan;
    const ats_layer *layer;
    const ats_sample *sample;
    const int8_t *class_of; /* [n_keys] span of a row, -1: filler */
    ats_attention *tensors;
    const float *fact;   /* [n_kv_heads, MAX_FACT_ROWS, content] what all facts have in common */
    double **logits;     /* [threads] -> [n_keys] */
    float **row;         /* [threads] -> [max(d_qk, d_v)] */
    double **sum;        /* [threads] -> [d_v] */
    double **q;          /* [threads] -> [d_qk] */
    ats_synth_row *rows; /* [n_q_heads, n_probes] */
} work;

static bool is_fact(int64_t class)
{
    return class >= 0 && class != ATS_SYNTH_QUESTION && class != ATS_SYNTH_SINK;
}

static ats_rng stream(const work *w, int64_t head, const char *what, int64_t block)
{
    char purpose[48];
    snprintf(purpose, sizeof purpose, "%s/%lld", what, (long long)block);
    return ats_rng_stream(w->plan->options.seed, w->sample->id, "synth", w->layer->index, head,
                          purpose);
}

/* One key: content (facts share 0.8 of it), rotated to its position, and the mark of its span. */
static void fill_key(const work *w, int64_t head, int64_t i, ats_rng *rng, float *row)
{
    const ats_synth_plan *plan = w->plan;
    const int64_t content = plan->content, class = w->class_of[i];
    const float *common = w->fact + head * MAX_FACT_ROWS * content;
    for (int64_t j = 0; j < content; j++) row[j] = ats_synth_normal(rng);
    if (is_fact(class)) {
        common += (i - w->sample->spans[class].start) * content;
        for (int64_t j = 0; j < content; j++) row[j] = 0.6F * row[j] + 0.8F * common[j];
    }
    ats_rope_move(&w->layer->contract.rope, w->sample->position[i], 1, w->layer->d_qk, row, row);
    for (int64_t j = content; j < w->layer->d_qk; j++)
        row[j] = class >= 0 && (j - content) / plan->parts == class ? ATS_SYNTH_KAPPA : 0.0F;
}

static ats_code fill_block(void *ctx, int64_t index, int worker, ats_err *err)
{
    (void)err;
    const work *w = ctx;
    const int64_t n = w->sample->n_keys, blocks = (n + BLOCK - 1) / BLOCK;
    const int64_t head = index / blocks, start = index % blocks * BLOCK;
    const int64_t stop = start + BLOCK < n ? start + BLOCK : n;
    const int64_t d = w->layer->d_qk, d_v = w->layer->d_v;
    ats_rng key = stream(w, head, "key", start / BLOCK);
    ats_rng value = stream(w, head, "value", start / BLOCK);
    float *row = w->row[worker];
    for (int64_t i = start; i < stop; i++) {
        fill_key(w, head, i, &key, row);
        ats_narrow(w->tensors->k_dtype, row, d, w->tensors->k, (head * n + i) * d);
        const float size = w->class_of[i] == ATS_SYNTH_SINK ? 0.125F : 1.0F;
        for (int64_t j = 0; j < d_v; j++) row[j] = size * ats_synth_normal(&value);
        ats_narrow(w->tensors->v_dtype, row, d_v, w->tensors->v, (head * n + i) * d_v);
    }
    return ATS_OK;
}

static double cap(const work *w, double x)
{
    const double c = w->layer->contract.softcap;
    return c > 0 ? c * tanh(x / c) : x;
}

/* x[i] = scale * q . k_i over the first `width` elements, not yet capped; -inf where not visible.
 */
static void raw_logits(const work *w, int64_t head, int64_t probe, int64_t width, const double *q,
                       float *row, double *x)
{
    const int64_t n = w->sample->n_keys, d = w->layer->d_qk;
    const int64_t kv = head / (w->layer->n_q_heads / w->layer->n_kv_heads);
    const int64_t pos_q = w->sample->probes[probe].position;
    for (int64_t i = 0; i < n; i++) {
        x[i] = -HUGE_VAL;
        if (!ats_legal_position(&w->layer->contract, pos_q, w->sample->position[i])) continue;
        ats_widen(w->tensors->k_dtype, w->tensors->k, (kv * n + i) * d, width, row);
        double dot = 0;
        for (int64_t j = 0; j < width; j++) dot += q[j] * (double)row[j];
        x[i] = w->layer->contract.scale * dot;
    }
}

/* Log sum exp of capped logits x[i] + offset over [start, stop); -inf when none is finite. */
static double span_lse(const work *w, const double *x, int64_t start, int64_t stop, double offset)
{
    double best = -HUGE_VAL, sum = 0;
    for (int64_t i = start; i < stop; i++)
        if (x[i] > -HUGE_VAL) best = fmax(best, cap(w, x[i] + offset));
    if (best == -HUGE_VAL) return best;
    for (int64_t i = start; i < stop; i++)
        if (x[i] > -HUGE_VAL) sum += exp(cap(w, x[i] + offset) - best);
    return best + log(sum);
}

/* The same over filler rows and the learned sink: the part of Z that is not planted. */
static double other_lse(const work *w, const double *x, int64_t head)
{
    const int64_t n = w->sample->n_keys;
    const double sink = w->layer->sink != NULL ? (double)w->layer->sink[head] : -HUGE_VAL;
    double best = sink, sum = 0;
    for (int64_t i = 0; i < n; i++)
        if (w->class_of[i] < 0 && x[i] > -HUGE_VAL) best = fmax(best, cap(w, x[i]));
    for (int64_t i = 0; i < n; i++)
        if (w->class_of[i] < 0 && x[i] > -HUGE_VAL) sum += exp(cap(w, x[i]) - best);
    if (sink > -HUGE_VAL) sum += exp(sink - best);
    return best + log(sum);
}

/* Offset of a span's logits at which its log sum exp is `target`: closed without a soft cap, else
 * bisection on a monotone function. NaN when the cap forbids it. */
static double solve_offset(const work *w, const double *x, const ats_span *span, double target)
{
    const double c = w->layer->contract.softcap;
    if (c <= 0) return target - span_lse(w, x, span->start, span->stop, 0);
    double low = -6 * c, high = 6 * c;
    if (span_lse(w, x, span->start, span->stop, high) < target) return NAN;
    for (int step = 0; step < 100; step++) {
        const double middle = 0.5 * (low + high);
        if (span_lse(w, x, span->start, span->stop, middle) < target)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

/* Writes the query's planted elements so that every visible span has its share of the mass:
 * Z_span = share * Z and Z = Z_other / (1 - sum of shares). */
static ats_code plant(const work *w, int64_t head, int64_t probe, const double *x, double *q,
                      ats_err *err)
{
    const ats_synth_plan *plan = w->plan;
    const ats_sample *sample = w->sample;
    const ats_dtype dtype = w->tensors->q_dtype;
    const int64_t base = (head * sample->n_probes + probe) * w->layer->d_qk;
    double left = 1;
    for (int64_t s = 0; s < plan->n_classes; s++)
        if (span_lse(w, x, sample->spans[s].start, sample->spans[s].stop, 0) > -HUGE_VAL)
            left -= plan->share[s];
    const double total = other_lse(w, x, head) - log(left);
    for (int64_t s = 0; s < plan->n_classes; s++) {
        const ats_span *span = &sample->spans[s];
        if (span_lse(w, x, span->start, span->stop, 0) == -HUGE_VAL) continue;
        const double offset = solve_offset(w, x, span, total + log(plan->share[s]));
        if (isnan(offset))
            return ats_fail(
                err, ATS_E_USAGE,
                "synth: under a soft cap of %g no logit is large enough to give span "
                "\"%s\" %g of the mass among %lld keys; raise the cap or lower the mass",
                w->layer->contract.softcap, span->name, plan->share[s], (long long)sample->n_keys);
        double rest = offset / (w->layer->contract.scale * (double)ATS_SYNTH_KAPPA);
        for (int64_t part = 0; part < plan->parts; part++) {
            const int64_t at = plan->content + s * plan->parts + part;
            const float word = (float)rest;
            ats_narrow(dtype, &word, 1, w->tensors->q, base + at);
            q[at] = (double)ats_load(dtype, w->tensors->q, base + at);
            rest -= q[at];
        }
    }
    return ATS_OK;
}

/* The row's own attention from the stored words: LSE, masses, output. */
static void evaluate_row(const work *w, int64_t head, int64_t probe, double *x, float *row,
                         double *sum)
{
    const int64_t n = w->sample->n_keys, d_v = w->layer->d_v;
    const int64_t kv = head / (w->layer->n_q_heads / w->layer->n_kv_heads);
    const int64_t at = head * w->sample->n_probes + probe;
    const double sink = w->layer->sink != NULL ? (double)w->layer->sink[head] : -HUGE_VAL;
    ats_synth_row *truth = &w->rows[at];
    double best = sink, z = 0;
    for (int64_t i = 0; i < n; i++) {
        if (x[i] > -HUGE_VAL) x[i] = cap(w, x[i]);
        best = fmax(best, x[i]);
    }
    for (int64_t i = 0; i < n; i++) z += exp(x[i] - best);
    if (sink > -HUGE_VAL) z += exp(sink - best);
    truth->lse = best + log(z);
    truth->null_mass = exp(sink - truth->lse);
    memset(truth->mass, 0, (size_t)w->plan->n_classes * sizeof *truth->mass);
    memset(sum, 0, (size_t)d_v * sizeof *sum);
    for (int64_t i = 0; i < n; i++) {
        const double weight = exp(x[i] - truth->lse);
        if (weight == 0) continue;
        if (w->class_of[i] >= 0) truth->mass[w->class_of[i]] += weight;
        ats_widen(w->tensors->v_dtype, w->tensors->v, (kv * n + i) * d_v, d_v, row);
        for (int64_t j = 0; j < d_v; j++) sum[j] += weight * (double)row[j];
    }
    for (int64_t j = 0; j < d_v; j++) w->tensors->out[at * d_v + j] = (float)sum[j];
    w->tensors->lse[at] = (float)truth->lse;
}

static ats_code fill_row(void *ctx, int64_t index, int worker, ats_err *err)
{
    const work *w = ctx;
    const int64_t head = index / w->sample->n_probes, probe = index % w->sample->n_probes;
    const int64_t d = w->layer->d_qk, content = w->plan->content;
    float *row = w->row[worker];
    double *q = w->q[worker], *x = w->logits[worker];
    ats_rng rng = stream(w, head, "query", probe);
    memset(row, 0, (size_t)d * sizeof *row);
    for (int64_t j = 0; j < content; j++) row[j] = ats_synth_normal(&rng);
    ats_rope_move(&w->layer->contract.rope, w->sample->probes[probe].position, 1, d, row, row);
    ats_narrow(w->tensors->q_dtype, row, d, w->tensors->q, index * d);
    for (int64_t j = 0; j < d; j++)
        q[j] = (double)ats_load(w->tensors->q_dtype, w->tensors->q, index * d + j);
    raw_logits(w, head, probe, content, q, row, x);
    ats_code rc = plant(w, head, probe, x, q, err);
    if (rc != ATS_OK) return rc;
    raw_logits(w, head, probe, d, q, row, x);
    evaluate_row(w, head, probe, x, row, w->sum[worker]);
    return ATS_OK;
}

static ats_code make_tensors(ats_arena *arena, const ats_synth_plan *plan, ats_attention *t,
                             ats_err *err)
{
    const ats_synth_options *o = &plan->options;
    const size_t word = ats_dtype_size(o->dtype);
    const int64_t rows = o->n_q_heads * o->n_probes, keys = o->n_kv_heads * o->n_keys;
    *t = (ats_attention){.q_dtype = o->dtype, .k_dtype = o->dtype, .v_dtype = o->dtype};
    ats_code rc;
    ATS_TRY(ats_arena_alloc(arena, rows * o->d_qk, word, &t->q, err));
    ATS_TRY(ats_arena_alloc(arena, keys * o->d_qk, word, &t->k, err));
    ATS_TRY(ats_arena_alloc(arena, keys * o->d_v, word, &t->v, err));
    ATS_TRY(ATS_NEW(arena, rows * o->d_v, &t->out, err));
    ATS_TRY(ATS_NEW(arena, rows, &t->lse, err));
    t->bytes = (size_t)(rows * o->d_qk + keys * (o->d_qk + o->d_v)) * word +
               (size_t)(rows * (o->d_v + 1)) * sizeof(float);
out:
    return rc;
}

static ats_code make_scratch(ats_arena *arena, work *w, ats_err *err)
{
    const int64_t threads = ats_threads(), d = w->layer->d_qk, d_v = w->layer->d_v;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, threads, &w->logits, err));
    ATS_TRY(ATS_NEW(arena, threads, &w->row, err));
    ATS_TRY(ATS_NEW(arena, threads, &w->sum, err));
    ATS_TRY(ATS_NEW(arena, threads, &w->q, err));
    for (int64_t i = 0; i < threads; i++) {
        ATS_TRY(ATS_NEW(arena, w->sample->n_keys, &w->logits[i], err));
        ATS_TRY(ATS_NEW(arena, d > d_v ? d : d_v, &w->row[i], err));
        ATS_TRY(ATS_NEW(arena, d_v, &w->sum[i], err));
        ATS_TRY(ATS_NEW(arena, d, &w->q[i], err));
    }
out:
    return rc;
}

static ats_code make_marks(ats_arena *arena, work *w, ats_err *err)
{
    const int64_t content = w->plan->content;
    int8_t *class_of = NULL;
    float *fact = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, w->sample->n_keys, &class_of, err));
    ATS_TRY(ATS_NEW(arena, w->layer->n_kv_heads * MAX_FACT_ROWS * content, &fact, err));
    memset(class_of, -1, (size_t)w->sample->n_keys);
    for (int64_t s = 0; s < w->sample->n_spans; s++)
        for (int64_t i = w->sample->spans[s].start; i < w->sample->spans[s].stop; i++)
            class_of[i] = (int8_t)s;
    for (int64_t h = 0; h < w->layer->n_kv_heads; h++) {
        ats_rng rng = stream(w, h, "fact", 0);
        for (int64_t i = 0; i < MAX_FACT_ROWS * content; i++)
            fact[h * MAX_FACT_ROWS * content + i] = ats_synth_normal(&rng);
    }
    w->class_of = class_of;
    w->fact = fact;
out:
    return rc;
}

ats_code ats_synth_tensors(ats_arena *arena, const ats_synth_plan *plan, int64_t sample,
                           int64_t layer, ats_attention *out, ats_synth_row *rows, ats_err *err)
{
    ats_attention tensors = {0};
    work w = {.plan = plan,
              .layer = &plan->meta.layers[layer],
              .sample = &plan->meta.samples[sample],
              .tensors = &tensors,
              .rows = rows};
    ats_code rc;
    ATS_TRY(make_tensors(arena, plan, &tensors, err));
    ATS_TRY(make_scratch(arena, &w, err));
    ATS_TRY(make_marks(arena, &w, err));
    const int64_t blocks = (w.sample->n_keys + BLOCK - 1) / BLOCK;
    ATS_TRY(ats_parallel_for(w.layer->n_kv_heads * blocks, fill_block, &w, err));
    ATS_TRY(ats_parallel_for(w.layer->n_q_heads * w.sample->n_probes, fill_row, &w, err));
    *out = tensors;
out:
    return rc;
}

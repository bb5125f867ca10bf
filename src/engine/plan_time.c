/* How long a run takes: counts of what there is to do, times costs.
 *
 * What the processor does is stated in two units that are measured here and now, so that another
 * machine or level scales it: a normal number drawn (code without vectors) and a multiply-add of
 * the cpu backend's product (vectors). What waits for the system is stated in seconds. The costs
 * are a fit to 30 runs of the suites on captures of 1,024 to 65,536 keys, 8 to 128 query rows a key
 * head and d of 32 to 256, on one thread, processor time; docs/performance.md has how well they do.
 */
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "capture/describe.h"
#include "engine/plan_private.h"
#include "kernels/cpu_speed.h"

/* Of a run on one thread. draws: normal numbers drawn; multiplies: multiply-adds. */
static const struct {
    double start, variable, byte; /* seconds: a run, a metric of a sample, a byte read */
    double element, edit, number, key, key_of_d, look; /* draws */
    double multiply, other; /* of a multiply, in multiplies and in draws */
    double reference;       /* draws of a multiply of that backend */
} cost = {
    .start = 0.06,
    .variable = 0.9e-3, /* datasets made, written, read back and joined */
    .byte = 3e-9,       /* read, inflated, checked */
    .element = 0.3,
    .edit = 2300,
    .number = 1.6, /* measured, recorded, deflated, joined */
    .key = 17,     /* diagnosed: about 50 exponentials, and nine products */
    .key_of_d = 0.26,
    .reference = 0.12,
    .multiply = 2.5,
    .other = 0.8e-3, /* what comes with a key's logit and is not multiplied, where rows are few */
    .look = 0.12,
};

/* What there is to do, over samples, layers and key heads. */
typedef struct work {
    double tensor_bytes; /* of the captures, in memory */
    double elements;     /* of side rows */
    double effort;       /* of building beyond side rows, in normal numbers drawn */
    double multiplies;   /* of logits and value sums, rows padded to lanes */
    double looks;        /* edits x keys x lanes: every edit goes through the states of all keys */
    double edits;
    double numbers;        /* of the result at detail probe */
    double variables;      /* of every sample's part */
    double diagnosed;      /* keys of all diagnosed rows, */
    double diagnosed_wide; /* and their dimensions */
} work;

/* Rows of one key head as the kernels pad them. */
static double lanes_of(const ats_plan *plan, int64_t s, double *rows)
{
    const double heads = (double)plan->shape.n_heads / (double)ats_plan_layer(plan, 0)->n_kv_heads;
    *rows = ceil(heads) * (double)plan->selection.samples[s].n_probes;
    return *rows <= 8 ? 8 : 16 * ceil(*rows / 16);
}

static ats_code count(const ats_plan *plan, work *w, ats_err *err)
{
    double lanes = 8, rows = 1;
    for (int64_t s = 0; s < plan->selection.n_samples; s++) {
        const ats_chosen *c = &plan->selection.samples[s];
        lanes = lanes_of(plan, s, &rows);
        for (int64_t l = 0; l < plan->selection.n_layers; l++) {
            const ats_layer *layer = ats_plan_layer(plan, l);
            ats_storage storage;
            const ats_code rc = ats_capture_storage(plan->captures[c->capture], c->index,
                                                    plan->selection.layers[l], &storage, err);
            if (rc != ATS_OK) return rc;
            w->tensor_bytes += (double)storage.bytes;
            w->looks += (double)plan->suite->n_variants * (double)layer->n_kv_heads *
                        (double)c->sample->n_keys * lanes;
            const double keys =
                (double)c->sample->n_keys * (double)c->n_probes * (double)plan->shape.n_heads;
            if (!plan->diagnoses) continue;
            w->diagnosed += keys;
            w->diagnosed_wide += keys * (double)layer->d_qk;
        }
    }
    for (int64_t l = 0; l < plan->selection.n_layers; l++)
        w->elements += (double)plan->rows / (double)plan->selection.n_layers *
                       (double)(ats_plan_layer(plan, l)->d_qk + ats_plan_layer(plan, l)->d_v);
    w->effort = plan->effort;
    w->multiplies = plan->share.flops / 2 * lanes / rows;
    w->edits = (double)plan->share.edits;
    w->numbers = (double)plan->bytes_probe / 4;
    w->variables = (double)plan->selection.n_samples * (double)plan->n_metrics;
    return ATS_OK;
}

/* Seconds of one normal number: what building and measuring do, without vectors. */
static double draw_seconds(void)
{
    enum { TRIES = 8, COUNT = 2048 };
    double room[COUNT], best = 0;
    ats_rng rng = ats_rng_stream(1, "", "", 0, 0, "speed");
    for (int i = 0; i < TRIES; i++) {
        const double start = ats_clock();
        ats_rng_normals(&rng, COUNT, room);
        const double seconds = ats_clock() - start;
        if (i == 0 || seconds < best) best = seconds;
    }
    return best / COUNT;
}

static bool is_reference(const ats_plan *plan)
{
    return strcmp(plan->backend->name, "reference") == 0;
}

/* The reference computes every variant anew. Devices are counted as the cpu backend. */
static double evaluate_seconds(const ats_plan *plan, const work *w, double multiply, double draw)
{
    const double alone = plan->share.passes > 0 ? plan->share.passes_alone / plan->share.passes : 1;
    if (is_reference(plan)) return plan->share.flops / 2 * alone * cost.reference * draw;
    return w->multiplies * (cost.multiply * multiply + cost.other * draw) +
           w->looks * cost.look * draw;
}

ats_code ats_plan_seconds(ats_plan *plan, ats_err *err)
{
    const double threads = ats_threads(), draw = draw_seconds();
    work w = {0};
    double multiply = 0;
    ats_code rc;
    ATS_TRY(count(plan, &w, err));
    if (!is_reference(plan)) ATS_TRY(ats_cpu_multiply_seconds(&multiply, err));
    plan->time = (ats_plan_time){
        .start = cost.start,
        .read = w.tensor_bytes * cost.byte / threads,
        .build = (w.elements * cost.element + w.effort + w.edits * cost.edit / 2) * draw / threads,
        .evaluate =
            (evaluate_seconds(plan, &w, multiply, draw) +
             (w.edits * cost.edit / 2 + w.diagnosed * cost.key + w.diagnosed_wide * cost.key_of_d) *
                 draw) /
            threads,
        .write = w.numbers * cost.number * draw / threads + w.variables * cost.variable,
    };
    const ats_plan_time *t = &plan->time;
    plan->seconds = t->start + t->read + t->build + t->evaluate + t->write;
    rc = ATS_OK;
out:
    return rc;
}

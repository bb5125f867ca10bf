#include "engine/plan.h"

ats_plan ats_plan_sample(const ats_plan *plan, int64_t sample)
{
    ats_plan one = *plan;
    const int64_t n_variants = plan->suite->n_variants;
    one.selection.samples += sample;
    one.selection.n_samples = 1;
    one.cases += sample * n_variants;
    one.n_cases = n_variants;
    one.n_skipped = 0;
    for (int64_t v = 0; v < n_variants; v++) one.n_skipped += one.cases[v].reason != NULL;
    one.shape.n_samples = 1;
    one.shape.n_cases = n_variants;
    one.shape.n_curves = plan->shape.n_curves > 0 ? plan->curves.count : 0;
    one.part = sample;
    one.part_count = plan->selection.n_samples;
    return one;
}

/* In multiplies: those of the sample's keys and of its side rows, 120 for a number of a side row
 * and 300 for a number recorded. */
double ats_plan_sample_work(const ats_plan *plan, int64_t s)
{
    const int64_t n_variants = plan->suite->n_variants, n_layers = plan->selection.n_layers;
    const ats_chosen *chosen = &plan->selection.samples[s];
    double side = 0, work = 0;
    for (int64_t v = 0; v < n_variants; v++) side += (double)plan->cases[s * n_variants + v].rows;
    for (int64_t l = 0; l < n_layers; l++) {
        const ats_layer *layer = ats_plan_layer(plan, l);
        const double d = (double)(layer->d_qk + layer->d_v);
        const double rows = (double)(layer->n_q_heads * chosen->n_probes);
        const double keys = (double)chosen->sample->n_keys;
        work += rows * d * keys * (1 + 2 * (double)plan->distinct_shifts);
        work += side * d * (120 * (double)layer->n_kv_heads + rows);
    }
    return work + 300 * (double)plan->bytes_probe / 4 / (double)plan->selection.n_samples;
}

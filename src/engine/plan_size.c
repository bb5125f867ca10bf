#include <string.h>

#include "engine/plan_private.h"
#include "metrics/record.h"

static const int64_t detail_limit = (int64_t)2 << 30; /* bytes of an uncompressed result */

static bool has_w_o(const ats_plan *plan)
{
    if (plan->suite->residual != NULL && strcmp(plan->suite->residual, "off") == 0) return false;
    for (int64_t l = 0; l < plan->selection.n_layers; l++)
        if (ats_plan_layer(plan, l)->w_o != NULL) return true;
    return false;
}

static bool same_readouts(const ats_plan *plan)
{
    const ats_capture *first = plan->captures[0];
    for (int64_t c = 1; c < plan->n_captures; c++) {
        const ats_capture *other = plan->captures[c];
        if (other->n_readouts != first->n_readouts) return false;
        for (int64_t r = 0; r < first->n_readouts; r++)
            if (strcmp(other->readout_names[r], first->readout_names[r]) != 0) return false;
    }
    return true;
}

ats_code ats_plan_metrics(ats_plan *plan, ats_err *err)
{
    const ats_suite *suite = plan->suite;
    const bool w_o = has_w_o(plan);
    const bool readouts = w_o && plan->captures[0]->n_readouts > 0 && same_readouts(plan);
    int64_t n = 0;
    const ats_metric *const *all = ats_metrics(&n);
    ats_code rc;
    if (!w_o && suite->residual != NULL && strcmp(suite->residual, "on") == 0)
        ATS_TRY(ats_fail(err, ATS_E_SUITE,
                         "%s: metrics.residual is on, but no chosen layer of %s has a w_o; capture "
                         "it, or say `residual: auto`",
                         suite->path, plan->captures[0]->path));
    ATS_TRY(ATS_NEW(&plan->arena, n, &plan->metrics, err));
    for (int64_t m = 0; m < n; m++) {
        if (!ats_suite_keeps(suite, all[m])) continue;
        if (all[m]->needs == ATS_NEEDS_W_O && !w_o) continue;
        if (all[m]->needs == ATS_NEEDS_READOUT && !readouts) continue;
        if (all[m]->shape == ATS_SHAPE_VECTOR && !suite->vectors) continue;
        plan->metrics[plan->n_metrics++] = all[m];
        plan->diagnoses |= all[m]->needs == ATS_NEEDS_DIAGNOSIS;
    }
    if (plan->n_metrics == 0)
        ATS_TRY(ats_fail(err, ATS_E_SUITE,
                         "%s: metrics.keep leaves nothing that these captures can give",
                         suite->path));
    plan->shape.n_readouts = readouts ? plan->captures[0]->n_readouts : 0;
    plan->shape.readout_names = plan->captures[0]->readout_names;
out:
    return rc;
}

static int64_t result_bytes(const ats_plan *plan, bool detail_head)
{
    ats_results_shape shape = plan->shape;
    shape.detail_head = detail_head;
    int64_t bytes = 0;
    for (int64_t m = 0; m < plan->n_metrics; m++) {
        const ats_metric *metric = plan->metrics[m];
        if (!metric->base_only)
            bytes += ats_results_bytes(&shape, metric, false, plan->suite->vectors);
        if (metric->has_base || metric->base_only)
            bytes += ats_results_bytes(&shape, metric, true, plan->suite->vectors);
    }
    return bytes;
}

static ats_code make_shape(ats_plan *plan, ats_err *err)
{
    const ats_selection *selection = &plan->selection;
    const char **names = NULL;
    int64_t d_v = 0;
    ats_code rc;
    ATS_TRY(ATS_NEW(&plan->arena, plan->axis.count + 1, &names, err));
    memcpy(names, plan->axis.names, (size_t)plan->axis.count * sizeof *names);
    names[plan->axis.count] = "inserted";
    for (int64_t l = 0; l < selection->n_layers; l++) {
        const int64_t width = ats_plan_layer(plan, l)->d_v;
        if (plan->suite->vectors && d_v != 0 && width != d_v)
            ATS_TRY(ats_fail(err, ATS_E_UNSUPPORTED,
                             "%s: metrics.vectors: layer %lld has values of width %lld, others "
                             "%lld; choose layers of one width",
                             plan->suite->path, (long long)ats_plan_layer(plan, l)->index,
                             (long long)width, (long long)d_v));
        if (width > d_v) d_v = width;
    }
    plan->shape.n_cases = plan->n_cases;
    plan->shape.n_samples = selection->n_samples;
    plan->shape.cases_per_sample = plan->suite->n_variants;
    plan->shape.n_layers = selection->n_layers;
    plan->shape.n_heads = selection->n_heads;
    plan->shape.n_probes = selection->n_probes;
    plan->shape.n_spans = plan->axis.count + 1;
    plan->shape.n_top = plan->suite->top_k;
    plan->shape.d_v = d_v;
    plan->shape.span_names = names;
out:
    return rc;
}

/* Numbers of one case in a recorder, and bytes of a side row. */
static int64_t case_numbers(const ats_plan *plan)
{
    const ats_record_shape shape = {.n_spans = plan->shape.n_spans,
                                    .n_top = plan->shape.n_top,
                                    .n_readouts = plan->shape.n_readouts,
                                    .d_v = plan->shape.d_v};
    int64_t width = 0;
    for (int64_t m = 0; m < plan->n_metrics; m++)
        width += ats_metric_width(plan->metrics[m], &shape);
    return plan->shape.n_heads * plan->shape.n_probes * width;
}

static int64_t row_bytes(const ats_plan *plan)
{
    int64_t d = 0;
    for (int64_t l = 0; l < plan->selection.n_layers; l++) {
        const ats_layer *layer = ats_plan_layer(plan, l);
        if (layer->d_qk + layer->d_v > d) d = layer->d_qk + layer->d_v;
    }
    return d * 4 + 24;
}

int64_t ats_plan_batch_bytes(const ats_plan *plan, int64_t batch)
{
    const int64_t n = plan->suite->n_variants;
    int64_t most = 0;
    for (int64_t c = 0; c < plan->n_cases; c += n)
        for (int64_t first = 0; first < n; first += batch) {
            int64_t rows = 0;
            for (int64_t v = first; v < n && v < first + batch; v++)
                rows += plan->cases[c + v].rows;
            if (rows > most) most = rows;
        }
    return most * row_bytes(plan) + batch * (2 * 4 * case_numbers(plan) + 1024);
}

ats_code ats_plan_sizes(ats_plan *plan, const ats_plan_options *options, ats_err *err)
{
    const char *detail = plan->suite->detail;
    ats_code rc;
    ATS_TRY(make_shape(plan, err));
    ATS_TRY(ats_curve_groups_make(&plan->arena, plan->suite, &plan->curves, err));
    if (plan->target_span >= 0)
        plan->shape.n_curves = plan->selection.n_samples * plan->curves.count;
    plan->bytes_probe = result_bytes(plan, false);
    plan->bytes_head = result_bytes(plan, true);
    plan->detail_undecided = detail == NULL && plan->bytes_probe > detail_limit;
    plan->shape.detail_head = detail != NULL && strcmp(detail, "head") == 0;
    ATS_TRY(ats_plan_memory(plan, options, err));
    rc = ats_plan_seconds(plan, err);
out:
    return rc;
}

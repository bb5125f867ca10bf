#include <jansson.h>
#include <math.h>

#include "cli/command.h"
#include "cli/style.h"
#include "engine/fidelity.h"

static const ats_option options[] = {
    {"target", 0, ATS_OPT_VALUE, "SPAN", "Span whose weight is foretold, by name or role (gold).",
     false},
    {"backend", 0, ATS_OPT_VALUE, "NAME", "Backend (auto).", false},
    {"json", 0, ATS_OPT_FLAG, NULL, "Print the table as JSON.", false},
};

static void print_layer(const ats_fidelity_layer *layer)
{
    printf("\nlayer %lld\n", (long long)layer->layer);
    for (int q = 0; q < ATS_FIDELITY_QUANTITIES; q++) {
        const ats_association *a = &layer->quantity[q];
        printf("  %-15s %6lld", ats_fidelity_names[q], (long long)a->n);
        ats_print_fixed(8, 3, a->rank_correlation);
        ats_print_fixed(8, 3, a->slope);
        ats_print_fixed(10, 4, a->mean_x);
        ats_print_fixed(10, 4, a->mean_y);
        ats_print_fixed(10, 4, a->mean_error);
        printf("\n");
    }
    if (layer->n_worst > 0) printf("  foretold worst:");
    for (int64_t w = 0; w < layer->n_worst; w++)
        printf("%s head %lld (%.3f nats)", w > 0 ? "," : "", (long long)layer->worst[w].head,
               layer->worst[w].error);
    if (layer->n_worst > 0) printf("\n");
    printf("  %s\n", ats_trust_sentence(layer->trust[ATS_FIDELITY_SHIFT]));
}

static void print_text(const ats_capture *capture, const ats_fidelity_report *report)
{
    printf("%s: %lld pairs, target %s, backend %s\n", capture->path, (long long)report->n_pairs,
           report->target, report->backend);
    printf("predicted: the rows really inserted, everything upstream as it was before\n"
           "real: the model's own attention on the perturbed text\n\n");
    printf("  %-15s %6s %8s %8s %10s %10s %10s\n", "", "cells", "rank rho", "slope", "predicted",
           "real", "mean error");
    for (int64_t l = 0; l < report->n_layers; l++) print_layer(&report->layers[l]);
}

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *layer_json(const ats_fidelity_layer *layer)
{
    json_t *quantities = json_object(), *worst = json_array();
    for (int q = 0; q < ATS_FIDELITY_QUANTITIES; q++) {
        const ats_association *a = &layer->quantity[q];
        json_object_set_new(quantities, ats_fidelity_names[q],
                            json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:s}", "cells",
                                      (json_int_t)a->n, "rank_correlation",
                                      number(a->rank_correlation), "slope", number(a->slope),
                                      "mean_predicted", number(a->mean_x), "mean_real",
                                      number(a->mean_y), "mean_error", number(a->mean_error),
                                      "reading", ats_trust_sentence(layer->trust[q])));
    }
    for (int64_t w = 0; w < layer->n_worst; w++)
        json_array_append_new(worst,
                              json_pack("{s:I, s:o}", "head", (json_int_t)layer->worst[w].head,
                                        "mean_error", number(layer->worst[w].error)));
    return json_pack("{s:I, s:o, s:o}", "layer", (json_int_t)layer->layer, "quantities", quantities,
                     "worst_heads", worst);
}

static ats_code print_json(const ats_capture *capture, const ats_fidelity_report *report,
                           ats_err *err)
{
    json_t *layers = json_array();
    for (int64_t l = 0; l < report->n_layers; l++)
        json_array_append_new(layers, layer_json(&report->layers[l]));
    json_t *root = json_pack("{s:s, s:s, s:I, s:s, s:s, s:o}", "capture", capture->path, "hash",
                             capture->hash, "pairs", (json_int_t)report->n_pairs, "target",
                             report->target, "backend", report->backend, "layers", layers);
    const int status = root != NULL ? json_dumpf(root, stdout, JSON_INDENT(1)) : -1;
    json_decref(root);
    if (status != 0) return ats_fail(err, ATS_E_IO, "the JSON table could not be printed");
    printf("\n");
    return ATS_OK;
}

static ats_code run(const ats_args *args, ats_err *err)
{
    const ats_fidelity_options fidelity = {.backend = ats_args_value(args, "backend"),
                                           .target = ats_args_value(args, "target")};
    ats_fidelity_report report = {.n_pairs = 0};
    ats_capture *capture = NULL;
    ats_code rc;
    ATS_TRY(ats_capture_open(args->operands[0], &capture, err));
    ATS_TRY(ats_fidelity_run(capture, &fidelity, &report, err));
    if (ats_args_flag(args, "json"))
        rc = print_json(capture, &report, err);
    else
        print_text(capture, &report);
out:
    ats_fidelity_fini(&report);
    if (capture != NULL) ats_capture_close(capture);
    return rc;
}

const ats_command ats_cmd_fidelity = {
    .name = "fidelity",
    .operands = "CAPTURE",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "frozen-upstream prediction against the model really run, by layer",
    .examples = "attnstress fidelity pairs.h5\n"
                "attnstress fidelity pairs.h5 --target current --json > fidelity.json",
    .details = "For captures that hold samples with rows really inserted (variant_of,\n"
               "base_index). The prediction inserts the perturbed sample's own rows into the\n"
               "base sample's attention and freezes everything upstream; the truth is the\n"
               "perturbed sample's attention. rank rho is Spearman's correlation over cells\n"
               "(pair, head, probe), slope the least-squares slope of real on predicted. In\n"
               "the first layer both agree up to rounding; deeper layers tell how much the\n"
               "model rewrites its own keys and queries.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};

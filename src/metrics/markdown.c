/* docs/metrics.md, written from the table so that it cannot fall behind it. */
#include <stdio.h>

#include "metrics/table.h"

static const char *const head =
    "# Metrics\n"
    "\n"
    "Every variable of a result file. This page is written from the metric table in\n"
    "`src/metrics/`; a test compares the two.\n"
    "\n"
    "For one probe and query head: base weights w, logits z and log-sum-exp L; the variant's are\n"
    "w', z', L'. S: keys legal in both (the null route of a sink logit among them, with value 0),\n"
    "R: legal in the base only, I: legal in the variant only. 0 log 0 = 0, no epsilon anywhere.\n"
    "What is undefined is NaN and counted, never a silent 0: a row without a legal key and "
    "without\n"
    "a sink logit, a span that the sample does not have, a ratio to nothing.\n"
    "\n"
    "Cells are float32 unless `integer`; `x[...]` are the axes after case, layer, head and probe;\n"
    "a metric with a base twin is also written as `base_<name>` per sample. The span axis ends "
    "with\n"
    "`sink` (the first 4 rows and rows of role sink), `recent` (the last 64 rows), `rest` (rows "
    "in\n"
    "none of the others) and `inserted` (rows that the base does not have; 0 in the base).\n"
    "With `detail: head` a cell is the mean over its defined probes, for `mass`, `retention`,\n"
    "`null_mass` and `sink_mass` the geometric mean (the exponential of the mean logarithm); "
    "lists\n"
    "and integers are those of the probe `worst_probe`.\n"
    "\n"
    "The column `better` is what a gate of `compare` takes as the way to the better: a route that\n"
    "holds its target and an output that a perturbation moves little. With a span axis it is said\n"
    "of the target; on `inserted` less is better, and on other spans, as where the column is "
    "empty,\n"
    "neither way is better. A gate's `better` says otherwise.\n";

static const char *const tail =
    "\n## Dose curves\n"
    "\n"
    "Numbers of a curve (one sample, perturbation with its other parameters fixed, layer, head) "
    "lie "
    "along\n"
    "the axis `curve`: strength, half and breakdown doses with their censoring, excess over the "
    "law, "
    "dips\n"
    "over depth. docs/dose-curves.md defines them and says how to read them. `interaction` [case, "
    "layer,\n"
    "head] is what two perturbations of a `combine` do beyond the sum of each.\n"
    "\n## Laws\n"
    "\n"
    "Exact between base and variant whatever the numbers are; `attnstress verify` runs them on a\n"
    "capture and prints the worst residual of each.\n"
    "\n"
    "- any variant: the five parts of `delta_norm` sum to o' - o; mass and null route sum to 1.\n"
    "- overlay (c = 1 - intrusion): tv = 1 - c = 1 - exp(-lse_shift), hellinger = sqrt(1 - sqrt "
    "c),\n"
    "  js in closed form, reroute_tv = reroute_js = 0, log_mass_shift = log c for every span, o' - "
    "o =\n"
    "  intrusion + dilution; n exact copies of a span of mass G and the span hold (n+1) G/(1+nG).\n"
    "- masked rows of mass M: every other weight grows by 1/(1-M), tv = M.\n"
    "- payload swap: the route is bit-identical, only the payload part is not 0.\n"
    "- temperature: the ranking of keys does not change.\n"
    "- all keys and the probe moved by one delta, or keys permuted with their values: no change.\n";

static const char *const shape_names[] = {[ATS_SHAPE_SCALAR] = "",
                                          [ATS_SHAPE_SPAN] = "[span]",
                                          [ATS_SHAPE_PART] = "[part]",
                                          [ATS_SHAPE_TOP] = "[k]",
                                          [ATS_SHAPE_READOUT] = "[readout_direction, span]",
                                          [ATS_SHAPE_VECTOR] = "[span, dv]"};

static void write_row(FILE *f, const ats_metric *m)
{
    fprintf(f, "| `%s%s` | %s; ", m->name, shape_names[m->shape], m->long_name);
    for (const char *c = m->definition; *c != '\0'; c++) {
        if (*c == '|') fputc('\\', f);
        fputc(*c, f);
    }
    fprintf(f, " | %s%s | %s | %s |\n", m->unit, m->integer ? ", integer" : "",
            m->base_only  ? "only"
            : m->has_base ? "yes"
                          : "",
            m->better == ATS_BETTER_NEITHER ? "" : ats_better_name(m->better));
}

static void write_table(FILE *f, const char *title, const ats_metric *const *list, size_t n)
{
    fprintf(f, "\n## %s\n\n| variable | meaning | unit | base | better |\n|---|---|---|---|---|\n",
            title);
    for (size_t i = 0; i < n; i++) write_row(f, list[i]);
}

ats_code ats_metrics_markdown(ats_arena *arena, const char **out, ats_err *err)
{
#define ATS_METRIC_POINTER(name) &ats_metric_##name,
    static const ats_metric *const route[] = {ATS_ROUTE_METRICS(ATS_METRIC_POINTER)};
    static const ats_metric *const payload[] = {ATS_PAYLOAD_METRICS(ATS_METRIC_POINTER)};
    static const ats_metric *const threshold[] = {ATS_THRESHOLD_METRICS(ATS_METRIC_POINTER)};
    static const ats_metric *const sharpness[] = {ATS_SHARPNESS_METRICS(ATS_METRIC_POINTER)};
#undef ATS_METRIC_POINTER
    enum { ROOM = 1 << 16 };
    char *text = NULL;
    ats_code rc = ATS_NEW0(arena, ROOM, &text, err);
    if (rc != ATS_OK || text == NULL) return rc;
    FILE *f = fmemopen(text, ROOM - 1, "w");
    if (f == NULL) return ats_fail(err, ATS_E_MEMORY, "out of memory for the metrics page");
    fputs(head, f);
    write_table(f, "Route", route, sizeof route / sizeof *route);
    write_table(f, "Payload", payload, sizeof payload / sizeof *payload);
    write_table(f, "Dose law, thresholds, weight against contribution", threshold,
                sizeof threshold / sizeof *threshold);
    write_table(f, "Why the base's route is sharp (with `metrics: {sharpness: true}`)", sharpness,
                sizeof sharpness / sizeof *sharpness);
    fputs(tail, f);
    if (fclose(f) != 0) return ats_fail(err, ATS_E_INTERNAL, "the metrics page outgrew its buffer");
    *out = text;
    return ATS_OK;
}

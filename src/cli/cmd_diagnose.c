#include <jansson.h>
#include <math.h>
#include <string.h>

#include "cli/command.h"
#include "cli/style.h"
#include "cli/session.h"
#include "engine/diagnose.h"

static const ats_option options[] = {
    {"samples", 0, ATS_OPT_VALUE, "N", "Look at the first N samples (all).", false},
    {"layers", 0, ATS_OPT_VALUE, "N", "Look at the first N layers (all).", false},
    {"role", 0, ATS_OPT_VALUE, "ROLE", "Probes of this role (the last probe of each sample).",
     false},
    {"contributions", 0, ATS_OPT_FLAG, NULL,
     "Also rank keys by weight and by contribution, and count where the two disagree.", false},
    {"top", 0, ATS_OPT_VALUE, "K", "Keys in those lists (8).", false},
    {"seed", 0, ATS_OPT_VALUE, "N", "Seed of the query rotations (1).", false},
    {"json", 0, ATS_OPT_FLAG, NULL, "Print every row as JSON.", false},
};

static int64_t layer_number(const ats_capture *capture, int64_t l)
{
    return capture->layers[l].index;
}

static void print_heads(const ats_capture *capture, const ats_diagnose_report *report)
{
    printf("%5s %4s  %-12s %5s %6s %6s  %5s %5s %5s %5s %5s  %5s %5s %6s %5s\n", "layer", "head",
           "cause", "rows", "H", "top w", "align", "norm", "scale", "temp", "mask", "cos", "norm",
           "stays", "sd");
    for (int64_t i = 0; i < report->n_heads; i++) {
        const ats_diagnose_head *h = &report->heads[i];
        const int64_t defined = h->rows - h->labels[ATS_CAUSE_UNDEFINED];
        printf("%5lld %4lld  %s%-12s%s %2lld/%-2lld %6.2f %6.3f ",
               (long long)layer_number(capture, h->layer), (long long)h->head,
               ats_style(h->label == ATS_CAUSE_MIXED ? "yellow" : "bold"), ats_cause_name(h->label),
               ats_style("off"), (long long)h->labels[h->label], (long long)defined, h->entropy,
               h->max_weight);
        for (int c = 0; c < ATS_N_CAUSES; c++) ats_print_fixed(5, 2, h->share[c]);
        printf(" ");
        ats_print_fixed(5, 2, h->top_cosine);
        ats_print_fixed(5, 2, h->top_norm_ratio);
        printf(" %5.0f%%", 100 * h->top_stays);
        ats_print_fixed(5, 2, h->spread);
        printf("\n");
    }
}

/* One bar a layer: nats of entropy that each cause explains, mean over heads. */
static void print_plot(const ats_capture *capture, const ats_diagnose_report *report)
{
    static const char marks[ATS_N_CAUSES + 1] = "ANSTM";
    double most = 0;
    printf("\nnats explained, mean over heads: A alignment, N norm, S scale, T temperature, M mask "
           "or sink\n");
    for (int pass = 0; pass < 2; pass++)
        for (int64_t l = 0; l < report->n_layers; l++) {
            double share[ATS_N_CAUSES] = {0}, total = 0, shown = 0;
            int64_t n = 0, drawn = 0;
            for (int64_t i = 0; i < report->n_heads; i++) {
                const ats_diagnose_head *h = &report->heads[i];
                if (h->layer != l || h->label == ATS_CAUSE_UNDEFINED) continue;
                for (int c = 0; c < ATS_N_CAUSES; c++) share[c] += h->share[c];
                n++;
            }
            for (int c = 0; c < ATS_N_CAUSES; c++) total += n > 0 ? share[c] / (double)n : 0;
            if (total > most) most = total;
            if (pass == 0) continue;
            printf("layer %3lld |", (long long)layer_number(capture, l));
            for (int c = 0; c < ATS_N_CAUSES && n > 0; c++) {
                shown += share[c] / (double)n;
                for (; most > 0 && (double)drawn < 56 * shown / most - 0.5; drawn++)
                    putchar(marks[c]);
            }
            printf("%*s %.2f\n", (int)(56 - drawn), "", total);
        }
}

static const char *token(const ats_sample *sample, int64_t key, char *out, size_t size)
{
    const char *text = sample->token_text != NULL && key >= 0 && key < sample->n_keys
                           ? sample->token_text[key]
                           : "";
    size_t used = 0;
    for (; *text != '\0' && used + 1 < size; text++)
        out[used++] = *text == '\n' || *text == '\t' || *text == '\r' ? ' ' : *text;
    out[used] = '\0';
    return out;
}

static const char *span_of(const ats_sample *sample, int64_t key)
{
    for (int64_t i = 0; i < sample->n_spans; i++)
        if (key >= sample->spans[i].start && key < sample->spans[i].stop)
            return sample->spans[i].name;
    return "";
}

static void print_list_row(const ats_sample *sample, const ats_diagnose_row_report *row, int64_t i)
{
    char a[16], b[16];
    const int64_t w = row->by_weight[i], c = row->by_contribution[i];
    printf("  %2lld  %6lld %-12s %-10.10s %.4f   %6lld %-12s %-10.10s %.4f %8.4f\n",
           (long long)i + 1, (long long)w, token(sample, w, a, 13), span_of(sample, w),
           row->weight[i], (long long)c, token(sample, c, b, 13), span_of(sample, c),
           row->contribution_weight[i], row->contribution[i]);
}

/* The row where the two rankings share least, of a head that has weight to speak of. */
static void print_example(const ats_capture *capture, const ats_diagnose_report *report)
{
    const ats_diagnose_row_report *found = NULL;
    double largest = 0;
    for (int64_t i = 0; i < report->n_rows; i++) {
        const ats_diagnose_row_report *row = &report->rows[i];
        if (row->n_top == 0 || row->by_weight[0] == row->by_contribution[0]) continue;
        if (row->weight[0] > largest) {
            largest = row->weight[0];
            found = row;
        }
    }
    if (found == NULL) return;
    const ats_sample *sample = &capture->samples[found->sample];
    printf(
        "\nwhere the heaviest key is heaviest and still not the largest contribution: sample %s,\n"
        "layer %lld, head %lld, probe %lld\n      by weight                                   "
        "by contribution                w      |w v|\n",
        sample->id, (long long)layer_number(capture, found->layer), (long long)found->head,
        (long long)found->probe);
    for (int64_t i = 0; i < found->n_top; i++) print_list_row(sample, found, i);
}

static void print_contributions(const ats_capture *capture, const ats_diagnose_report *report,
                                int64_t top)
{
    int64_t differs = 0, rows = 0;
    printf("\nrank by weight against rank by contribution |w v|, lists of %lld keys:\n",
           (long long)top);
    printf("%5s %4s  %16s  %s\n", "layer", "head", "first key differs", "lists in common");
    for (int64_t i = 0; i < report->n_heads; i++) {
        const ats_diagnose_head *h = &report->heads[i];
        const int64_t defined = h->rows - h->labels[ATS_CAUSE_UNDEFINED];
        printf("%5lld %4lld  %8lld of %5lld  %15.0f%%\n",
               (long long)layer_number(capture, h->layer), (long long)h->head,
               (long long)h->first_differs, (long long)defined, 100 * h->overlap);
        differs += h->first_differs;
        rows += defined;
    }
    printf("in %lld of %lld rows the heaviest key is not the key of the largest contribution\n",
           (long long)differs, (long long)rows);
    print_example(capture, report);
    printf("\n%s\n", ats_contribution_caution);
}

static json_t *key_list(const ats_diagnose_row_report *row, bool contribution)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < row->n_top; i++)
        json_array_append_new(
            list,
            json_pack(
                "{s:I, s:o, s:o}", "key",
                (json_int_t)(contribution ? row->by_contribution[i] : row->by_weight[i]), "weight",
                ats_json_real(contribution ? row->contribution_weight[i] : row->weight[i]),
                "contribution", contribution ? ats_json_real(row->contribution[i]) : json_null()));
    return list;
}

static json_t *shares(const double *share)
{
    json_t *out = json_object();
    for (int c = 0; c < ATS_N_CAUSES; c++)
        json_object_set_new(out, ats_cause_name((ats_cause)c), ats_json_real(share[c]));
    return out;
}

static json_t *row_json(const ats_capture *capture, const ats_diagnose_row_report *row)
{
    const ats_diagnosis *d = &row->d;
    json_t *norms = json_array();
    for (int i = 0; i < 5; i++) json_array_append_new(norms, ats_json_real(d->key_norm[i]));
    json_t *out = json_pack(
        "{s:s, s:I, s:I, s:I, s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}",
        "sample", capture->samples[row->sample].id, "layer",
        (json_int_t)layer_number(capture, row->layer), "head", (json_int_t)row->head, "probe",
        (json_int_t)row->probe, "cause", ats_cause_name(d->label), "entropy",
        ats_json_real(d->entropy), "entropy_limit", ats_json_real(d->entropy_limit), "max_weight",
        ats_json_real(d->max_weight), "shares", shares(d->share), "top_key", (json_int_t)d->top_key,
        "legal_keys", (json_int_t)d->legal_keys, "logit_mean", ats_json_real(d->logit_mean),
        "logit_variance", ats_json_real(d->logit_variance), "predicted_variance",
        ats_json_real(d->predicted_variance), "query_norm", ats_json_real(d->query_norm),
        "key_norm_quantiles", norms, "saturation", ats_json_real(d->saturation));
    json_t *more = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "top_cosine",
        ats_json_real(d->top_cosine), "top_norm_ratio", ats_json_real(d->top_norm_ratio),
        "entropy_unit", ats_json_real(d->unit), "entropy_equal_norm", ats_json_real(d->equal_norm),
        "entropy_temperature_2", ats_json_real(d->tau2), "entropy_temperature_4",
        ats_json_real(d->tau4), "entropy_unscaled", ats_json_real(d->unscaled), "entropy_rotated",
        ats_json_real(d->rotated), "top_stays", ats_json_real(d->top_stays), "by_weight",
        key_list(row, false), "by_contribution", key_list(row, true));
    if (out != NULL && more != NULL) json_object_update(out, more);
    json_decref(more);
    return out;
}

static json_t *head_json(const ats_capture *capture, const ats_diagnose_head *h)
{
    return json_pack("{s:I, s:I, s:s, s:I, s:I, s:o, s:o, s:o, s:I, s:o}", "layer",
                     (json_int_t)layer_number(capture, h->layer), "head", (json_int_t)h->head,
                     "cause", ats_cause_name(h->label), "rows", (json_int_t)h->rows,
                     "rows_of_cause", (json_int_t)h->labels[h->label], "shares", shares(h->share),
                     "entropy", ats_json_real(h->entropy), "max_weight",
                     ats_json_real(h->max_weight), "first_key_differs",
                     (json_int_t)h->first_differs, "list_overlap", ats_json_real(h->overlap));
}

static ats_code print_json(const ats_capture *capture, const ats_diagnose_report *report,
                           ats_err *err)
{
    json_t *rows = json_array(), *heads = json_array();
    for (int64_t i = 0; i < report->n_rows; i++)
        json_array_append_new(rows, row_json(capture, &report->rows[i]));
    for (int64_t i = 0; i < report->n_heads; i++)
        json_array_append_new(heads, head_json(capture, &report->heads[i]));
    return ats_json_print(json_pack("{s:s, s:s, s:f, s:s, s:o, s:o}", "capture", capture->path,
                                    "hash", capture->hash, "lead", ATS_DIAGNOSE_LEAD, "caution",
                                    ats_contribution_caution, "heads", heads, "rows", rows),
                          err);
}

static ats_code choose(const ats_args *args, ats_diagnose_options *out, ats_err *err)
{
    const int64_t many = (int64_t)1 << 40;
    int64_t seed = 1;
    ats_code rc;
    ATS_TRY(ats_args_int(args, "samples", 0, 1, many, &out->n_samples, err));
    ATS_TRY(ats_args_int(args, "layers", 0, 1, many, &out->n_layers, err));
    ATS_TRY(ats_args_int(args, "top", 8, 1, ATS_DIAGNOSE_TOP, &out->top, err));
    ATS_TRY(ats_args_int(args, "seed", 1, 0, many, &seed, err));
    out->seed = (uint64_t)seed;
    out->role = ats_args_value(args, "role");
out:
    return rc;
}

static ats_code run(const ats_args *args, ats_err *err)
{
    ats_diagnose_options wanted = {.top = 8};
    ats_diagnose_report report = {.n_rows = 0};
    ats_capture *capture = NULL;
    ats_code rc;
    ATS_TRY(choose(args, &wanted, err));
    ATS_TRY(ats_capture_open(args->operands[0], &capture, err));
    ATS_TRY(ats_diagnose_run(capture, &wanted, &report, err));
    if (ats_args_flag(args, "json")) {
        rc = print_json(capture, &report, err);
        goto out;
    }
    printf("%s: %lld samples, %lld layers, %lld rows%s\n\n", capture->path,
           (long long)(report.n_samples - report.n_skipped), (long long)report.n_layers,
           (long long)report.n_rows,
           report.n_skipped > 0 ? " (samples without such probes left out)" : "");
    print_heads(capture, &report);
    print_plot(capture, &report);
    if (ats_args_flag(args, "contributions")) print_contributions(capture, &report, wanted.top);
out:
    ats_diagnose_fini(&report);
    if (capture != NULL) ats_capture_close(capture);
    return rc;
}

const ats_command ats_cmd_diagnose = {
    .name = "diagnose",
    .operands = "CAPTURE",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "tell why each head's route is sharp, and which keys carry its output",
    .examples = "attnstress diagnose capture.h5\n"
                "attnstress diagnose capture.h5 --role answer --contributions\n"
                "attnstress diagnose capture.h5 --json > causes.json",
    .details = "Five causes are switched off in every combination, and the entropy that comes\n"
               "back is divided among them (Shapley value, nats): alignment of outlying keys\n"
               "with the query, key norms, a scale of 1 in place of 1/sqrt(d), a gain beyond\n"
               "that (long queries, a low temperature), and masks or sinks. A cause is named\n"
               "when it explains 2.5 times as much as the next; else the row is mixed, or\n"
               "diffuse when there is less than a nat to explain. A head gets the label that\n"
               "more than half of its rows have. Columns: H entropy in nats, weight of the\n"
               "heaviest key, nats per cause, cosine and norm (over the median) of the heaviest\n"
               "key, share of 8 query rotations after which it is still heaviest, and the\n"
               "standard deviation of logits that independent q and k would have.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};

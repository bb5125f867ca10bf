#include "report/planted.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const planted_variants[PLANTED_VARIANTS] = {"near/1", "near/4", "near/4!", "far"};
static const char *const spans[] = {"gold", "sink", "recent", "rest", "inserted"};

char planted_folder[] = "planted-XXXXXX";
char planted_base[64], planted_cand[64];

int planted_make_folder(void **state)
{
    (void)state;
    if (mkdtemp(planted_folder) == NULL) return 1;
    snprintf(planted_base, sizeof planted_base, "%s/base.h5", planted_folder);
    snprintf(planted_cand, sizeof planted_cand, "%s/cand.h5", planted_folder);
    return 0;
}

int planted_remove_folder(void **state)
{
    (void)state;
    unlink(planted_base);
    unlink(planted_cand);
    return rmdir(planted_folder);
}

double planted_noise(int64_t a, int64_t b, int64_t c, int64_t d)
{
    uint64_t x = (uint64_t)(a * 1000003 + b * 10007 + c * 101 + d + 12345);
    x = (x ^ (x >> 31)) * 0x7fb5d329728ea185U;
    x = (x ^ (x >> 27)) * 0x81dadef4bc2dd44dU;
    x ^= x >> 33;
    return (double)(x >> 11) * 0x1p-52 - 1;
}

static double standard_value(const planted *p, int64_t sample, int64_t variant, int64_t layer,
                             int64_t head, int64_t probe)
{
    return -0.5 - 0.1 * (double)variant + 0.2 * planted_noise(sample, variant, layer, head) +
           0.05 * (double)probe + p->shift;
}

double planted_one_head(const planted *p, int64_t s, int64_t v, int64_t l, int64_t h, int64_t probe)
{
    (void)probe;
    return -1 + 0.01 * planted_noise(s, v, l, h + 7) + (l == 1 && h == 1 ? p->shift : 0);
}

planted planted_standard(void)
{
    static const char *const ids[] = {"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"};
    planted p = {.n_samples = 8,
                 .n_layers = 2,
                 .n_heads = 3,
                 .n_probes = 2,
                 .skipped = -1,
                 .other_sample = -1,
                 .value = standard_value};
    for (int i = 0; i < 8; i++) p.ids[i] = ids[i];
    return p;
}

static const char *or_standard(const char *value, const char *standard)
{
    return value != NULL ? value : standard;
}

static ats_code open_it(const char *path, const planted *p, ats_results **out, ats_err *err)
{
    enum { CASES = PLANTED_MOST * PLANTED_VARIANTS };
    static const int64_t layers[] = {4, 9, 11, 12}, heads[] = {0, 1, 2, 3};
    static const char *const perturbations[] = {"near", "near", "near", "far"};
    static const char *const arms[] = {"treatment", "treatment", "control", "treatment"};
    static const double doses[] = {1, 4, 4, (double)NAN};
    const char *words[3][PLANTED_MOST], *empty[PLANTED_MOST], *clusters[PLANTED_MOST];
    const char *variant[CASES], *perturbation[CASES], *arm[CASES];
    int64_t sample[CASES], status[CASES];
    double dose[CASES];
    const char *const mine[] = {p->tokens, p->spans, p->probes};
    for (int64_t s = 0; s < p->n_samples; s++) {
        for (int k = 0; k < 3; k++)
            words[k][s] = or_standard(p->other_sample < 0 || p->other_sample == s ? mine[k] : NULL,
                                      "standard");
        empty[s] = "";
        clusters[s] = p->clusters[s] != NULL ? p->clusters[s] : "";
        for (int64_t v = 0; v < PLANTED_VARIANTS; v++) {
            const int64_t c = s * PLANTED_VARIANTS + v;
            variant[c] = planted_variants[v];
            perturbation[c] = perturbations[v];
            arm[c] = arms[v];
            sample[c] = s;
            status[c] = c == p->skipped;
            dose[c] = doses[v];
        }
    }
    const ats_coordinate coordinates[] = {
        {"sample", "sample", ATS_TYPE_TEXT, NULL, "id", .text = p->ids},
        {"layer", "layer", ATS_TYPE_I64, "1", "layer", .i64 = layers},
        {"head", "head", ATS_TYPE_I64, "1", "head", .i64 = heads},
        {"sample_id", "sample", ATS_TYPE_TEXT, NULL, "id", .text = p->ids},
        {"sample_cluster", "sample", ATS_TYPE_TEXT, NULL, "cluster", .text = clusters},
        {"sample_variant_of", "sample", ATS_TYPE_TEXT, NULL, "edited", .text = empty},
        {"sample_tokens", "sample", ATS_TYPE_TEXT, NULL, "tokens", .text = words[0]},
        {"sample_spans", "sample", ATS_TYPE_TEXT, NULL, "spans", .text = words[1]},
        {"sample_probe_rows", "sample", ATS_TYPE_TEXT, NULL, "probes", .text = words[2]},
        {"variant", "case", ATS_TYPE_TEXT, NULL, "variant", .text = variant},
        {"perturbation", "case", ATS_TYPE_TEXT, NULL, "name", .text = perturbation},
        {"arm", "case", ATS_TYPE_TEXT, NULL, "arm", .text = arm},
        {"sample_index", "case", ATS_TYPE_I64, "1", "sample", .i64 = sample},
        {"status", "case", ATS_TYPE_I64, "1", "status", .i64 = status},
        {"dose", "case", ATS_TYPE_F64, "1", "dose", .f64 = dose},
        {"layer_index", "layer", ATS_TYPE_I64, "1", "layer", .i64 = layers},
        {"head_index", "head", ATS_TYPE_I64, "1", "head", .i64 = heads}};
    const ats_attribute attributes[] = {
        {"suite_name", ATS_TYPE_TEXT, .text = or_standard(p->suite_name, "planted")},
        {"suite_hash", ATS_TYPE_TEXT, .text = or_standard(p->suite_hash, "00ff")},
        {"target", ATS_TYPE_TEXT, .text = or_standard(p->target_name, "gold")},
        {"captures", ATS_TYPE_TEXT, .text = "capture.h5"},
        {"capture_hashes", ATS_TYPE_TEXT, .text = or_standard(p->capture_hash, "aa")},
        {"checkpoint", ATS_TYPE_TEXT, .text = or_standard(p->checkpoint, "step 1")},
        {"tool_git", ATS_TYPE_TEXT, .text = or_standard(p->build, "abc")}};
    const ats_results_shape shape = {.n_cases = p->n_samples * PLANTED_VARIANTS,
                                     .n_samples = p->n_samples,
                                     .n_layers = p->n_layers,
                                     .n_heads = p->n_heads,
                                     .n_probes = p->n_probes,
                                     .n_spans = 5,
                                     .n_top = 1,
                                     .d_v = 1,
                                     .span_names = spans,
                                     .detail_head = p->detail_head};
    static const ats_metric *metrics[4];
    const char *const names[] = {"log_mass_shift", "tv", "mass", "retention"};
    for (int i = 0; i < 4; i++) metrics[i] = ats_metric_find(names[i]);
    const ats_results_options options = {.n_metrics = 4,
                                         .metrics = metrics,
                                         .n_coordinates = sizeof coordinates / sizeof *coordinates,
                                         .coordinates = coordinates,
                                         .n_attributes = sizeof attributes / sizeof *attributes,
                                         .attributes = attributes,
                                         .suite_text = "suite: planted\n"};
    return ats_results_create(path, &shape, &options, out, err);
}

/* Mean over probes with detail: head, as the recorder makes it. */
static double cell(const planted *p, int64_t s, int64_t v, int64_t l, int64_t h, int64_t probe)
{
    if (!p->detail_head) return p->value(p, s, v, l, h, probe);
    double sum = 0;
    for (int64_t i = 0; i < p->n_probes; i++) sum += p->value(p, s, v, l, h, i);
    return sum / (double)p->n_probes;
}

static double number(int64_t metric, double shift)
{
    return metric == 0 ? shift : metric == 1 ? -shift : exp(shift);
}

static ats_code put(ats_results *r, const planted *p, int64_t m, bool base, int64_t s, int64_t l,
                    ats_err *err)
{
    const int64_t probes = p->detail_head ? 1 : p->n_probes, width = m == 1 ? 1 : 5;
    const int64_t rows = base ? 1 : PLANTED_VARIANTS;
    float *values = malloc((size_t)(rows * p->n_heads * probes * width) * sizeof *values);
    for (int64_t i = 0; i < rows * p->n_heads * probes * width; i++) {
        const int64_t v = i / width / probes / p->n_heads, h = i / width / probes % p->n_heads;
        const double shift = i % width == 0 ? cell(p, s, v, l, h, i / width % probes) : -0.25;
        values[i] = (float)number(m, shift);
    }
    const ats_block block = {.metric = m, .base = base, .values = values};
    const ats_code rc =
        ats_results_write(r, s, l, s * PLANTED_VARIANTS, PLANTED_VARIANTS, &block, 1, err);
    free(values);
    return rc;
}

ats_code planted_write(const char *path, const planted *p, ats_err *err)
{
    ats_results *r = NULL;
    ats_code rc = open_it(path, p, &r, err);
    if (rc != ATS_OK) return rc;
    for (int64_t s = 0; s < p->n_samples; s++)
        for (int64_t l = 0; l < p->n_layers; l++) {
            for (int64_t m = 0; m < 4; m++) ATS_TRY(put(r, p, m, false, s, l, err));
            ATS_TRY(put(r, p, 2, true, s, l, err));
        }
    return ats_results_finish(r, NULL, 0, err);
out:
    ats_results_abort(r);
    return rc;
}

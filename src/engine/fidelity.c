#include "engine/fidelity.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "engine/problem.h"

const char *const ats_fidelity_names[ATS_FIDELITY_QUANTITIES] = {"log_mass_shift", "inserted_mass",
                                                                 "output_change"};

/* One layer's cells: predicted and real, [quantity][cells], and the head of each. */
typedef struct cells {
    int64_t n;
    double *predicted[ATS_FIDELITY_QUANTITIES], *real[ATS_FIDELITY_QUANTITIES];
    int64_t *head;
} cells;

typedef struct pair {
    const ats_capture *capture;
    int64_t base, perturbed; /* sample indices */
    int64_t layer;
    const ats_attention *base_attention, *attention;
    const uint8_t *target; /* [base n_keys] */
    ats_arena *arena;      /* reset for each key head */
    cells *cells;
} pair;

/* Numbers of one evaluation, kept beyond its emission. */
typedef struct kept {
    ats_arena *arena;
    int64_t rows, n_regions, d_v;
    double *target[2], *inserted[2]; /* [base or variant][rows] log masses */
    float *output[2];                /* [rows, d_v] */
} kept;

static ats_code keep(void *ctx, int64_t variant, int worker, const ats_stats *base,
                     const ats_stats *stats, ats_err *err)
{
    (void)worker, (void)base;
    kept *k = ctx;
    const int side = variant < 0 ? 0 : 1;
    ats_code rc;
    ATS_TRY(ATS_NEW(k->arena, k->rows, &k->target[side], err));
    ATS_TRY(ATS_NEW(k->arena, k->rows, &k->inserted[side], err));
    ATS_TRY(ATS_NEW(k->arena, k->rows * k->d_v, &k->output[side], err));
    for (int64_t r = 0; r < k->rows; r++) {
        const double lse = stats->route.lse[r];
        k->target[side][r] = stats->route.region_lse[r * k->n_regions] - lse;
        k->inserted[side][r] = side == 1 ? stats->pair.inserted_lse[r] - lse
                               : k->n_regions > 1
                                   ? stats->route.region_lse[r * k->n_regions + 1] - lse
                                   : (double)NAN;
    }
    memcpy(k->output[side], stats->route.output, (size_t)(k->rows * k->d_v) * sizeof(float));
out:
    return rc;
}

/* The keys whose mark is 1, as a region. */
static ats_code region_of(ats_arena *arena, int64_t n, const uint8_t *mark, ats_region *out,
                          ats_err *err)
{
    ats_range *ranges = NULL;
    int64_t count = 0;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, n / 2 + 1, &ranges, err));
    for (int64_t i = 0; i < n; i++) {
        if (!mark[i]) continue;
        const int64_t start = i;
        while (i + 1 < n && mark[i + 1]) i++;
        ranges[count++] = (ats_range){start, i + 1};
    }
    *out = (ats_region){.n_ranges = count, .ranges = ranges};
out:
    return rc;
}

/* The problem of a sample with the regions target and, where rows were inserted, those rows. */
static ats_code make_problem(const pair *p, bool perturbed, int64_t kv_head, const ats_pick *pick,
                             ats_problem *out, ats_err *err)
{
    const ats_sample *sample = &p->capture->samples[perturbed ? p->perturbed : p->base];
    const ats_span_axis axis = {.count = 3, .n_named = 0};
    const int64_t n = sample->n_keys;
    ats_region *regions = NULL;
    uint8_t *mark = NULL;
    ats_code rc;
    ATS_TRY(ats_problem_make(p->arena, &p->capture->layers[p->layer], sample,
                             perturbed ? p->attention : p->base_attention, kv_head, pick, &axis, 1,
                             1, out, err));
    ATS_TRY(ATS_NEW0(p->arena, 2, &regions, err));
    ATS_TRY(ATS_NEW0(p->arena, 2 * n, &mark, err));
    for (int64_t i = 0; i < n; i++) {
        const int64_t from = perturbed ? sample->base_index[i] : i;
        mark[i] = from >= 0 && p->target[from];
        mark[n + i] = from < 0;
    }
    ATS_TRY(region_of(p->arena, n, mark, &regions[0], err));
    ATS_TRY(region_of(p->arena, n, mark + n, &regions[1], err));
    out->regions = regions;
    out->n_regions = perturbed ? 2 : 1;
out:
    return rc;
}

static double relative_change(int64_t d, const float *before, const float *after)
{
    double change = 0, norm = 0;
    for (int64_t i = 0; i < d; i++) {
        const double delta = (double)after[i] - (double)before[i];
        change += delta * delta;
        norm += (double)before[i] * (double)before[i];
    }
    return norm > 0 ? sqrt(change / norm) : (double)NAN;
}

static void take(pair *p, const ats_pick *pick, const kept *model, const kept *real)
{
    cells *c = p->cells;
    for (int64_t r = 0; r < model->rows; r++) {
        const int64_t at = c->n++;
        const float *before = model->output[0] + r * model->d_v;
        c->head[at] = pick->heads[r / pick->n_probes];
        c->predicted[ATS_FIDELITY_SHIFT][at] = model->target[1][r] - model->target[0][r];
        c->real[ATS_FIDELITY_SHIFT][at] = real->target[0][r] - model->target[0][r];
        c->predicted[ATS_FIDELITY_INSERTED][at] = exp(model->inserted[1][r]);
        c->real[ATS_FIDELITY_INSERTED][at] = exp(real->inserted[0][r]);
        c->predicted[ATS_FIDELITY_CHANGE][at] =
            relative_change(model->d_v, before, model->output[1] + r * model->d_v);
        c->real[ATS_FIDELITY_CHANGE][at] =
            relative_change(model->d_v, before, real->output[0] + r * model->d_v);
    }
}

static ats_code run_key_head(pair *p, const ats_backend *backend, int64_t kv_head, ats_err *err)
{
    const ats_layer *layer = &p->capture->layers[p->layer];
    const ats_sample *base = &p->capture->samples[p->base];
    ats_pick pick = {0};
    ats_problem before = {0}, after = {0};
    ats_edit edit = {0};
    ats_code rc;
    ATS_TRY(ats_pick_group(p->arena, layer, base, kv_head, &pick, err));
    ATS_TRY(ats_fidelity_edit(p->arena, base, &p->capture->samples[p->perturbed], layer,
                              p->attention, kv_head, &edit, err));
    ATS_TRY(make_problem(p, false, kv_head, &pick, &before, err));
    ATS_TRY(make_problem(p, true, kv_head, &pick, &after, err));
    kept model = {p->arena, before.n_rows, before.n_regions, before.d_v, {0}, {0}, {0}};
    kept real = {p->arena, after.n_rows, after.n_regions, after.d_v, {0}, {0}, {0}};
    ATS_TRY(backend->supports(&before, err));
    ATS_TRY(backend->evaluate(&before, &edit, 1, keep, &model, err));
    ATS_TRY(backend->evaluate(&after, NULL, 0, keep, &real, err));
    take(p, &pick, &model, &real);
out:
    return rc;
}

static bool can_move(const ats_layer *layer)
{
    return layer->positions != ATS_POSITIONS_ABSOLUTE && !layer->rope_dynamic;
}

static ats_code run_pair(pair *p, const ats_backend *backend, ats_err *err)
{
    const ats_layer *layer = &p->capture->layers[p->layer];
    ats_attention base = {0}, perturbed = {0};
    ats_code rc = ATS_OK;
    if (!can_move(layer))
        ATS_TRY(ats_fail(err, ATS_E_UNSUPPORTED,
                         "layer %lld: rows behind an insertion move, and positions of this kind "
                         "(%s) cannot be moved after the fact",
                         (long long)layer->index,
                         layer->rope_dynamic ? "dynamic RoPE" : "absolute"));
    ATS_TRY(ats_attention_load(p->capture, p->base, p->layer, &base, err));
    ATS_TRY(ats_attention_load(p->capture, p->perturbed, p->layer, &perturbed, err));
    p->base_attention = &base;
    p->attention = &perturbed;
    for (int64_t kv = 0; kv < layer->n_kv_heads && rc == ATS_OK; kv++) {
        rc = run_key_head(p, backend, kv, err);
        ats_arena_reset(p->arena);
    }
out:
    ats_attention_fini(&base);
    ats_attention_fini(&perturbed);
    if (rc != ATS_OK)
        rc = ats_prepend(err, rc, "pair %s, %s, layer %lld", p->capture->samples[p->base].id,
                         p->capture->samples[p->perturbed].id, (long long)layer->index);
    return rc;
}

static int64_t find_sample(const ats_capture *capture, const char *id)
{
    for (int64_t s = 0; s < capture->n_samples; s++)
        if (strcmp(capture->samples[s].id, id) == 0) return s;
    return -1;
}

/* The span by name or role; without a wish gold, else the first that is neither sink nor question.
 */
static const char *choose_target(const ats_sample *sample, const char *wanted)
{
    const char *first = NULL;
    for (int64_t i = 0; i < sample->n_spans; i++) {
        const ats_span *span = &sample->spans[i];
        const char *name = wanted != NULL ? wanted : "gold";
        if (strcmp(span->name, name) == 0 || strcmp(span->role, name) == 0) return name;
        if (first == NULL && strcmp(span->role, "sink") != 0 && strcmp(span->role, "question") != 0)
            first = span->name;
    }
    return wanted == NULL ? first : NULL;
}

static ats_code mark_target(ats_arena *arena, const ats_sample *sample, const char *wanted,
                            const char **name, const uint8_t **out, ats_err *err)
{
    const char *target = choose_target(sample, wanted);
    uint8_t *mark = NULL;
    ats_code rc;
    if (target == NULL)
        ATS_TRY(ats_fail(err, ATS_E_USAGE,
                         "sample %s has no span or role \"%s\"; `inspect` lists "
                         "them, --target names one",
                         sample->id, wanted != NULL ? wanted : "gold"));
    ATS_TRY(ATS_NEW0(arena, sample->n_keys, &mark, err));
    for (int64_t i = 0; i < sample->n_spans; i++)
        if (strcmp(sample->spans[i].name, target) == 0 ||
            strcmp(sample->spans[i].role, target) == 0)
            memset(mark + sample->spans[i].start, 1,
                   (size_t)(sample->spans[i].stop - sample->spans[i].start));
    *name = target;
    *out = mark;
out:
    return rc;
}

static ats_trust judge(const ats_association *a)
{
    enum { FEWEST = 8 };
    if (a->n < FEWEST || isnan(a->rank_correlation)) return ATS_TRUST_TOO_FEW;
    if (a->rank_correlation < 0.7) return ATS_TRUST_NONE;
    return a->rank_correlation >= 0.9 && a->slope >= 0.8 && a->slope <= 1.25 ? ATS_TRUST_SIZES
                                                                             : ATS_TRUST_RANKS;
}

const char *ats_trust_sentence(ats_trust trust)
{
    static const char *const sentences[] = {
        [ATS_TRUST_TOO_FEW] = "too few cells, or none that differ: nothing can be said",
        [ATS_TRUST_NONE] = "frozen upstream does not foretell this layer: do not gate on it here",
        [ATS_TRUST_RANKS] = "frozen upstream ranks cells as the model does; its sizes are not the "
                            "model's",
        [ATS_TRUST_SIZES] = "frozen upstream may be read as a quantity here",
    };
    return sentences[trust];
}

/* The heads whose shift is foretold worst. */
static void find_worst(const cells *c, int64_t n_heads, ats_fidelity_layer *out)
{
    for (int64_t h = 0; h < n_heads; h++) {
        double sum = 0;
        int64_t n = 0;
        for (int64_t i = 0; i < c->n; i++) {
            const double error =
                fabs(c->real[ATS_FIDELITY_SHIFT][i] - c->predicted[ATS_FIDELITY_SHIFT][i]);
            if (c->head[i] != h || !isfinite(error)) continue;
            sum += error;
            n++;
        }
        if (n == 0) continue;
        ats_fidelity_head entry = {h, sum / (double)n};
        for (int64_t w = 0; w < ATS_FIDELITY_WORST; w++) {
            if (w < out->n_worst && !(entry.error > out->worst[w].error)) continue;
            const ats_fidelity_head pushed = out->worst[w];
            out->worst[w] = entry;
            if (w >= out->n_worst) {
                out->n_worst = w + 1;
                break;
            }
            entry = pushed;
        }
    }
}

static ats_code make_cells(ats_arena *arena, int64_t room, cells *out, ats_err *err)
{
    cells c = {0};
    ats_code rc;
    for (int q = 0; q < ATS_FIDELITY_QUANTITIES; q++) {
        ATS_TRY(ATS_NEW(arena, room, &c.predicted[q], err));
        ATS_TRY(ATS_NEW(arena, room, &c.real[q], err));
    }
    ATS_TRY(ATS_NEW(arena, room, &c.head, err));
    *out = c;
out:
    return rc;
}

static ats_code run_layer(const ats_capture *capture, int64_t l,
                          const ats_fidelity_options *options, const ats_backend *backend,
                          ats_fidelity_report *report, ats_err *err)
{
    const ats_layer *layer = &capture->layers[l];
    ats_fidelity_layer *out = &report->layers[l];
    ats_arena work = {0}, table = {0};
    cells c = {0};
    int64_t room = 0;
    ats_code rc;
    for (int64_t s = 0; s < capture->n_samples; s++)
        if (capture->samples[s].variant_of != NULL)
            room += layer->n_q_heads * capture->samples[s].n_probes;
    ATS_TRY(make_cells(&table, room, &c, err));
    for (int64_t s = 0; s < capture->n_samples; s++) {
        const char *base = capture->samples[s].variant_of;
        if (base == NULL) continue;
        pair p = {.capture = capture,
                  .base = find_sample(capture, base),
                  .perturbed = s,
                  .layer = l,
                  .arena = &work,
                  .cells = &c};
        const char *name = NULL;
        ATS_TRY(
            mark_target(&table, &capture->samples[p.base], options->target, &name, &p.target, err));
        if (report->target == NULL)
            ATS_TRY(ats_arena_strdup(&report->arena, name, &report->target, err));
        ATS_TRY(run_pair(&p, backend, err));
        ats_progress(l * capture->n_samples + s + 1, capture->n_layers * capture->n_samples,
                     "samples", backend->name);
    }
    out->layer = layer->index;
    for (int q = 0; q < ATS_FIDELITY_QUANTITIES; q++) {
        ATS_TRY(ats_associate(&table, c.n, c.predicted[q], c.real[q], &out->quantity[q], err));
        out->trust[q] = judge(&out->quantity[q]);
    }
    find_worst(&c, layer->n_q_heads, out);
out:
    ats_arena_fini(&work);
    ats_arena_fini(&table);
    return rc;
}

ats_code ats_fidelity_run(const ats_capture *capture, const ats_fidelity_options *options,
                          ats_fidelity_report *out, ats_err *err)
{
    ats_fidelity_report report = {.n_layers = capture->n_layers};
    const ats_backend *backend = NULL;
    ats_code rc;
    for (int64_t s = 0; s < capture->n_samples; s++)
        report.n_pairs += capture->samples[s].variant_of != NULL;
    if (report.n_pairs == 0)
        ATS_TRY(ats_fail(err, ATS_E_INPUT,
                         "%s has no pair: no sample says which other it is a variant of "
                         "(variant_of, base_index); capture the perturbed text too",
                         capture->path));
    ATS_TRY(ats_backend_find(options->backend != NULL ? options->backend : "auto", &backend, err));
    ATS_TRY(ATS_NEW0(&report.arena, capture->n_layers, &report.layers, err));
    report.backend = backend->name;
    for (int64_t l = 0; l < capture->n_layers; l++)
        ATS_TRY(run_layer(capture, l, options, backend, &report, err));
    *out = report;
    report = (ats_fidelity_report){.n_pairs = 0};
out:
    ats_progress(0, 0, "", "");
    ats_fidelity_fini(&report);
    return rc;
}

void ats_fidelity_fini(ats_fidelity_report *report)
{
    ats_arena_fini(&report->arena);
    *report = (ats_fidelity_report){.n_pairs = 0};
}

#include "engine/diagnose.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/parallel.h"
#include "engine/sharpness.h"

const char *const ats_contribution_caution =
    "A weight is not a contribution: w v is what a key adds to this head's output. And a\n"
    "contribution is not responsibility: later layers may cancel, copy or ignore it. So no key\n"
    "in these lists may be said to have caused the model's answer.";

/* One sample and layer being looked at. */
typedef struct unit {
    const ats_capture *capture;
    const ats_diagnose_options *options;
    const ats_sample *sample;
    const ats_layer *layer;
    const ats_attention *attention;
    const ats_span_axis *axis;
    const uint8_t *sinks; /* [n_keys] */
    int64_t n_probes;
    const int64_t *probes;
    ats_arena *work, *arenas;      /* arenas: [ats_threads()] */
    ats_diagnose_row_report *rows; /* [n_q_heads, n_probes] */
} unit;

typedef struct lists {
    const ats_problem *problem;
    ats_diagnose_row_report *rows; /* of the key head */
} lists;

static ats_code take_lists(void *ctx, int64_t variant, int worker, const ats_stats *base,
                           const ats_stats *stats, ats_err *err)
{
    const lists *l = ctx;
    const int64_t k = l->problem->top_k;
    (void)worker, (void)stats, (void)err;
    if (variant >= 0) return ATS_OK;
    for (int64_t row = 0; row < l->problem->n_rows; row++) {
        ats_diagnose_row_report *out = &l->rows[row];
        const ats_route_stats *r = &base->route;
        for (int64_t i = 0; i < k; i++) {
            out->by_weight[i] = r->top_index[row * k + i];
            out->by_contribution[i] = r->topc_index[row * k + i];
            out->weight[i] = r->top_weight[row * k + i];
            out->contribution[i] = r->topc_norm[row * k + i];
            out->contribution_weight[i] = r->topc_weight[row * k + i];
            if (out->by_contribution[i] != -1) out->n_top = i + 1;
        }
    }
    return ATS_OK;
}

static ats_code diagnose_rows(const unit *u, const ats_problem *problem, const ats_pick *pick,
                              ats_diagnose_row_report *rows, ats_err *err)
{
    const ats_sharpness sharpness = {.problem = problem,
                                     .pick = pick,
                                     .sample = u->sample,
                                     .sinks = u->sinks,
                                     .seed = u->options->seed,
                                     .arenas = u->arenas};
    ats_diagnosis *made = NULL;
    ats_code rc = ATS_NEW(u->work, problem->n_rows, &made, err);
    if (rc == ATS_OK) rc = ats_sharpness_rows(&sharpness, made, err);
    for (int64_t row = 0; row < problem->n_rows && rc == ATS_OK; row++) rows[row].d = made[row];
    return rc;
}

static ats_code run_key_heads(const unit *u, ats_err *err)
{
    const int64_t group = u->layer->n_q_heads / u->layer->n_kv_heads;
    const ats_backend *backend = NULL;
    ats_code rc = ats_backend_find("cpu", &backend, err);
    for (int64_t kv = 0; kv < u->layer->n_kv_heads && rc == ATS_OK; kv++) {
        ats_problem problem;
        int64_t *heads = NULL;
        ats_diagnose_row_report *rows = u->rows + kv * group * u->n_probes;
        ATS_TRY(ATS_NEW(u->work, group, &heads, err));
        for (int64_t i = 0; i < group; i++) heads[i] = kv * group + i;
        const ats_pick pick = {group, heads, u->n_probes, u->probes};
        ATS_TRY(ats_problem_make(u->work, u->layer, u->sample, u->attention, kv, &pick, u->axis, 1,
                                 u->options->top, &problem, err));
        lists l = {&problem, rows};
        ATS_TRY(backend->evaluate(&problem, NULL, 0, take_lists, &l, err));
        rc = diagnose_rows(u, &problem, &pick, rows, err);
    }
out:
    return rc;
}

/* Probes of the role, or the last one. */
static ats_code choose_probes(const ats_sample *sample, const char *role, ats_arena *arena,
                              int64_t **out, int64_t *count, ats_err *err)
{
    int64_t *probes = NULL, n = 0;
    ats_code rc = ATS_NEW(arena, sample->n_probes, &probes, err);
    if (rc != ATS_OK) return rc;
    for (int64_t p = 0; p < sample->n_probes; p++)
        if (role != NULL && strcmp(sample->probes[p].role, role) == 0) probes[n++] = p;
    if (role == NULL && sample->n_probes > 0) probes[n++] = sample->n_probes - 1;
    *out = probes;
    *count = n;
    return ATS_OK;
}

typedef struct job {
    const ats_capture *capture;
    const ats_diagnose_options *options;
    const ats_span_axis *axis;
    ats_arena work, *arenas;
    ats_diagnose_report *report;
} job;

static ats_code run_layer(job *j, int64_t s, int64_t l, ats_err *err)
{
    ats_diagnose_report *report = j->report;
    unit u = {.capture = j->capture,
              .options = j->options,
              .sample = &j->capture->samples[s],
              .layer = &j->capture->layers[l],
              .axis = j->axis,
              .work = &j->work,
              .arenas = j->arenas,
              .rows = report->rows + report->n_rows};
    ats_attention attention = {0};
    int64_t *probes = NULL;
    uint8_t *sinks = NULL;
    ats_code rc;
    ats_arena_reset(&j->work);
    ATS_TRY(choose_probes(u.sample, j->options->role, &j->work, &probes, &u.n_probes, err));
    if (u.n_probes == 0) goto out;
    ATS_TRY(ats_sharpness_sinks(&j->work, u.sample, &sinks, err));
    ATS_TRY(ats_attention_load(j->capture, s, l, &attention, err));
    u.attention = &attention;
    u.probes = probes;
    u.sinks = sinks;
    const int64_t n = u.layer->n_q_heads * u.n_probes;
    for (int64_t i = 0; i < n; i++)
        u.rows[i] = (ats_diagnose_row_report){
            .sample = s, .layer = l, .head = i / u.n_probes, .probe = probes[i % u.n_probes]};
    ATS_TRY(run_key_heads(&u, err));
    report->n_rows += n;
out:
    ats_attention_fini(&attention);
    if (rc != ATS_OK)
        rc = ats_prepend(err, rc, "sample %s, layer %lld", u.sample->id, (long long)u.layer->index);
    return rc;
}

static double overlap_of(const ats_diagnose_row_report *row)
{
    int64_t shared = 0;
    for (int64_t i = 0; i < row->n_top; i++)
        for (int64_t k = 0; k < ATS_DIAGNOSE_TOP; k++)
            if (row->by_weight[k] == row->by_contribution[i] && row->by_weight[k] != -1) {
                shared++;
                break;
            }
    return row->n_top > 0 ? (double)shared / (double)row->n_top : (double)NAN;
}

static void add_row(ats_diagnose_head *head, const ats_diagnose_row_report *row)
{
    const ats_diagnosis *d = &row->d;
    head->rows++;
    head->labels[d->label]++;
    if (d->label == ATS_CAUSE_UNDEFINED) return;
    for (int c = 0; c < ATS_N_CAUSES; c++) head->share[c] += d->share[c];
    head->entropy += d->entropy;
    head->max_weight += d->max_weight;
    head->top_stays += d->top_stays;
    head->top_cosine += d->top_cosine;
    head->top_norm_ratio += d->top_norm_ratio;
    head->spread += sqrt(d->predicted_variance);
    head->overlap += overlap_of(row);
    head->first_differs += row->by_weight[0] != row->by_contribution[0];
}

static void close_head(ats_diagnose_head *head)
{
    const double n = (double)(head->rows - head->labels[ATS_CAUSE_UNDEFINED]);
    double *const means[] = {&head->entropy,       &head->max_weight, &head->top_stays,
                             &head->top_cosine,    &head->spread,     &head->overlap,
                             &head->top_norm_ratio};
    for (size_t i = 0; i < sizeof means / sizeof *means; i++) *means[i] /= n;
    for (int c = 0; c < ATS_N_CAUSES; c++) head->share[c] /= n;
    head->label = ats_diagnose_vote(head->labels);
}

static ats_code gather(ats_diagnose_report *report, const ats_capture *capture, ats_err *err)
{
    int64_t first[1024] = {0}, n = 0;
    ats_code rc;
    if (report->n_layers > 1024)
        return ats_fail(err, ATS_E_UNSUPPORTED, "%lld layers; 1024 at most can be diagnosed",
                        (long long)report->n_layers);
    for (int64_t l = 0; l < report->n_layers; l++) {
        first[l] = n;
        n += capture->layers[l].n_q_heads;
    }
    ATS_TRY(ATS_NEW0(&report->arena, n, &report->heads, err));
    report->n_heads = n;
    for (int64_t l = 0; l < report->n_layers; l++)
        for (int64_t h = 0; h < capture->layers[l].n_q_heads; h++) {
            report->heads[first[l] + h].layer = l;
            report->heads[first[l] + h].head = h;
        }
    for (int64_t i = 0; i < report->n_rows; i++)
        add_row(&report->heads[first[report->rows[i].layer] + report->rows[i].head],
                &report->rows[i]);
    for (int64_t i = 0; i < n; i++) close_head(&report->heads[i]);
out:
    return rc;
}

static int64_t limit(int64_t wanted, int64_t have)
{
    return wanted > 0 && wanted < have ? wanted : have;
}

static ats_code count_rows(job *j, int64_t *rows, ats_err *err)
{
    ats_diagnose_report *report = j->report;
    ats_code rc = ATS_OK;
    *rows = 0;
    for (int64_t s = 0; s < report->n_samples; s++) {
        int64_t *probes = NULL, n = 0;
        ATS_TRY(
            choose_probes(&j->capture->samples[s], j->options->role, &j->work, &probes, &n, err));
        report->n_skipped += n == 0;
        for (int64_t l = 0; l < report->n_layers; l++) *rows += n * j->capture->layers[l].n_q_heads;
    }
    if (*rows == 0)
        rc = ats_fail(err, ATS_E_INPUT, "%s: no sample has a probe%s%s%s to diagnose",
                      j->capture->path, j->options->role != NULL ? " of role '" : "",
                      j->options->role != NULL ? j->options->role : "",
                      j->options->role != NULL ? "'" : "");
out:
    return rc;
}

ats_code ats_diagnose_run(const ats_capture *capture, const ats_diagnose_options *options,
                          ats_diagnose_report *out, ats_err *err)
{
    ats_diagnose_report report = {.n_samples = limit(options->n_samples, capture->n_samples),
                                  .n_layers = limit(options->n_layers, capture->n_layers)};
    job j = {.capture = capture, .options = options, .report = &report};
    ats_span_axis axis = {.count = 0};
    const ats_sample **none = NULL;
    int64_t rows = 0;
    ats_code rc;
    ATS_TRY(ATS_NEW0(&report.arena, ats_threads(), &j.arenas, err));
    ATS_TRY(ATS_NEW0(&report.arena, 1, &none, err));
    ATS_TRY(ats_span_axis_of(&report.arena, none, 0, true, &axis, err));
    j.axis = &axis;
    ATS_TRY(count_rows(&j, &rows, err));
    ATS_TRY(ATS_NEW(&report.arena, rows, &report.rows, err));
    for (int64_t s = 0; s < report.n_samples; s++)
        for (int64_t l = 0; l < report.n_layers; l++) {
            ATS_TRY(run_layer(&j, s, l, err));
            ats_progress(s * report.n_layers + l + 1, report.n_samples * report.n_layers, "layers",
                         "diagnose");
        }
    ATS_TRY(gather(&report, capture, err));
    *out = report;
    report = (ats_diagnose_report){.n_rows = 0};
out:
    ats_progress(0, 0, "", "");
    for (int w = 0; j.arenas != NULL && w < ats_threads(); w++) ats_arena_fini(&j.arenas[w]);
    ats_arena_fini(&j.work);
    ats_diagnose_fini(&report);
    return rc;
}

void ats_diagnose_fini(ats_diagnose_report *report)
{
    ats_arena_fini(&report->arena);
    *report = (ats_diagnose_report){.n_rows = 0};
}

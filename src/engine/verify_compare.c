#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "engine/verify_unit.h"
#include "kernels/reference.h"

/* Numbers of a comparison, in the order they are reported. */
enum { LSE, OUTPUT, ENTROPY, MASS, TV, JS, N_NUMBERS };
static const char *const number_names[N_NUMBERS] = {"lse", "output", "entropy", "mass", "tv", "js"};

static ats_code copy(ats_arena *arena, const void *source, int64_t count, size_t size,
                     const void **out, ats_err *err)
{
    void *memory = NULL;
    if (source == NULL) return ATS_OK;
    const ats_code rc = ats_arena_alloc(arena, count, size, &memory, err);
    if (rc != ATS_OK) return rc;
    memcpy(memory, source, (size_t)count * size);
    *out = memory;
    return ATS_OK;
}

ats_code ats_verify_keep(ats_verify_unit *unit, const ats_stats *stats, ats_verify_route *out,
                         ats_err *err)
{
    const ats_problem *p = &unit->problem;
    const int64_t rows = p->n_rows;
    const ats_route_stats *r = &stats->route;
    ats_verify_route kept = {.lse = NULL};
    const struct {
        const void *source;
        int64_t count;
        size_t size;
        const void **target;
    } parts[] = {
        {r->lse, rows, sizeof(double), (const void **)&kept.lse},
        {r->entropy, rows, sizeof(double), (const void **)&kept.entropy},
        {r->region_lse, rows * p->n_regions, sizeof(double), (const void **)&kept.region_lse},
        {r->output, rows * p->d_v, sizeof(float), (const void **)&kept.output},
        {stats->pair.tv, rows, sizeof(double), (const void **)&kept.tv},
        {stats->pair.js, rows, sizeof(double), (const void **)&kept.js},
    };
    ats_code rc = ATS_OK;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        ATS_TRY(copy(unit->arena, parts[i].source, parts[i].count, parts[i].size, parts[i].target,
                     err));
    *out = kept;
out:
    return rc;
}

/* |a - b| / |b|, double sums. */
static double relative_distance(const float *a, const float *b, int64_t n)
{
    double square = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        const double difference = (double)a[i] - (double)b[i];
        square += difference * difference;
        size += (double)b[i] * (double)b[i];
    }
    return square == 0 ? 0 : sqrt(square / size);
}

/* Route b, with every logit `shift` higher, against a. regions: compare span masses too. */
static void compare_rows(const ats_verify_unit *unit, const ats_verify_route *a,
                         const ats_verify_route *b, double shift, double factor, bool regions,
                         ats_law *laws)
{
    const ats_problem *p = &unit->problem;
    const ats_law_bars *bars = &unit->bars;
    for (int64_t row = 0; row < p->n_rows; row++) {
        if (!isfinite(a->lse[row])) continue;
        const double mass = factor * bars->mass[row];
        ats_verify_compare(&laws[LSE], row, fabs(a->lse[row] - (b->lse[row] - shift)),
                           factor * bars->lse[row]);
        ats_verify_compare(
            &laws[OUTPUT], row,
            relative_distance(a->output + row * p->d_v, b->output + row * p->d_v, p->d_v),
            factor * bars->output[row]);
        ats_verify_compare(&laws[ENTROPY], row, fabs(a->entropy[row] - b->entropy[row]),
                           factor * bars->entropy[row]);
        for (int64_t r = 0; regions && r < p->n_regions; r++) {
            const int64_t at = row * p->n_regions + r;
            if (a->region_lse[at] == b->region_lse[at]) continue; /* -inf: no legal key */
            const double log_ratio =
                a->region_lse[at] - a->lse[row] - (b->region_lse[at] - b->lse[row]);
            ats_verify_compare(&laws[MASS], row, fabs(expm1(log_ratio)), mass);
        }
        if (a->tv == NULL || b->tv == NULL) continue;
        ats_verify_compare(&laws[TV], row, fabs(a->tv[row] - b->tv[row]), mass);
        ats_verify_compare(&laws[JS], row, fabs(a->js[row] - b->js[row]), mass);
    }
}

static ats_code report_numbers(ats_verify_unit *unit, const char *label, const char *statement,
                               const ats_law *laws, ats_err *err)
{
    ats_code rc = ATS_OK;
    for (int64_t i = 0; i < N_NUMBERS; i++) {
        const char *name = NULL;
        if (laws[i].rows == 0) continue;
        ATS_TRY(ats_arena_printf(unit->arena, &name, err, "%s.%s", label, number_names[i]));
        ATS_TRY(ats_verify_add(unit, name, statement, &laws[i], err));
    }
out:
    return rc;
}

/* Half a unit in the last place of the coarsest 16-bit type that holds every number, relative:
 * a captured output may have been rounded by the model. 0: float32. */
static double stored_rounding(const float *x, int64_t n)
{
    bool bf16 = true, f16 = true;
    for (int64_t i = 0; i < n && (bf16 || f16); i++) {
        bf16 = bf16 && ats_bf16_to_f32(ats_f32_to_bf16(x[i])) == x[i];
        f16 = f16 && ats_f16_to_f32(ats_f32_to_f16(x[i])) == x[i];
    }
    return bf16 ? 0x1p-8 : f16 ? 0x1p-11 : 0;
}

ats_code ats_verify_parity(ats_verify_unit *unit, const ats_route_stats *base, ats_err *err)
{
    const ats_problem *p = &unit->problem;
    const ats_attention *t = unit->attention;
    const int64_t n_probes = unit->sample->n_probes, d_v = p->d_v;
    ats_law out = {.worst_row = -1}, lse = {.worst_row = -1};
    const double rounding =
        t->out != NULL ? stored_rounding(t->out, unit->layer->n_q_heads * n_probes * d_v) : 0;
    for (int64_t row = 0; row < p->n_rows; row++) {
        const int64_t head = unit->pick.heads[row / p->n_probes];
        const int64_t at = head * n_probes + unit->pick.probes[row % p->n_probes];
        if (t->out != NULL)
            ats_verify_compare(&out, row,
                               relative_distance(base->output + row * d_v, t->out + at * d_v, d_v),
                               unit->bars.output[row] + rounding);
        if (t->lse != NULL)
            ats_verify_compare(&lse, row, fabs(base->lse[row] - (double)t->lse[at]),
                               unit->bars.lse[row]);
    }
    ats_code rc = ATS_OK;
    if (t->out == NULL)
        ATS_TRY(ats_verify_not_applicable(unit, "parity.out",
                                          "the capture lacks the model's own output", err));
    else
        ATS_TRY(ats_verify_add(unit, "parity.out",
                               "attention over the stored words gives the model's own output "
                               "(relative L2)",
                               &out, err));
    if (t->lse == NULL)
        ATS_TRY(ats_verify_not_applicable(unit, "parity.lse",
                                          "the capture lacks the model's own LSE", err));
    else
        ATS_TRY(ats_verify_add(unit, "parity.lse",
                               "attention over the stored words gives the model's own LSE (nats)",
                               &lse, err));
out:
    return rc;
}

/* What a second evaluation is compared with, and how. */
typedef struct second {
    ats_verify_unit *unit;
    double shift, factor;
    bool regions;
    ats_law (*laws)[N_NUMBERS]; /* [n_edits + 1] */
} second;

static ats_code compare_emitted(void *ctx, int64_t variant, int worker, const ats_stats *base,
                                const ats_stats *stats, ats_err *err)
{
    (void)worker, (void)base, (void)err;
    const second *s = ctx;
    const ats_route_stats *r = &stats->route;
    const ats_verify_route route = {.lse = r->lse,
                                    .entropy = r->entropy,
                                    .region_lse = r->region_lse,
                                    .output = r->output,
                                    .tv = variant < 0 ? NULL : stats->pair.tv,
                                    .js = variant < 0 ? NULL : stats->pair.js};
    compare_rows(s->unit, &s->unit->routes[variant + 1], &route, s->shift, s->factor, s->regions,
                 s->laws[variant + 1]);
    return ATS_OK;
}

static ats_code evaluate_second(ats_verify_unit *unit, const ats_backend *backend,
                                const ats_problem *problem, const ats_edit *edits, int64_t n_edits,
                                second how, const char *label, const char *statement, ats_err *err)
{
    ats_code rc;
    how.unit = unit;
    ATS_TRY(ATS_NEW0(unit->arena, n_edits + 1, &how.laws, err));
    ATS_TRY(backend->evaluate(problem, edits, n_edits, compare_emitted, &how, err));
    for (int64_t i = 0; i <= n_edits; i++)
        ATS_TRY(report_numbers(unit, label, statement, how.laws[i], err));
out:
    return rc;
}

ats_code ats_verify_agreement(ats_verify_unit *unit, ats_err *err)
{
    const ats_backend *reference = NULL;
    ats_err refusal = {.code = ATS_OK};
    ats_edit edits[ATS_VERIFY_EDITS];
    ats_code rc = ats_backend_find("reference", &reference, err);
    if (rc != ATS_OK) goto out;
    if (reference->supports(&unit->problem, &refusal) != ATS_OK)
        return ats_verify_not_applicable(unit, "reference", refusal.text, err);
    for (int64_t i = 0; i < unit->n_edits; i++) edits[i] = unit->edits[i].edit;
    ATS_TRY(evaluate_second(unit, reference, &unit->problem, edits, unit->n_edits,
                            (second){.factor = 1, .regions = true}, "reference",
                            "the backend agrees with the double-precision reference", err));
out:
    return rc;
}

static ats_code permuted_rows(ats_arena *arena, const int64_t *order, const void *source,
                              ats_dtype dtype, int64_t n, int64_t d, const void **out, ats_err *err)
{
    const size_t size = ats_dtype_size(dtype) * (size_t)d;
    char *rows = NULL;
    const ats_code rc = ats_arena_alloc(arena, n, size, (void **)&rows, err);
    if (rc != ATS_OK) return rc;
    for (int64_t i = 0; i < n; i++)
        memcpy(rows + (size_t)i * size, (const char *)source + (size_t)order[i] * size, size);
    *out = rows;
    return ATS_OK;
}

/* Positions, segments, masks and biases follow their keys. */
static ats_code permute_marks(ats_arena *arena, const ats_problem *p, const int64_t *order,
                              ats_problem *out, ats_err *err)
{
    const int64_t n = p->n_keys;
    int64_t *position = NULL;
    int32_t *segment = NULL;
    uint8_t *keep = NULL;
    const float **bias = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, n, &position, err));
    if (p->key_segment != NULL) ATS_TRY(ATS_NEW(arena, n, &segment, err));
    if (p->keep != NULL) ATS_TRY(ATS_NEW(arena, p->n_probes * n, &keep, err));
    if (p->bias != NULL) ATS_TRY(ATS_NEW(arena, p->n_rows, &bias, err));
    for (int64_t i = 0; i < n; i++) {
        position[i] = p->key_pos[order[i]];
        if (segment != NULL) segment[i] = p->key_segment[order[i]];
        for (int64_t r = 0; keep != NULL && r < p->n_probes; r++)
            keep[r * n + i] = p->keep[r * n + order[i]];
    }
    for (int64_t row = 0; bias != NULL && row < p->n_rows; row++) {
        float *plane = NULL;
        ATS_TRY(ATS_NEW(arena, n, &plane, err));
        for (int64_t i = 0; i < n; i++) plane[i] = p->bias[row][order[i]];
        bias[row] = plane;
    }
    out->key_pos = position;
    out->key_segment = segment;
    out->keep = keep;
    out->bias = bias;
out:
    return rc;
}

static ats_code check_permuted(ats_verify_unit *unit, const ats_backend *backend, ats_err *err)
{
    const ats_problem *p = &unit->problem;
    ats_problem permuted = *p;
    const ats_range all = {0, p->n_keys};
    const ats_region everything = {.n_ranges = 1, .ranges = &all};
    int64_t *order = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(unit->arena, p->n_keys, &order, err));
    for (int64_t i = 0; i < p->n_keys; i++) order[i] = i;
    ats_rng rng =
        ats_rng_stream(0, unit->sample->id, "verify", unit->layer->index, unit->kv_head, "permute");
    ats_rng_choose(&rng, order, p->n_keys, p->n_keys);
    ATS_TRY(
        permuted_rows(unit->arena, order, p->k, p->k_dtype, p->n_keys, p->d_qk, &permuted.k, err));
    ATS_TRY(
        permuted_rows(unit->arena, order, p->v, p->v_dtype, p->n_keys, p->d_v, &permuted.v, err));
    ATS_TRY(permute_marks(unit->arena, p, order, &permuted, err));
    permuted.n_regions = 1;
    permuted.regions = &everything;
    ATS_TRY(evaluate_second(unit, backend, &permuted, NULL, 0, (second){.factor = 2}, "permuted",
                            "keys permuted with their values change nothing", err));
out:
    return rc;
}

/* Adds a constant to every logit after the soft cap: to the bias and to the sink. Rows without a
 * stored bias share one plane. */
static ats_code check_constant(ats_verify_unit *unit, const ats_backend *backend, ats_err *err)
{
    const float constant = 1.5F;
    const ats_problem *p = &unit->problem;
    ats_problem shifted = *p;
    const float **bias = NULL;
    float *plane = NULL, *sink = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(unit->arena, p->n_rows, &bias, err));
    for (int64_t row = 0; row < p->n_rows; row++) {
        if (p->bias != NULL || row == 0) {
            ATS_TRY(ATS_NEW(unit->arena, p->n_keys, &plane, err));
            for (int64_t i = 0; i < p->n_keys; i++)
                plane[i] = (p->bias != NULL ? p->bias[row][i] : 0.0F) + constant;
        }
        bias[row] = plane;
    }
    if (p->sink != NULL) {
        ATS_TRY(ATS_NEW(unit->arena, p->n_rows, &sink, err));
        for (int64_t row = 0; row < p->n_rows; row++) sink[row] = p->sink[row] + constant;
    }
    shifted.bias = bias;
    shifted.sink = sink;
    ATS_TRY(evaluate_second(
        unit, backend, &shifted, NULL, 0,
        (second){.shift = (double)constant, .factor = 2, .regions = true}, "constant",
        "a constant added to every logit after the cap changes no weight", err));
out:
    return rc;
}

ats_code ats_verify_relations(ats_verify_unit *unit, const ats_backend *backend, ats_err *err)
{
    ats_code rc;
    ATS_TRY(check_permuted(unit, backend, err));
    ATS_TRY(check_constant(unit, backend, err));
out:
    return rc;
}

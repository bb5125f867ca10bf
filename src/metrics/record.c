#include "metrics/record.h"

#include <math.h>
#include <string.h>

#include "metrics/cell.h"
#include "metrics/fold.h"

int64_t ats_metric_width(const ats_metric *metric, const ats_record_shape *shape)
{
    switch (metric->shape) {
    case ATS_SHAPE_SCALAR:
        return 1;
    case ATS_SHAPE_SPAN:
        return shape->n_spans;
    case ATS_SHAPE_PART:
        return ATS_N_PARTS;
    case ATS_SHAPE_TOP:
        return shape->n_top;
    case ATS_SHAPE_READOUT:
        return shape->n_readouts * shape->n_spans;
    case ATS_SHAPE_VECTOR:
        return shape->n_spans * shape->d_v;
    }
    return 0;
}

static int64_t cells_per_case(const ats_record_shape *shape)
{
    return shape->n_heads * (shape->detail_head ? 1 : shape->n_probes);
}

static ats_code allocate(ats_arena *arena, const ats_record_shape *shape, const ats_metric *metric,
                         int64_t cases, float **values, int32_t **integers, ats_err *err)
{
    const int64_t count = cases * cells_per_case(shape) * ats_metric_width(metric, shape);
    return metric->integer ? ATS_NEW(arena, count, integers, err)
                           : ATS_NEW(arena, count, values, err);
}

static ats_code allocate_folds(ats_arena *arena, ats_recorder *r, ats_err *err)
{
    const ats_record_shape *shape = &r->shape;
    bool w_o = false, readout = false;
    for (int64_t m = 0; m < r->n_metrics; m++) {
        w_o |= r->metrics[m]->needs == ATS_NEEDS_W_O;
        readout |= r->metrics[m]->needs == ATS_NEEDS_READOUT;
    }
    ats_code rc = ATS_NEW0(arena, shape->n_heads, &r->folded, err);
    if (rc == ATS_OK && w_o)
        rc = ATS_NEW(arena, shape->n_heads * shape->d_v * shape->d_v, &r->gram, err);
    if (rc == ATS_OK && readout)
        rc = ATS_NEW(arena, shape->n_heads * shape->n_readouts * shape->d_v, &r->readout_rows, err);
    return rc;
}

ats_code ats_recorder_new(ats_arena *arena, const ats_record_shape *shape,
                          const ats_metric *const *metrics, int64_t n_metrics, ats_recorder *out,
                          ats_err *err)
{
    ats_recorder r = {.shape = *shape, .n_metrics = n_metrics, .metrics = metrics};
    ats_code rc = ATS_OK;
    ATS_TRY(ATS_NEW0(arena, n_metrics, &r.values, err));
    ATS_TRY(ATS_NEW0(arena, n_metrics, &r.integers, err));
    ATS_TRY(ATS_NEW0(arena, n_metrics, &r.base_values, err));
    ATS_TRY(ATS_NEW0(arena, n_metrics, &r.base_integers, err));
    const bool count_only = arena->count_only;
    float *values = NULL;
    int32_t *integers = NULL;
    for (int64_t m = 0; m < n_metrics; m++) {
        const ats_metric *metric = metrics[m];
        if (!metric->base_only)
            ATS_TRY(allocate(arena, shape, metric, shape->n_cases,
                             count_only ? &values : &r.values[m],
                             count_only ? &integers : &r.integers[m], err));
        if (metric->has_base || metric->base_only)
            ATS_TRY(allocate(arena, shape, metric, 1, count_only ? &values : &r.base_values[m],
                             count_only ? &integers : &r.base_integers[m], err));
    }
    ATS_TRY(ATS_NEW0(arena, shape->n_cases, &r.undefined, err));
    if (shape->detail_head) {
        ATS_TRY(ATS_NEW(arena, shape->n_cases * shape->n_heads, &r.worst_probe, err));
        ATS_TRY(ATS_NEW(arena, shape->n_cases * shape->n_heads, &r.worst_value, err));
    }
    ATS_TRY(allocate_folds(arena, &r, err));
    if (!count_only) ats_recorder_clear(&r);
    *out = r;
out:
    return rc;
}

static void fill_f32(float *x, int64_t n)
{
    if (x == NULL) return;
    for (int64_t i = 0; i < n; i++) x[i] = NAN;
}

static void fill_i32(int32_t *x, int64_t n, int32_t value)
{
    if (x == NULL) return;
    for (int64_t i = 0; i < n; i++) x[i] = value;
}

void ats_recorder_clear(ats_recorder *r)
{
    const ats_record_shape *shape = &r->shape;
    for (int64_t m = 0; m < r->n_metrics; m++) {
        const int64_t one = cells_per_case(shape) * ats_metric_width(r->metrics[m], shape);
        fill_f32(r->values[m], shape->n_cases * one);
        fill_i32(r->integers[m], shape->n_cases * one, r->metrics[m]->fill);
        fill_f32(r->base_values[m], one);
        fill_i32(r->base_integers[m], one, r->metrics[m]->fill);
    }
    fill_i32(r->worst_probe, shape->n_cases * shape->n_heads, -1);
    fill_f32(r->worst_value, shape->n_cases * shape->n_heads);
    memset(r->undefined, 0, (size_t)shape->n_cases * sizeof *r->undefined);
    memset(r->folded, 0, (size_t)shape->n_heads * sizeof *r->folded);
}

/* One call of ats_record: what its loops share. */
typedef struct recording {
    ats_recorder *recorder;
    const ats_record_place *place;
    ats_cell cell; /* of the whole call; row, span, part and the head's fields change */
    bool base;
    int64_t n_heads; /* of the problem */
} recording;

static void fold_head(recording *rec, int64_t head)
{
    ats_recorder *r = rec->recorder;
    const ats_record_place *place = rec->place;
    const int64_t d_v = rec->cell.problem->d_v, room = r->shape.d_v, axis = place->head[head];
    const float *w_o = place->w_o[head];
    if (r->gram != NULL) ats_fold_gram(w_o, d_v, place->d_model, r->gram + axis * room * room);
    if (r->readout_rows != NULL && place->readouts != NULL)
        for (int64_t i = 0; i < r->shape.n_readouts; i++)
            ats_fold_readout(w_o, place->readouts + i * place->d_model, d_v, place->d_model,
                             r->readout_rows + (axis * r->shape.n_readouts + i) * room);
    r->folded[axis] = 1;
}

static ats_code enter_head(recording *rec, int64_t head, ats_err *err)
{
    ats_recorder *r = rec->recorder;
    const int64_t axis = rec->place->head[head];
    rec->cell.w_o = rec->place->w_o != NULL ? rec->place->w_o[head] : NULL;
    rec->cell.gram = NULL;
    if (rec->cell.w_o == NULL || (r->gram == NULL && r->readout_rows == NULL)) return ATS_OK;
    if (rec->base) fold_head(rec, head);
    if (!r->folded[axis])
        return ats_fail(err, ATS_E_INTERNAL,
                        "head %lld: a variant is recorded before its base, so the head's W_O is "
                        "not folded yet; record the base first",
                        (long long)axis);
    if (r->gram != NULL) rec->cell.gram = r->gram + axis * r->shape.d_v * r->shape.d_v;
    return ATS_OK;
}

/* Sets span, part and readout for number x of a cell. */
static void aim(recording *rec, const ats_metric *metric, int64_t x)
{
    const ats_record_shape *shape = &rec->recorder->shape;
    ats_cell *cell = &rec->cell;
    int64_t span = x;
    cell->part = x;
    if (metric->shape == ATS_SHAPE_VECTOR) {
        span = x / shape->d_v;
        cell->part = x % shape->d_v;
    } else if (metric->shape == ATS_SHAPE_READOUT) {
        span = x % shape->n_spans;
        const int64_t readout = x / shape->n_spans, row = cell->row / cell->problem->n_probes;
        cell->readout =
            rec->place->readouts == NULL ? NULL : rec->place->readouts + readout * cell->d_model;
        cell->readout_row =
            cell->readout == NULL || cell->w_o == NULL
                ? NULL
                : rec->recorder->readout_rows +
                      (rec->place->head[row] * shape->n_readouts + readout) * shape->d_v;
    }
    cell->span = span == shape->n_spans - 1 ? ATS_SPAN_INSERTED : span;
}

static bool row_defined(const ats_route_stats *route, int64_t row)
{
    return route->lse[row] > -(double)INFINITY; /* false for NaN too */
}

/* adding 0 turns -0 into 0: an entropy of nothing is not "-0" */
static float to_f32(double x) { return (float)(x + 0.0); }

static double value_at(recording *rec, const ats_metric *metric, int64_t row, int64_t x)
{
    rec->cell.row = row;
    aim(rec, metric, x);
    return metric->value(&rec->cell);
}

static void put(recording *rec, int64_t m, int64_t at, double value)
{
    ats_recorder *r = rec->recorder;
    if (r->metrics[m]->integer)
        (rec->base ? r->base_integers : r->integers)[m][at] = (int32_t)value;
    else
        (rec->base ? r->base_values : r->values)[m][at] = to_f32(value);
}

static bool wanted(const recording *rec, int64_t m)
{
    const ats_recorder *r = rec->recorder;
    return rec->base ? r->base_values[m] != NULL || r->base_integers[m] != NULL
                     : r->values[m] != NULL || r->integers[m] != NULL;
}

/* Cells of the arrays of one case before (case, head). */
static int64_t cell_of(const recording *rec, int64_t axis)
{
    const ats_record_shape *shape = &rec->recorder->shape;
    const int64_t first = rec->base ? 0 : rec->place->case_index * shape->n_heads;
    return (first + axis) * (shape->detail_head ? 1 : shape->n_probes);
}

static void record_row(recording *rec, int64_t row, int64_t cell)
{
    const ats_recorder *r = rec->recorder;
    for (int64_t m = 0; m < r->n_metrics; m++) {
        if (!wanted(rec, m)) continue;
        const int64_t width = ats_metric_width(r->metrics[m], &r->shape);
        for (int64_t x = 0; x < width; x++)
            put(rec, m, cell * width + x, value_at(rec, r->metrics[m], row, x));
    }
}

/* Lowest log_mass_shift of the target; in the base, where nothing shifts, lowest log mass. */
static int64_t worst_probe(recording *rec, int64_t head, double *value)
{
    const ats_record_shape *shape = &rec->recorder->shape;
    const int64_t n_probes = rec->cell.problem->n_probes;
    int64_t worst = -1;
    *value = (double)NAN;
    if (shape->target_span < 0) return worst;
    rec->cell.span =
        shape->target_span == shape->n_spans - 1 ? ATS_SPAN_INSERTED : shape->target_span;
    for (int64_t probe = 0; probe < n_probes; probe++) {
        rec->cell.row = head * n_probes + probe;
        const double after =
            ats_cell_span_lse(&rec->cell, false) - ats_cell_lse(&rec->cell, rec->cell.route);
        const double before =
            ats_cell_span_lse(&rec->cell, true) - ats_cell_lse(&rec->cell, rec->cell.base);
        const double shift = rec->base                     ? after
                             : before == -(double)INFINITY ? (double)NAN
                                                           : after - before;
        if (isnan(shift) || (worst >= 0 && !(shift < *value))) continue;
        worst = probe;
        *value = shift;
    }
    return worst;
}

/* Mean over the probes where the metric is defined; NaN when there is none. */
static double mean_over_probes(recording *rec, const ats_metric *metric, int64_t head, int64_t x)
{
    const int64_t n_probes = rec->cell.problem->n_probes;
    double sum = 0;
    int64_t defined = 0;
    for (int64_t probe = 0; probe < n_probes; probe++) {
        const double value = value_at(rec, metric, head * n_probes + probe, x);
        if (isnan(value)) continue;
        sum += metric->log_mean ? log(value) : value;
        defined++;
    }
    if (defined == 0) return (double)NAN;
    return metric->log_mean ? exp(sum / (double)defined) : sum / (double)defined;
}

static void record_head_mean(recording *rec, int64_t head)
{
    ats_recorder *r = rec->recorder;
    const int64_t axis = rec->place->head[head], cell = cell_of(rec, axis);
    double value;
    const int64_t worst = worst_probe(rec, head, &value);
    if (!rec->base) {
        r->worst_probe[cell] = (int32_t)worst;
        r->worst_value[cell] = to_f32(value);
    }
    const int64_t list_row = head * rec->cell.problem->n_probes + (worst < 0 ? 0 : worst);
    for (int64_t m = 0; m < r->n_metrics; m++) {
        if (!wanted(rec, m)) continue;
        const ats_metric *metric = r->metrics[m];
        const bool list = metric->integer || metric->shape == ATS_SHAPE_TOP;
        const int64_t width = ats_metric_width(metric, &r->shape);
        for (int64_t x = 0; x < width; x++)
            put(rec, m, cell * width + x,
                list ? value_at(rec, metric, list_row, x) : mean_over_probes(rec, metric, head, x));
    }
}

ats_code ats_record(ats_recorder *recorder, const ats_record_place *place,
                    const ats_problem *problem, const ats_stats *base, const ats_stats *stats,
                    ats_err *err)
{
    const ats_record_shape *shape = &recorder->shape;
    ATS_ASSERT(problem->n_regions == shape->n_spans - 1 && problem->n_probes <= shape->n_probes);
    ATS_ASSERT(problem->d_v <= shape->d_v && problem->top_k == shape->n_top);
    const bool is_base = place->case_index < 0;
    recording rec = {.recorder = recorder, .place = place, .base = is_base};
    rec.cell = (ats_cell){.problem = problem,
                          .base = &base->route,
                          .route = &stats->route,
                          .pair = is_base || stats->pair.tv == NULL ? NULL : &stats->pair,
                          .d_model = place->d_model,
                          .diagnoses = place->diagnoses};
    ATS_ASSERT(is_base || rec.cell.pair != NULL);
    rec.n_heads = problem->n_rows / problem->n_probes;
    for (int64_t head = 0; head < rec.n_heads; head++) {
        ATS_ASSERT(place->head[head] >= 0 && place->head[head] < shape->n_heads);
        ats_code rc = enter_head(&rec, head, err);
        if (rc != ATS_OK) return rc;
        for (int64_t probe = 0; probe < problem->n_probes; probe++) {
            const int64_t row = head * problem->n_probes + probe;
            /* several key heads add to one case, perhaps at once */
            if (!is_base && !row_defined(&stats->route, row))
                __atomic_fetch_add(&recorder->undefined[place->case_index], 1, __ATOMIC_RELAXED);
            if (!shape->detail_head)
                record_row(&rec, row, cell_of(&rec, place->head[head]) + probe);
        }
        if (shape->detail_head) record_head_mean(&rec, head);
    }
    return ATS_OK;
}

#include "engine/curve.h"

#include <math.h>
#include <string.h>

#include "engine/run.h"

typedef struct maker {
    ats_arena *arena;
    const ats_plan *plan;
    const ats_outcome *outcome;
    ats_err *err;
} maker;

static double at(const maker *m, ats_curve_table which, int64_t row, int64_t l, int64_t h)
{
    const ats_table *table = &m->outcome->tables.items[ats_curve_table_index(m->plan, which)];
    if (table->metric < 0) return (double)NAN;
    return (double)table->values[(row * m->plan->shape.n_layers + l) * m->plan->shape.n_heads + h];
}

static double dose_of(const maker *m, int64_t c)
{
    const ats_suite *suite = m->plan->suite;
    const ats_variant *v = &suite->variants[c % suite->n_variants];
    const int64_t param = m->plan->curves.dose_param[v->perturbation];
    const ats_family *family = suite->perturbations[v->perturbation].family;
    if (strcmp(family->params[param].name, family->dose) == 0) return m->outcome->cases[c].dose;
    return v->params[param].number;
}

static ats_dose_point point_of(const maker *m, int64_t c, int64_t twin, int64_t l, int64_t h)
{
    ats_dose_point p = {.dose = dose_of(m, c),
                        .log_retention = at(m, ATS_CURVE_SHIFT, c, l, h),
                        .law = at(m, ATS_CURVE_LAW, c, l, h),
                        .log_odds = at(m, ATS_CURVE_ODDS, c, l, h),
                        .rows = (double)m->outcome->cases[c].rows,
                        .margin = at(m, ATS_CURVE_MARGIN, c, l, h),
                        .control_log_retention = NAN,
                        .control_log_odds = NAN,
                        .control_margin = NAN};
    if (twin < 0 || m->outcome->cases[twin].status != ATS_CASE_OK) return p;
    p.control_log_retention = at(m, ATS_CURVE_SHIFT, twin, l, h);
    p.control_log_odds = at(m, ATS_CURVE_ODDS, twin, l, h);
    p.control_margin = at(m, ATS_CURVE_MARGIN, twin, l, h);
    p.control_rows = (double)m->outcome->cases[twin].rows;
    return p;
}

/* Cases of the curve that ran and have a dose. */
static int64_t runs(const maker *m, int64_t sample, const ats_curve_group *group, int64_t *cases)
{
    int64_t n = 0;
    for (int64_t i = 0; i < group->n_variants; i++) {
        const int64_t c = sample * m->plan->suite->n_variants + group->variants[i];
        if (m->outcome->cases[c].status == ATS_CASE_OK && !isnan(dose_of(m, c))) cases[n++] = c;
    }
    return n;
}

static void note_doses(const maker *m, const int64_t *cases, int64_t n, double *count, double *low,
                       double *high)
{
    *low = *high = (double)NAN;
    *count = 0;
    for (int64_t i = 0; i < n; i++) {
        const double dose = dose_of(m, cases[i]);
        bool seen = false;
        for (int64_t j = 0; j < i; j++) seen |= dose_of(m, cases[j]) == dose;
        *count += !seen;
        if (!(dose >= *low)) *low = dose;
        if (!(dose <= *high)) *high = dose;
    }
}

static void summarise(const maker *m, int64_t sample, bool depth, const int64_t *cases, int64_t n,
                      ats_dose_point *points, double *work, ats_dose_summary *out)
{
    const int64_t n_layers = m->plan->shape.n_layers, n_heads = m->plan->shape.n_heads;
    const int64_t n_variants = m->plan->suite->n_variants;
    for (int64_t l = 0; l < n_layers; l++)
        for (int64_t h = 0; h < n_heads; h++) {
            for (int64_t i = 0; i < n; i++) {
                const int64_t twin = m->plan->curves.twin[cases[i] % n_variants];
                points[i] = point_of(m, cases[i], twin < 0 ? -1 : sample * n_variants + twin, l, h);
            }
            const double base_margin = at(m, ATS_CURVE_BASE_MARGIN, sample, l, h);
            out[l * n_heads + h] = depth ? ats_dose_positions(points, n, work)
                                         : ats_dose_summarise(points, n, base_margin, work);
        }
}

ats_code ats_curves_make(ats_arena *arena, const ats_plan *plan, const ats_outcome *outcome,
                         ats_curves *out, ats_err *err)
{
    const ats_curve_groups *groups = &plan->curves;
    const maker m = {arena, plan, outcome, err};
    ats_curves made = {.count = plan->shape.n_curves,
                       .n_layers = plan->shape.n_layers,
                       .n_heads = plan->shape.n_heads};
    const int64_t cells = made.n_layers * made.n_heads, room = plan->suite->n_variants;
    double *doses = NULL, *low = NULL, *high = NULL, *work = NULL;
    ats_dose_point *points = NULL;
    int64_t *cases = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, made.count * cells, &made.cells, err));
    ATS_TRY(ATS_NEW(arena, made.count, &doses, err));
    ATS_TRY(ATS_NEW(arena, made.count, &low, err));
    ATS_TRY(ATS_NEW(arena, made.count, &high, err));
    ATS_TRY(ATS_NEW(arena, room, &points, err));
    ATS_TRY(ATS_NEW(arena, room, &cases, err));
    ATS_TRY(ATS_NEW(arena, 4 * room, &work, err));
    for (int64_t c = 0; c < made.count; c++) {
        const int64_t sample = c / groups->count;
        const int64_t n = runs(&m, sample, &groups->items[c % groups->count], cases);
        note_doses(&m, cases, n, &doses[c], &low[c], &high[c]);
        summarise(&m, sample, groups->items[c % groups->count].depth, cases, n, points, work,
                  made.cells + c * cells);
    }
    made.doses = doses;
    made.dose_min = low;
    made.dose_max = high;
    *out = made;
out:
    return rc;
}

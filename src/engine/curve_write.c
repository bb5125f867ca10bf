#include <math.h>

#include "engine/curve.h"
#include "engine/plan.h"

typedef struct numbers {
    const char *name, *unit, *long_name, *definition;
    double (*value)(const ats_dose_summary *);
    int (*flag)(const ats_dose_summary *); /* instead of value; undefined where value is NaN */
} numbers;

static double strength(const ats_dose_summary *s) { return s->competition_strength; }
static double tolerance(const ats_dose_summary *s) { return s->row_tolerance; }
static double half(const ats_dose_summary *s) { return s->half_dose; }
static double control(const ats_dose_summary *s) { return s->control_half_dose; }
static double breakdown(const ats_dose_summary *s) { return s->breakdown_dose; }
static double excess(const ats_dose_summary *s) { return s->excess; }
static double over(const ats_dose_summary *s) { return s->excess_over_control; }
static double dip(const ats_dose_summary *s) { return s->position_dip; }
static double margin_dip(const ats_dose_summary *s) { return s->position_margin_dip; }
static double lowest(const ats_dose_summary *s) { return s->position_lowest; }
static int half_flag(const ats_dose_summary *s) { return (int)s->half_dose_censored; }
static int control_flag(const ats_dose_summary *s) { return (int)s->control_half_dose_censored; }
static int breakdown_flag(const ats_dose_summary *s) { return (int)s->breakdown_dose_censored; }

#define CENSORED "-1: at or below the stored value, 0: observed, 1: above the stored value"

static const numbers table[] = {
    {"competition_strength", "nats", "how much harder the rows compete than their twin",
     "log(r / r of the control twin), r = mean over inserted rows of exp(z - L): probes in the "
     "logarithm, doses and replicates in the sum; does not depend on the grid of doses",
     strength, NULL},
    {"row_tolerance", "rows", "rows that halve the target by the law",
     "1 / r: retention = 1 / (1 + n r) is 1/2 there; exact in overlay", tolerance, NULL},
    {"half_dose", "1", "dose at which the target keeps half its mass",
     "where the retention of the target, made monotone, crosses 1/2; linear in logit(retention) "
     "against log dose",
     half, NULL},
    {"half_dose_censored", "1", "does the grid hold the half dose", CENSORED, half, half_flag},
    {"control_half_dose", "1", "half dose of the control twin", "half_dose of the control arm",
     control, NULL},
    {"control_half_dose_censored", "1", "does the grid hold the twin's half dose", CENSORED,
     control, control_flag},
    {"breakdown_dose", "1", "dose at which the target is no longer on top",
     "smallest dose of the grid with a margin below 0, mean over probes; 0: so in the base",
     breakdown, NULL},
    {"breakdown_dose_censored", "1", "does the grid hold the breakdown", CENSORED, breakdown,
     breakdown_flag},
    {"excess", "1", "retention beyond the law of competition",
     "mean over log dose of retention - 1 / (1 + n r); 0 in overlay, elsewhere the price of "
     "position",
     excess, NULL},
    {"excess_over_control", "nats", "log retention beyond the control twin's",
     "mean over log dose of log retention - log retention of the control twin", over, NULL},
    {"position_dip", "nats", "how much less mass the target keeps in the middle than at the ends",
     "where the dose is a depth of the context: mean of both ends - least of the middle, of "
     "log mass' - log mass with the control twin's curve taken out",
     dip, NULL},
    {"position_margin_dip", "nats", "the same for the margin",
     "mean of both ends - least of the middle, of the target's margin with the control twin's "
     "curve taken out",
     margin_dip, NULL},
    {"position_lowest", "1", "depth of the least mass", "depth, between the ends, of that least",
     lowest, NULL},
};
enum { N_NUMBERS = sizeof table / sizeof table[0] };

static ats_code fill(ats_arena *arena, const ats_curves *curves, const numbers *from,
                     ats_curve_variable *out, ats_err *err)
{
    const int64_t n = curves->count * curves->n_layers * curves->n_heads;
    float *values = NULL;
    int32_t *integers = NULL;
    ats_code rc =
        from->flag != NULL ? ATS_NEW(arena, n, &integers, err) : ATS_NEW(arena, n, &values, err);
    if (rc != ATS_OK) return rc;
    for (int64_t i = 0; i < n; i++) {
        const ats_dose_summary *cell = &curves->cells[i];
        if (from->flag == NULL)
            values[i] = (float)from->value(cell);
        else
            integers[i] = isnan(from->value(cell)) ? ATS_INTEGER_UNDEFINED : from->flag(cell);
    }
    *out = (ats_curve_variable){from->name,       from->unit, from->long_name,
                                from->definition, values,     integers};
    return ATS_OK;
}

enum { N_TEXTS = 5 };

static ats_code curve_texts(ats_arena *arena, const ats_plan *plan, const char ***texts,
                            int64_t **sample, ats_err *err)
{
    const ats_curve_groups *groups = &plan->curves;
    const int64_t n = plan->shape.n_curves;
    ats_code rc;
    for (int t = 0; t < N_TEXTS; t++) ATS_TRY(ATS_NEW(arena, n, &texts[t], err));
    ATS_TRY(ATS_NEW(arena, n, sample, err));
    for (int64_t c = 0; c < n; c++) {
        const ats_curve_group *group = &groups->items[c % groups->count];
        const ats_perturbation *p = &plan->suite->perturbations[group->perturbation];
        texts[0][c] = group->id;
        texts[1][c] = p->name;
        texts[2][c] = p->family->kind;
        texts[3][c] = group->mode != ATS_MODE_NONE ? ats_mode_name(group->mode) : "";
        texts[4][c] = group->dose_name;
        (*sample)[c] = c / groups->count;
    }
out:
    return rc;
}

static ats_code put_coordinates(ats_arena *arena, const ats_plan *plan, const ats_curves *curves,
                                ats_results *results, ats_err *err)
{
    static const char *const names[N_TEXTS] = {"curve_id", "curve_perturbation", "curve_kind",
                                               "curve_positions", "curve_dose_name"};
    static const char *const titles[N_TEXTS] = {
        "id of the variants without dose and replicate", "name of the perturbation in the suite",
        "family of the perturbation", "what happens to positions", "parameter on the dose axis"};
    const char **texts[N_TEXTS] = {NULL};
    int64_t *sample = NULL, *of_case = NULL;
    ats_coordinate out[N_TEXTS + 5];
    int64_t n = 0;
    ats_code rc;
    ATS_TRY(curve_texts(arena, plan, texts, &sample, err));
    ATS_TRY(ATS_NEW(arena, plan->n_cases, &of_case, err));
    for (int64_t c = 0; c < plan->n_cases; c++) {
        const int64_t group = plan->curves.of_variant[c % plan->suite->n_variants];
        of_case[c] = group < 0 ? -1 : c / plan->suite->n_variants * plan->curves.count + group;
    }
    for (int t = 0; t < N_TEXTS; t++)
        out[n++] = (ats_coordinate){.name = names[t],
                                    .axis = "curve",
                                    .type = ATS_TYPE_TEXT,
                                    .long_name = titles[t],
                                    .text = texts[t]};
    out[n++] = (ats_coordinate){.name = "curve_sample",
                                .axis = "curve",
                                .type = ATS_TYPE_I64,
                                .long_name = "index on the sample axis",
                                .i64 = sample,
                                .index_of = "sample"};
    const char *const real_names[] = {"curve_doses", "curve_dose_min", "curve_dose_max"};
    const char *const real_titles[] = {"distinct doses that ran", "smallest dose", "largest dose"};
    const double *const reals[] = {curves->doses, curves->dose_min, curves->dose_max};
    for (int i = 0; i < 3; i++)
        out[n++] = (ats_coordinate){.name = real_names[i],
                                    .axis = "curve",
                                    .type = ATS_TYPE_F64,
                                    .unit = "1",
                                    .long_name = real_titles[i],
                                    .f64 = reals[i]};
    out[n++] = (ats_coordinate){.name = "curve_index",
                                .axis = "case",
                                .type = ATS_TYPE_I64,
                                .long_name = "dose curve that the case or its twin is a point of, "
                                             "-1: none",
                                .i64 = of_case,
                                .index_of = "curve"};
    rc = ats_results_coordinates(results, out, n, err);
out:
    return rc;
}

ats_code ats_curves_write(ats_arena *arena, const ats_plan *plan, const ats_curves *curves,
                          ats_results *results, ats_err *err)
{
    ats_curve_variable variables[N_NUMBERS];
    ats_code rc = ATS_OK;
    if (curves->count == 0) return ATS_OK;
    ATS_TRY(put_coordinates(arena, plan, curves, results, err));
    for (int i = 0; i < N_NUMBERS; i++) ATS_TRY(fill(arena, curves, &table[i], &variables[i], err));
    rc = ats_results_curves(results, variables, N_NUMBERS, err);
out:
    return rc;
}

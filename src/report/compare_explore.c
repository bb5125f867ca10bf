#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/compare_private.h"

void ats_compare_clusters(const ats_compare_state *s, const double *values, double *clusters)
{
    for (int64_t k = 0; k < s->out->n_clusters; k++) {
        double sum = 0;
        int64_t n = 0;
        for (int64_t i = 0; i < s->n_pairs; i++) {
            if (s->pairs[i].cluster != k || isnan(values[i])) continue;
            sum += values[i];
            n++;
        }
        clusters[k] = n > 0 ? sum / (double)n : (double)NAN;
    }
}

typedef struct explorer {
    ats_compare_state *s;
    ats_compare_resamples *resamples;
    double *side[2];  /* [n_clusters] */
    double *pairs[2]; /* [n_pairs] */
    ats_err *err;
} explorer;

static ats_code measure(explorer *e, const double *base, const double *candidate, bool interval,
                        ats_compare_numbers *out)
{
    ats_compare_clusters(e->s, base, e->side[0]);
    ats_compare_clusters(e->s, candidate, e->side[1]);
    return ats_compare_measure(e->resamples, e->side[0], e->side[1], e->s->out->n_clusters,
                               interval, out, e->err);
}

static ats_code make_cells(explorer *e, ats_compare_cell **out)
{
    ats_compare_state *s = e->s;
    const int64_t n_heads = s->out->n_heads, per = s->out->n_layers * n_heads;
    const int64_t n = s->out->n_what * per;
    ats_compare_cell *cells = NULL;
    double *p = NULL, *q = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW0(s->arena, n, &cells, e->err));
    ATS_TRY(ATS_NEW(s->arena, n, &p, e->err));
    ATS_TRY(ATS_NEW(s->arena, n, &q, e->err));
    for (int64_t i = 0; i < n; i++) {
        ats_compare_cell *c = &cells[i];
        *c = (ats_compare_cell){.what = i / per,
                                .l = i % per / n_heads,
                                .h = i % n_heads,
                                .case_index = s->worst_case[i]};
        ATS_TRY(measure(e, s->cell[0] + i * s->n_pairs, s->cell[1] + i * s->n_pairs, false,
                        &c->numbers));
        p[i] = c->numbers.p;
    }
    ATS_TRY(ats_stat_benjamini_hochberg(s->arena, p, n, q, e->err));
    for (int64_t i = 0; i < n; i++) cells[i].q = q[i];
    *out = cells;
out:
    return rc;
}

/* Cells beyond chance first, then by the size of the drop. */
static bool is_worse(const ats_compare_cell *a, const ats_compare_cell *b, double alpha)
{
    const bool sure_a = a->q <= alpha, sure_b = b->q <= alpha;
    if (sure_a != sure_b) return sure_a;
    return a->numbers.difference < b->numbers.difference;
}

static ats_code explain(explorer *e, ats_compare_cell *c)
{
    const ats_comparison *out = e->s->out;
    ats_text text = {.arena = e->s->arena, .err = e->err};
    ats_text_add(&text, "attnstress explain ");
    ats_text_shell(&text, out->candidate);
    ats_text_add(&text, " --case %lld --layer %lld --head %lld", (long long)c->case_index,
                 (long long)out->layers[c->l], (long long)out->heads[c->h]);
    return ats_text_done(&text, &c->explain);
}

static ats_code find_worst(explorer *e, const ats_compare_cell *cells)
{
    ats_compare_state *s = e->s;
    const int64_t n = s->out->n_what * s->out->n_layers * s->out->n_heads;
    ats_compare_cell *worst = NULL;
    int64_t count = 0;
    ats_code rc;
    ATS_TRY(ATS_NEW(s->arena, ATS_COMPARE_WORST + 1, &worst, e->err));
    for (int64_t i = 0; i < n; i++) {
        if (!(cells[i].numbers.difference < 0)) continue;
        int64_t at = count;
        for (; at > 0 && is_worse(&cells[i], &worst[at - 1], s->options->alpha); at--)
            worst[at] = worst[at - 1];
        worst[at] = cells[i];
        if (count < ATS_COMPARE_WORST) count++;
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t at =
            (worst[i].what * s->out->n_layers + worst[i].l) * s->out->n_heads + worst[i].h;
        ATS_TRY(measure(e, s->cell[0] + at * s->n_pairs, s->cell[1] + at * s->n_pairs, true,
                        &worst[i].numbers));
        if (worst[i].case_index >= 0) ATS_TRY(explain(e, &worst[i]));
    }
    s->out->worst = worst;
    s->out->n_worst = count;
out:
    return rc;
}

/* Means over the treatment variants of a perturbation that have the dose (NaN: any) into e->pairs.
 */
static int64_t mean_variants(explorer *e, int64_t what, double dose)
{
    ats_compare_state *s = e->s;
    const int64_t n_variants = s->out->n_variants;
    int64_t cases = 0;
    for (int64_t i = 0; i < s->n_pairs; i++) {
        double sum[2] = {0, 0};
        int64_t n = 0;
        for (int64_t v = 0; v < n_variants; v++) {
            const double a = s->variant_mean[0][v * s->n_pairs + i];
            if (s->variant_what[v] != what || !s->treatment[v] || isnan(a)) continue;
            if (!isnan(dose) && s->side[0].dose[s->pairs[i].base * n_variants + v] != dose)
                continue;
            sum[0] += a;
            sum[1] += s->variant_mean[1][v * s->n_pairs + i];
            n++;
        }
        for (int k = 0; k < 2; k++) e->pairs[k][i] = n > 0 ? sum[k] / (double)n : (double)NAN;
        cases += n;
    }
    return cases;
}

static ats_code add_summary(explorer *e, ats_compare_row *row, const char *name, int64_t cases)
{
    ats_compare_state *s = e->s;
    double *values = NULL;
    ats_code rc;
    *row = (ats_compare_row){
        .name = name, .claim = ATS_CLAIM_INCONCLUSIVE, .n_cases = cases, .sentence = ""};
    ATS_TRY(ATS_NEW(s->arena, s->out->n_clusters, &values, e->err));
    ATS_TRY(measure(e, e->pairs[0], e->pairs[1], true, &row->numbers));
    for (int64_t k = 0; k < s->out->n_clusters; k++) values[k] = e->side[1][k] - e->side[0][k];
    row->values = values;
    row->p_adjusted = row->numbers.p;
out:
    return rc;
}

/* Mean over layers and heads of the log base mass, a number a sample. */
static void mean_base(explorer *e)
{
    const ats_compare_state *s = e->s;
    const int64_t cells = s->out->n_layers * s->out->n_heads;
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < s->n_pairs; i++) {
            double sum = 0;
            int64_t n = 0;
            for (int64_t c = 0; c < cells; c++) {
                const double x = s->cell[k][c * s->n_pairs + i];
                if (isnan(x)) continue;
                sum += x;
                n++;
            }
            e->pairs[k][i] = n > 0 ? sum / (double)n : (double)NAN;
        }
}

static ats_code make_summary(explorer *e, ats_compare_row *rows)
{
    ats_comparison *out = e->s->out;
    ats_code rc = ATS_OK;
    int64_t n = 0;
    mean_base(e);
    ATS_TRY(add_summary(e, &rows[n++], out->what[0], e->s->n_pairs));
    for (int64_t w = 1; w < out->n_what; w++) {
        const int64_t cases = mean_variants(e, w, (double)NAN);
        if (cases > 0) ATS_TRY(add_summary(e, &rows[n++], out->what[w], cases));
    }
    out->n_rows = out->n_gates + n;
out:
    return rc;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Doses of the treatment variants of a perturbation, each once, ascending. */
static int64_t list_doses(const ats_compare_state *s, int64_t what, double *doses)
{
    int64_t n = 0, kept = 0;
    for (int64_t v = 0; v < s->out->n_variants; v++) {
        const double dose = s->side[0].dose[s->pairs[0].base * s->out->n_variants + v];
        if (s->variant_what[v] == what && s->treatment[v] && !isnan(dose)) doses[n++] = dose;
    }
    qsort(doses, (size_t)n, sizeof *doses, compare_doubles);
    for (int64_t i = 0; i < n; i++)
        if (i == 0 || doses[i] != doses[kept - 1]) doses[kept++] = doses[i];
    return kept;
}

/* Where the mean log mass shift first falls to log 1/2, linear in log dose; NaN: nowhere. */
static double half_dose(const ats_compare_point *points, int64_t n, bool candidate)
{
    const double half = log(0.5);
    for (int64_t i = 0; i + 1 < n; i++) {
        const double a = candidate ? points[i].numbers.candidate : points[i].numbers.base;
        const double b = candidate ? points[i + 1].numbers.candidate : points[i + 1].numbers.base;
        if (!(a > half && b <= half)) continue;
        const double share = (half - a) / (b - a), x = points[i].dose, y = points[i + 1].dose;
        if (x > 0) return x * pow(y / x, share);
        return x + share * (y - x);
    }
    return (double)NAN;
}

static ats_code make_curves(explorer *e)
{
    ats_comparison *out = e->s->out;
    ats_compare_curve *curves = NULL;
    double *doses = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(e->s->arena, out->n_what, &curves, e->err));
    ATS_TRY(ATS_NEW(e->s->arena, out->n_variants, &doses, e->err));
    for (int64_t w = 1; w < out->n_what; w++) {
        const int64_t n = list_doses(e->s, w, doses);
        ats_compare_point *points = NULL;
        if (n < 2 || mean_variants(e, w, (double)NAN) == 0) continue;
        ATS_TRY(ATS_NEW(e->s->arena, n, &points, e->err));
        for (int64_t i = 0; i < n; i++) {
            points[i].dose = doses[i];
            mean_variants(e, w, doses[i]);
            ATS_TRY(measure(e, e->pairs[0], e->pairs[1], true, &points[i].numbers));
        }
        curves[out->n_curves++] = (ats_compare_curve){.perturbation = out->what[w],
                                                      .n = n,
                                                      .points = points,
                                                      .half_base = half_dose(points, n, false),
                                                      .half_candidate = half_dose(points, n, true)};
    }
    out->curves = curves;
    rc = ats_compare_curves(e->s, e->resamples, curves, out->n_curves, e->err);
out:
    return rc;
}

ats_code ats_compare_explore(ats_compare_state *s, ats_compare_resamples *resamples, ats_err *err)
{
    explorer e = {.s = s, .resamples = resamples, .err = err};
    ats_compare_cell *cells = NULL;
    ats_code rc;
    for (int k = 0; k < 2; k++) {
        ATS_TRY(ATS_NEW(s->arena, s->out->n_clusters, &e.side[k], err));
        ATS_TRY(ATS_NEW(s->arena, s->n_pairs, &e.pairs[k], err));
    }
    ATS_TRY(make_cells(&e, &cells));
    s->out->cells = cells;
    ATS_TRY(find_worst(&e, cells));
    ATS_TRY(make_summary(&e, s->rows + s->out->n_gates));
    ATS_TRY(make_curves(&e));
out:
    return rc;
}

#include <math.h>
#include <string.h>

#include "metrics/dose.h"
#include "report/page_private.h"

/* Mean rows inserted by the treatments of a family at one dose. */
static double rows_at(const ats_page_reader *r, const char *name, double dose)
{
    double sum = 0;
    int64_t n = 0;
    for (int64_t c = 0; c < r->result->n_cases; c++) {
        if (r->status[c] != 0 || r->swept[ATS_PAGE_DOSE][c] != dose || !isfinite(r->rows[c]) ||
            strcmp(r->arm[c], "control") == 0 || strcmp(r->perturbation[c], name) != 0)
            continue;
        sum += r->rows[c];
        n++;
    }
    return n > 0 ? sum / (double)n : (double)NAN;
}

/* Does competition alone act: are all curves of this perturbation in overlay? */
static bool is_overlay(const ats_result_curves *curves, const char *name)
{
    bool any = false;
    for (int64_t i = 0; i < curves->n; i++) {
        if (strcmp(curves->perturbation[i], name) != 0) continue;
        if (strcmp(curves->positions[i], "overlay") != 0) return false;
        any = true;
    }
    return any;
}

/* Mean over curves and heads of -log(1 + n r), r = 1 / row tolerance. */
static double law_at(const ats_result_curves *curves, const char *name, double rows)
{
    double sum = 0;
    int64_t n = 0;
    const int64_t cells = curves->n_layers * curves->n_heads;
    for (int64_t i = 0; i < curves->n; i++) {
        if (strcmp(curves->perturbation[i], name) != 0) continue;
        for (int64_t cell = 0; cell < cells; cell++) {
            const double tolerance = curves->row_tolerance[i * cells + cell];
            if (!(tolerance > 0)) continue;
            sum -= log1p(rows / tolerance);
            n++;
        }
    }
    return n > 0 ? sum / (double)n : (double)NAN;
}

static ats_code find_laws(ats_page_reader *r, const ats_result_curves *curves, ats_err *err)
{
    ats_code rc = ATS_OK;
    for (int64_t f = 0; f < r->result->n_families && rc == ATS_OK; f++) {
        ats_page_family *family = &r->result->families[f];
        const ats_page_curve *curve = &family->curve[ATS_PAGE_DOSE];
        if (curve->n == 0 || !is_overlay(curves, family->name)) continue;
        rc = ATS_NEW(r->arena, curve->n, &family->law, err);
        for (int64_t i = 0; i < curve->n && rc == ATS_OK; i++)
            family->law[i] = law_at(curves, family->name, rows_at(r, family->name, curve->x[i]));
    }
    return rc;
}

/* Medians over all distractor curves of each head. */
static ats_code find_half_doses(ats_page_reader *r, const ats_result_curves *curves, ats_err *err)
{
    ats_page_result *x = r->result;
    const int64_t cells = x->n_layers * x->n_heads;
    double *values = NULL;
    int8_t *censored = NULL;
    int64_t *work = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(r->arena, curves->n, &values, err));
    ATS_TRY(ATS_NEW(r->arena, curves->n, &censored, err));
    ATS_TRY(ATS_NEW(r->arena, curves->n, &work, err));
    ATS_TRY(ATS_NEW(r->arena, cells, &x->half_dose, err));
    ATS_TRY(ATS_NEW0(r->arena, cells, &x->half_beyond, err));
    for (int64_t cell = 0; cell < cells; cell++) {
        int64_t n = 0;
        for (int64_t i = 0; i < curves->n; i++) {
            if (strcmp(curves->kind[i], "distractors") != 0) continue;
            values[n] = curves->half_dose[i * cells + cell];
            censored[n++] = curves->half_dose_censored[i * cells + cell];
        }
        const ats_dose_median median = ats_dose_kaplan_meier(values, censored, n, work);
        x->half_dose[cell] = median.median;
        x->half_beyond[cell] = median.censored == ATS_CENSORED_RIGHT;
    }
out:
    return rc;
}

ats_code ats_page_doses(ats_page_reader *reader, ats_err *err)
{
    ats_result_curves curves = {.n = 0};
    ats_code rc;
    ATS_TRY(ats_result_curves_read(reader->file, reader->arena, &curves, err));
    if (curves.n == 0) goto out;
    ATS_TRY(find_laws(reader, &curves, err));
    rc = find_half_doses(reader, &curves, err);
out:
    return rc;
}

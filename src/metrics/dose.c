#include "metrics/dose.h"

#include <math.h>
#include <stdlib.h>

#include "metrics/position.h"

static int by_dose(const void *a, const void *b)
{
    const double x = ((const ats_dose_point *)a)->dose, y = ((const ats_dose_point *)b)->dose;
    return (x > y) - (x < y);
}

typedef struct mean {
    double sum;
    int64_t n;
} mean;

static void add(mean *m, double x)
{
    if (isnan(x)) return;
    m->sum += x;
    m->n++;
}

static double value_of(const mean *m) { return m->n > 0 ? m->sum / (double)m->n : (double)NAN; }

/* log(mean exp(x)): replicates differ in their rows, so odds are averaged and not their logs. */
static double mean_odds(const ats_dose_point *points, int64_t n, bool control, double *rows)
{
    double largest = -(double)INFINITY, sum = 0, all = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = control ? points[i].control_log_odds : points[i].log_odds;
        if (x > largest) largest = x;
    }
    for (int64_t i = 0; i < n; i++) {
        const double x = control ? points[i].control_log_odds : points[i].log_odds;
        const double count = control ? points[i].control_rows : points[i].rows;
        if (isnan(x) || !(count > 0)) continue;
        sum += exp(x - largest);
        all += count;
    }
    *rows = all;
    return all > 0 ? largest + log(sum) : (double)NAN;
}

/* Points of one dose into one. */
static ats_dose_point pool(const ats_dose_point *points, int64_t n)
{
    mean retention = {0}, law = {0}, margin = {0}, control = {0};
    ats_dose_point out = {.dose = points[0].dose};
    for (int64_t i = 0; i < n; i++) {
        add(&retention, points[i].log_retention);
        add(&law, points[i].law);
        add(&margin, points[i].margin);
        add(&control, points[i].control_log_retention);
    }
    out.log_retention = value_of(&retention);
    out.law = value_of(&law);
    out.margin = value_of(&margin);
    out.control_log_retention = value_of(&control);
    out.log_odds = mean_odds(points, n, false, &out.rows);
    out.control_log_odds = mean_odds(points, n, true, &out.control_rows);
    return out;
}

static int64_t pool_doses(ats_dose_point *points, int64_t n)
{
    int64_t kept = 0;
    for (int64_t i = 0, stop; i < n; i = stop) {
        for (stop = i + 1; stop < n && points[stop].dose == points[i].dose;) stop++;
        points[kept++] = pool(points + i, stop - i);
    }
    return kept;
}

static bool inside(double x) { return x > 0 && x < 1; }

static double logit(double x) { return log(x) - log1p(-x); }

/* Where between two points the line from (x0, y0) to (x1, y1) reaches level. */
static double interpolate(double x0, double y0, double x1, double y1, double level)
{
    if (inside(y0) && inside(y1) && inside(level)) {
        y0 = logit(y0);
        y1 = logit(y1);
        level = logit(level);
    }
    return y0 == y1 ? x1 : x0 + (x1 - x0) * (y0 - level) / (y0 - y1);
}

/* Largest lower-set means: value of the falling curve nearest to value[0..n) at place i. */
static double falling(const double *value, int64_t n, int64_t i)
{
    double best = (double)INFINITY;
    for (int64_t start = 0; start <= i; start++) {
        double sum = 0, most = -(double)INFINITY;
        for (int64_t stop = start; stop < n; stop++) {
            sum += value[stop];
            const double average = sum / (double)(stop - start + 1);
            if (stop >= i && average > most) most = average;
        }
        if (most < best) best = most;
    }
    return best;
}

double ats_dose_crossing(const double *dose, const double *value, int64_t n, double level,
                         ats_censoring *censored)
{
    *censored = ATS_CENSORED_NOT;
    if (n == 0) return (double)NAN;
    const bool logarithmic = dose[0] > 0;
    double before = falling(value, n, 0);
    if (before < level) {
        *censored = ATS_CENSORED_LEFT;
        return dose[0];
    }
    for (int64_t i = 1; i < n; i++) {
        const double here = falling(value, n, i);
        if (here < level) {
            const double x0 = logarithmic ? log(dose[i - 1]) : dose[i - 1];
            const double x1 = logarithmic ? log(dose[i]) : dose[i];
            const double x = interpolate(x0, before, x1, here, level);
            return logarithmic ? exp(x) : x;
        }
        before = here;
    }
    *censored = before == level ? ATS_CENSORED_NOT : ATS_CENSORED_RIGHT;
    return dose[n - 1];
}

/* Mean of y over the axis by trapezoids; points without a value are passed over. */
static double mean_over_doses(const double *x, const double *y, int64_t n)
{
    double area = 0, width = 0, only = (double)NAN;
    int64_t last = -1;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(y[i])) continue;
        if (last < 0)
            only = y[i];
        else {
            area += (x[i] - x[last]) * (y[i] + y[last]) / 2;
            width += x[i] - x[last];
        }
        last = i;
    }
    return width > 0 ? area / width : only;
}

/* Pooled points with a defined retention, as columns. */
typedef struct columns {
    int64_t n;
    double *dose, *retention; /* [n] */
} columns;

static void take(const ats_dose_point *points, int64_t n, bool control, columns *out)
{
    out->n = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = control ? points[i].control_log_retention : points[i].log_retention;
        if (isnan(x)) continue;
        out->dose[out->n] = points[i].dose;
        out->retention[out->n++] = exp(x);
    }
}

static void breakdown(const ats_dose_point *points, int64_t n, double base_margin,
                      ats_dose_summary *out)
{
    double last = (double)NAN;
    out->breakdown_dose = (double)NAN;
    if (base_margin < 0) {
        out->breakdown_dose = 0;
        out->breakdown_dose_censored = ATS_CENSORED_LEFT;
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        if (isnan(points[i].margin)) continue;
        last = points[i].dose;
        if (points[i].margin < 0) {
            out->breakdown_dose = last;
            return;
        }
    }
    out->breakdown_dose = last;
    if (!isnan(last)) out->breakdown_dose_censored = ATS_CENSORED_RIGHT;
}

static void excesses(const ats_dose_point *points, int64_t n, double *work, ats_dose_summary *out)
{
    double *x = work, *law = work + n, *control = work + 2 * n;
    const bool logarithmic = n > 0 && points[0].dose > 0;
    for (int64_t i = 0; i < n; i++) {
        x[i] = logarithmic ? log(points[i].dose) : points[i].dose;
        law[i] = isnan(points[i].log_odds) ? (double)NAN
                                           : exp(points[i].log_retention) - exp(points[i].law);
        control[i] = points[i].log_retention - points[i].control_log_retention;
        if (!isfinite(control[i])) control[i] = (double)NAN;
    }
    out->excess = mean_over_doses(x, law, n);
    out->excess_over_control = mean_over_doses(x, control, n);
}

/* log r over all doses: odds and rows are summed, so that the mean of exp(z - L) over rows does not
 * depend on how the grid of doses was chosen. */
static double log_ratio(const ats_dose_point *points, int64_t n, bool control)
{
    double rows = 0;
    const double odds = mean_odds(points, n, control, &rows);
    return odds - log(rows);
}

static ats_dose_summary undefined(void)
{
    const double nan = (double)NAN;
    return (ats_dose_summary){.competition_strength = nan,
                              .row_tolerance = nan,
                              .half_dose = nan,
                              .control_half_dose = nan,
                              .breakdown_dose = nan,
                              .excess = nan,
                              .excess_over_control = nan,
                              .position_dip = nan,
                              .position_margin_dip = nan,
                              .position_lowest = nan};
}

/* What is left when the twin is taken out; a point without a twin stays as it is. */
static double beyond(double value, double control)
{
    return isnan(control) ? value : value - control;
}

ats_dose_summary ats_dose_positions(const ats_dose_point *points, int64_t n, double *work)
{
    ats_dose_summary out = undefined();
    double *depth = work, *value = work + n;
    ats_position_curve curve;
    for (int64_t i = 0; i < n; i++) {
        depth[i] = points[i].dose;
        value[i] = beyond(points[i].log_retention, points[i].control_log_retention);
        out.doses += !isnan(value[i]);
    }
    curve = ats_position_summarise(depth, value, n, work + 2 * n);
    out.position_dip = curve.dip;
    out.position_lowest = curve.lowest;
    for (int64_t i = 0; i < n; i++) value[i] = beyond(points[i].margin, points[i].control_margin);
    out.position_margin_dip = ats_position_summarise(depth, value, n, work + 2 * n).dip;
    return out;
}

ats_dose_summary ats_dose_summarise(ats_dose_point *points, int64_t n, double base_margin,
                                    double *work)
{
    ats_dose_summary out = undefined();
    columns c = {.dose = work, .retention = work + n};
    if (n > 0) qsort(points, (size_t)n, sizeof *points, by_dose);
    const double treatment = log_ratio(points, n, false), control = log_ratio(points, n, true);
    out.competition_strength = treatment - control;
    out.row_tolerance = exp(-treatment);
    n = pool_doses(points, n);
    take(points, n, false, &c);
    out.doses = c.n;
    out.half_dose = ats_dose_crossing(c.dose, c.retention, c.n, 0.5, &out.half_dose_censored);
    take(points, n, true, &c);
    out.control_half_dose =
        ats_dose_crossing(c.dose, c.retention, c.n, 0.5, &out.control_half_dose_censored);
    breakdown(points, n, base_margin, &out);
    excesses(points, n, work, &out);
    return out;
}

/* A dose curve reduced to numbers: one sample, family, layer and head, several doses.
 *
 * The law of competition is retention = 1 / (1 + n r), r = mean exp(z_inserted) / exp(L); it is
 * exact in overlay. Logarithms are natural. Pure functions; points are the caller's. */
#ifndef ATS_METRICS_DOSE_H
#define ATS_METRICS_DOSE_H

#include <stdbool.h>
#include <stdint.h>

/* One dose, means over probes (and replicates): NaN where undefined. */
typedef struct ats_dose_point {
    double dose;
    double log_retention; /* log mass' - log mass of the target, nats; -inf: nothing left */
    double law;           /* -log(1 + n r), nats */
    double log_odds;      /* log(n r), nats */
    double rows;          /* n: rows inserted */
    double margin;        /* of the target, nats */
    /* of the control twin at this dose */
    double control_log_retention, control_log_odds, control_rows, control_margin;
} ats_dose_point;

/* Where a crossing lies against the grid of doses. */
typedef enum ats_censoring {
    ATS_CENSORED_LEFT = -1, /* at or below the first dose */
    ATS_CENSORED_NOT = 0,
    ATS_CENSORED_RIGHT = 1 /* above the last dose */
} ats_censoring;

typedef struct ats_dose_summary {
    double competition_strength; /* log(r treatment / r control), nats */
    double row_tolerance;        /* 1 / r: rows that halve the target by the law */
    double half_dose;            /* NaN: undefined; the end of the grid when censored */
    ats_censoring half_dose_censored;
    double control_half_dose;
    ats_censoring control_half_dose_censored;
    double breakdown_dose; /* first dose of the grid with margin < 0; 0: broken in the base */
    ats_censoring breakdown_dose_censored;
    double excess;              /* mean over log dose of retention - law */
    double excess_over_control; /* mean over log dose of log retention - the twin's, nats */
    int64_t doses;              /* distinct doses with a defined retention */
    /* Only where the axis is a depth, and then nothing above: dips with the twin's curve taken out
     */
    double position_dip;        /* of the target's log mass, nats */
    double position_margin_dip; /* of its margin, nats */
    double position_lowest;     /* depth of the least log mass between the ends */
} ats_dose_summary;

/* points: [n] in any order; replicates share a dose and are averaged in place; sorts them.
 * base_margin: of the target without any edit, nats; NaN: unknown. work: [4 n] room. */
ats_dose_summary ats_dose_summarise(ats_dose_point *points, int64_t n, double base_margin,
                                    double *work);

/* The same where the dose is a depth of the context. Without a control twin nothing is taken out.
 */
ats_dose_summary ats_dose_positions(const ats_dose_point *points, int64_t n, double *work);

/* Dose at which a falling curve crosses `level`: the curve is first made monotone (weighted pools
 * of adjacent violators, Ayer et al. 1955), then interpolated linearly in logit(value) against log
 * dose, on which the law is a straight line; a stretch with a value outside (0, 1) is linear in
 * the value. Where a dose is <= 0 doses count as they are. dose ascending [n], value [n] >= 0. */
double ats_dose_crossing(const double *dose, const double *value, int64_t n, double level,
                         ats_censoring *censored);

/* Kaplan-Meier over samples. A value censored to the right is known to lie above it, one censored
 * to the left at or below it; undefined (NaN) values are left out and counted. */
typedef struct ats_dose_median {
    double median;          /* NaN: no sample; the largest bound when censored to the right */
    ats_censoring censored; /* of the median itself */
    double low, high;       /* 95 % interval, log-log Greenwood (Brookmeyer and Crowley 1982); 0 and
                               INFINITY       where open */
    int64_t n, n_left, n_right, n_undefined;
} ats_dose_median;

/* value, censored: [n]; work: [n] room. */
ats_dose_median ats_dose_kaplan_meier(const double *value, const int8_t *censored, int64_t n,
                                      int64_t *work);

#endif

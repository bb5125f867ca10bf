/* The position curve: a number against the depth of the context at which something stands.
 * Pure functions. */
#ifndef ATS_METRICS_POSITION_H
#define ATS_METRICS_POSITION_H

#include <stdint.h>

typedef struct ats_position_curve {
    double dip;    /* mean of both ends - least of the middle; NaN: fewer than three depths */
    double lowest; /* depth of that least value */
    double slope;  /* last end - first end: positive when late is better */
} ats_position_curve;

/* depth [n] in any order, value [n], work [2 n] room. Values of one depth are averaged, undefined
 * ones left out; the control's curve has been taken out by the caller. */
ats_position_curve ats_position_summarise(const double *depth, const double *value, int64_t n,
                                          double *work);

#endif

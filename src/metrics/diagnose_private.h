/* A row's keys as what its logits are made of. Private to metrics/diagnose*.c. */
#ifndef ATS_METRICS_DIAGNOSE_PRIVATE_H
#define ATS_METRICS_DIAGNOSE_PRIVATE_H

#include "metrics/diagnose.h"

/* Keys that the row could see by causality alone: x = scale |q| |k| cos, then cap, bias, tau. */
typedef struct diagnose_keys {
    int64_t n;
    int64_t *key;                   /* [n] base index */
    uint8_t *legal;                 /* [n] seen in the base */
    uint8_t *sink;                  /* [n] */
    double *norm, *cosine, *offset; /* [n]; offset: bias or ALiBi, logit units */
    double *rotated;                /* [ATS_DIAGNOSE_ROTATIONS, n] cosines to the turned queries */
    double q_norm, scale, softcap, temperature, null_logit; /* -INFINITY: none */
} diagnose_keys;

ATS_MUST_CHECK ats_code ats_diagnose_keys(const ats_problem *problem, int64_t row,
                                          const uint8_t *sinks, const ats_diagnose_draw *draw,
                                          ats_arena *arena, diagnose_keys *out, ats_err *err);

/* One way of computing the route: what is switched off and what replaces it. */
typedef struct diagnose_view {
    const double *cosine; /* [n] instead of the row's */
    double clip, centre;  /* cosines above centre + clip become centre; INFINITY: none */
    double norm;          /* of every key; NaN: its own */
    double q_norm, scale; /* in place of the row's */
    double gain;          /* divides q.k scale */
    double temperature;
    bool everyone;    /* masks lifted, sinks and the null route left out */
    bool spare_sinks; /* clip and norm do not touch sinks */
} diagnose_view;

diagnose_view ats_diagnose_view(const diagnose_keys *keys);

typedef struct diagnose_route {
    double entropy, max_weight, saturation, mean, variance;
    int64_t top; /* place in keys, -1: none */
    int64_t legal;
} diagnose_route;
/* work: [n] room. */
diagnose_route ats_diagnose_route(const diagnose_keys *keys, const diagnose_view *view,
                                  double *work);

#endif

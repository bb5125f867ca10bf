/* What a suite's `select:` section means on opened captures: samples, layers, heads, probes,
 * and the donor of every sample. Axes are the same for all samples: the probe axis is as long as
 * the longest list of chosen probes, shorter lists leave the rest undefined.
 * Ownership: everything lives in the arena; captures stay with the caller. */
#ifndef ATS_ENGINE_SELECT_H
#define ATS_ENGINE_SELECT_H

#include "capture/capture.h"
#include "engine/problem.h"
#include "suite/suite.h"

typedef struct ats_chosen {
    int64_t capture, index; /* captures[capture]->samples[index] */
    const ats_sample *sample;
    int64_t n_probes;
    const int64_t *probes; /* [n_probes] indices into the sample's probes */
    int64_t donor;         /* another sample of the same capture, -1: none */
} ats_chosen;

typedef struct ats_selection {
    int64_t n_captures;
    ats_capture *const *captures; /* of one checkpoint, with the same layers */
    int64_t n_samples;
    const ats_chosen *samples;
    int64_t n_layers;
    const int64_t *layers; /* [n_layers] indices into every capture's layers */
    int64_t n_heads;
    const int64_t *heads; /* [n_heads] query head numbers, ascending */
    uint8_t *head_on;     /* [n_layers, n_heads] 0: the layer lacks the head or it was not chosen */
    int64_t n_probes;     /* length of the probe axis */
    int64_t n_left_out;   /* samples without the wanted probes */
    const char *const *left_out; /* [n_left_out] ids */
} ats_selection;

/* Errors name the suite and the field; a sample without the wanted probes is left out. */
ATS_MUST_CHECK ats_code ats_select_make(ats_arena *arena, const ats_suite *suite,
                                        ats_capture *const *captures, int64_t n_captures,
                                        ats_selection *out, ats_err *err);
/* {by: mass, span, min}: switches off the heads whose mean base mass on the span (over samples and
 * probes) is below min in a layer. Loads tensors and runs the backend on the base. */
ATS_MUST_CHECK ats_code ats_select_by_mass(const ats_suite *suite, const ats_span_axis *axis,
                                           const ats_backend *backend, ats_selection *selection,
                                           ats_err *err);

/* The chosen heads of one layer that share a key head. head: places on the head axis. */
typedef struct ats_group {
    int64_t kv_head, n_heads;
    const int64_t *heads; /* query head numbers */
    const int64_t *place; /* indices on the head axis */
} ats_group;

/* Groups of chosen layer `at` (index into selection->layers), by ascending key head. */
ATS_MUST_CHECK ats_code ats_select_groups(ats_arena *arena, const ats_selection *selection,
                                          int64_t at, ats_group **out, int64_t *count,
                                          ats_err *err);

#endif

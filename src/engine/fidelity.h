/* fidelity: how far the frozen-upstream counterfactual may be trusted, layer by layer.
 *
 * Where a capture holds a sample that the model was really given with rows inserted (variant_of and
 * base_index), the same rows are inserted into the base's attention, with keys and values from the
 * perturbed sample and everything else as the base had it: the prediction. It is compared with the
 * perturbed sample's own attention, head by head and probe by probe.
 * Ownership: a report owns everything it points to; the capture stays with the caller. */
#ifndef ATS_ENGINE_FIDELITY_H
#define ATS_ENGINE_FIDELITY_H

#include "base/edit.h"
#include "capture/capture.h"
#include "metrics/association.h"

typedef struct ats_fidelity_options {
    const char *backend; /* NULL: auto */
    const char *target;  /* name or role of the span; NULL: gold, or the first that is no sink */
} ats_fidelity_options;

/* What is predicted. */
enum {
    ATS_FIDELITY_SHIFT,    /* log mass shift of the target, nats */
    ATS_FIDELITY_INSERTED, /* mass on the inserted rows */
    ATS_FIDELITY_CHANGE,   /* |o' - o| / |o| */
    ATS_FIDELITY_QUANTITIES
};
extern const char *const ats_fidelity_names[ATS_FIDELITY_QUANTITIES];

typedef enum ats_trust {
    ATS_TRUST_TOO_FEW, /* under 8 cells, or no spread */
    ATS_TRUST_NONE,    /* rank correlation under 0.7 */
    ATS_TRUST_RANKS,   /* ranks agree, sizes do not */
    ATS_TRUST_SIZES    /* rank correlation 0.9 or more, slope within 0.8 .. 1.25 */
} ats_trust;

enum { ATS_FIDELITY_WORST = 3 };
typedef struct ats_fidelity_head {
    int64_t head;
    double error; /* mean |real - predicted| of the target's log mass shift, nats */
} ats_fidelity_head;

typedef struct ats_fidelity_layer {
    int64_t layer;                                     /* the model's number */
    ats_association quantity[ATS_FIDELITY_QUANTITIES]; /* x predicted, y real */
    ats_trust trust[ATS_FIDELITY_QUANTITIES];
    int64_t n_worst;
    ats_fidelity_head worst[ATS_FIDELITY_WORST]; /* largest error first */
} ats_fidelity_layer;

typedef struct ats_fidelity_report {
    ats_arena arena;
    const char *target, *backend;
    int64_t n_pairs, n_layers;
    ats_fidelity_layer *layers;
} ats_fidelity_report;

/* Refuses a capture without pairs, pairs whose order or probes differ, and layers whose positions
 * cannot be moved. */
ATS_MUST_CHECK ats_code ats_fidelity_run(const ats_capture *capture,
                                         const ats_fidelity_options *options,
                                         ats_fidelity_report *out, ats_err *err);
void ats_fidelity_fini(ats_fidelity_report *report);
/* What may be done with a layer's frozen-upstream numbers, in one sentence. */
const char *ats_trust_sentence(ats_trust trust);

/* The edit that turns the base sample into the perturbed one for one key head; side rows from the
 * perturbed sample. Base rows that the perturbed sample lacks are hidden. */
ATS_MUST_CHECK ats_code ats_fidelity_edit(ats_arena *arena, const ats_sample *base,
                                          const ats_sample *perturbed, const ats_layer *layer,
                                          const ats_attention *attention, int64_t kv_head,
                                          ats_edit *out, ats_err *err);

#endif

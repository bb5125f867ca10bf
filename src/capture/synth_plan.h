/* The plan of a synthetic capture: which rows are which span, how wide the planted subspace is,
 * and the small things of the file (layers, samples, spans, probes, texts).
 *
 * Keys hold content in the first `content` elements (rotated by RoPE when asked) and a mark of
 * their span in the rest: KAPPA in the span's own `parts` elements. A query's elements there move
 * all logits of one span together, so every row's span masses can be set whatever the content is.
 * Private to capture/synth*.c. Ownership: everything lives in the arena given to the maker. */
#ifndef ATS_CAPTURE_SYNTH_PLAN_H
#define ATS_CAPTURE_SYNTH_PLAN_H

#include "base/arena.h"
#include "base/rng.h"
#include "capture/synth.h"

#define ATS_SYNTH_KAPPA 8.0F /* a power of two: exact in every storage type */

enum ats_synth_class {
    ATS_SYNTH_GOLD,
    ATS_SYNTH_STALE,
    ATS_SYNTH_CURRENT,
    ATS_SYNTH_QUESTION,
    ATS_SYNTH_SINK,
    ATS_SYNTH_DISTRACTOR /* the first of options->distractors */
};

typedef struct ats_synth_plan {
    ats_synth_options options;
    int64_t n_classes; /* spans of a sample; span index == class */
    int64_t parts;     /* elements a class is marked in: 2 for 16-bit storage (high and low part) */
    int64_t content;   /* width of the content, elements */
    const double *share; /* [n_classes] mass asked for */
    ats_capture meta;    /* layers, samples, readouts */
} ats_synth_plan;

ATS_MUST_CHECK ats_code ats_synth_plan_make(ats_arena *arena, const ats_synth_options *options,
                                            ats_synth_plan *out, ats_err *err);
/* Near-normal number (sum of the four bytes of one word): mean 0, variance 1, |x| < 3.46. */
float ats_synth_normal(ats_rng *rng);

/* What one row (query head, probe) really does, from the stored words, in double. */
typedef struct ats_synth_row {
    double lse, null_mass; /* nats; weight of the learned sink */
    double *mass;          /* [n_classes] */
} ats_synth_row;

/* Tensors of one sample and layer; rows: [n_q_heads, n_probes]. `out` and `lse` are filled too. */
ATS_MUST_CHECK ats_code ats_synth_tensors(ats_arena *arena, const ats_synth_plan *plan,
                                          int64_t sample, int64_t layer, ats_attention *out,
                                          ats_synth_row *rows, ats_err *err);

/* The planted truth, collected sample by sample. */
typedef struct ats_synth_truth ats_synth_truth;
ATS_MUST_CHECK ats_code ats_synth_truth_new(const ats_synth_plan *plan, ats_synth_truth **out,
                                            ats_err *err);
/* rows: [n_q_heads, n_probes]; layers of a sample in order. */
ATS_MUST_CHECK ats_code ats_synth_truth_add(ats_synth_truth *truth, int64_t sample, int64_t layer,
                                            const ats_synth_row *rows, ats_err *err);
ATS_MUST_CHECK ats_code ats_synth_truth_write(const ats_synth_truth *truth, const char *path,
                                              ats_err *err);
void ats_synth_truth_free(ats_synth_truth *truth);

#endif

/* Synthetic captures of any size with planted, known truth, deterministic by seed.
 *
 * Keys are built so that every span's exact mass at every probe is the number asked for, and
 * so that the dose at which the target loses the top place is known in closed form. */
#ifndef ATS_CAPTURE_SYNTH_H
#define ATS_CAPTURE_SYNTH_H

#include "capture/capture.h"

typedef struct ats_synth_options {
    uint64_t seed;
    int64_t samples, layers, n_q_heads, n_kv_heads, n_keys, n_probes, d_qk, d_v;
    ats_dtype dtype;
    double gold_mass;       /* mass planted on the span "gold", (0, 1) */
    double distractor_mass; /* mass planted on each of `distractors` spans */
    int64_t distractors;
    int64_t window, chunk;  /* 0: none */
    double softcap;         /* 0: none */
    bool sink, rope, w_o;
    ats_rope_layout layout;
} ats_synth_options;

ats_synth_options ats_synth_defaults(void);
/* Writes the file; the planted truth goes to JSON at truth_path when not NULL (per sample, layer,
 * head, probe: span masses, lse, and the number of exact copies of the strongest distractor
 * at which gold's retention crosses 1/2 in overlay). */
ATS_MUST_CHECK ats_code ats_synth_write(const ats_synth_options *options, const char *path,
                                        const char *truth_path, ats_err *err);

#endif

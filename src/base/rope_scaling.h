/* Inverse frequencies and magnitude factor of rotary embeddings from a configuration's words.
 *
 * The definitions are those of Hugging Face transformers (modeling_rope_utils.py) in double:
 * default, linear, llama3 (Llama 3.1) and yarn (Peng et al. 2023). Pure functions, no state. */
#ifndef ATS_BASE_ROPE_SCALING_H
#define ATS_BASE_ROPE_SCALING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef enum ats_rope_type {
    ATS_ROPE_DEFAULT,
    ATS_ROPE_LINEAR,
    ATS_ROPE_LLAMA3,
    ATS_ROPE_YARN
} ats_rope_type;

/* A number that is 0 was not given, except beta_fast and beta_slow of yarn, which are then 32 and
 * 1. */
typedef struct ats_rope_scaling {
    ats_rope_type type;
    int64_t rotary_dim;                       /* elements of a row that are rotated, even */
    double theta;                             /* rope_theta, the base of the frequencies, > 1 */
    double factor;                            /* context extension, > 0 */
    double attention_factor;                  /* yarn: wins over what factor and mscale give */
    double mscale, mscale_all_dim;            /* yarn, DeepSeek's */
    double beta_fast, beta_slow;              /* yarn, turns within the original context */
    double low_freq_factor, high_freq_factor; /* llama3 */
    double original_max_position;             /* tokens: llama3, yarn */
    bool keep_fractions; /* yarn, `truncate: false`: the ramp ends between pairs */
} ats_rope_scaling;

/* What is missing or out of range, as a sentence about the configuration's keys. */
ATS_MUST_CHECK ats_code ats_rope_scaling_check(const ats_rope_scaling *scaling, ats_err *err);
/* inv_freq: [rotary_dim / 2], radians per position. scaling has passed the check. */
void ats_rope_scaling_frequencies(const ats_rope_scaling *scaling, double *inv_freq);
/* Multiplies cosines and sines, so q and k each: a logit is multiplied by its square. */
double ats_rope_scaling_magnitude(const ats_rope_scaling *scaling);
/* DeepSeek's correction of the softmax scale, from mscale_all_dim: the square of yarn's magnitude
 * for that number; 1 where mscale_all_dim was not given. */
double ats_rope_scaling_softmax(const ats_rope_scaling *scaling);

#endif

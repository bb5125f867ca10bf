#include "base/rope_scaling.h"

#include <math.h>

static const double TAU = 6.283185307179586476925286766559;

static ats_code check_yarn(const ats_rope_scaling *s, ats_err *err)
{
    if (!(s->original_max_position > 0))
        return ats_fail(err, ATS_E_INPUT,
                        "rope type yarn needs original_max_position_embeddings (or "
                        "max_position_embeddings): the context that the model was first trained "
                        "on, in tokens");
    if (s->attention_factor < 0 || s->mscale < 0 || s->mscale_all_dim < 0)
        return ats_fail(err, ATS_E_INPUT,
                        "attention_factor %g, mscale %g and mscale_all_dim %g of rope must not be "
                        "negative",
                        s->attention_factor, s->mscale, s->mscale_all_dim);
    const double fast = s->beta_fast > 0 ? s->beta_fast : 32;
    const double slow = s->beta_slow > 0 ? s->beta_slow : 1;
    if (s->beta_fast < 0 || s->beta_slow < 0 || fast < slow)
        return ats_fail(err, ATS_E_INPUT,
                        "beta_fast %g and beta_slow %g of rope: both are positive and beta_fast "
                        "is not the smaller one",
                        fast, slow);
    return ATS_OK;
}

static ats_code check_llama3(const ats_rope_scaling *s, ats_err *err)
{
    if (!(s->original_max_position > 0))
        return ats_fail(err, ATS_E_INPUT,
                        "rope type llama3 needs original_max_position_embeddings, in tokens");
    if (!(s->low_freq_factor > 0) || !(s->high_freq_factor > s->low_freq_factor))
        return ats_fail(err, ATS_E_INPUT,
                        "rope type llama3 needs low_freq_factor and high_freq_factor with 0 < low "
                        "< high; they are %g and %g",
                        s->low_freq_factor, s->high_freq_factor);
    return ATS_OK;
}

ats_code ats_rope_scaling_check(const ats_rope_scaling *s, ats_err *err)
{
    if (s->rotary_dim < 2 || s->rotary_dim % 2 != 0)
        return ats_fail(err, ATS_E_INPUT, "rotary_dim of rope is %lld; it is even and at least 2",
                        (long long)s->rotary_dim);
    if (!(s->theta > 1) || !isfinite(s->theta))
        return ats_fail(err, ATS_E_INPUT, "rope_theta is %g; it is above 1 (often 10000)",
                        s->theta);
    if (s->type == ATS_ROPE_DEFAULT) return ATS_OK;
    if (!(s->factor > 0) || !isfinite(s->factor))
        return ats_fail(err, ATS_E_INPUT, "factor of rope is %g; this type needs one above 0",
                        s->factor);
    if (s->type == ATS_ROPE_YARN) return check_yarn(s, err);
    return s->type == ATS_ROPE_LLAMA3 ? check_llama3(s, err) : ATS_OK;
}

/* theta^(-2 i / rotary_dim) */
static double plain(const ats_rope_scaling *s, int64_t pair)
{
    return pow(s->theta, -2.0 * (double)pair / (double)s->rotary_dim);
}

/* Wavelengths above the low bound are stretched by factor, those below the high bound are kept,
 * and between them the share of the kept frequency falls linearly with turns per context. */
static double llama3(const ats_rope_scaling *s, double frequency)
{
    const double turns = s->original_max_position * frequency / TAU;
    if (turns > s->high_freq_factor) return frequency;
    if (turns < s->low_freq_factor) return frequency / s->factor;
    const double kept = (turns - s->low_freq_factor) / (s->high_freq_factor - s->low_freq_factor);
    return (1 - kept) * frequency / s->factor + kept * frequency;
}

/* The pair (as a real number) that turns `turns` times within the original context. */
static double yarn_pair(const ats_rope_scaling *s, double turns)
{
    return (double)s->rotary_dim * log(s->original_max_position / (turns * TAU)) /
           (2 * log(s->theta));
}

static void yarn(const ats_rope_scaling *s, double *inv_freq)
{
    double low = yarn_pair(s, s->beta_fast > 0 ? s->beta_fast : 32);
    double high = yarn_pair(s, s->beta_slow > 0 ? s->beta_slow : 1);
    if (!s->keep_fractions) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, (double)s->rotary_dim - 1);
    if (low == high) high += 0.001;
    for (int64_t i = 0; i < s->rotary_dim / 2; i++) {
        const double stretched = fmin(fmax(((double)i - low) / (high - low), 0), 1);
        inv_freq[i] = plain(s, i) * (stretched / s->factor + (1 - stretched));
    }
}

void ats_rope_scaling_frequencies(const ats_rope_scaling *s, double *inv_freq)
{
    if (s->type == ATS_ROPE_YARN) {
        yarn(s, inv_freq);
        return;
    }
    for (int64_t i = 0; i < s->rotary_dim / 2; i++) {
        inv_freq[i] = plain(s, i);
        if (s->type == ATS_ROPE_LINEAR) inv_freq[i] /= s->factor;
        if (s->type == ATS_ROPE_LLAMA3) inv_freq[i] = llama3(s, inv_freq[i]);
    }
}

/* 0.1 mscale ln(factor) + 1 where the context is extended, Peng et al. 2023, equation 25. */
static double yarn_magnitude(double factor, double mscale)
{
    return factor > 1 ? 0.1 * mscale * log(factor) + 1 : 1;
}

double ats_rope_scaling_magnitude(const ats_rope_scaling *s)
{
    if (s->type != ATS_ROPE_YARN) return 1;
    if (s->attention_factor > 0) return s->attention_factor;
    if (s->mscale > 0 && s->mscale_all_dim > 0)
        return yarn_magnitude(s->factor, s->mscale) / yarn_magnitude(s->factor, s->mscale_all_dim);
    return yarn_magnitude(s->factor, 1);
}

double ats_rope_scaling_softmax(const ats_rope_scaling *s)
{
    if (s->type != ATS_ROPE_YARN || !(s->mscale_all_dim > 0)) return 1;
    const double magnitude = yarn_magnitude(s->factor, s->mscale_all_dim);
    return magnitude * magnitude;
}

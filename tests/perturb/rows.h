/* Tiny captures and row readers for the tests of inserted rows: one pairing of rotary halves, the
 * other with one query head a key, none, and logits with a soft cap and slopes. */
#ifndef ATS_TESTS_PERTURB_ROWS_H
#define ATS_TESTS_PERTURB_ROWS_H

#include <math.h>

#include "perturb/variant.h"

enum { D = 16, DV = 12 };

static tiny half, interleaved, bare, capped;

static inline int rows_setup(void **state)
{
    (void)state;
    tiny_options o = tiny_defaults();
    tiny_make(&half, &o);
    o.layout = ATS_ROPE_INTERLEAVED;
    o.n_q_heads = 2;
    tiny_make(&interleaved, &o);
    o.layout = ATS_ROPE_NONE;
    tiny_make(&bare, &o);
    o = tiny_defaults();
    o.softcap = 20;
    o.alibi = true;
    tiny_make(&capped, &o);
    return 0;
}

static inline int rows_teardown(void **state)
{
    (void)state;
    tiny_free(&half);
    tiny_free(&interleaved);
    tiny_free(&bare);
    tiny_free(&capped);
    return 0;
}

static inline void base_key(const tiny *t, int64_t sample, int64_t head, int64_t row, double *out)
{
    tiny_row(t->attention[sample].k_dtype, t->attention[sample].k, t->samples[sample].n_keys, D,
             head, row, out);
}

static inline void base_value(const tiny *t, int64_t sample, int64_t head, int64_t row, double *out)
{
    tiny_row(t->attention[sample].v_dtype, t->attention[sample].v, t->samples[sample].n_keys, DV,
             head, row, out);
}

static inline void side_row(const float *rows, int64_t d, int64_t j, double *out)
{
    for (int64_t i = 0; i < d; i++) out[i] = (double)rows[j * d + i];
}

static inline double norm(const double *x, int64_t n) { return sqrt(tiny_dot(x, x, n)); }

static inline double cosine(const double *a, const double *b, int64_t n)
{
    return tiny_dot(a, b, n) / (norm(a, n) * norm(b, n));
}

static inline void begin(variant *v, const tiny *t, ats_position_mode mode, const char *source,
                         double count)
{
    variant_begin(v, t, "distractors", mode);
    variant_word(v, "source", source);
    variant_number(v, "count", count);
}

#endif

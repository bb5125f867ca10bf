/* A small capture in memory: one layer, three samples with spans and probes, random tensors.
 * Spans of every sample: bos (sink) [0, 1), stale [40, 46), gold [60, 66), near (distractor)
 * [90, 96), current [120, 128), question [n - 8, n); the probes are the last rows. */
#ifndef ATS_TESTS_SUPPORT_TINY_H
#define ATS_TESTS_SUPPORT_TINY_H

#include "base/arena.h"
#include "capture/capture.h"

enum { TINY_SAMPLES = 3 };

typedef struct tiny_options {
    uint64_t seed;
    int64_t n_keys, n_probes, n_q_heads, n_kv_heads, d_qk, d_v;
    ats_rope_layout layout;
    ats_dtype dtype;
    double softcap;
    bool alibi, sink;
    int64_t window, max_position;
} tiny_options;

typedef struct tiny {
    ats_arena arena;
    ats_layer layer;
    ats_sample samples[TINY_SAMPLES];
    ats_attention attention[TINY_SAMPLES];
    ats_capture capture;
} tiny;

tiny_options tiny_defaults(void); /* 200 keys, 3 probes, 4 query and 2 key heads, d 16, d_v 12 */
void tiny_make(tiny *out, const tiny_options *options);
void tiny_free(tiny *t);

/* Row of a stored tensor [heads, rows, d], widened to double: out [d]. */
void tiny_row(ats_dtype dtype, const void *tensor, int64_t rows, int64_t d, int64_t head,
              int64_t row, double *out);
/* R(delta) in double on x [d]: the definition, sharing nothing with the product. */
void tiny_rotate(const ats_rope *rope, double delta, double *x);
double tiny_dot(const double *a, const double *b, int64_t n);

#endif

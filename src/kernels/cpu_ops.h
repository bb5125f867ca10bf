/* The vector kernels of the cpu backend: one body (cpu_ops_body.h) compiled once per instruction
 * set, one table each, chosen once at run time.
 *
 * Logits lie key-major, z[key, lanes]: a lane is a query row, lanes = rows rounded up to 16, so
 * every statistic runs down the keys without horizontal sums and each lane's order of summation
 * depends on the keys alone. Illegal keys are -inf. All arrays 64-byte aligned where `lanes` is the
 * last axis. Pure functions, no state. */
#ifndef ATS_KERNELS_CPU_OPS_H
#define ATS_KERNELS_CPU_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/half.h"
#include "base/status.h"

enum {
    ATS_CPU_LANES = 16, /* padding of rows and of value columns, floats */
    ATS_CPU_FEW = 8,    /* padding of rows when there are no more than that */
    ATS_CPU_TILE = 64   /* rows evaluated together, at most: their logits stay in cache */
};

/* q.k of `keys` keys turned into logits in place: cap tanh(scale x / cap), bias, / temperature. */
typedef struct ats_cpu_logits {
    int64_t keys, lanes;
    float scale; /* times q.k */
    float cap;   /* 0: none */
    float inverse_temperature;
    const float *slope; /* [lanes] ALiBi or NULL */
    const float *q_at;  /* [lanes] query positions, relative */
    const float *k_at;  /* [keys] key positions, relative */
    const float *plane; /* [keys, lanes] bias, -inf: statically illegal; or NULL */
} ats_cpu_logits;

/* Sums of a chunk of keys, per lane. */
typedef struct ats_cpu_sums {
    float *m, *mc; /* [lanes] max z; max z + log|v| */
    float *sums;   /* [5, lanes] l, e, s2, a, n: see state.h */
} ats_cpu_sums;

/* State of a key set for all rows; see state.h. A leaf of the base that nobody needs has its maxima
 * alone: l and the rest are NULL. */
typedef struct ats_cpu_state {
    float *m, *mc;              /* [lanes] max z; max z + log|v| */
    double *l, *e, *s2, *a, *n; /* [lanes], one after the other */
    float *o;                   /* [rows, width] sum exp(z - m) v */
} ats_cpu_state;

/* Both routes of a chunk: p = exp(zb - mb) fb is the base weight, q likewise. */
typedef struct ats_cpu_pair {
    int64_t keys, lanes;
    const float *zb, *zv;           /* [keys, lanes] */
    const float *mb, *fb, *mv, *fv; /* [lanes] finite */
    const float *ia, *ib;           /* [lanes] 1 / survivors of base and variant */
    float *sums; /* [5, lanes] over keys legal in both: sum |p-q|, sum (sqrt p - sqrt q)^2, js in
                  * nats, and the first and third of the conditioned weights */
} ats_cpu_pair;

/* Memory that will be needed soon: asked for while something else is computed. */
typedef struct ats_cpu_ahead {
    const char *from;
    int64_t bytes; /* 0: nothing */
} ats_cpu_ahead;

struct ats_cpu_matrix;

typedef struct ats_cpu_ops {
    const char *name;
    const struct ats_cpu_matrix *matrix; /* cpu_matrix.h; NULL: no matrix units */
    /* The table to take when ATS_CPU_FEW lanes suffice; NULL: this one. */
    const struct ats_cpu_ops *narrow;
    /* out[i] = source[first + i], i < count, widened exactly. */
    void (*widen)(ats_dtype dtype, const void *source, int64_t first, int64_t count, float *out);
    /* c[i, j] = sum_t a[i a_row + t a_step] b[t, j], t ascending; n and ldb multiples of 16. */
    void (*gemm)(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_step,
                 const float *b, int64_t ldb, float *c, int64_t ldc);
    void (*logits)(const ats_cpu_logits *args, float *z);
    /* z [keys, lanes] = -inf where the position is outside [low, high] of the lane or the plane is
     * -inf. */
    void (*mask)(int64_t keys, int64_t lanes, const int64_t *position, const int64_t *low,
                 const int64_t *high, const float *plane, float *z);
    /* True where some z is NaN or +inf, or (with no -inf allowed) -inf. */
    bool (*broken)(int64_t count, bool masked, const float *z);
    /* Weights relative to the chunk's own maximum into p [keys, lanes], and their sums. False where
     * some z is not finite: illegal, or broken. */
    bool (*state)(int64_t keys, int64_t lanes, const float *z, const float *v_norm,
                  const float *log_norm, float *p, const ats_cpu_sums *out);
    void (*pair)(const ats_cpu_pair *args);
    /* keep[i] = z[i] where other is finite (present) or is not (absent), else -inf. */
    void (*split)(int64_t count, const float *z, const float *other, float *present, float *absent);
    /* Bit 0: some z only in zb, bit 1: some only in zv; first `rows` lanes. */
    int (*differ)(int64_t keys, int64_t lanes, int64_t rows, const float *zb, const float *zv);
    /* count[lane] += keys with z > threshold[lane]. */
    void (*count_above)(int64_t keys, int64_t lanes, const float *z, const float *threshold,
                        float *count);
    /* True where some a[i] > b[i], i < lanes. */
    bool (*any_above)(int64_t lanes, const float *a, const float *b);
    /* Places with z > threshold[0] of the lane into out[0], and those with z + add[key] >
     * threshold[1] into out[1], as key << 8 | lane, lane by lane vector; lane vectors whose bound
     * [lanes] is nowhere above are not looked at. Counts into n; each out holds keys * lanes. keys
     * <= 256, lanes <= 256. */
    void (*above)(int64_t keys, int64_t lanes, const float *z, const float *add,
                  const float *const bound[2], const float *const threshold[2],
                  uint16_t *const out[2], int64_t n[2]);
    /* First key >= start with z + add[key] > threshold in some lane; `keys` when none. add NULL: 0.
     */
    int64_t (*next_above)(int64_t start, int64_t keys, int64_t lanes, const float *z,
                          const float *add, const float *threshold);
    /* Norms of rows [first, first + keys) of [.., width], width a multiple of the vector, as long
     * as their squares neither vanish nor overflow in float; else norm[i] is NaN and the caller
     * does it in double. */
    void (*norms)(int64_t keys, int64_t width, ats_dtype dtype, const void *rows, int64_t first,
                  float *norm, float *log_norm);
    /* For few rows, from words in their own type: z [keys, ATS_CPU_FEW] = k rows [first, ..) . q
     * [ATS_CPU_FEW, d], 0 in the padding. False, and nothing done: not for this width or number of
     * rows. */
    bool (*dot)(int64_t keys, int64_t rows, int64_t d, ats_dtype dtype, const void *k,
                int64_t first, const float *q, float *z, const ats_cpu_ahead *ahead);
    /* Pairs of the queries q [ATS_CPU_FEW, d], when all of them are bfloat16 numbers; packed
     * [ATS_CPU_FEW d / 2]. False: not for these. NULL: no products of pairs here. */
    bool (*pack_pairs)(int64_t rows, int64_t d, const float *q, uint32_t *packed);
    /* z [keys, ATS_CPU_FEW] = scale k rows [first, ..) . q for bfloat16 k and q packed for as many
     * rows. */
    void (*dot_pairs)(int64_t keys, int64_t rows, int64_t d, const uint16_t *k, int64_t first,
                      const uint32_t *packed, float scale, float *z, const ats_cpu_ahead *ahead);
    /* o [ATS_CPU_FEW, width] = sum p [keys, ATS_CPU_FEW] v rows [first, ..); likewise. */
    bool (*mix)(int64_t keys, int64_t rows, int64_t width, ats_dtype dtype, const void *v,
                int64_t first, const float *p, float *o, const ats_cpu_ahead *ahead);
    /* Merges two states, see state.h; out may be x. */
    void (*merge)(int64_t rows, int64_t lanes, int64_t width, const ats_cpu_state *x,
                  const ats_cpu_state *y, const ats_cpu_state *out);
    /* out[lane] = exp((m[lane] - peak[lane]) - log_sum[lane]) in double, 0 where m is -inf;
     * log_sum NULL: 0. Rows with peak -inf give 0. */
    void (*exponentials)(int64_t rows, const float *m, const double *peak, const double *log_sum,
                         double *out);
    /* y[i] = sum over j < n of g[j] x[j][i], j ascending; 0 without any. */
    void (*combine)(int64_t count, int64_t n, const float *g, const float *const *x, float *y);
    /* y[i] += g x[i] */
    void (*axpy)(int64_t count, float g, const float *x, float *y);
    /* Weights alone: p = exp(scale (x - max x)), m = scale max x and l = sum p of every lane. */
    void (*weights)(int64_t keys, int64_t lanes, float scale, const float *x, float *p, float *m,
                    float *l);
    /* Ceilings of the machine, for `bench`: burn_flops multiply-adds (two each) a step from
     * registers, and the sum of an array whose length is a multiple of 256. */
    double burn_flops;
    float (*burn)(int64_t steps);
    float (*read)(int64_t count, const float *x);
} ats_cpu_ops;

extern const ats_cpu_ops ats_cpu_ops_portable;
extern const ats_cpu_ops ats_cpu_ops_avx2; /* name NULL where not compiled */
extern const ats_cpu_ops ats_cpu_ops_avx512;
extern const ats_cpu_ops ats_cpu_ops_avx512_bf16;

/* The widest table this machine runs, with matrix units where it has them (the level "amx"), or the
 * one that ATTNSTRESS_CPU names; fails with a sentence when that one is unknown or unavailable. */
ATS_MUST_CHECK ats_code ats_cpu_ops_find(const ats_cpu_ops **out, ats_err *err);

#endif

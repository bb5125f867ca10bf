/* The kernels of cpu_ops.h in terms of vectors of VL floats; included by one file per instruction
 * set, which defines VL, the register tile MR x NV, and may define V_MAX, V_SELECT_GT, V_ANY_GT
 * and V_SQRT. No include guard: it is a body. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu_ops.h"

typedef float vf __attribute__((vector_size(4 * VL)));
typedef int32_t vi __attribute__((vector_size(4 * VL)));

#define INLINE static inline __attribute__((always_inline))

INLINE vf v_load(const float *p)
{
    vf x;
    memcpy(&x, p, sizeof x);
    return x;
}

INLINE void v_store(float *p, vf x) { memcpy(p, &x, sizeof x); }
INLINE vf v_set(float x) { return (vf){0} + x; }

#ifndef V_SELECT_GT
INLINE vf v_blend(vi mask, vf x, vf y) { return (vf)((mask & (vi)x) | (~mask & (vi)y)); }
#define V_SELECT_GT(a, b, x, y) v_blend((a) > (b), x, y)
#define V_MAX(a, b) v_blend((a) > (b), a, b)
INLINE bool v_any(vi mask)
{
    int32_t any = 0;
    for (int i = 0; i < VL; i++) any |= mask[i];
    return any != 0;
}
#define V_ANY_GT(a, b) v_any((a) > (b))
INLINE vf v_sqrt(vf x)
{
    for (int i = 0; i < VL; i++) x[i] = sqrtf(x[i]);
    return x;
}
#define V_SQRT(a) v_sqrt(a)
#endif

#define MAGIC 12582912.0f /* 1.5 * 2^23: adding it rounds to an integer held in the low bits */

/* exp(x), x <= 0: 2^n 2^f with a minimax polynomial of degree 6 for 2^f on [-1/2, 1/2] (relative
 * error 2e-9 before rounding). Exactly 1 at 0; exactly 0 below 2^-125, so also at -inf. */
INLINE vf v_exp(vf x)
{
    const vf y = V_MAX(x * 1.44269504f, v_set(-126.0f));
    const vf shifted = y + MAGIC;
    const vf f = y - (shifted - MAGIC);
    vf p = v_set(1.534581723e-04f);
    p = p * f + 1.339993116e-03f;
    p = p * f + 9.618488938e-03f;
    p = p * f + 5.550328777e-02f;
    p = p * f + 2.402264689e-01f;
    p = p * f + 6.931472057e-01f;
    p = p * f + 1.0f;
    const vf power = (vf)(((vi)shifted << 23) + 0x3f800000);
    return V_SELECT_GT(y, v_set(-125.0f), p * power, v_set(0.0f));
}

/* log(x), x > 0 normal: exponent and log1p(f) = f - f^2/2 + f^3 P(f) on [sqrt(1/2), sqrt(2)) with
 * a minimax P of degree 7 (relative error 6e-9 before rounding). */
INLINE vf v_log(vf x)
{
    const vi bits = (vi)x - 0x3f3504f3; /* sqrt(1/2) */
    const vi n = bits >> 23;
    const vf f = (vf)((bits & 0x007fffff) + 0x3f3504f3) - 1.0f;
    vf p = v_set(-7.634495195e-02f);
    p = p * f + 1.276157540e-01f;
    p = p * f - 1.316018208e-01f;
    p = p * f + 1.420175824e-01f;
    p = p * f - 1.662335741e-01f;
    p = p * f + 2.000122687e-01f;
    p = p * f - 2.500082103e-01f;
    p = p * f + 3.333333171e-01f;
    const vf f2 = f * f;
    return __builtin_convertvector(n, vf) * 6.93147181e-01f + (f + (f2 * f * p - 0.5f * f2));
}

/* tanh(y): odd minimax polynomial below 1/2 (relative error 1e-8), 1 - 2/(exp(2|y|) + 1) above,
 * written with exp(-2|y|). */
INLINE vf v_tanh(vf y)
{
    const vf size = V_MAX(y, -y), t = y * y;
    vf p = v_set(1.713500724e-02f);
    p = p * t - 5.298607560e-02f;
    p = p * t + 1.332477932e-01f;
    p = p * t - 3.333306939e-01f;
    p = p * t + 1.0f;
    const vf e = v_exp(-2.0f * size);
    const vf large = (1.0f - e) / (1.0f + e);
    return V_SELECT_GT(size, v_set(0.5f), V_SELECT_GT(y, v_set(0.0f), large, -large), y * p);
}

/* (1+u) log(1+u) + (1-u) log(1-u) with u = (p-q)/(p+q): a minimax polynomial in u^2 up to 1/4
 * (relative error 3e-9), else from x = 2p/(p+q) and y = 2q/(p+q), where it cannot cancel. */
INLINE vf v_divergence(vf p, vf q)
{
    const vf s = p + q, r = 1.0f / V_MAX(s, v_set(FLT_MIN));
    const vf u = (p - q) * r, t = u * u;
    vf h = v_set(2.762525189e-02f);
    h = h * t + 1.823735339e-02f;
    h = h * t + 3.626622999e-02f;
    h = h * t + 6.663290649e-02f;
    h = h * t + 1.666674138e-01f;
    h = h * t + 1.0f;
    const vf x = 2.0f * p * r, y = 2.0f * q * r;
    const vf far = x * v_log(V_MAX(x, v_set(FLT_MIN))) + y * v_log(V_MAX(y, v_set(FLT_MIN)));
    return 0.25f * s * V_SELECT_GT(t, v_set(0.25f), far, t * h);
}

/* One register tile: mr rows of a, nv vectors of b; constants after inlining. */
INLINE void tile(const int mr, const int nv, int64_t k, const float *a, int64_t a_row,
                 int64_t a_step, const float *b, int64_t ldb, float *c, int64_t ldc)
{
    vf acc[MR][NV];
#pragma GCC unroll 8
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 4
        for (int j = 0; j < nv; j++) acc[i][j] = v_set(0.0f);
    for (int64_t t = 0; t < k; t++, a += a_step, b += ldb) {
        vf right[NV];
#pragma GCC unroll 4
        for (int j = 0; j < nv; j++) right[j] = v_load(b + j * VL);
#pragma GCC unroll 8
        for (int i = 0; i < mr; i++) {
            const float left = a[i * a_row];
#pragma GCC unroll 4
            for (int j = 0; j < nv; j++) acc[i][j] += left * right[j];
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 4
        for (int j = 0; j < nv; j++) v_store(c + i * ldc + j * VL, acc[i][j]);
}

/* All rows of one column strip of nv vectors. */
INLINE void strip(const int nv, int64_t m, int64_t k, const float *a, int64_t a_row, int64_t a_step,
                  const float *b, int64_t ldb, float *c, int64_t ldc)
{
    int64_t i = 0;
    for (; i + MR <= m; i += MR)
        tile(MR, nv, k, a + i * a_row, a_row, a_step, b, ldb, c + i * ldc, ldc);
    for (; i + 2 <= m; i += 2)
        tile(2, nv, k, a + i * a_row, a_row, a_step, b, ldb, c + i * ldc, ldc);
    if (i < m) tile(1, nv, k, a + i * a_row, a_row, a_step, b, ldb, c + i * ldc, ldc);
}

static void ops_gemm(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_step,
                     const float *b, int64_t ldb, float *c, int64_t ldc)
{
    int64_t j = 0;
    for (; j + NV * VL <= n; j += NV * VL)
        strip(NV, m, k, a, a_row, a_step, b + j, ldb, c + j, ldc);
    /* Only the widest vectors leave 1 to 3 groups of 16 columns. */
    if (n - j >= 3 * VL && NV > 3) {
        strip(3, m, k, a, a_row, a_step, b + j, ldb, c + j, ldc);
        j += 3 * VL;
    }
    if (n - j >= 2 * VL && NV > 2) {
        strip(2, m, k, a, a_row, a_step, b + j, ldb, c + j, ldc);
        j += 2 * VL;
    }
    if (n - j >= VL) strip(1, m, k, a, a_row, a_step, b + j, ldb, c + j, ldc);
}

static void ops_logits(const ats_cpu_logits *args, float *z)
{
    const float inverse_cap = args->cap > 0 ? 1.0f / args->cap : 0.0f;
    for (int64_t i = 0; i < args->keys; i++)
        for (int64_t j = 0; j < args->lanes; j += VL) {
            float *at = z + i * args->lanes + j;
            const vf dot = args->scale * v_load(at);
            vf x = dot;
            if (args->cap > 0) x = args->cap * v_tanh(x * inverse_cap);
            if (args->slope != NULL)
                x -= v_load(args->slope + j) * (v_load(args->q_at + j) - args->k_at[i]);
            if (args->plane != NULL) x += v_load(args->plane + i * args->lanes + j);
            x *= args->inverse_temperature;
            /* Finite biases may add up to less than the lowest float: saturate, but keep NaN. */
            if (args->plane != NULL) {
                const vf lowest = v_set(-FLT_MAX);
                x = V_SELECT_GT(lowest, x, V_SELECT_GT(lowest, dot, x, lowest), x);
            }
            v_store(at, x);
        }
}

static void ops_mask(int64_t keys, int64_t lanes, const int64_t *position, const int64_t *low,
                     const int64_t *high, const float *plane, float *z)
{
    for (int64_t i = 0; i < keys; i++) {
        float *row = z + i * lanes;
        const int64_t at = position[i];
        for (int64_t j = 0; j < lanes; j++)
            row[j] = (at >= low[j]) & (at <= high[j]) ? row[j] : -INFINITY;
        if (plane == NULL) continue;
        const float *bias = plane + i * lanes;
        for (int64_t j = 0; j < lanes; j++) row[j] = bias[j] > -INFINITY ? row[j] : -INFINITY;
    }
}

static bool ops_broken(int64_t count, bool masked, const float *z)
{
    /* x * 0 is 0 for finite x and NaN else; masked -inf counts as 0. */
    vf sum = v_set(0.0f);
    const vf lowest = v_set(masked ? -FLT_MAX : -INFINITY);
    for (int64_t i = 0; i < count; i += VL) {
        const vf x = v_load(z + i);
        sum += V_SELECT_GT(lowest, x, v_set(0.0f), x * 0.0f);
    }
    float total = 0;
    for (int j = 0; j < VL; j++) total += sum[j];
    return !(total < 1.0f);
}

static void ops_state(int64_t keys, int64_t lanes, const float *z, const float *v_norm,
                      const float *log_norm, float *p, const ats_cpu_sums *out)
{
    for (int64_t j = 0; j < lanes; j += VL) {
        vf m = v_set(-INFINITY), mc = m;
        for (int64_t i = 0; i < keys; i++) {
            const vf x = v_load(z + i * lanes + j);
            m = V_MAX(m, x);
            mc = V_MAX(mc, x + log_norm[i]);
        }
        v_store(out->m + j, m);
        v_store(out->mc + j, mc);
        m = V_SELECT_GT(m, v_set(-INFINITY), m, v_set(0.0f));
        vf l = v_set(0.0f), e = l, s2 = l, a = l, n = l;
        for (int64_t i = 0; i < keys; i++) {
            const vf x = v_load(z + i * lanes + j);
            const vf below = x - m, w = v_exp(below);
            l += w;
            e += w * V_MAX(below, v_set(-100.0f)); /* w is 0 there */
            s2 += w * w;
            a += w * v_norm[i];
            n += V_SELECT_GT(x, v_set(-INFINITY), v_set(1.0f), v_set(0.0f));
            v_store(p + i * lanes + j, w);
        }
        v_store(out->sums + j, l);
        v_store(out->sums + lanes + j, e);
        v_store(out->sums + 2 * lanes + j, s2);
        v_store(out->sums + 3 * lanes + j, a);
        v_store(out->sums + 4 * lanes + j, n);
    }
}

static void ops_pair(const ats_cpu_pair *args)
{
    const int64_t lanes = args->lanes;
    const vf none = v_set(-INFINITY), zero = v_set(0.0f);
    for (int64_t j = 0; j < lanes; j += VL) {
        const vf mb = v_load(args->mb + j), fb = v_load(args->fb + j);
        const vf mv = v_load(args->mv + j), fv = v_load(args->fv + j);
        const vf ia = v_load(args->ia + j), ib = v_load(args->ib + j);
        vf tv = zero, roots = zero, js = zero, rtv = zero, rjs = zero;
        for (int64_t i = 0; i < args->keys; i++) {
            const vf zb = v_load(args->zb + i * lanes + j), zv = v_load(args->zv + i * lanes + j);
            const vf p = V_SELECT_GT(zv, none, v_exp(zb - mb) * fb, zero);
            const vf q = V_SELECT_GT(zb, none, v_exp(zv - mv) * fv, zero);
            const vf change = p - q, root = V_SQRT(p) - V_SQRT(q);
            tv += V_MAX(change, -change);
            roots += root * root;
            js += v_divergence(p, q);
            const vf pc = p * ia, qc = q * ib, conditioned = pc - qc;
            rtv += V_MAX(conditioned, -conditioned);
            rjs += v_divergence(pc, qc);
        }
        v_store(args->sums + j, tv);
        v_store(args->sums + lanes + j, roots);
        v_store(args->sums + 2 * lanes + j, js);
        v_store(args->sums + 3 * lanes + j, rtv);
        v_store(args->sums + 4 * lanes + j, rjs);
    }
}

static void ops_split(int64_t count, const float *z, const float *other, float *present,
                      float *absent)
{
    const vf none = v_set(-INFINITY);
    for (int64_t i = 0; i < count; i += VL) {
        const vf x = v_load(z + i), y = v_load(other + i);
        v_store(present + i, V_SELECT_GT(y, none, x, none));
        v_store(absent + i, V_SELECT_GT(y, none, none, x));
    }
}

static int ops_differ(int64_t keys, int64_t lanes, int64_t rows, const float *zb, const float *zv)
{
    int found = 0;
    for (int64_t i = 0; i < keys; i++)
        for (int64_t j = 0; j < rows; j++) {
            const bool in_base = zb[i * lanes + j] > -INFINITY;
            const bool in_variant = zv[i * lanes + j] > -INFINITY;
            found |= (in_base & !in_variant) | (!in_base & in_variant) << 1;
        }
    return found;
}

static void ops_count_above(int64_t keys, int64_t lanes, const float *z, const float *threshold,
                            float *count)
{
    for (int64_t j = 0; j < lanes; j += VL) {
        const vf limit = v_load(threshold + j);
        vf above = v_load(count + j);
        for (int64_t i = 0; i < keys; i++)
            above += V_SELECT_GT(v_load(z + i * lanes + j), limit, v_set(1.0f), v_set(0.0f));
        v_store(count + j, above);
    }
}

static bool ops_any_above(int64_t lanes, const float *a, const float *b)
{
    for (int64_t j = 0; j < lanes; j += VL)
        if (V_ANY_GT(v_load(a + j), v_load(b + j))) return true;
    return false;
}

static int64_t ops_next_above(int64_t start, int64_t keys, int64_t lanes, const float *z,
                              const float *add, const float *threshold)
{
    for (int64_t i = start; i < keys; i++) {
        const float more = add != NULL ? add[i] : 0.0f;
        for (int64_t j = 0; j < lanes; j += VL)
            if (V_ANY_GT(v_load(z + i * lanes + j) + more, v_load(threshold + j))) return i;
    }
    return keys;
}

static void ops_axpy(int64_t count, float g, const float *x, float *y)
{
    int64_t i = 0;
    for (; i + VL <= count; i += VL) v_store(y + i, v_load(y + i) + g * v_load(x + i));
    for (; i < count; i++) y[i] += g * x[i];
}

static void ops_weights(int64_t keys, int64_t lanes, float scale, const float *x, float *p,
                        float *m, float *l)
{
    for (int64_t j = 0; j < lanes; j += VL) {
        vf peak = v_set(-INFINITY), sum = v_set(0.0f);
        for (int64_t i = 0; i < keys; i++) peak = V_MAX(peak, v_load(x + i * lanes + j));
        for (int64_t i = 0; i < keys; i++) {
            const vf w = v_exp((v_load(x + i * lanes + j) - peak) * scale);
            sum += w;
            v_store(p + i * lanes + j, w);
        }
        v_store(m + j, peak * scale);
        v_store(l + j, sum);
    }
}

enum { CHAINS = 12 };

static float ops_burn(int64_t steps)
{
    vf acc[CHAINS];
    const vf x = v_set(0.999f), y = v_set(0.001f);
    for (int i = 0; i < CHAINS; i++) acc[i] = v_set((float)i);
    for (int64_t t = 0; t < steps; t++)
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++) acc[i] = acc[i] * x + y;
    vf sum = v_set(0.0f);
    for (int i = 0; i < CHAINS; i++) sum += acc[i];
    return sum[0];
}

static float ops_read(int64_t count, const float *x)
{
    vf acc[8];
    for (int j = 0; j < 8; j++) acc[j] = v_set(0.0f);
    for (int64_t i = 0; i < count; i += 8 * VL)
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++) acc[j] += v_load(x + i + j * VL);
    vf sum = v_set(0.0f);
    for (int j = 0; j < 8; j++) sum += acc[j];
    return sum[0];
}

/* bfloat16: the upper half of a float. binary16: moved to the float's exponent and mantissa, then
 * times 2^112 for the bias, which is exact for subnormals too; inf and NaN get the full exponent.
 */
static void ops_widen(ats_dtype dtype, const void *source, int64_t first, int64_t count, float *out)
{
    const uint16_t *words = (const uint16_t *)source + first;
    if (dtype == ATS_F32) {
        memcpy(out, (const float *)source + first, (size_t)count * sizeof *out);
    } else if (dtype == ATS_BF16) {
        for (int64_t i = 0; i < count; i++) {
            const uint32_t bits = (uint32_t)words[i] << 16;
            memcpy(out + i, &bits, sizeof bits);
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            const uint32_t word = words[i], low = (word & 0x7fffu) << 13;
            float size;
            uint32_t bits;
            memcpy(&size, &low, sizeof size);
            size *= 0x1p112f;
            memcpy(&bits, &size, sizeof bits);
            bits |= (low >= 0x0f800000u ? 0x7f800000u : 0u) | (word & 0x8000u) << 16;
            memcpy(out + i, &bits, sizeof bits);
        }
    }
}

const ats_cpu_ops OPS_TABLE = {
    .name = OPS_NAME,
    .widen = ops_widen,
    .gemm = ops_gemm,
    .logits = ops_logits,
    .mask = ops_mask,
    .broken = ops_broken,
    .state = ops_state,
    .pair = ops_pair,
    .split = ops_split,
    .differ = ops_differ,
    .count_above = ops_count_above,
    .any_above = ops_any_above,
    .next_above = ops_next_above,
    .axpy = ops_axpy,
    .weights = ops_weights,
    .burn_flops = 2.0 * CHAINS * VL,
    .burn = ops_burn,
    .read = ops_read,
};

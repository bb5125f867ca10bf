/* The kernels of cpu_ops.h in terms of vectors of VL floats; included by one file per instruction
 * set, which defines VL, the register tiles MR x NV and THIN x 1, and may define V_MAX,
 * V_SELECT_GT, V_ANY_GT, V_BITS_GT, V_SQRT, V_WIDEN_BF16, V_WIDEN_F16 and V_DOT_PAIRS. No include
 * guard: it is a body. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu_ops.h"
#include "kernels/cpu_ops_math.h"

/* bfloat16: the upper half of a float. binary16: moved to the float's exponent and mantissa, then
 * times 2^112 for the bias, which is exact for subnormals too; inf and NaN get the full exponent.
 */
static void ops_widen(ats_dtype dtype, const void *source, int64_t first, int64_t count, float *out)
{
    const uint16_t *words = (const uint16_t *)source + first;
    if (dtype == ATS_F32) {
        memcpy(out, (const float *)source + first, (size_t)count * sizeof *out);
    } else if (dtype == ATS_BF16) {
        int64_t i = 0;
#ifdef V_WIDEN_BF16
        for (; i + VL <= count; i += VL) v_store(out + i, V_WIDEN_BF16(words + i));
#endif
        for (; i < count; i++) {
            const uint32_t bits = (uint32_t)words[i] << 16;
            memcpy(out + i, &bits, sizeof bits);
        }
    } else {
        int64_t i = 0;
#ifdef V_WIDEN_F16
        for (; i + VL <= count; i += VL) v_store(out + i, V_WIDEN_F16(words + i));
#endif
        for (; i < count; i++) {
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

#include "kernels/cpu_ops_few.h"

/* One register tile: mr rows of a, nv vectors of b; constants after inlining. */
INLINE void tile(const int mr, const int nv, int64_t k, const float *a, int64_t a_row,
                 int64_t a_step, const float *b, int64_t ldb, float *c, int64_t ldc)
{
    vf acc[MR > THIN ? MR : THIN][NV];
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 4
        for (int j = 0; j < nv; j++) acc[i][j] = v_set(0.0f);
#pragma GCC unroll 4
    for (int64_t t = 0; t < k; t++, a += a_step, b += ldb) {
        vf right[NV];
#pragma GCC unroll 4
        for (int j = 0; j < nv; j++) right[j] = v_load(b + j * VL);
#pragma GCC unroll 16
        for (int i = 0; i < mr; i++) {
            const float left = a[i * a_row];
#pragma GCC unroll 4
            for (int j = 0; j < nv; j++) acc[i][j] += left * right[j];
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 4
        for (int j = 0; j < nv; j++) v_store(c + i * ldc + j * VL, acc[i][j]);
}

/* All rows of one column strip of nv vectors; a single vector takes more rows at a time, so that
 * sums do not wait for each other. */
INLINE void strip(const int nv, int64_t m, int64_t k, const float *a, int64_t a_row, int64_t a_step,
                  const float *b, int64_t ldb, float *c, int64_t ldc)
{
    int64_t i = 0;
    for (; nv == 1 && i + THIN <= m; i += THIN)
        tile(THIN, nv, k, a + i * a_row, a_row, a_step, b, ldb, c + i * ldc, ldc);
    for (; i + MR <= m && (MR <= 4 || m - i != MR + 2); i += MR)
        tile(MR, nv, k, a + i * a_row, a_row, a_step, b, ldb, c + i * ldc, ldc);
    for (; i + 4 <= m && MR > 4; i += 4)
        tile(MR > 4 ? 4 : MR, nv, k, a + i * a_row, a_row, a_step, b, ldb, c + i * ldc, ldc);
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

/* Legal keys of one vector of lanes. */
INLINE vf count_legal(int64_t keys, int64_t lanes, const float *z)
{
    vf n = v_set(0.0f);
    for (int64_t i = 0; i < keys; i++)
        n += V_SELECT_GT(v_load(z + i * lanes), v_set(-INFINITY), v_set(1.0f), v_set(0.0f));
    return n;
}

static bool ops_state(int64_t keys, int64_t lanes, const float *z, const float *v_norm,
                      const float *log_norm, float *p, const ats_cpu_sums *out)
{
    bool finite = true;
    for (int64_t j = 0; j < lanes; j += VL) {
        vf m = v_set(-INFINITY), mc = m, zero = v_set(0.0f); /* zero: NaN once z is not finite */
        vf m2 = m, mc2 = m, zero2 = zero; /* of odd keys, so that no sum waits for the last */
        int64_t i = 0;
        for (; i + 2 <= keys; i += 2) {
            const vf x = v_load(z + i * lanes + j), y = v_load(z + (i + 1) * lanes + j);
            m = V_MAX(m, x);
            m2 = V_MAX(m2, y);
            mc = V_MAX(mc, x + log_norm[i]);
            mc2 = V_MAX(mc2, y + log_norm[i + 1]);
            zero += x * 0.0f;
            zero2 += y * 0.0f;
        }
        if (i < keys) {
            const vf x = v_load(z + i * lanes + j);
            m = V_MAX(m, x);
            mc = V_MAX(mc, x + log_norm[i]);
            zero += x * 0.0f;
        }
        m = V_MAX(m, m2);
        mc = V_MAX(mc, mc2);
        zero += zero2;
        v_store(out->m + j, m);
        v_store(out->mc + j, mc);
        m = V_SELECT_GT(m, v_set(-INFINITY), m, v_set(0.0f));
        vf l = v_set(0.0f), e = l, s2 = l, a = l;
        for (i = 0; i < keys; i++) {
            vf log2;
            const vf w = v_exp_log2(v_load(z + i * lanes + j) - m, &log2);
            l += w;
            e += w * log2;
            s2 += w * w;
            a += w * v_norm[i];
            v_store(p + i * lanes + j, w);
        }
        const bool legal = !V_ANY_NAN(zero);
        finite &= legal;
        v_store(out->sums + j, l);
        v_store(out->sums + lanes + j, e * 6.93147181e-01f);
        v_store(out->sums + 2 * lanes + j, s2);
        v_store(out->sums + 3 * lanes + j, a);
        v_store(out->sums + 4 * lanes + j,
                legal ? v_set((float)keys) : count_legal(keys, lanes, z + j));
    }
    return finite;
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

#include "kernels/cpu_ops_above.h"

static void ops_exponentials(int64_t rows, const float *m, const double *peak,
                             const double *log_sum, double *out)
{
    const vd none = (vd){0} - (double)INFINITY;
    for (int64_t j = 0; j < rows; j += VD) {
        const vd x = d_widen(m + j), at = d_load(peak + j);
        const vd less = log_sum != NULL ? d_load(log_sum + j) : (vd){0};
        const vl valid = (x > none) & (at > none);
        const vd below = (vd)((vl)((x - at) - less) & valid);
        d_store(out + j, (vd)((vl)d_exp(below) & valid));
    }
}

/* Factors that bring both sides to the larger maximum: 1 for its owner, 0 for an empty side. */
INLINE vf factor(vf m, vf peak)
{
    const vf none = v_set(-INFINITY);
    return V_SELECT_GT(m, none, v_exp(m - peak), v_set(0.0f));
}

/* out = fx x + fy y; a side of factor 0 is not read. */
INLINE void merge_row(int64_t width, float fx, float fy, const float *x, const float *y, float *out)
{
    if (fx > 0 && fy > 0)
        for (int64_t j = 0; j < width; j += VL)
            v_store(out + j, fx * v_load(x + j) + fy * v_load(y + j));
    else if (fx > 0)
        for (int64_t j = 0; j < width; j += VL) v_store(out + j, fx * v_load(x + j));
    else if (fy > 0)
        for (int64_t j = 0; j < width; j += VL) v_store(out + j, fy * v_load(y + j));
    else
        memset(out, 0, (size_t)width * sizeof *out);
}

/* e moves with the maximum: sum p (z - m) = sum p (z - mx) + (mx - m) l. */
INLINE vd moved(vd e, vd l, vd f, const float *m, const float *peak)
{
    const vl used = f > 0.0;
    const vd change = (vd)((vl)(d_widen(m) - d_widen(peak)) & used);
    return f * (e + change * l);
}

static void ops_merge(int64_t rows, int64_t lanes, int64_t width, const ats_cpu_state *x,
                      const ats_cpu_state *y, const ats_cpu_state *out)
{
    for (int64_t j = 0; j < lanes; j += VL) {
        float fx[VL], fy[VL], mx[VL], my[VL], m[VL];
        const vf a = v_load(x->m + j), b = v_load(y->m + j), peak = V_MAX(a, b);
        v_store(mx, a);
        v_store(my, b);
        v_store(m, peak);
        v_store(fx, factor(a, peak));
        v_store(fy, factor(b, peak));
        for (int64_t row = j; row < j + VL && row < rows; row++)
            merge_row(width, fx[row - j], fy[row - j], x->o + row * width, y->o + row * width,
                      out->o + row * width);
        v_store(out->m + j, peak);
        v_store(out->mc + j, V_MAX(v_load(x->mc + j), v_load(y->mc + j)));
        for (int i = 0; i < VL; i += VD) {
            const int64_t at = j + i;
            const vd gx = d_widen(fx + i), gy = d_widen(fy + i);
            const vd lx = d_load(x->l + at), ly = d_load(y->l + at);
            d_store(out->e + at, moved(d_load(x->e + at), lx, gx, mx + i, m + i) +
                                     moved(d_load(y->e + at), ly, gy, my + i, m + i));
            d_store(out->l + at, gx * lx + gy * ly);
            d_store(out->s2 + at, gx * gx * d_load(x->s2 + at) + gy * gy * d_load(y->s2 + at));
            d_store(out->a + at, gx * d_load(x->a + at) + gy * d_load(y->a + at));
            d_store(out->n + at, d_load(x->n + at) + d_load(y->n + at));
        }
    }
}

INLINE void combine_strip(const int nv, int64_t n, const float *g, const float *const *x,
                          int64_t at, float *y)
{
    vf sum[8];
#pragma GCC unroll 8
    for (int k = 0; k < nv; k++) sum[k] = v_set(0.0f);
    for (int64_t j = 0; j < n; j++)
#pragma GCC unroll 8
        for (int k = 0; k < nv; k++) sum[k] += g[j] * v_load(x[j] + at + k * VL);
#pragma GCC unroll 8
    for (int k = 0; k < nv; k++) v_store(y + at + k * VL, sum[k]);
}

static void ops_combine(int64_t count, int64_t n, const float *g, const float *const *x, float *y)
{
    int64_t i = 0;
    for (; i + 8 * VL <= count; i += 8 * VL) combine_strip(8, n, g, x, i, y);
    for (; i + VL <= count; i += VL) combine_strip(1, n, g, x, i, y);
    for (; i < count; i++) {
        y[i] = 0;
        for (int64_t j = 0; j < n; j++) y[i] += g[j] * x[j][i];
    }
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
    /* Of no value known to the compiler: a chain that starts at its fixed point, 1, is left out. */
    for (int i = 0; i < CHAINS; i++) acc[i] = v_set((float)(steps + i));
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

#ifndef OPS_NARROW
#define OPS_NARROW NULL
#endif

const ats_cpu_ops OPS_TABLE = {
    .name = OPS_NAME,
    .narrow = OPS_NARROW,
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
    .above = ops_above,
    .norms = ops_norms,
    .dot = ops_dot,
#ifdef V_DOT_PAIRS
    .pack_pairs = ops_pack_pairs,
    .dot_pairs = ops_dot_pairs,
#endif
    .mix = ops_mix,
    .merge = ops_merge,
    .exponentials = ops_exponentials,
    .next_above = ops_next_above,
    .combine = ops_combine,
    .axpy = ops_axpy,
    .weights = ops_weights,
    .burn_flops = 2.0 * CHAINS * VL,
    .burn = ops_burn,
    .read = ops_read,
};

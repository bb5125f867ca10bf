/* Vectors of VL floats, or VL / 2 doubles, and the elementary functions of the cpu kernels on them.
 * Included by cpu_ops_body.h and cpu_ops_amx.c, once per instruction set: a body, without an
 * include guard. */
typedef float vf __attribute__((vector_size(4 * VL)));
typedef int32_t vi __attribute__((vector_size(4 * VL)));

#define INLINE static inline __attribute__((always_inline))
/* Of a loop whose count is a constant after inlining. With sanitizers gcc has taken such a loop
 * apart before it reads the annotation, and warns. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define UNROLL(times)
#else
#define UNROLL(times) _Pragma(UNROLL_TEXT(GCC unroll times))
#define UNROLL_TEXT(text) #text
#endif

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
INLINE uint32_t v_bits(vi mask)
{
    uint32_t bits = 0;
    for (int i = 0; i < VL; i++) bits |= (uint32_t)(mask[i] != 0) << i;
    return bits;
}
#define V_BITS_GT(a, b) v_bits((a) > (b))
#define V_ANY_NAN(a) v_any((a) != (a))
INLINE vf v_sqrt(vf x)
{
    for (int i = 0; i < VL; i++) x[i] = sqrtf(x[i]);
    return x;
}
#define V_SQRT(a) v_sqrt(a)
#endif

#ifndef V_COUNT_GT /* n + 1 where a > b */
#define V_COUNT_GT(n, a, b) ((n) - (vi)((a) > (b)))
#endif

#if defined(__clang__) /* its shuffle takes constant indices alone */
INLINE vf v_shuffle(vf a, vf b, vi from)
{
    vf out = a;
    for (int i = 0; i < VL; i++) out[i] = from[i] < VL ? a[from[i]] : b[from[i] - VL];
    return out;
}
#else
#define v_shuffle __builtin_shuffle
#endif

/* A vector of f(arg, lane): in one piece, so that the compiler sees a constant. */
#define V_FOUR(f, arg, i) f(arg, i), f(arg, (i) + 1), f(arg, (i) + 2), f(arg, (i) + 3)
#define V_EIGHT(f, arg, i) V_FOUR(f, arg, i), V_FOUR(f, arg, (i) + 4)
#if VL == 16
#define V_EACH(f, arg) ((vi){V_EIGHT(f, arg, 0), V_EIGHT(f, arg, 8)})
#elif VL == 8
#define V_EACH(f, arg) ((vi){V_EIGHT(f, arg, 0)})
#else
#define V_EACH(f, arg) ((vi){V_FOUR(f, arg, 0)})
#endif

/* Lanes in groups of 2 stride: sums of the group's halves, of a in the lower half and of b in the
 * upper one. */
#define FOLD_LOW(stride, i)                                                                        \
    (((i) % (2 * (stride)) < (stride) ? 0 : VL) + (i) / (2 * (stride)) * 2 * (stride) +            \
     (i) % (stride))
#define FOLD_HIGH(stride, i) (FOLD_LOW(stride, i) + (stride))
INLINE vf v_fold(const int stride, vf a, vf b)
{
    const vi low = V_EACH(FOLD_LOW, stride), high = V_EACH(FOLD_HIGH, stride);
    return v_shuffle(a, b, low) + v_shuffle(a, b, high);
}

/* Lane i of the result: the sum of x[i]. Overwrites x. */
INLINE vf v_sum_each(vf x[VL])
{
    int stride = 1;
#pragma GCC unroll 4
    for (int n = VL / 2; n > 0; n /= 2, stride *= 2)
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) x[i] = v_fold(stride, x[2 * i], x[2 * i + 1]);
    return x[0];
}

#define MAGIC 12582912.0f /* 1.5 * 2^23: adding it rounds to an integer held in the low bits */

/* exp(x), x <= 0: 2^n 2^f with a minimax polynomial of degree 6 for 2^f on [-1/2, 1/2] (relative
 * error 2e-9 before rounding). Exactly 1 at 0; exactly 0 below 2^-125, so also at -inf. log2: x in
 * binary logarithms, at least -126. */
INLINE vf v_exp_log2(vf x, vf *log2)
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
    *log2 = y;
    return V_SELECT_GT(y, v_set(-125.0f), p * power, v_set(0.0f));
}

INLINE vf v_exp(vf x)
{
    vf unused;
    return v_exp_log2(x, &unused);
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

enum { VD = VL / 2 };
typedef double vd __attribute__((vector_size(4 * VL)));
typedef int64_t vl __attribute__((vector_size(4 * VL)));
typedef float vh __attribute__((vector_size(2 * VL)));

INLINE vd d_load(const double *p)
{
    vd x;
    memcpy(&x, p, sizeof x);
    return x;
}

INLINE void d_store(double *p, vd x) { memcpy(p, &x, sizeof x); }

INLINE vd d_widen(const float *p)
{
    vh x;
    memcpy(&x, p, sizeof x);
    return __builtin_convertvector(x, vd);
}

/* exp(x), x <= 700: 2^n exp(r), |r| <= ln 2 / 2, by Taylor's series of degree 13 (relative error
 * 4e-18 before rounding). Exactly 1 at 0; 0 below -700, so also at -inf and NaN. */
INLINE vd d_exp(vd x)
{
    const vl valid = x > -700.0;
    x = (vd)((vl)x & valid);
    const vd shifted = x * 1.4426950408889634 + 0x1.8p52, n = shifted - 0x1.8p52;
    const vd r = (x - n * 0x1.62e42fefa38p-1) - n * 0x1.ef35793c7673p-45;
    vd p = (vd){0} + 1.0 / 6227020800;
    p = p * r + 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    const vl power = ((vl)shifted << 52) + 0x3ff0000000000000;
    return (vd)((vl)(p * (vd)power) & valid);
}

#include "metrics/fold.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* The loops of fold_body.h run on vectors of 8 doubles, compiled for three instruction sets. Lanes
 * and their final sum are fixed by the source and nothing is contracted, so all give the same
 * bits. */
typedef double f64x8 __attribute__((vector_size(64)));
typedef float f32x8 __attribute__((vector_size(32)));

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum { BLOCK = 256 };

static inline double difference(const float *a, const float *b, int64_t i)
{
    return (a != NULL ? (double)a[i] : 0.0) - (b != NULL ? (double)b[i] : 0.0);
}

typedef struct operations {
    double (*dot)(const float *a, const float *b, int64_t d);
    double (*square)(const float *a, const float *b, int64_t d);
    double (*form)(const double *gram, const float *a, const float *b, int64_t d);
    void (*gram)(const float *w_o, int64_t d, int64_t d_model, double *gram);
} operations;

#define FOLD(name) name##_portable
#define FOLD_TARGET
#include "metrics/fold_body.h"
#undef FOLD
#undef FOLD_TARGET

#if defined(__x86_64__)
#define FOLD(name) name##_avx2
#define FOLD_TARGET __attribute__((target("avx2")))
#include "metrics/fold_body.h"
#undef FOLD
#undef FOLD_TARGET

#define FOLD(name) name##_avx512
#define FOLD_TARGET __attribute__((target("avx512f")))
#include "metrics/fold_body.h"
#undef FOLD
#undef FOLD_TARGET
#endif

static const operations *chosen(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return &operations_avx512;
    if (__builtin_cpu_supports("avx2")) return &operations_avx2;
#endif
    return &operations_portable;
}

double ats_norm(const float *a, const float *b, int64_t d)
{
    if (a != NULL && b != NULL) return sqrt(chosen()->square(a, b, d));
    const float *x = a != NULL ? a : b;
    return x == NULL ? 0 : sqrt(chosen()->dot(x, x, d));
}

double ats_dot(const float *a, const float *b, int64_t d) { return chosen()->dot(a, b, d); }

void ats_fold_gram(const float *w_o, int64_t d, int64_t d_model, double *gram)
{
    chosen()->gram(w_o, d, d_model, gram);
}

void ats_fold_readout(const float *w_o, const float *r, int64_t d, int64_t d_model, double *row)
{
    for (int64_t i = 0; i < d; i++) row[i] = ats_dot(w_o + i * d_model, r, d_model);
}

double ats_norm_gram(const double *gram, const float *a, const float *b, int64_t d)
{
    const double square = chosen()->form(gram, a, b, d);
    /* rounding can leave a form of a near-null vector a hair below zero; NaN stays */
    return square < 0 ? 0 : sqrt(square);
}

double ats_norm_projected(const float *w_o, int64_t d_model, const float *a, const float *b,
                          int64_t d)
{
    double sum = 0;
    for (int64_t m0 = 0; m0 < d_model; m0 += BLOCK) {
        const int64_t width = d_model - m0 < BLOCK ? d_model - m0 : BLOCK;
        double y[BLOCK] = {0};
        for (int64_t i = 0; i < d; i++) {
            const double x = difference(a, b, i);
            const float *w = w_o + i * d_model + m0;
            for (int64_t m = 0; m < width; m++) y[m] += x * (double)w[m];
        }
        for (int64_t m = 0; m < width; m++) sum += y[m] * y[m];
    }
    return sqrt(sum);
}

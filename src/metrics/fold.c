#include "metrics/fold.h"

#include <math.h>
#include <stddef.h>

enum { BLOCK = 256 };

static double difference(const float *a, const float *b, int64_t i)
{
    return (a != NULL ? (double)a[i] : 0.0) - (b != NULL ? (double)b[i] : 0.0);
}

double ats_norm(const float *a, const float *b, int64_t d)
{
    double sum = 0;
    if (a != NULL && b != NULL) {
        for (int64_t i = 0; i < d; i++) {
            const double x = (double)a[i] - (double)b[i];
            sum += x * x;
        }
        return sqrt(sum);
    }
    const float *x = a != NULL ? a : b;
    if (x == NULL) return 0;
    for (int64_t i = 0; i < d; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

double ats_dot(const float *a, const float *b, int64_t d)
{
    double sum = 0;
    for (int64_t i = 0; i < d; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

static double dot_long(const float *a, const float *b, int64_t n)
{
    /* four chains: the adds of one would wait for each other */
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        s0 += (double)a[i] * (double)b[i];
        s1 += (double)a[i + 1] * (double)b[i + 1];
        s2 += (double)a[i + 2] * (double)b[i + 2];
        s3 += (double)a[i + 3] * (double)b[i + 3];
    }
    for (; i < n; i++) s0 += (double)a[i] * (double)b[i];
    return (s0 + s1) + (s2 + s3);
}

void ats_fold_gram(const float *w_o, int64_t d, int64_t d_model, double *gram)
{
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j <= i; j++)
            gram[i * d + j] = gram[j * d + i] =
                dot_long(w_o + i * d_model, w_o + j * d_model, d_model);
}

void ats_fold_readout(const float *w_o, const float *r, int64_t d, int64_t d_model, double *row)
{
    for (int64_t i = 0; i < d; i++) row[i] = dot_long(w_o + i * d_model, r, d_model);
}

double ats_norm_gram(const double *gram, const float *a, const float *b, int64_t d)
{
    double sum = 0;
    for (int64_t j0 = 0; j0 < d; j0 += BLOCK) {
        const int64_t width = d - j0 < BLOCK ? d - j0 : BLOCK;
        double x[BLOCK];
        for (int64_t j = 0; j < width; j++) x[j] = difference(a, b, j0 + j);
        for (int64_t i = 0; i < d; i++) {
            const double *g = gram + i * d + j0;
            double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
            int64_t j = 0;
            for (; j + 4 <= width; j += 4) {
                s0 += g[j] * x[j];
                s1 += g[j + 1] * x[j + 1];
                s2 += g[j + 2] * x[j + 2];
                s3 += g[j + 3] * x[j + 3];
            }
            for (; j < width; j++) s0 += g[j] * x[j];
            sum += difference(a, b, i) * ((s0 + s1) + (s2 + s3));
        }
    }
    /* rounding can leave a form of a near-null vector a hair below zero; NaN stays */
    return sum < 0 ? 0 : sqrt(sum);
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

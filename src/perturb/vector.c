#include <math.h>

#include "perturb/cache.h"
#include "perturb/rows.h"
#include "perturb/target.h"

enum { DIFFERENCES = 32, TRIES = 8 };

double ats_vector_dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

double ats_vector_dot_any(const float *a, const float *b, int64_t n)
{
    enum { LANES = 8 };
    double lane[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int64_t j = 0; j < LANES; j++) lane[j] += (double)a[i + j] * (double)b[i + j];
    for (; i < n; i++) sum += (double)a[i] * (double)b[i];
    for (int64_t j = 0; j < LANES; j++) sum += lane[j];
    return sum;
}

double ats_vector_norm(const float *x, int64_t n) { return sqrt(ats_vector_dot(x, x, n)); }

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static void draw(ats_rng *rng, const double *diffs, int64_t n_diffs, int64_t d, double *out)
{
    if (n_diffs == 0) {
        ats_rng_normals(rng, d, out);
        return;
    }
    for (int64_t i = 0; i < d; i++) out[i] = 0;
    for (int64_t j = 0; j < n_diffs; j++) {
        const double g = ats_rng_normal(rng);
        for (int64_t i = 0; i < d; i++) out[i] += g * diffs[j * d + i];
    }
}

bool ats_orthogonal(ats_rng *rng, const double *axis, const double *diffs, int64_t n_diffs,
                    int64_t d, double *out)
{
    const double axis2 = dot(axis, axis, d);
    for (int tries = 0; tries < TRIES; tries++) {
        draw(rng, diffs, n_diffs, d, out);
        const double before = sqrt(dot(out, out, d));
        /* Twice is enough: the second pass takes out the rounding of the first. */
        for (int pass = 0; pass < 2 && axis2 > 0; pass++) {
            const double part = dot(out, axis, d) / axis2;
            for (int64_t i = 0; i < d; i++) out[i] -= part * axis[i];
        }
        const double norm = sqrt(dot(out, out, d));
        if (!(norm > 1e-6 * before)) continue;
        for (int64_t i = 0; i < d; i++) out[i] /= norm;
        return true;
    }
    return false;
}

ats_code ats_differences(const ats_build *ctx, const char *purpose, bool values, double **out,
                         int64_t *count, ats_err *err)
{
    const int64_t d = values ? ctx->layer->d_v : ctx->layer->d_qk;
    ats_rng rng = ats_row_stream(ctx, purpose);
    ats_pool pool;
    ats_pool_row *rows = NULL;
    double *diffs = NULL;
    float *x = NULL;
    ats_code rc;
    ATS_TRY(ats_pool_make(ctx, 2, &pool, err));
    const int64_t n = pool.count / 2 < DIFFERENCES ? pool.count / 2 : DIFFERENCES;
    ATS_TRY(ats_pool_draw(ctx, &pool, &rng, 2 * n, &rows, err));
    ATS_TRY(ATS_NEW0(ctx->arena, n * d, &diffs, err));
    ATS_TRY(ATS_NEW(ctx->arena, d, &x, err));
    for (int64_t j = 0; j < 2 * n; j++) {
        const ats_pool_row *row = &rows[j];
        if (values) {
            ats_value_row(ctx, row->donor, row->row, x);
        } else {
            ats_key_row(ctx, row->donor, row->row, x);
            ats_build_move(ctx, -row->donor->sample->position[row->row], 1, x, x);
        }
        for (int64_t i = 0; i < d; i++)
            diffs[j / 2 * d + i] += j % 2 == 0 ? (double)x[i] : -(double)x[i];
    }
    *out = diffs;
    *count = n;
out:
    return rc;
}

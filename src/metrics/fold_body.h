/* Body of fold.c, compiled once per instruction set: FOLD(name) names a function, FOLD_TARGET is
 * its attribute. No include guard. */
FOLD_TARGET ALWAYS_INLINE void FOLD(widen)(const float *p, f64x8 *out)
{
    f32x8 x;
    memcpy(&x, p, sizeof x);
    *out = __builtin_convertvector(x, f64x8);
}

FOLD_TARGET ALWAYS_INLINE double FOLD(sum_lanes)(const f64x8 *s)
{
    return (((*s)[0] + (*s)[1]) + ((*s)[2] + (*s)[3])) +
           (((*s)[4] + (*s)[5]) + ((*s)[6] + (*s)[7]));
}

FOLD_TARGET static double FOLD(dot)(const float *a, const float *b, int64_t d)
{
    f64x8 s0 = {0}, s1 = {0}, x, y;
    int64_t i = 0;
    for (; i + 16 <= d; i += 16) {
        FOLD(widen)(a + i, &x);
        FOLD(widen)(b + i, &y);
        s0 += x * y;
        FOLD(widen)(a + i + 8, &x);
        FOLD(widen)(b + i + 8, &y);
        s1 += x * y;
    }
    double rest = 0;
    for (; i < d; i++) rest += (double)a[i] * (double)b[i];
    s0 += s1;
    return FOLD(sum_lanes)(&s0) + rest;
}

FOLD_TARGET static double FOLD(square)(const float *a, const float *b, int64_t d)
{
    f64x8 s0 = {0}, s1 = {0}, x, y;
    int64_t i = 0;
    for (; i + 16 <= d; i += 16) {
        FOLD(widen)(a + i, &x);
        FOLD(widen)(b + i, &y);
        x -= y;
        s0 += x * x;
        FOLD(widen)(a + i + 8, &x);
        FOLD(widen)(b + i + 8, &y);
        x -= y;
        s1 += x * x;
    }
    double rest = 0;
    for (; i < d; i++) {
        const double z = (double)a[i] - (double)b[i];
        rest += z * z;
    }
    s0 += s1;
    return FOLD(sum_lanes)(&s0) + rest;
}

FOLD_TARGET ALWAYS_INLINE double FOLD(dot_wide)(const double *a, const double *b, int64_t d)
{
    f64x8 s0 = {0}, s1 = {0}, x, y;
    int64_t i = 0;
    for (; i + 16 <= d; i += 16) {
        memcpy(&x, a + i, sizeof x);
        memcpy(&y, b + i, sizeof y);
        s0 += x * y;
        memcpy(&x, a + i + 8, sizeof x);
        memcpy(&y, b + i + 8, sizeof y);
        s1 += x * y;
    }
    double rest = 0;
    for (; i < d; i++) rest += a[i] * b[i];
    s0 += s1;
    return FOLD(sum_lanes)(&s0) + rest;
}

/* x G x^T = sum_i x_i (G_ii x_i + 2 sum_{j < i} G_ij x_j), j block by block. */
FOLD_TARGET static double FOLD(form)(const double *gram, const float *a, const float *b, int64_t d)
{
    double sum = 0, x[BLOCK];
    for (int64_t j0 = 0; j0 < d; j0 += BLOCK) {
        const int64_t width = d - j0 < BLOCK ? d - j0 : BLOCK;
        for (int64_t j = 0; j < width; j++) x[j] = difference(a, b, j0 + j);
        for (int64_t i = j0; i < d; i++) {
            const double *g = gram + i * d + j0;
            const int64_t below = i - j0 < width ? i - j0 : width;
            double row = 2 * FOLD(dot_wide)(g, x, below);
            if (below < width) row += g[below] * x[below];
            sum += row * (i - j0 < width ? x[i - j0] : difference(a, b, i));
        }
    }
    return sum;
}

/* The four products of rows a0, a1 with rows b0, b1: each element is widened once for two of them.
 */
FOLD_TARGET ALWAYS_INLINE void FOLD(dot4)(const float *const *a, const float *const *b, int64_t d,
                                          double *out)
{
    f64x8 s00 = {0}, s01 = {0}, s10 = {0}, s11 = {0}, x0, x1, y0, y1;
    int64_t i = 0;
    for (; i + 8 <= d; i += 8) {
        FOLD(widen)(a[0] + i, &x0);
        FOLD(widen)(a[1] + i, &x1);
        FOLD(widen)(b[0] + i, &y0);
        FOLD(widen)(b[1] + i, &y1);
        s00 += x0 * y0;
        s01 += x0 * y1;
        s10 += x1 * y0;
        s11 += x1 * y1;
    }
    out[0] = FOLD(sum_lanes)(&s00);
    out[1] = FOLD(sum_lanes)(&s01);
    out[2] = FOLD(sum_lanes)(&s10);
    out[3] = FOLD(sum_lanes)(&s11);
    for (; i < d; i++)
        for (int k = 0; k < 4; k++) out[k] += (double)a[k / 2][i] * (double)b[k % 2][i];
}

/* Tiles of 2 x 2 rows; the last row of an odd count is taken twice. */
FOLD_TARGET static void FOLD(gram)(const float *w_o, int64_t d, int64_t d_model, double *gram)
{
    for (int64_t i = 0; i < d; i += 2)
        for (int64_t j = 0; j <= i; j += 2) {
            const int64_t rows[2] = {i, i + 1 < d ? i + 1 : i},
                          columns[2] = {j, j + 1 < d ? j + 1 : j};
            const float *a[2] = {w_o + rows[0] * d_model, w_o + rows[1] * d_model};
            const float *b[2] = {w_o + columns[0] * d_model, w_o + columns[1] * d_model};
            double tile[4];
            FOLD(dot4)(a, b, d_model, tile);
            for (int k = 0; k < 4; k++)
                gram[rows[k / 2] * d + columns[k % 2]] = gram[columns[k % 2] * d + rows[k / 2]] =
                    tile[k];
        }
}

static const operations FOLD(operations) = {FOLD(dot), FOLD(square), FOLD(form), FOLD(gram)};

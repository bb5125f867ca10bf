/* Kernels for few rows, where reading keys and values is what takes the time: words are converted
 * in registers, queries stay there, and each product of a row and a key is summed across a vector
 * at the end. Included by cpu_ops_body.h alone; FEW rows (1, 2, 4 or 8) and the type of the words
 * are constants after inlining. */

INLINE vf v_load_as(const ats_dtype dtype, const void *source, int64_t at)
{
    const uint16_t *words = source;
    if (dtype == ATS_F32) return v_load((const float *)source + at);
#ifdef V_WIDEN_BF16
    return dtype == ATS_BF16 ? V_WIDEN_BF16(words + at) : V_WIDEN_F16(words + at);
#else
    float wide[VL];
    ops_widen(dtype, words, at, VL, wide);
    return v_load(wide);
#endif
}

enum { LINE = 64, COMMON = 128 /* the most common width of a head */ };

/* Lines to ask for in each of `steps` steps. */
INLINE int64_t lines_each(const ats_cpu_ahead *ahead, int64_t steps)
{
    return ((ahead->bytes + LINE - 1) / LINE + steps - 1) / steps;
}

INLINE void fetch(const char **at, int64_t lines)
{
    for (int64_t i = 0; i < lines; i++, *at += LINE) __builtin_prefetch(*at, 0, 2);
}

/* z of VL / few keys: lane key few + row of the result. */
INLINE vf dot_keys(const int few, const ats_dtype dtype, int64_t d, const void *k, int64_t at,
                   const float *q)
{
    const int keys = VL / few;
    vf sum[VL];
#pragma GCC unroll 16
    for (int i = 0; i < VL; i++) sum[i] = v_set(0.0f);
    if (few <= 2) { /* key by key: one stream of memory */
#pragma GCC unroll 16
        for (int i = 0; i < keys; i++)
            for (int64_t j = 0; j < d; j += VL) {
                const vf key = v_load_as(dtype, k, at + i * d + j);
#pragma GCC unroll 2
                for (int r = 0; r < few; r++) sum[i * few + r] += key * v_load(q + r * d + j);
            }
        return v_sum_each(sum);
    }
    for (int64_t j = 0; j < d; j += VL) {
        vf query[8];
#pragma GCC unroll 8
        for (int r = 0; r < few; r++) query[r] = v_load(q + r * d + j);
#pragma GCC unroll 16
        for (int i = 0; i < keys; i++) {
            const vf key = v_load_as(dtype, k, at + i * d + j);
#pragma GCC unroll 8
            for (int r = 0; r < few; r++) sum[i * few + r] += key * query[r];
        }
    }
    return v_sum_each(sum);
}

/* Lanes key few + row of VL / few keys as rows of ATS_CPU_FEW, 0 in the padding. */
INLINE void spread(const int few, vf found, float *z)
{
#if VL < 8
    for (int key = 0; key < VL / few; key++)
        for (int r = 0; r < ATS_CPU_FEW; r++)
            z[key * ATS_CPU_FEW + r] = r < few ? found[key * few + r] : 0.0f;
#else
    UNROLL(8)
    for (int t = 0; t < 8 / few; t++) {
#define FROM(t, i) ((i) % 8 < few ? ((t) * (VL / 8) + (i) / 8) * few + (i) % 8 : VL)
        const vi from = V_EACH(FROM, t);
#undef FROM
        v_store(z + t * VL, v_shuffle(found, v_set(0.0f), from));
    }
#endif
}

INLINE void dot_few(const int few, const ats_dtype dtype, int64_t keys, int64_t d, const void *k,
                    int64_t first, const float *q, float *z, const ats_cpu_ahead *ahead)
{
    const int64_t each = VL / few, lines = lines_each(ahead, (keys + each - 1) / each);
    const char *next = ahead->from;
    for (int64_t i = 0; i < keys; i += each) {
        /* The last keys once more where they do not fill a vector; one by one where all are fewer.
         */
        const int64_t start = i + each <= keys ? i : keys >= each ? keys - each : i;
        fetch(&next, lines);
        if (start + each <= keys) {
            spread(few, dot_keys(few, dtype, d, k, (first + start) * d, q),
                   z + start * ATS_CPU_FEW);
            continue;
        }
        for (int64_t key = i; key < keys; key++)
            for (int r = 0; r < ATS_CPU_FEW; r++) {
                vf sum[VL];
                for (int s = 0; s < VL; s++) sum[s] = v_set(0.0f);
                for (int64_t j = 0; r < few && j < d; j += VL)
                    sum[0] += v_load_as(dtype, k, (first + key) * d + j) * v_load(q + r * d + j);
                z[key * ATS_CPU_FEW + r] = v_sum_each(sum)[0];
            }
    }
}

#define BY_TYPE(call, few)                                                                         \
    do {                                                                                           \
        if (dtype == ATS_F32)                                                                      \
            call(few, ATS_F32);                                                                    \
        else if (dtype == ATS_BF16)                                                                \
            call(few, ATS_BF16);                                                                   \
        else                                                                                       \
            call(few, ATS_F16);                                                                    \
    } while (0)

#define BY_ROWS(call)                                                                              \
    do {                                                                                           \
        if (rows == 1)                                                                             \
            BY_TYPE(call, 1);                                                                      \
        else if (rows == 2)                                                                        \
            BY_TYPE(call, 2);                                                                      \
        else if (rows <= 4)                                                                        \
            BY_TYPE(call, 4);                                                                      \
        else                                                                                       \
            BY_TYPE(call, 8 < VL ? 8 : VL);                                                        \
    } while (0)

static bool ops_dot(int64_t keys, int64_t rows, int64_t d, ats_dtype dtype, const void *k,
                    int64_t first, const float *q, float *z, const ats_cpu_ahead *ahead)
{
    if (d % VL != 0 || rows > (VL < 8 ? VL : 8)) return false;
#define CALL(few, type) dot_few(few, type, keys, d, k, first, q, z, ahead)
    BY_ROWS(CALL);
#undef CALL
    return true;
}

#ifdef V_DOT_PAIRS
typedef uint64_t vq __attribute__((vector_size(4 * VL)));

/* Up to 4 rows whose vectors are whole lie one after the other, and each product is summed across
 * a vector at the end; others have lane 2 row + i of step t: dimensions 4 t + 2 i and the next. */
INLINE bool rows_apart(int64_t rows, int64_t d) { return rows <= 4 && d % (2 * VL) == 0; }

static bool ops_pack_pairs(int64_t rows, int64_t d, const float *q, uint32_t *packed)
{
    const bool apart = rows_apart(rows, d);
    uint32_t rest = 0;
    if (d % 4 != 0) return false;
    for (int64_t j = 0; j < d; j += 2)
        for (int64_t row = 0; row < ATS_CPU_FEW; row++) {
            uint32_t pair[2];
            memcpy(pair, q + row * d + j, sizeof pair);
            rest |= (pair[0] | pair[1]) & 0xffffu;
            packed[apart ? (row * d + j) / 2 : j / 4 * VL + 2 * row + j / 2 % 2] =
                pair[0] >> 16 | (pair[1] & 0xffff0000u);
        }
    return rest == 0;
}

INLINE vi i_load(const void *from)
{
    vi x;
    memcpy(&x, from, sizeof x);
    return x;
}

/* VL / few keys, as dot_keys. */
INLINE vf dot_pairs_apart(const int few, int64_t d, const uint16_t *k, const uint32_t *packed,
                          const char **next, int64_t lines)
{
    const uint16_t *query = (const uint16_t *)packed;
    vf sum[VL];
#pragma GCC unroll 16
    for (int i = 0; i < VL; i++) sum[i] = v_set(0.0f);
    UNROLL(16)
    for (int i = 0; i < VL / few; i++) {
        fetch(next, lines);
#pragma GCC unroll 4
        for (int64_t j = 0; j < d; j += 2 * VL) {
            const vi key = i_load(k + i * d + j);
#pragma GCC unroll 4
            for (int r = 0; r < few; r++)
                sum[i * few + r] = V_DOT_PAIRS(sum[i * few + r], i_load(query + r * d + j), key);
        }
    }
    return v_sum_each(sum);
}

INLINE void dot_apart(const int few, int64_t keys, int64_t d, const uint16_t *k,
                      const uint32_t *packed, float scale, float *z, const ats_cpu_ahead *ahead)
{
    const int64_t each = VL / few, lines = lines_each(ahead, keys);
    const char *next = ahead->from;
    const uint16_t *query = (const uint16_t *)packed;
    int64_t i = 0;
    for (; i + each <= keys; i += each) {
        spread(few, scale * dot_pairs_apart(few, d, k + i * d, packed, &next, lines),
               z + i * ATS_CPU_FEW);
    }
    for (; i < keys; i++) {
        fetch(&next, lines);
        vf sum[VL];
#pragma GCC unroll 16
        for (int r = 0; r < VL; r++) sum[r] = v_set(0.0f);
#pragma GCC unroll 4
        for (int r = 0; r < few; r++)
            for (int64_t j = 0; j < d; j += 2 * VL)
                sum[r] = V_DOT_PAIRS(sum[r], i_load(query + r * d + j), i_load(k + i * d + j));
        float found[VL];
        v_store(found, scale * v_sum_each(sum));
        memcpy(z + i * ATS_CPU_FEW, found, ATS_CPU_FEW * sizeof *z);
    }
}

/* Up to 12 keys; those of two lie in one vector at the end. */
INLINE void dot_pairs_of(const int keys, int64_t d, const uint16_t *k, const uint32_t *packed,
                         float scale, float *z)
{
    vf sum[12];
#define TWICE(more, i) (2 * (i) + (more))
    const vi even = V_EACH(TWICE, 0), odd = V_EACH(TWICE, 1);
#undef TWICE
#pragma GCC unroll 12
    for (int i = 0; i < keys; i++) sum[i] = v_set(0.0f);
    for (int64_t j = 0; j < d; j += 4) {
        vi query;
        memcpy(&query, packed + j / 4 * VL, sizeof query);
#pragma GCC unroll 12
        for (int i = 0; i < keys; i++) {
            uint64_t words;
            memcpy(&words, k + i * d + j, sizeof words);
            sum[i] = V_DOT_PAIRS(sum[i], query, (vq){0} + words);
        }
    }
    if (keys == 1) {
        float whole[VL];
        v_store(whole, scale * (v_shuffle(sum[0], sum[0], even) + v_shuffle(sum[0], sum[0], odd)));
        memcpy(z, whole, ATS_CPU_FEW * sizeof *z);
    }
#pragma GCC unroll 6
    for (int i = 0; i + 2 <= keys; i += 2)
        v_store(z + i * ATS_CPU_FEW,
                scale * (v_shuffle(sum[i], sum[i + 1], even) + v_shuffle(sum[i], sum[i + 1], odd)));
}

static void ops_dot_pairs(int64_t keys, int64_t rows, int64_t d, const uint16_t *k, int64_t first,
                          const uint32_t *packed, float scale, float *z, const ats_cpu_ahead *ahead)
{
    enum { MANY = 12, SOME = 4 };
    const int64_t lines = lines_each(ahead, (keys + MANY - 1) / MANY);
    const char *next = ahead->from;
    int64_t i = 0;
    k += first * d;
    if (rows_apart(rows, d)) {
        /* A width that the compiler knows: one vector after the other without a loop. */
#define APART(few, d) dot_apart(few, keys, d, k, packed, scale, z, ahead)
        if (rows == 1)
            d == COMMON ? APART(1, COMMON) : APART(1, d);
        else if (rows == 2)
            d == COMMON ? APART(2, COMMON) : APART(2, d);
        else
            d == COMMON ? APART(4, COMMON) : APART(4, d);
#undef APART
        return;
    }
    for (; i + MANY <= keys; i += MANY) {
        fetch(&next, lines);
        dot_pairs_of(MANY, d, k + i * d, packed, scale, z + i * ATS_CPU_FEW);
    }
    if (i < keys) fetch(&next, lines);
    for (; i + SOME <= keys; i += SOME)
        dot_pairs_of(SOME, d, k + i * d, packed, scale, z + i * ATS_CPU_FEW);
    for (; i < keys; i++) dot_pairs_of(1, d, k + i * d, packed, scale, z + i * ATS_CPU_FEW);
}
#endif

/* Lanes of two neighbouring vectors: the even ones into the first and the odd ones into the second,
 * and back. */
#define EVEN_OF(more, i) (2 * (i) + (more))
#define HALF_OF(half, i) ((i) % 2 * VL + ((half)*VL + (i)) / 2)
INLINE void part_lanes(vf *a, vf *b)
{
    const vi even = V_EACH(EVEN_OF, 0), odd = V_EACH(EVEN_OF, 1);
    const vf x = *a, y = *b;
    *a = v_shuffle(x, y, even);
    *b = v_shuffle(x, y, odd);
}

INLINE void join_lanes(vf *a, vf *b)
{
    const vi low = V_EACH(HALF_OF, 0), high = V_EACH(HALF_OF, 1);
    const vf x = *a, y = *b;
    *a = v_shuffle(x, y, low);
    *b = v_shuffle(x, y, high);
}

/* Columns [column, column + nv vectors) of the sums of some keys, added to o when `more`. bfloat16
 * words are widened two vectors at a time, even columns apart from odd ones: a shift and a mask. */
INLINE void mix_strip(const int few, const int nv, const ats_dtype dtype, int64_t keys,
                      int64_t width, const void *v, int64_t at, const float *p, bool more, float *o,
                      const char **next, int64_t lines)
{
    vf sum[8][16];
#pragma GCC unroll 8
    for (int r = 0; r < few; r++)
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++)
            sum[r][j] = more ? v_load(o + r * width + j * VL) : v_set(0.0f);
    const bool paired = dtype == ATS_BF16 && nv % 2 == 0;
#pragma GCC unroll 8
    for (int r = 0; r < few; r++)
#pragma GCC unroll 8
        for (int j = 0; paired && j < nv; j += 2) part_lanes(&sum[r][j], &sum[r][j + 1]);
    for (int64_t i = 0; i < keys; i++, at += width, p += ATS_CPU_FEW) {
        vf value[16];
        fetch(next, lines);
#pragma GCC unroll 8
        for (int j = 0; paired && j < nv; j += 2) {
            vi words;
            memcpy(&words, (const uint16_t *)v + at + j * VL, sizeof words);
            value[j] = (vf)(words << 16);
            value[j + 1] = (vf)(words & (int32_t)0xffff0000);
        }
#pragma GCC unroll 16
        for (int j = 0; !paired && j < nv; j++) value[j] = v_load_as(dtype, v, at + j * VL);
#pragma GCC unroll 8
        for (int r = 0; r < few; r++)
#pragma GCC unroll 16
            for (int j = 0; j < nv; j++) sum[r][j] += p[r] * value[j];
    }
#pragma GCC unroll 8
    for (int r = 0; r < few; r++)
#pragma GCC unroll 8
        for (int j = 0; paired && j < nv; j += 2) join_lanes(&sum[r][j], &sum[r][j + 1]);
#pragma GCC unroll 8
    for (int r = 0; r < few; r++)
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++) v_store(o + r * width + j * VL, sum[r][j]);
}

/* Blocks of keys that stay in the first cache, strip by strip of columns. */
INLINE void mix_few(const int few, const ats_dtype dtype, int64_t keys, int64_t width,
                    const void *v, int64_t first, const float *p, float *o,
                    const ats_cpu_ahead *ahead)
{
    enum { BLOCK = 32 };
    const int nv = few >= 4 ? (VL == 16 ? 16 / few : 8 / few) : VL == 16 ? 8 : 4;
    const int64_t strips = width / (nv * VL) + width % (nv * VL) / VL;
    const int64_t lines = lines_each(ahead, keys * strips);
    const char *next = ahead->from;
    for (int64_t i = 0; i < keys; i += BLOCK) {
        const int64_t count = keys - i < BLOCK ? keys - i : BLOCK;
        int64_t j = 0;
        for (; j + nv * VL <= width; j += nv * VL)
            mix_strip(few, nv, dtype, count, width, v, (first + i) * width + j, p + i * ATS_CPU_FEW,
                      i > 0, o + j, &next, lines);
        for (; j < width; j += VL)
            mix_strip(few, 1, dtype, count, width, v, (first + i) * width + j, p + i * ATS_CPU_FEW,
                      i > 0, o + j, &next, lines);
    }
}

static bool ops_mix(int64_t keys, int64_t rows, int64_t width, ats_dtype dtype, const void *v,
                    int64_t first, const float *p, float *o, const ats_cpu_ahead *ahead)
{
    if (width % VL != 0 || rows > (VL < 8 ? VL : 8) || keys == 0) return false;
#define CALL(few, type) mix_few(few, type, keys, width, v, first, p, o, ahead)
    BY_ROWS(CALL);
#undef CALL
    return true;
}

/* Squares summed in one vector per row, then across it. */
INLINE void squares_of(const ats_dtype dtype, int64_t keys, int64_t width, const void *rows,
                       int64_t first, float *squares)
{
#ifdef V_DOT_PAIRS
    const bool paired = dtype == ATS_BF16 && width % (2 * VL) == 0;
#endif
    for (int64_t i = 0; i < keys; i += VL) {
        vf sum[VL];
#pragma GCC unroll 16
        for (int r = 0; r < VL; r++) {
            sum[r] = v_set(0.0f);
            if (i + r >= keys) continue;
#ifdef V_DOT_PAIRS
            for (int64_t j = 0; paired && j < width; j += 2 * VL) {
                vi x;
                memcpy(&x, (const uint16_t *)rows + (first + i + r) * width + j, sizeof x);
                sum[r] = V_DOT_PAIRS(sum[r], x, x);
            }
            if (paired) continue;
#endif
            for (int64_t j = 0; j < width; j += VL) {
                const vf x = v_load_as(dtype, rows, (first + i + r) * width + j);
                sum[r] += x * x;
            }
        }
        float found[VL];
        v_store(found, v_sum_each(sum));
        for (int64_t r = 0; r < VL && i + r < keys; r++) squares[i + r] = found[r];
    }
}

static void ops_norms(int64_t keys, int64_t width, ats_dtype dtype, const void *rows, int64_t first,
                      float *norm, float *log_norm)
{
#define CALL(width, type) squares_of(type, keys, width, rows, first, norm)
    if (width == COMMON)
        BY_TYPE(CALL, COMMON);
    else
        BY_TYPE(CALL, width);
#undef CALL
    int64_t i = 0;
    for (; i + VL <= keys; i += VL) {
        const vf squares = v_load(norm + i);
        v_store(log_norm + i, 0.5f * v_log(V_MAX(squares, v_set(FLT_MIN))));
        v_store(norm + i, V_SQRT(squares));
    }
    for (; i < keys; i++) {
        log_norm[i] = 0.5f * v_log(v_set(norm[i] > FLT_MIN ? norm[i] : FLT_MIN))[0];
        norm[i] = V_SQRT(v_set(norm[i]))[0];
    }
    /* Outside, squares lost bits or overflowed; not (x) also takes NaN. */
    for (i = 0; i < keys; i++)
        if (!(norm[i] > 1e-15f && norm[i] < 1e18f)) norm[i] = NAN;
}

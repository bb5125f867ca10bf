#include <math.h>
#include <stdlib.h>

#include "report/stat.h"

const char *ats_stat_test_name(ats_stat_test test)
{
    static const char *const names[] = {"none", "exact sign-flip", "exact signed-rank",
                                        "signed-rank, normal"};
    return names[test];
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sums of d [n] under every choice of signs, ascending; returns how many. */
static int64_t flipped_sums(const double *d, int64_t n, double *sums)
{
    int64_t count = 1;
    sums[0] = 0;
    for (int64_t i = 0; i < n; i++, count *= 2)
        for (int64_t k = 0; k < count; k++) {
            sums[count + k] = sums[k] + d[i];
            sums[k] -= d[i];
        }
    qsort(sums, (size_t)count, sizeof *sums, by_value);
    return count;
}

/* Pairs of a and b, both ascending [n], [m], whose sum is at most x. */
static int64_t pairs_up_to(const double *a, int64_t n, const double *b, int64_t m, double x)
{
    int64_t pairs = 0;
    for (int64_t i = 0, j = m; i < n; i++) {
        while (j > 0 && a[i] + b[j - 1] > x) j--;
        pairs += j;
    }
    return pairs;
}

/* Both halves of the signs are listed and joined by two pointers, 2^(n/2) numbers each. */
ats_stat_flips ats_stat_sign_flip(const double *d, int64_t n)
{
    enum { HALF = 1 << (ATS_STAT_FLIP_MAX / 2) };
    ATS_ASSERT(n <= ATS_STAT_FLIP_MAX);
    const ats_stat_flips none = {(double)NAN, (double)NAN, (double)NAN};
    double a[HALF], b[HALF], observed = 0, size = 0;
    if (n == 0) return none;
    for (int64_t i = 0; i < n; i++) {
        observed += d[i];
        size += fabs(d[i]);
    }
    const int64_t n_a = flipped_sums(d, n / 2, a), n_b = flipped_sums(d + n / 2, n - n / 2, b);
    const double slack = 1e-9 * size, far = fabs(observed) - slack, all = (double)n_a * (double)n_b;
    const double lower = (double)pairs_up_to(a, n_a, b, n_b, observed + slack);
    /* by symmetry as many sums lie above x as below -x */
    const double upper = (double)pairs_up_to(a, n_a, b, n_b, -observed + slack);
    const double tail = (double)pairs_up_to(a, n_a, b, n_b, -far);
    return (ats_stat_flips){fmin(1, 2 * tail / all), lower / all, upper / all};
}

typedef struct ranked {
    double size;
    bool positive;
    int64_t rank2; /* twice the mid rank */
} ranked;

static int by_size(const void *a, const void *b)
{
    const double x = ((const ranked *)a)->size, y = ((const ranked *)b)->size;
    return (x > y) - (x < y);
}

/* Mid ranks; returns the sum of t^3 - t over groups of t equal sizes. */
static double give_ranks(ranked *items, int64_t n)
{
    double ties = 0;
    qsort(items, (size_t)n, sizeof *items, by_size);
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && items[end].size == items[i].size; end++) continue;
        for (int64_t j = i; j < end; j++) items[j].rank2 = i + 1 + end;
        const double t = (double)(end - i);
        ties += t * t * t - t;
    }
    return ties;
}

/* Number of sign choices for every value of twice the rank sum, one rank added at a time. */
static ats_code exact_p(ats_arena *arena, const ranked *items, int64_t n, int64_t observed,
                        double *p, ats_err *err)
{
    int64_t most = 0;
    double *ways = NULL;
    for (int64_t i = 0; i < n; i++) most += items[i].rank2;
    ats_code rc = ATS_NEW0(arena, most + 1, &ways, err);
    if (rc != ATS_OK) return rc;
    ways[0] = 1;
    for (int64_t i = 0, top = 0; i < n; i++) {
        for (int64_t s = top; s >= 0; s--) ways[s + items[i].rank2] += ways[s];
        top += items[i].rank2;
    }
    /* symmetric about most / 2: both tails from the distance to it */
    const int64_t distance = llabs(2 * observed - most);
    double tail = 0, all = 0;
    for (int64_t s = 0; s <= most; s++) {
        all += ways[s];
        if (llabs(2 * s - most) >= distance) tail += ways[s];
    }
    *p = tail / all;
    return ATS_OK;
}

ats_code ats_stat_signed_rank_by(ats_arena *arena, const double *d, int64_t n, ats_stat_test test,
                                 ats_stat_wilcoxon *out, ats_err *err)
{
    ats_stat_wilcoxon made = {.p = 1, .test = test};
    ranked *items = NULL;
    int64_t kept = 0, sum2 = 0;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, n, &items, err));
    for (int64_t i = 0; i < n; i++) {
        if (d[i] == 0)
            made.n_zero++;
        else
            items[kept++] = (ranked){.size = fabs(d[i]), .positive = d[i] > 0};
    }
    const double ties = give_ranks(items, kept);
    for (int64_t i = 0; i < kept; i++) sum2 += items[i].positive ? items[i].rank2 : 0;
    made.rank_sum = 0.5 * (double)sum2;
    if (kept == 0) {
        *out = made;
        goto out;
    }
    if (test == ATS_TEST_WILCOXON_EXACT) {
        ATS_TRY(exact_p(arena, items, kept, sum2, &made.p, err));
    } else {
        const double k = (double)kept, mean = k * (k + 1) / 4;
        const double variance = (k * (k + 1) * (2 * k + 1) - ties / 2) / 24;
        made.p = erfc(fabs(made.rank_sum - mean) / sqrt(2 * variance));
    }
    *out = made;
out:
    return rc;
}

ats_code ats_stat_signed_rank(ats_arena *arena, const double *d, int64_t n, ats_stat_wilcoxon *out,
                              ats_err *err)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) kept += d[i] != 0;
    return ats_stat_signed_rank_by(arena, d, n,
                                   kept <= ATS_STAT_WILCOXON_EXACT ? ATS_TEST_WILCOXON_EXACT
                                                                   : ATS_TEST_WILCOXON_NORMAL,
                                   out, err);
}

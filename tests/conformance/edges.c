#include <math.h>
#include <string.h>

#include "conformance/conformance.h"

static const problem_spec SMALL = {.seed = 300,
                                   .d_qk = 16,
                                   .d_v = 8,
                                   .group = 2,
                                   .n_probes = 2,
                                   .n_keys = 33,
                                   .rope = ATS_ROPE_HALF};

void test_window_edges(void **state)
{
    (void)state;
    report r = {.path = conformance_path()};
    for (int64_t window = 1; window <= 35; window += window < 4 || window > 30 ? 1 : 7) {
        problem_spec spec = SMALL;
        spec.window = window;
        spec.bidirectional = window % 2 == 0;
        spec.gaps = window % 3 == 0;
        conformance_check(&r, &spec, EDIT_KINDS);
    }
    report_finish(&r, "windows");
}

void test_chunk_edges(void **state)
{
    static const int64_t CHUNKS[] = {1, 2, 7, 16, 32, 33, 34};
    (void)state;
    report r = {.path = conformance_path()};
    for (int i = 0; i < 7; i++) {
        problem_spec spec = SMALL;
        spec.chunk = CHUNKS[i];
        spec.empty_rows = true; /* position -1: chunks round towards minus infinity */
        spec.bidirectional = i % 2 == 1;
        conformance_check(&r, &spec, EDIT_KINDS);
    }
    report_finish(&r, "chunks");
}

/* A pass of its own for every edit gives the numbers that sharing gives. */
void test_passes_apart(void **state)
{
    (void)state;
    report r = {.path = conformance_path()};
    for (uint64_t seed = 40; seed < 46; seed++) {
        ats_arena arena;
        ats_arena_init(&arena, false);
        ats_problem problem;
        ats_edit edits[EDIT_KINDS + 4];
        stats_set got, want;
        problem_spec spec;
        char text[256];
        problem_spec_draw(seed, &spec);
        r.context = problem_spec_text(&spec, text, sizeof text);
        problem_make(&arena, &spec, &problem);
        edits_make(&arena, &problem, seed, EDIT_KINDS + 4, edits);
        for (int i = 0; i < EDIT_KINDS + 4; i++) edits[i].apart = true;
        evaluate_all(&arena, conformance_backend, &problem, edits, EDIT_KINDS + 4, &got);
        evaluate_all(&arena, conformance_reference, &problem, edits, EDIT_KINDS + 4, &want);
        compare_sets(&r, &problem, edits, &got, &want);
        ats_arena_fini(&arena);
    }
    report_finish(&r, "passes apart");
}

/* Few rows are padded less than many, many are cut into tiles. */
void test_row_counts(void **state)
{
    static const int64_t ROWS[] = {1, 2, 3, 5, 8, 9, 17, 64, 65, 130};
    static const int64_t WIDTHS[] = {64, 128, 16, 80, 24};
    (void)state;
    report r = {.path = conformance_path()};
    for (int i = 0; i < 20; i++) { /* all of bfloat16 too, which has tiles of its own */
        const problem_spec spec = {.seed = 700 + (uint64_t)i,
                                   .n_keys = i % 2 == 0 ? 300 : 77,
                                   .d_qk = WIDTHS[i % 5],
                                   .d_v = WIDTHS[(i + 1) % 5],
                                   .group = 1,
                                   .n_probes = ROWS[i % 10],
                                   .dtype = i < 10 ? (ats_dtype)(i % 3) : ATS_BF16,
                                   .keep = i % 4 == 1,
                                   .bias = i % 4 == 2,
                                   .top_k = 3};
        conformance_check(&r, &spec, EDIT_HIDE + 1);
    }
    report_finish(&r, "row counts");
}

/* Keys of zeros and values that are small integers: any wrong index changes an exact number. */
void test_equal_scores_exact(void **state)
{
    static const int64_t COUNTS[] = {1, 2, 64, 256, 512};
    (void)state;
    for (int i = 0; i < 5; i++) {
        ats_arena arena;
        ats_arena_init(&arena, false);
        ats_problem p;
        stats_set got;
        problem_spec spec = SMALL;
        spec.n_keys = COUNTS[i];
        spec.bidirectional = true;
        problem_make(&arena, &spec, &p);
        float *k = NULL, *v = NULL;
        assert_int_equal(ATS_NEW0(&arena, p.n_keys * p.d_qk, &k, NULL), ATS_OK);
        assert_int_equal(ATS_NEW0(&arena, p.n_keys * p.d_v, &v, NULL), ATS_OK);
        for (int64_t key = 0; key < p.n_keys; key++)
            for (int64_t j = 0; j < p.d_v; j++) v[key * p.d_v + j] = (float)(key * (j + 1) % 17);
        p.k = k;
        p.v = v;
        evaluate_all(&arena, conformance_backend, &p, NULL, 0, &got);
        const ats_bars bars = ats_bars_of(conformance_path(), 0, 0);
        for (int64_t row = 0; row < p.n_rows; row++) {
            assert_near(got.base.route.lse[row], log((double)p.n_keys), bars.lse);
            for (int64_t j = 0; j < p.d_v; j++) {
                double sum = 0;
                for (int64_t key = 0; key < p.n_keys; key++) sum += (double)(key * (j + 1) % 17);
                assert_near((double)got.base.route.output[row * p.d_v + j], sum / (double)p.n_keys,
                            bars.output * 17);
            }
            for (int64_t t = 0; t < p.top_k; t++) /* ties go to the lower index */
                assert_int_equal(got.base.route.top_index[row * p.top_k + t],
                                 t < p.n_keys ? t : -1);
        }
        ats_arena_fini(&arena);
    }
}

/* Long unbroken key ranges of every length around a power of two times the blocks that backends
 * use, with logits that rise along the axis, so that the running maximum changes at every merge. */
void test_rising_logits(void **state)
{
    (void)state;
    report r = {.path = conformance_path(), .context = "rising logits"};
    for (int64_t blocks = 1; blocks <= 23; blocks += blocks < 8 ? 1 : 3) {
        ats_arena arena;
        ats_arena_init(&arena, false);
        ats_problem p;
        ats_edit edits[EDIT_KINDS];
        stats_set got, want;
        problem_spec spec = SMALL;
        spec.seed = (uint64_t)(400 + blocks);
        spec.n_keys = 64 * blocks - 5;
        problem_make(&arena, &spec, &p);
        p.regions += p.n_regions - 1; /* the one that holds every key: nothing cuts the range */
        p.n_regions = 1;
        float *k = NULL;
        assert_int_equal(ATS_NEW(&arena, p.n_keys * p.d_qk, &k, NULL), ATS_OK);
        for (int64_t i = 0; i < p.n_keys * p.d_qk; i++)
            k[i] = p.q[i % p.d_qk] * (float)(i / p.d_qk) / (float)p.n_keys;
        p.k = k;
        edits_make(&arena, &p, spec.seed, EDIT_KINDS, edits);
        evaluate_all(&arena, conformance_backend, &p, edits, EDIT_KINDS, &got);
        evaluate_all(&arena, conformance_reference, &p, edits, EDIT_KINDS, &want);
        compare_sets(&r, &p, edits, &got, &want);
        ats_arena_fini(&arena);
    }
    report_finish(&r, "rising logits");
}

void test_rows_without_a_key(void **state)
{
    (void)state;
    report r = {.path = conformance_path()};
    problem_spec spec = SMALL;
    spec.empty_rows = true;
    conformance_check(&r, &spec, EDIT_KINDS);
    spec.sink = true;
    conformance_check(&r, &spec, EDIT_KINDS);
    spec.keep = true;
    conformance_check(&r, &spec, EDIT_KINDS);
    report_finish(&r, "rows without a key");
}

void test_no_keys_at_all(void **state)
{
    (void)state;
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_problem p;
    problem_spec spec = SMALL;
    problem_make(&arena, &spec, &p);
    const float sink[] = {0.5F, -INFINITY, 2, 3};
    p.n_keys = 0;
    p.n_regions = 0;
    p.sink = sink;
    stats_set got;
    evaluate_all(&arena, conformance_backend, &p, NULL, 0, &got);
    const ats_route_stats *route = &got.base.route;
    assert_near(route->lse[0], 0.5, 0);
    assert_near(route->lse_keys[0], -(double)INFINITY, 0);
    assert_near(route->null_weight[0], 1, 0);
    assert_near(route->entropy[0], 0, 0);
    assert_near((double)route->output[0], 0, 0);
    assert_near(route->lse[1], -(double)INFINITY, 0);
    assert_true(isnan(route->null_weight[1]) && isnan(route->entropy[1]));
    assert_int_equal(route->legal_keys[1], 0);
    assert_int_equal(route->top_index[p.top_k], -1);
    ats_arena_fini(&arena);
}

static ats_code ignore(void *ctx, int64_t variant, int worker, const ats_stats *base,
                       const ats_stats *stats, ats_err *err)
{
    (void)ctx;
    (void)variant;
    (void)worker;
    (void)base;
    (void)stats;
    (void)err;
    return ATS_OK;
}

/* RC-01: a visible key that is not finite is an error with tensor, row and column. */
void test_visible_nan_is_refused(void **state)
{
    (void)state;
    for (int which = 0; which < 2; which++) {
        ats_arena arena;
        ats_arena_init(&arena, false);
        ats_problem p;
        problem_make(&arena, &SMALL, &p);
        float *k = NULL, *v = NULL;
        assert_int_equal(ATS_NEW0(&arena, p.n_keys * p.d_qk, &k, NULL), ATS_OK);
        assert_int_equal(ATS_NEW0(&arena, p.n_keys * p.d_v, &v, NULL), ATS_OK);
        if (which == 0) k[3 * p.d_qk + 7] = NAN;
        if (which == 1) v[3 * p.d_v + 5] = INFINITY;
        p.k = k;
        p.v = v;
        ats_err err = {.code = ATS_OK};
        const ats_code rc = conformance_backend->evaluate(&p, NULL, 0, ignore, NULL, &err);
        assert_int_not_equal(rc, ATS_OK);
        if (which == 0) assert_says(err.text, "k", "row 3", "column 7", "nan");
        if (which == 1) assert_says(err.text, "v", "row 3", "column 5", "inf");
        ats_arena_fini(&arena);
    }
}

/* RC-01: what stands behind a mask never reaches a number, whatever it is. */
void test_hidden_nan_is_not_read(void **state)
{
    static const float GARBAGE[] = {0, NAN, INFINITY, -INFINITY, 3e38F};
    (void)state;
    ats_arena arena;
    ats_arena_init(&arena, false);
    stats_set sets[5];
    ats_problem p;
    ats_edit edits[EDIT_KINDS];
    for (int g = 0; g < 5; g++) {
        problem_make(&arena, &SMALL, &p);
        float *k = NULL, *v = NULL;
        uint8_t *keep = NULL;
        assert_int_equal(ATS_NEW0(&arena, p.n_keys * p.d_qk, &k, NULL), ATS_OK);
        assert_int_equal(ATS_NEW0(&arena, p.n_keys * p.d_v, &v, NULL), ATS_OK);
        assert_int_equal(ATS_NEW0(&arena, p.n_probes * p.n_keys, &keep, NULL), ATS_OK);
        memcpy(k, p.k, (size_t)(p.n_keys * p.d_qk) * sizeof *k);
        memcpy(v, p.v, (size_t)(p.n_keys * p.d_v) * sizeof *v);
        memset(keep, 1, (size_t)(p.n_probes * p.n_keys));
        for (int64_t key = 2; key < p.n_keys; key += 5) {
            for (int64_t j = 0; j < p.d_qk; j++) k[key * p.d_qk + j] = GARBAGE[g];
            for (int64_t j = 0; j < p.d_v; j++) v[key * p.d_v + j] = GARBAGE[g];
            for (int64_t probe = 0; probe < p.n_probes; probe++) keep[probe * p.n_keys + key] = 0;
        }
        p.k = k;
        p.v = v;
        p.keep = keep;
        edits_make(&arena, &p, 1, EDIT_KINDS, edits);
        evaluate_all(&arena, conformance_backend, &p, edits, EDIT_KINDS, &sets[g]);
        assert_null(stats_difference(&p, &sets[0].base, &sets[g].base));
        for (int i = 0; i < EDIT_KINDS; i++)
            assert_null(stats_difference(&p, &sets[0].variants[i], &sets[g].variants[i]));
    }
    ats_arena_fini(&arena);
}

/* RC-06 and RC-08: a negative window and a negative cap are refused, 0 means none. */
void test_bad_contract_is_refused(void **state)
{
    (void)state;
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_problem good;
    problem_make(&arena, &SMALL, &good);
    for (int fault = 0; fault < 4; fault++) {
        static const char *const WORDS[] = {"softcap", "temperature", "window", "heads"};
        ats_problem p = good;
        ats_err err = {.code = ATS_OK};
        if (fault == 0) p.contract.softcap = -1;
        if (fault == 1) p.contract.temperature = 0;
        if (fault == 2) p.contract.window = -1;
        if (fault == 3) p.n_rows = 3;
        assert_int_not_equal(conformance_backend->supports(&p, &err), ATS_OK);
        assert_says(err.text, WORDS[fault]);
    }
    ats_arena_fini(&arena);
}

/* The laws hold on the reference backend, and each notices the fault it is there for. */
#include <math.h>
#include <string.h>

#include "metrics/laws.h"
#include "kernels/reference.h"
#include "support/check.h"
#include "support/problems.h"

typedef struct job {
    const ats_problem *problem;
    const ats_law_bars *bars;
    const ats_edit *edits;
    const ats_law_kind *kinds;
    ats_law total[16][ATS_LAWS_MAX];
    int64_t counts[16];
    void (*spoil)(const ats_problem *problem, const ats_stats *stats);
} job;

static ats_code emit(void *ctx, int64_t variant, int worker, const ats_stats *base,
                     const ats_stats *stats, ats_err *err)
{
    (void)worker, (void)err;
    job *j = ctx;
    ats_law laws[ATS_LAWS_MAX];
    if (variant >= 0 && j->spoil != NULL) j->spoil(j->problem, stats);
    const ats_law_kind kind = variant < 0 ? ATS_LAWS_ANY : j->kinds[variant];
    const ats_edit *edit = variant < 0 ? NULL : &j->edits[variant];
    const int64_t n = ats_laws_check(kind, j->problem, j->bars, base, stats, edit, laws);
    for (int64_t i = 0; i < n; i++) ats_law_merge(&j->total[variant + 1][i], &laws[i]);
    j->counts[variant + 1] = n;
    return ATS_OK;
}

enum { KINDS = 6 };
static const enum edit_kind edit_kinds[KINDS] = {EDIT_OVERLAY,     EDIT_HIDE,     EDIT_SWAP_VALUE,
                                                 EDIT_TEMPERATURE, EDIT_IDENTITY, EDIT_MOVE_ALL};
static const ats_law_kind kinds[KINDS] = {ATS_LAWS_OVERLAY,      ATS_LAWS_MASK,
                                          ATS_LAWS_PAYLOAD_SWAP, ATS_LAWS_TEMPERATURE,
                                          ATS_LAWS_SAME,         ATS_LAWS_SAME};

static void run(ats_arena *arena, uint64_t seed,
                void (*spoil)(const ats_problem *, const ats_stats *), job *j)
{
    static ats_problem problem;
    static ats_edit edits[KINDS];
    static ats_law_bars bars;
    const problem_spec spec = {.seed = seed,
                               .n_keys = 65,
                               .d_qk = 8,
                               .d_v = 5,
                               .group = 2,
                               .n_probes = 3,
                               .rope = ATS_ROPE_HALF,
                               .sink = seed % 2 == 1};
    ats_err err = {.code = ATS_OK};
    problem_make(arena, &spec, &problem);
    for (int i = 0; i < KINDS; i++) edit_make(arena, &problem, seed, edit_kinds[i], &edits[i]);
    ats_stats base;
    /* bars from a base of zeros: no cancellation, one key */
    double zero[64] = {0};
    float none[64 * 8] = {0};
    int64_t one[64] = {0};
    memset(&base, 0, sizeof base);
    problem.n_regions = problem.n_regions > 8 ? 8 : problem.n_regions;
    double abs_zero[64 * 8] = {0};
    base.route.legal_keys = one;
    base.route.region_abs = abs_zero;
    base.route.output = none;
    base.route.lse = zero;
    assert_ok(ats_law_bars_make(arena, &problem, &base, &bars, &err), &err);
    *j = (job){.problem = &problem, .bars = &bars, .edits = edits, .kinds = kinds, .spoil = spoil};
    assert_ok(ats_backend_reference.evaluate(&problem, edits, KINDS, emit, j, &err), &err);
}

static void test_laws_hold(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        ats_arena arena = {.blocks = NULL};
        static job j;
        run(&arena, seed, NULL, &j);
        for (int v = 0; v <= KINDS; v++) {
            assert_true(j.counts[v] >= (v == 0 ? 5 : 6));
            for (int64_t i = 0; i < j.counts[v]; i++) {
                const ats_law *law = &j.total[v][i];
                if (!ats_law_holds(law))
                    fail_msg("seed %d, variant %d: %s (%s): residual %g, bound %g", (int)seed,
                             v - 1, law->name, law->statement, law->residual, law->bound);
                if (v > 0) assert_true(law->rows > 0);
            }
        }
        ats_arena_fini(&arena);
    }
}

static const ats_law *find(const job *j, int v, const char *name)
{
    for (int64_t i = 0; i < j->counts[v + 1]; i++)
        if (strcmp(j->total[v + 1][i].name, name) == 0) return &j->total[v + 1][i];
    fail_msg("no law %s", name);
    return NULL;
}

static void spoil(const ats_problem *problem, const ats_stats *stats)
{
    const int64_t row = 4;
    stats->pair.tv[row] += 1e-3;
    stats->pair.delta[(row * ATS_N_PARTS + ATS_PART_REROUTE) * problem->d_v] += 0.5F;
    stats->route.lse[row] += 1e-2;
    stats->route.output[row * problem->d_v] += 0.25F;
}

static void test_faults_are_noticed(void **state)
{
    (void)state;
    ats_arena arena = {.blocks = NULL};
    static job j;
    run(&arena, 2, spoil, &j);
    static const struct {
        int variant;
        const char *name;
    } broken[] = {{0, "any.mass"},
                  {0, "any.parts"},
                  {0, "overlay.tv"},
                  {0, "overlay.parts"},
                  {0, "overlay.intrusion"},
                  {1, "mask.tv"},
                  {1, "mask.lse"},
                  {1, "mask.parts"},
                  {1, "mask.log_mass_shift"},
                  {2, "payload_swap.route"},
                  {2, "payload_swap.parts"},
                  {4, "same.lse"},
                  {4, "same.tv"},
                  {5, "same.output"}};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        const ats_law *law = find(&j, broken[i].variant, broken[i].name);
        if (ats_law_holds(law) || law->worst_row != 4)
            fail_msg("%s did not notice: residual %g, bound %g, row %d", law->name, law->residual,
                     law->bound, (int)law->worst_row);
    }
    ats_arena_fini(&arena);
}

static void test_merge_keeps_the_worst(void **state)
{
    (void)state;
    ats_law total = {.name = NULL};
    const ats_law none = {.name = "x", .worst_row = -1};
    const ats_law good = {.name = "x", .residual = 1, .bound = 10, .worst_row = 3, .rows = 5};
    const ats_law bad = {
        .name = "x", .residual = (double)NAN, .bound = 1, .worst_row = 7, .rows = 2, .broken = 1};
    ats_law_merge(&total, &none);
    assert_true(ats_law_holds(&total));
    ats_law_merge(&total, &good);
    assert_int_equal(total.worst_row, 3);
    ats_law_merge(&total, &bad);
    ats_law_merge(&total, &good);
    assert_int_equal(total.worst_row, 7);
    assert_int_equal(total.rows, 12);
    assert_false(ats_law_holds(&total));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_laws_hold),
        cmocka_unit_test(test_faults_are_noticed),
        cmocka_unit_test(test_merge_keeps_the_worst),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

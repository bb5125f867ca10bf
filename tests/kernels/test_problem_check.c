#include <math.h>

#include "support/check.h"
#include "support/problems.h"

static const problem_spec SPEC = {
    .seed = 1, .n_keys = 12, .d_qk = 8, .d_v = 4, .group = 2, .n_probes = 2, .rope = ATS_ROPE_HALF};

typedef struct fault {
    void (*make)(ats_problem *problem);
    const char *says;
} fault;

static void bad_scale(ats_problem *p) { p->contract.scale = (double)NAN; }
static void bad_cap(ats_problem *p) { p->contract.softcap = -50; }
static void bad_cap_nan(ats_problem *p) { p->contract.softcap = (double)NAN; }
static void bad_tau(ats_problem *p) { p->contract.temperature = 0; }
static void bad_window(ats_problem *p) { p->contract.window = -1; }
static void bad_chunk(ats_problem *p) { p->contract.chunk = -4; }
static void bad_rope(ats_problem *p) { p->contract.rope.pairs = 5; }
static void bad_top(ats_problem *p) { p->top_k = 0; }
static void bad_rows(ats_problem *p) { p->n_rows = 3; }
static void bad_segment(ats_problem *p)
{
    static const int32_t SEGMENTS[12] = {0};
    p->key_segment = SEGMENTS;
}
static void bad_sink(ats_problem *p)
{
    static const float SINKS[] = {0, 1, NAN, 2};
    p->sink = SINKS;
}
static void bad_region(ats_problem *p)
{
    static const ats_range RANGE = {10, 13};
    static const ats_region REGION = {1, &RANGE};
    p->regions = &REGION;
    p->n_regions = 1;
}
static void bad_order(ats_problem *p)
{
    static const ats_range RANGES[] = {{4, 6}, {5, 7}};
    static const ats_region REGION = {2, RANGES};
    p->regions = &REGION;
    p->n_regions = 1;
}

static void test_each_fault_is_named(void **state)
{
    (void)state;
    static const fault FAULTS[] = {
        {bad_scale, "scale"},         {bad_cap, "softcap is -50"},
        {bad_cap_nan, "softcap"},     {bad_tau, "temperature"},
        {bad_window, "window is -1"}, {bad_chunk, "chunk is -4"},
        {bad_rope, "5 pairs"},        {bad_top, "top"},
        {bad_rows, "3 rows"},         {bad_segment, "segment"},
        {bad_sink, "row 2"},          {bad_region, "[10, 13)"},
        {bad_order, "[5, 7)"},
    };
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_problem good;
    problem_make(&arena, &SPEC, &good);
    ats_err err = {.code = ATS_OK};
    assert_ok(ats_problem_check(&good, &err), &err);
    for (size_t i = 0; i < sizeof FAULTS / sizeof *FAULTS; i++) {
        ats_problem bad = good;
        FAULTS[i].make(&bad);
        assert_int_equal(ats_problem_check(&bad, &err), ATS_E_INPUT);
        assert_says(err.text, FAULTS[i].says);
    }
    ats_arena_fini(&arena);
}

static ats_code check_script(const ats_problem *p, const ats_segment *segments, int64_t count,
                             double temperature, ats_err *err)
{
    const ats_edit edit = {.n_segments = count,
                           .segments = segments,
                           .temperature = temperature,
                           .side = {.count = 2}};
    return ats_edit_check(p, &edit, err);
}

static void test_scripts_that_lose_rows(void **state)
{
    (void)state;
    static const ats_segment GOOD[] = {{.kind = ATS_SEG_KEEP, .stop = 5},
                                       {.kind = ATS_SEG_ROWS, .stop = 2},
                                       {.kind = ATS_SEG_HIDE, .start = 5, .stop = 12}};
    static const ats_segment GAP[] = {{.kind = ATS_SEG_KEEP, .stop = 5},
                                      {.kind = ATS_SEG_KEEP, .start = 6, .stop = 12}};
    static const ats_segment LONG[] = {{.kind = ATS_SEG_KEEP, .stop = 13}};
    static const ats_segment SIDE[] = {{.kind = ATS_SEG_ROWS, .stop = 2, .row = 1},
                                       {.kind = ATS_SEG_KEEP, .stop = 12}};
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_problem p;
    ats_err err = {.code = ATS_OK};
    problem_make(&arena, &SPEC, &p);
    assert_ok(check_script(&p, GOOD, 3, 1, &err), &err);
    assert_int_equal(check_script(&p, GAP, 2, 1, &err), ATS_E_INTERNAL);
    assert_says(err.text, "segment 1", "row 6", "row 5");
    assert_int_equal(check_script(&p, GOOD, 1, 1, &err), ATS_E_INTERNAL);
    assert_says(err.text, "5 of 12");
    assert_int_equal(check_script(&p, LONG, 1, 1, &err), ATS_E_INTERNAL);
    assert_int_equal(check_script(&p, SIDE, 2, 1, &err), ATS_E_INTERNAL);
    assert_says(err.text, "[1, 3) of 2");
    assert_int_equal(check_script(&p, GOOD, 3, 0, &err), ATS_E_INPUT);
    assert_says(err.text, "temperature");
    ats_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_fault_is_named),
        cmocka_unit_test(test_scripts_that_lose_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

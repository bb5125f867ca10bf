#include <math.h>
#include <string.h>

#include "engine/problem.h"
#include "support/check.h"

enum { KEYS = 100, PROBES = 3, HEADS = 4, D = 2 };

typedef struct fixture {
    ats_arena arena;
    ats_layer layer;
    ats_sample sample, other;
    ats_attention attention;
    int64_t position[KEYS];
    int32_t segment[KEYS];
    ats_span spans[3];
    ats_span other_spans[1];
    ats_probe probes[PROBES];
    float q[HEADS * PROBES * D], k[2 * KEYS * D], v[2 * KEYS * D], sink[HEADS];
    float bias[HEADS * PROBES * KEYS];
    uint8_t keep[PROBES * KEYS];
} fixture;

static int set_up(void **state)
{
    static fixture f;
    f = (fixture){.layer = {.n_q_heads = HEADS, .n_kv_heads = 2, .d_qk = D, .d_v = D}};
    f.layer.contract = (ats_contract){.scale = 0.5, .temperature = 1, .causal = true};
    f.spans[0] = (ats_span){"gold", "gold", 10, 20};
    f.spans[1] = (ats_span){"near", "distractor", 15, 30};
    f.spans[2] = (ats_span){"sink", "sink", 6, 8};
    f.other_spans[0] = (ats_span){"other", "distractor", 1, 2};
    for (int64_t i = 0; i < KEYS; i++) {
        f.position[i] = i;
        f.segment[i] = i < 50 ? 0 : 1;
    }
    for (int p = 0; p < PROBES; p++)
        f.probes[p] =
            (ats_probe){.index = 40 + 20 * p, .position = 40 + 20 * p, .role = "question"};
    for (int i = 0; i < HEADS * PROBES * D; i++) f.q[i] = (float)i;
    for (int i = 0; i < 2 * KEYS * D; i++) f.k[i] = (float)i;
    for (int h = 0; h < HEADS; h++) f.sink[h] = (float)h;
    for (int i = 0; i < HEADS * PROBES * KEYS; i++) f.bias[i] = (float)i;
    for (int i = 0; i < PROBES * KEYS; i++) f.keep[i] = (uint8_t)(i % 2);
    f.sample = (ats_sample){.id = "s",
                            .n_keys = KEYS,
                            .position = f.position,
                            .n_spans = 3,
                            .spans = f.spans,
                            .n_probes = PROBES,
                            .probes = f.probes};
    f.other = f.sample;
    f.other.n_spans = 1;
    f.other.spans = f.other_spans;
    f.attention = (ats_attention){.q = f.q, .k = f.k, .v = f.v};
    ats_arena_init(&f.arena, false);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    ats_arena_fini(&f->arena);
    return 0;
}

static ats_span_axis axis_of(fixture *f, bool by_role)
{
    const ats_sample *samples[] = {&f->sample, &f->other};
    ats_span_axis axis;
    ats_err err;
    assert_ok(ats_span_axis_of(&f->arena, samples, 2, by_role, &axis, &err), &err);
    return axis;
}

static void axis_is_the_union_with_sink_folded(void **state)
{
    fixture *f = *state;
    const ats_span_axis axis = axis_of(f, false);
    assert_int_equal(axis.count, 6);
    assert_string_equal(axis.names[0], "gold");
    assert_string_equal(axis.names[2], "other");
    assert_string_equal(axis.names[3], "sink");
    assert_string_equal(axis.names[5], "rest");
    assert_int_equal(ats_span_axis_find(&axis, "inserted"), 6);
    assert_int_equal(ats_span_axis_find(&axis, "distractor"), 1); /* first span of the role */
    assert_int_equal(ats_span_axis_find(&axis, "nothing"), -1);
    assert_true(ats_span_axis_has(&axis, &f->sample, 0));
    assert_false(ats_span_axis_has(&axis, &f->sample, 2));
    assert_true(ats_span_axis_has(&axis, &f->sample, 4));
    const ats_span_axis roles = axis_of(f, true);
    assert_int_equal(roles.n_named, 2);
}

static void reserved_names_are_refused(void **state)
{
    fixture *f = *state;
    const ats_sample *samples[] = {&f->sample};
    ats_span_axis axis;
    ats_err err;
    f->spans[0].name = "recent";
    assert_int_equal(ats_span_axis_of(&f->arena, samples, 1, false, &axis, &err), ATS_E_INPUT);
    assert_says(err.text, "sample s", "recent", "rename");
}

static void assert_range(const ats_region *region, int64_t at, int64_t start, int64_t stop)
{
    assert_true(at < region->n_ranges);
    assert_int_equal(region->ranges[at].start, start);
    assert_int_equal(region->ranges[at].stop, stop);
}

static ats_problem problem_of(fixture *f, const ats_span_axis *axis, int64_t kv_head)
{
    static const int64_t heads[] = {2, 3}, probes[] = {0, 2};
    const ats_pick pick = {2, heads, 2, probes};
    ats_problem problem;
    ats_err err;
    assert_ok(ats_problem_make(&f->arena, &f->layer, &f->sample, &f->attention, kv_head, &pick,
                               axis, 2.0, 8, &problem, &err),
              &err);
    return problem;
}

static void regions_hold_the_named_rows(void **state)
{
    fixture *f = *state;
    const ats_span_axis axis = axis_of(f, false);
    const ats_problem p = problem_of(f, &axis, 1);
    assert_int_equal(p.n_regions, 6);
    assert_range(&p.regions[0], 0, 10, 20);
    assert_range(&p.regions[1], 0, 15, 30);
    assert_int_equal(p.regions[2].n_ranges, 0); /* not annotated here */
    assert_int_equal(p.regions[3].n_ranges, 2);
    assert_range(&p.regions[3], 0, 0, 4);
    assert_range(&p.regions[3], 1, 6, 8);
    assert_range(&p.regions[4], 0, 36, 100);
    assert_int_equal(p.regions[5].n_ranges, 3);
    assert_range(&p.regions[5], 0, 4, 6);
    assert_range(&p.regions[5], 1, 8, 10);
    assert_range(&p.regions[5], 2, 30, 36);
}

/* RC-07: query heads 2 and 3 of 4 use key head 1 of 2. */
static void rows_are_head_times_probe(void **state)
{
    fixture *f = *state;
    const ats_span_axis axis = axis_of(f, false);
    f->layer.sink = f->sink;
    const ats_problem p = problem_of(f, &axis, 1);
    assert_int_equal(p.n_rows, 4);
    assert_ptr_equal(p.k, f->k + KEYS * D);
    assert_near((double)p.q[0], (2.0 * PROBES + 0) * D, 0);
    assert_near((double)p.q[3 * D], (3.0 * PROBES + 2) * D, 0);
    assert_int_equal(p.q_pos[1], 80);
    assert_near((double)p.sink[2], 3, 0);
    assert_near(p.contract.temperature, 2, 0);
    assert_null(p.keep);
    assert_null(p.bias);
    assert_null(p.q_segment);
}

static void masks_follow_the_chosen_probes(void **state)
{
    fixture *f = *state;
    const ats_span_axis axis = axis_of(f, false);
    f->attention.keep = f->keep;
    f->attention.bias = f->bias;
    f->attention.bias_heads = HEADS;
    f->sample.segment = f->segment;
    f->probes[2].index = -1;
    const ats_problem p = problem_of(f, &axis, 1);
    assert_memory_equal(p.keep + KEYS, f->keep + 2 * KEYS, KEYS);
    assert_ptr_equal(p.bias[3], f->bias + (3 * PROBES + 2) * KEYS);
    assert_int_equal(p.q_segment[0], 0);
    assert_int_equal(p.q_segment[1], 1);
    assert_ptr_equal(p.key_segment, f->segment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(axis_is_the_union_with_sink_folded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reserved_names_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(regions_hold_the_named_rows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rows_are_head_times_probe, set_up, tear_down),
        cmocka_unit_test_setup_teardown(masks_follow_the_chosen_probes, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

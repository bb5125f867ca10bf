#include <string.h>

#include "base/rng.h"
#include "perturb/script.h"
#include "support/check.h"
#include "support/tiny.h"

static ats_arena arena;
static ats_err err;

static int reset(void **state)
{
    (void)state;
    ats_arena_fini(&arena);
    return 0;
}

static void expect(const ats_edit *edit, const char *want)
{
    const char *text = NULL;
    assert_ok(ats_edit_print(&arena, edit, 0, &text, &err), &err);
    assert_string_equal(text, want);
}

static void no_operation_keeps_everything(void **state)
{
    (void)state;
    ats_script script = ats_script_begin(&arena, 9);
    ats_edit edit = {.n_segments = 0};
    assert_ok(ats_script_emit(&script, &edit, &err), &err);
    expect(&edit, "keep [0, 9)\n");
    assert_near(edit.temperature, 1, 0);
}

static void operations_come_out_in_sequence_order(void **state)
{
    (void)state;
    const int64_t position[] = {5, 6, 7, 3, 8, 9};
    ats_script script = ats_script_begin(&arena, 20);
    ats_edit edit = {.side = {.count = 6, .position = position}, .query_delta = 2};
    assert_ok(ats_script_hide(&script, 12, 14, &err), &err);
    assert_ok(ats_script_insert(&script, 20, 5, 1, &err), &err);
    assert_ok(ats_script_swap(&script, 3, 4, 3, true, false, &err), &err);
    assert_ok(ats_script_hide(&script, 14, 15, &err), &err);
    assert_ok(ats_script_insert(&script, 13, 0, 2, &err), &err);
    assert_ok(ats_script_insert(&script, 13, 2, 1, &err), &err);
    assert_ok(ats_script_move(&script, 15, 20, 2, &err), &err);
    assert_ok(ats_script_insert(&script, 0, 4, 1, &err), &err);
    assert_ok(ats_script_emit(&script, &edit, &err), &err);
    expect(&edit, "rows [4, 5) at positions 8..8\n"
                  "keep [0, 3)\n"
                  "swap [3, 4) <- [3, 4) key\n"
                  "keep [4, 12)\n"
                  "hide [12, 13)\n"
                  "rows [0, 2) at positions 5..6\n"
                  "rows [2, 3) at positions 7..7\n"
                  "hide [13, 15)\n"
                  "keep [15, 20) moved by +2\n"
                  "rows [5, 6) at positions 9..9\n"
                  "probes moved by +2\n");
}

static void a_swap_split_by_an_insertion_keeps_its_side_rows(void **state)
{
    (void)state;
    const int64_t position[] = {0, 1, 2, 3, 1};
    ats_script script = ats_script_begin(&arena, 4);
    ats_edit edit = {.side = {.count = 5, .position = position}};
    assert_ok(ats_script_swap(&script, 0, 4, 0, true, true, &err), &err);
    assert_ok(ats_script_insert(&script, 2, 4, 1, &err), &err);
    assert_ok(ats_script_emit(&script, &edit, &err), &err);
    expect(&edit, "swap [0, 2) <- [0, 2) key and value\n"
                  "rows [4, 5) at positions 1..1\n"
                  "swap [2, 4) <- [2, 4) key and value\n");
}

static void a_row_named_twice_is_refused(void **state)
{
    (void)state;
    ats_script script = ats_script_begin(&arena, 10);
    ats_edit edit = {.n_segments = 0};
    assert_ok(ats_script_hide(&script, 2, 6, &err), &err);
    assert_ok(ats_script_move(&script, 5, 8, 1, &err), &err);
    assert_int_equal(ats_script_emit(&script, &edit, &err), ATS_E_INTERNAL);
    assert_says(err.text, "row 5", "twice");
    assert_int_equal(ats_script_hide(&script, 5, 11, &err), ATS_E_INTERNAL);
    assert_int_equal(ats_script_insert(&script, 11, 0, 1, &err), ATS_E_INTERNAL);
}

static void long_scripts_print_only_so_many_lines(void **state)
{
    (void)state;
    ats_script script = ats_script_begin(&arena, 100);
    ats_edit edit = {.n_segments = 0};
    const char *text = NULL;
    for (int64_t i = 0; i < 50; i++)
        assert_ok(ats_script_hide(&script, 2 * i, 2 * i + 1, &err), &err);
    assert_ok(ats_script_emit(&script, &edit, &err), &err);
    assert_ok(ats_edit_print(&arena, &edit, 2, &text, &err), &err);
    assert_string_equal(text, "hide [0, 1)\nkeep [1, 2)\n... 98 more segments\n");
}

/* What a hand-made script must say when it is checked against 10 rows at positions 0..9. */
static void refused(const ats_edit *edit, bool allow, const char *part)
{
    int64_t position[10];
    for (int64_t i = 0; i < 10; i++) position[i] = i;
    const ats_probe probe = {.index = 9, .position = 9, .role = "q"};
    const ats_sample sample = {
        .id = "s", .n_keys = 10, .position = position, .n_probes = 1, .probes = &probe};
    const ats_layer layer = {.max_position = 12, .d_qk = 1, .d_v = 1};
    const ats_code rc = ats_edit_validate(&arena, edit, &sample, &layer, allow, &err);
    if (part == NULL) {
        assert_ok(rc, &err);
        return;
    }
    assert_int_not_equal(rc, ATS_OK);
    assert_says(err.text, part);
}

static void validation_names_what_is_wrong(void **state)
{
    (void)state;
    const int64_t position[] = {13, 4};
    const ats_segment hole[] = {{.kind = ATS_SEG_KEEP, .stop = 4}, {.start = 5, .stop = 10}};
    const ats_segment tail[] = {{.kind = ATS_SEG_KEEP, .stop = 9}};
    const ats_segment twice[] = {{.kind = ATS_SEG_ROWS, .stop = 1},
                                 {.kind = ATS_SEG_ROWS, .stop = 1},
                                 {.kind = ATS_SEG_KEEP, .stop = 10}};
    const ats_segment past[] = {{.kind = ATS_SEG_KEEP, .stop = 9},
                                {.kind = ATS_SEG_KEEP, .start = 9, .stop = 10, .delta = 4}};
    const ats_segment before[] = {{.kind = ATS_SEG_KEEP, .stop = 10, .delta = -1}};
    const ats_segment swap[] = {
        {.kind = ATS_SEG_KEEP, .stop = 3},
        {.kind = ATS_SEG_SWAP, .start = 3, .stop = 4, .row = 1, .swap_key = true},
        {.kind = ATS_SEG_KEEP, .start = 4, .stop = 10}};
    const ats_segment all[] = {{.kind = ATS_SEG_KEEP, .stop = 10}};
    const ats_side side = {.count = 2, .position = position};
    refused(&(ats_edit){2, hole, {0}, 0, 1, 0, NULL, false}, false, "row 4");
    refused(&(ats_edit){1, tail, {0}, 0, 1, 0, NULL, false}, false, "rows from 9");
    refused(&(ats_edit){3, twice, side, 0, 1, 0, NULL, false}, true, "used twice");
    refused(&(ats_edit){2, twice + 1, side, 0, 1, 0, NULL, false}, true, "side row 1 is not used");
    refused(&(ats_edit){2, twice + 1, side, 0, 1, 0, NULL, false}, false, "position 13");
    refused(&(ats_edit){2, past, {0}, 0, 1, 0, NULL, false}, false, "past max_position 12");
    refused(&(ats_edit){2, past, {0}, 0, 1, 0, NULL, false}, true, NULL);
    refused(&(ats_edit){1, before, {0}, 0, 1, 0, NULL, false}, true, "positions start at 0");
    refused(&(ats_edit){3, swap, side, 0, 1, 0, NULL, false}, true, "stands at position 3");
    refused(&(ats_edit){1, all, {0}, 4, 1, 0, NULL, false}, false, "probe 0");
    refused(&(ats_edit){1, all, {0}, 0, 0, 0, NULL, false}, false, "temperature");
    refused(&(ats_edit){1, all, {0}, 0, 1, -1, NULL, false}, false, "scale");
    refused(&(ats_edit){1, all, {0}, 0, 1, 0, NULL, false}, false, NULL);
}

/* A row-by-row model of the builder: state[i] says what happened to base row i. */
static void random_scripts_name_every_row_once(void **state)
{
    (void)state;
    enum { N = 60 };
    for (uint64_t seed = 0; seed < 300; seed++) {
        ats_rng rng = ats_rng_stream(seed, "", "", 0, 0, "script");
        ats_script script = ats_script_begin(&arena, N);
        ats_edit edit = {.n_segments = 0};
        char want[N + 1], got[N + 1];
        memset(want, 'k', N);
        for (int64_t i = 0; i < N;) {
            const int64_t length = 1 + ats_rng_below(&rng, 3);
            const int64_t stop = i + length < N ? i + length : N;
            const int64_t what = ats_rng_below(&rng, 4);
            if (what == 1) assert_ok(ats_script_hide(&script, i, stop, &err), &err);
            if (what == 2) assert_ok(ats_script_move(&script, i, stop, 3, &err), &err);
            if (what == 3) assert_ok(ats_script_insert(&script, i, i, stop - i, &err), &err);
            if (what == 1 || what == 2) memset(want + i, what == 1 ? 'h' : 'm', (size_t)(stop - i));
            i = stop;
        }
        assert_ok(ats_script_emit(&script, &edit, &err), &err);
        int64_t next = 0;
        for (int64_t s = 0; s < edit.n_segments; s++) {
            const ats_segment *seg = &edit.segments[s];
            if (seg->kind == ATS_SEG_ROWS) {
                assert_int_equal(seg->row, next);
                continue;
            }
            assert_int_equal(seg->start, next);
            const char c = seg->kind == ATS_SEG_HIDE ? 'h' : (seg->delta == 3 ? 'm' : 'k');
            memset(got + seg->start, c, (size_t)(seg->stop - seg->start));
            next = seg->stop;
        }
        assert_int_equal(next, N);
        assert_memory_equal(got, want, N);
        ats_arena_reset(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(no_operation_keeps_everything, reset),
        cmocka_unit_test_teardown(operations_come_out_in_sequence_order, reset),
        cmocka_unit_test_teardown(a_swap_split_by_an_insertion_keeps_its_side_rows, reset),
        cmocka_unit_test_teardown(a_row_named_twice_is_refused, reset),
        cmocka_unit_test_teardown(long_scripts_print_only_so_many_lines, reset),
        cmocka_unit_test_teardown(validation_names_what_is_wrong, reset),
        cmocka_unit_test_teardown(random_scripts_name_every_row_once, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

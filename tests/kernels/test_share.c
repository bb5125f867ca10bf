/* The account of a batch against counts made key by key. */
#include <math.h>
#include <stdlib.h>

#include "kernels/share.h"
#include "support/check.h"
#include "support/problems.h"

enum { KEYS = 1000, EDITS = 40 };

/* One key under one edit, worked out from the segment that names it. */
typedef struct view {
    bool hidden, keyed, valued;
    int64_t delta;
} view;

static void views_of(const ats_edit *edit, view *out)
{
    for (int64_t i = 0; i < edit->n_segments; i++) {
        const ats_segment *s = &edit->segments[i];
        for (int64_t k = s->start; s->kind != ATS_SEG_ROWS && k < s->stop; k++)
            out[k] = (view){.hidden = s->kind == ATS_SEG_HIDE,
                            .keyed = s->kind == ATS_SEG_SWAP && s->swap_key,
                            .valued = s->kind == ATS_SEG_SWAP && s->swap_value,
                            .delta = s->kind == ATS_SEG_KEEP ? s->delta : 0};
    }
}

static int64_t rows_of(const ats_edit *edit)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < edit->n_segments; i++)
        if (edit->segments[i].kind == ATS_SEG_ROWS) rows += edit->segments[i].stop;
    return rows;
}

static bool is_cut(const ats_edit *edit, int64_t key)
{
    for (int64_t i = 0; i < edit->n_segments; i++) {
        const ats_segment *s = &edit->segments[i];
        if (s->kind != ATS_SEG_ROWS && s->start == key && s->stop > s->start) return key > 0;
    }
    return false;
}

static bool region_cut(const ats_problem *p, int64_t key)
{
    for (int64_t r = 0; r < p->n_regions; r++)
        for (int64_t i = 0; i < p->regions[r].n_ranges; i++)
            if (p->regions[r].ranges[i].start == key || p->regions[r].ranges[i].stop == key)
                return key > 0 && key < p->n_keys;
    return false;
}

typedef struct turn_count {
    int64_t turn, edits, keys, last_edit;
} turn_count;

static turn_count *turn_at(turn_count *turns, int64_t *n, int64_t turn)
{
    for (int64_t i = 0; i < *n; i++)
        if (turns[i].turn == turn) return &turns[i];
    turns[*n] = (turn_count){.turn = turn, .last_edit = -1};
    return &turns[(*n)++];
}

/* Adds one edit to the counts by hand, and compares what the account says of it alone. */
static void check_edit(const ats_problem *p, const ats_edit *edit, int64_t index, turn_count *turns,
                       int64_t *n_turns, int64_t *touched)
{
    static view keys[KEYS];
    ats_share_edit found;
    int64_t counts[4] = {0}, cuts = 0;
    views_of(edit, keys);
    ats_share_look(p, edit, &found);
    const bool rescaled = edit->temperature != 1 || edit->q != NULL ||
                          (edit->scale != 0 && edit->scale != p->contract.scale);
    for (int64_t k = 0; k < p->n_keys; k++) {
        const view *v = &keys[k];
        const bool chunked = p->contract.chunk > 0;
        const bool moved = edit->query_delta != v->delta;
        cuts += is_cut(edit, k);
        if (v->hidden)
            counts[0]++;
        else if (rescaled || v->keyed || (chunked && (moved || v->delta % p->contract.chunk != 0)))
            counts[3]++;
        else if (moved) {
            turn_count *t = turn_at(turns, n_turns, edit->query_delta - v->delta);
            counts[2]++;
            t->keys++;
            t->edits += t->last_edit != index;
            t->last_edit = index;
        } else
            counts[1] += v->valued;
    }
    assert_int_equal(found.hidden, counts[0]);
    assert_int_equal(found.values, counts[1]);
    assert_int_equal(found.turned, counts[2]);
    assert_int_equal(found.renewed, counts[3]);
    assert_int_equal(found.cuts, cuts);
    assert_int_equal(found.inserted, rows_of(edit));
    assert_int_equal(found.rescaled, rescaled);
    const int64_t all = counts[0] + counts[1] + counts[2] + counts[3];
    assert_int_equal(found.apart, 32 * cuts > p->n_keys || 2 * all > p->n_keys);
    *touched += all;
}

static void the_account_is_the_count_of_keys(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        problem_spec spec;
        ats_problem p;
        ats_edit edits[EDITS];
        ats_share share;
        ats_share_sum sum, again;
        turn_count turns[4096];
        int64_t n_turns = 0, touched = 0, cuts = 0, inserted = 0;
        ats_arena arena;
        ats_err err;
        ats_arena_init(&arena, false);
        problem_spec_draw(seed, &spec);
        spec.n_keys = KEYS - (int64_t)seed;
        problem_make(&arena, &spec, &p);
        edits_make(&arena, &p, seed, EDITS, edits);
        assert_ok(ats_share_begin(&arena, &p, &share, &err), &err);
        for (int64_t e = 0; e < EDITS; e++) {
            check_edit(&p, &edits[e], e, turns, &n_turns, &touched);
            assert_ok(ats_share_add(&share, &edits[e], &err), &err);
            inserted += rows_of(&edits[e]);
        }
        for (int64_t k = 0; k < p.n_keys; k++) {
            bool cut = region_cut(&p, k);
            for (int64_t e = 0; e < EDITS; e++) cut |= is_cut(&edits[e], k);
            cuts += cut;
        }
        ats_share_finish(&share, &sum);
        assert_int_equal(sum.edits, EDITS);
        assert_int_equal(sum.cuts, cuts);
        assert_int_equal(sum.touched, touched);
        assert_int_equal(sum.inserted, inserted);
        assert_int_equal(sum.turns, n_turns);
        for (int64_t i = 0; i < share.n_turns; i++) {
            const ats_share_turn *t = &share.turns[i];
            const turn_count *expected = turn_at(turns, &n_turns, t->turn);
            assert_int_equal(t->keys, expected->keys);
            assert_int_equal(t->edits, expected->edits);
            assert_true(i == 0 || share.turns[i - 1].turn < t->turn);
            assert_true(t->start < t->stop && t->keys <= t->edits * (t->stop - t->start));
        }
        /* Another order, the same account. */
        assert_ok(ats_share_begin(&arena, &p, &share, &err), &err);
        for (int64_t e = EDITS - 1; e >= 0; e--)
            assert_ok(ats_share_add(&share, &edits[e], &err), &err);
        ats_share_finish(&share, &again);
        assert_memory_equal(&sum, &again, sizeof sum);
        ats_arena_fini(&arena);
    }
}

/* 64 overlays of 32 rows on 16384 keys: one pass and a little, not 65. */
static void overlays_cost_one_pass(void **state)
{
    (void)state;
    const ats_problem p = {.contract = {.scale = 1, .temperature = 1, .causal = true},
                           .n_keys = 16384,
                           .d_qk = 128,
                           .d_v = 128,
                           .n_rows = 64,
                           .n_probes = 16,
                           .top_k = 8};
    ats_share share;
    ats_share_sum sum;
    ats_arena arena;
    ats_err err;
    ats_arena_init(&arena, false);
    assert_ok(ats_share_begin(&arena, &p, &share, &err), &err);
    for (int64_t v = 0; v < 64; v++) {
        const int64_t at = 64 * (v + 1);
        const ats_segment segments[] = {{.kind = ATS_SEG_KEEP, .start = 0, .stop = at},
                                        {.kind = ATS_SEG_ROWS, .stop = 32},
                                        {.kind = ATS_SEG_KEEP, .start = at, .stop = 16384}};
        const ats_edit edit = {
            .n_segments = 3, .segments = segments, .side = {.count = 32}, .temperature = 1};
        assert_ok(ats_share_add(&share, &edit, &err), &err);
    }
    ats_share_finish(&share, &sum);
    assert_int_equal(sum.cuts, 64);
    assert_int_equal(sum.apart, 0);
    assert_near(sum.passes, 1 + 64 * 32 / 16384.0, 1e-12);
    assert_near(sum.passes_alone, 65 + 64 * 32 / 16384.0, 1e-12);
    assert_near(sum.flops, sum.passes * 16384 * 64 * 4 * 128, 1);
    ats_arena_fini(&arena);
}

/* Shifts by 8 rows at three depths share one turn; one by 9 rows has its own. */
static void shifts_share_their_turn(void **state)
{
    (void)state;
    const ats_problem p = {.contract = {.scale = 1, .temperature = 1, .causal = true},
                           .n_keys = 4096,
                           .d_qk = 64,
                           .d_v = 64,
                           .n_rows = 16,
                           .n_probes = 4,
                           .top_k = 8};
    ats_share share;
    ats_share_sum sum;
    ats_arena arena;
    ats_err err;
    ats_arena_init(&arena, false);
    assert_ok(ats_share_begin(&arena, &p, &share, &err), &err);
    for (int64_t v = 0; v < 4; v++) {
        const int64_t at = 1024 * (v % 3 + 1), rows = v < 3 ? 8 : 9;
        const ats_segment segments[] = {
            {.kind = ATS_SEG_KEEP, .start = 0, .stop = at},
            {.kind = ATS_SEG_ROWS, .stop = rows},
            {.kind = ATS_SEG_KEEP, .start = at, .stop = 4096, .delta = rows}};
        const ats_edit edit = {.n_segments = 3,
                               .segments = segments,
                               .side = {.count = rows},
                               .query_delta = rows,
                               .temperature = 1};
        assert_ok(ats_share_add(&share, &edit, &err), &err);
    }
    ats_share_finish(&share, &sum);
    assert_int_equal(sum.turns, 2);
    assert_int_equal(sum.common_turns, 1);
    /* The base; three quarters of it turned by 8 for all three, a quarter by 9; the rows. */
    assert_near(sum.passes, 1 + 0.75 + 0.25 + 33 / 4096.0, 1e-12);
    ats_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_account_is_the_count_of_keys),
        cmocka_unit_test(overlays_cost_one_pass),
        cmocka_unit_test(shifts_share_their_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

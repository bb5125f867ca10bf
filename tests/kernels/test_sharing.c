/* Sharing is only a way to compute: on random edit scripts, sparse and dense, what a variant gets
 * from shared states agrees with what a pass of its own gives. */
#include <string.h>

#include "support/check.h"
#include "support/compare.h"
#include "support/problems.h"

enum { EDITS = 24 };

/* Matrix units make half of the passes at their level. */
static ats_bar_path path_of(const ats_backend *cpu)
{
    return strcmp(cpu->detail(), "amx") == 0 ? ATS_BAR_SPLIT16 : ATS_BAR_FP32;
}

/* Segments of one to three keys: most cuts are closer than any state of the base. */
static void dense_edit(ats_arena *arena, const ats_problem *p, uint64_t seed, ats_edit *out)
{
    ats_rng rng = ats_rng_stream(seed, "", "", 0, 0, "dense");
    ats_segment *segments = NULL;
    ats_err err;
    int64_t n = 0, side = 0, sparse = ats_rng_below(&rng, 3);
    assert_ok(ATS_NEW0(arena, 2 * p->n_keys + 1, &segments, &err), &err);
    for (int64_t key = 0; key < p->n_keys;) {
        const int64_t most = sparse > 0 ? 40 : 3, left = p->n_keys - key;
        int64_t keys = 1 + ats_rng_below(&rng, most);
        if (keys > left) keys = left;
        if (ats_rng_below(&rng, 5) == 0) {
            const int64_t rows = 1 + ats_rng_below(&rng, 3);
            segments[n++] = (ats_segment){.kind = ATS_SEG_ROWS, .stop = rows, .row = side};
            side += rows;
        }
        ats_segment s = {.start = key, .stop = key + keys};
        switch (ats_rng_below(&rng, 4)) {
        case 0:
            s.kind = ATS_SEG_HIDE;
            break;
        case 1:
            s.kind = ATS_SEG_SWAP;
            s.row = side;
            s.swap_key = ats_rng_below(&rng, 2) == 0;
            s.swap_value = !s.swap_key || ats_rng_below(&rng, 2) == 0;
            side += keys;
            break;
        default:
            s.kind = ATS_SEG_KEEP;
        }
        segments[n++] = s;
        key += keys;
    }
    *out = (ats_edit){.n_segments = n, .segments = segments, .temperature = 1};
    side_rows_make(arena, p, &rng, side, &out->side);
    int64_t *position = NULL;
    assert_ok(ATS_NEW(arena, side, &position, &err), &err);
    if (side > 0) memcpy(position, out->side.position, (size_t)side * sizeof *position);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0;
             segments[i].kind == ATS_SEG_SWAP && j < segments[i].stop - segments[i].start; j++)
            position[segments[i].row + j] = p->key_pos[segments[i].start + j];
    out->side.position = position;
}

static void check(uint64_t seed, report *r)
{
    problem_spec spec;
    ats_problem p;
    ats_edit edits[EDITS], apart[EDITS];
    stats_set shared, alone, one;
    const ats_backend *cpu = NULL;
    char text[256];
    ats_arena arena;
    ats_err err;
    ats_arena_init(&arena, false);
    assert_ok(ats_backend_find("cpu", &cpu, &err), &err);
    problem_spec_draw(seed, &spec);
    r->context = problem_spec_text(&spec, text, sizeof text);
    r->path = path_of(cpu);
    problem_make(&arena, &spec, &p);
    edits_make(&arena, &p, seed, EDITS - 6, edits);
    for (int i = EDITS - 6; i < EDITS; i++)
        dense_edit(&arena, &p, 100 * seed + (uint64_t)i, &edits[i]);
    for (int i = 0; i < EDITS; i++) {
        assert_ok(ats_edit_check(&p, &edits[i], &err), &err);
        apart[i] = edits[i];
        apart[i].apart = true;
    }
    evaluate_all(&arena, cpu, &p, edits, EDITS, &shared);
    evaluate_all(&arena, cpu, &p, apart, EDITS, &alone);
    compare_sets(r, &p, edits, &shared, &alone);
    /* Nobody's numbers depend on who else is there. */
    for (int i = (int)(seed % 3); i < EDITS; i += 3) {
        evaluate_all(&arena, cpu, &p, &edits[i], 1, &one);
        const char *field = stats_difference(&p, &shared.variants[i], &one.variants[0]);
        if (field != NULL) fail_msg("%s: variant %d alone has other bits in %s", text, i, field);
    }
    ats_arena_fini(&arena);
}

static void shared_and_alone_agree(void **state)
{
    (void)state;
    report r = {.context = ""};
    for (uint64_t seed = 501; seed <= 516; seed++) check(seed, &r);
    report_finish(&r, "shared states against a pass of its own");
}

/* Shifts of three lengths at many places: most see most keys from a distance that others share.
 * Whoever is there, and however little memory there is to share in, every bit stays. */
static void turns_in_common_change_no_bit(void **state)
{
    (void)state;
    enum { N = 12 };
    const ats_backend *cpu = NULL;
    ats_err err;
    assert_ok(ats_backend_find("cpu", &cpu, &err), &err);
    report r = {.path = path_of(cpu), .context = "turns in common"};
    for (uint64_t seed = 601; seed <= 608; seed++) {
        problem_spec spec;
        ats_problem p;
        ats_edit edits[N], apart[N];
        ats_segment segments[N][4];
        stats_set together, tight, alone, one;
        ats_arena arena;
        ats_arena_init(&arena, false);
        problem_spec_draw(seed, &spec);
        problem_make(&arena, &spec, &p);
        ats_rng rng = ats_rng_stream(seed, "", "", 0, 0, "turns");
        for (int i = 0; i < N; i++) {
            const int64_t at = ats_rng_below(&rng, p.n_keys + 1), n = p.n_keys;
            const int64_t to = at + ats_rng_below(&rng, n - at + 1), delta = 1 + i % 3;
            ats_segment *s = segments[i];
            s[0] = (ats_segment){.kind = ATS_SEG_KEEP, .stop = at};
            s[1] = (ats_segment){.kind = ATS_SEG_KEEP, .start = at, .stop = to, .delta = delta};
            s[2] = (ats_segment){.kind = i % 4 == 3 ? ATS_SEG_HIDE : ATS_SEG_KEEP,
                                 .start = to,
                                 .stop = n,
                                 .delta = i % 4 == 3 ? 0 : 2 * delta};
            edits[i] = (ats_edit){.n_segments = 3,
                                  .segments = s,
                                  .query_delta = i % 2 == 0 ? delta : 2 * delta,
                                  .temperature = 1};
            assert_ok(ats_edit_check(&p, &edits[i], &err), &err);
            apart[i] = edits[i];
            apart[i].apart = true;
        }
        evaluate_all(&arena, cpu, &p, edits, N, &together);
        evaluate_all(&arena, cpu, &p, apart, N, &alone);
        compare_sets(&r, &p, edits, &together, &alone);
        ats_problem little = p;
        little.memory = (int64_t)cpu->workspace_bytes(&p, N);
        evaluate_all(&arena, cpu, &little, edits, N, &tight);
        for (int i = 0; i < N; i++) {
            evaluate_all(&arena, cpu, &p, &edits[i], 1, &one);
            const char *field = stats_difference(&p, &together.variants[i], &one.variants[0]);
            if (field != NULL) fail_msg("variant %d alone has other bits in %s", i, field);
            field = stats_difference(&p, &together.variants[i], &tight.variants[i]);
            if (field != NULL) fail_msg("variant %d in little memory differs in %s", i, field);
        }
        ats_arena_fini(&arena);
    }
    report_finish(&r, "turns in common against passes of their own");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shared_and_alone_agree),
                                       cmocka_unit_test(turns_in_common_change_no_bit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

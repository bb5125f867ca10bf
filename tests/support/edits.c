#include <math.h>
#include <string.h>

#include "support/check.h"
#include "support/problems.h"

#define NEW(arena, count, pointer)                                                                 \
    do {                                                                                           \
        ats_err new_err = {.code = ATS_OK};                                                        \
        assert_ok(ATS_NEW0((arena), (count), (pointer), &new_err), &new_err);                      \
    } while (0)

enum { MAX_SEGMENTS = 64, MAX_SIDE = 256 };

/* A script under construction: `next` is the next base row. */
typedef struct draft {
    const ats_problem *problem;
    ats_rng rng;
    ats_segment segments[MAX_SEGMENTS];
    int64_t n_segments, next;
    int64_t positions[MAX_SIDE];
    int64_t n_side;
} draft;

static void add_base(draft *d, ats_segment_kind kind, int64_t stop, int64_t delta)
{
    if (stop <= d->next) return;
    d->segments[d->n_segments++] =
        (ats_segment){.kind = kind, .start = d->next, .stop = stop, .delta = delta};
    d->next = stop;
}

static void add_swap(draft *d, int64_t stop, bool key, bool value)
{
    if (stop <= d->next) return;
    const int64_t first = d->n_side;
    for (int64_t i = d->next; i < stop; i++) d->positions[d->n_side++] = d->problem->key_pos[i];
    add_base(d, ATS_SEG_SWAP, stop, 0);
    ats_segment *segment = &d->segments[d->n_segments - 1];
    segment->row = first;
    segment->swap_key = key;
    segment->swap_value = value;
}

/* Inserts rows before base row `next`; step 0: all at the position of the row before. */
static void add_rows(draft *d, int64_t count, int64_t step)
{
    const ats_problem *p = d->problem;
    int64_t position = d->next > 0 ? p->key_pos[d->next - 1] : p->key_pos[0];
    d->segments[d->n_segments++] =
        (ats_segment){.kind = ATS_SEG_ROWS, .stop = count, .row = d->n_side};
    for (int64_t i = 0; i < count; i++) d->positions[d->n_side++] = position += step;
}

void side_rows_make(ats_arena *arena, const ats_problem *p, ats_rng *rng, int64_t count,
                    ats_side *out)
{
    float *k = NULL, *v = NULL;
    int64_t *position = NULL;
    NEW(arena, count * p->d_qk, &k);
    NEW(arena, count * p->d_v, &v);
    NEW(arena, count, &position);
    for (int64_t i = 0; i < count * p->d_qk; i++) k[i] = (float)ats_rng_normal(rng);
    for (int64_t i = 0; i < count * p->d_v; i++) v[i] = (float)ats_rng_normal(rng);
    *out = (ats_side){.count = count, .k = k, .v = v, .position = position};
}

static const float *other_queries(ats_arena *arena, draft *d)
{
    float *q = NULL;
    const int64_t count = d->problem->n_rows * d->problem->d_qk;
    NEW(arena, count, &q);
    for (int64_t i = 0; i < count; i++) q[i] = (float)ats_rng_normal(&d->rng);
    return q;
}

static void add_mixture(ats_arena *arena, draft *d, ats_edit *out)
{
    const int64_t n = d->problem->n_keys;
    int64_t delta = 0;
    for (int64_t i = 0; i < 12 && d->next < n; i++) {
        const int64_t length = 1 + ats_rng_below(&d->rng, 1 + n / 8);
        const int64_t stop = d->next + length < n ? d->next + length : n;
        const int64_t swap_stop = stop < d->next + 12 ? stop : d->next + 12;
        switch (ats_rng_below(&d->rng, 7)) {
        case 0:
            add_base(d, ATS_SEG_HIDE, stop, 0);
            break;
        case 1:
            add_swap(d, swap_stop, true, ats_rng_below(&d->rng, 2) == 1);
            break;
        case 2:
            add_swap(d, swap_stop, false, true);
            break;
        case 3:
            add_rows(d, 1 + ats_rng_below(&d->rng, 10), ats_rng_below(&d->rng, 2));
            break;
        case 4:
            delta = ats_rng_below(&d->rng, 2 * n + 1) - n / 2;
            add_base(d, ATS_SEG_KEEP, stop, delta);
            break;
        default:
            add_base(d, ATS_SEG_KEEP, stop, delta);
            break;
        }
    }
    add_base(d, ATS_SEG_KEEP, n, delta);
    if (ats_rng_below(&d->rng, 2) == 1) out->query_delta = ats_rng_below(&d->rng, n + 1);
    if (ats_rng_below(&d->rng, 3) == 1) out->temperature = 0.5 + 2 * ats_rng_unit(&d->rng);
    if (ats_rng_below(&d->rng, 3) == 1) out->scale = 0.8 * d->problem->contract.scale;
    if (ats_rng_below(&d->rng, 4) == 1) out->q = other_queries(arena, d);
}

static void add_insertion(draft *d, ats_edit *out, bool rows, bool shift)
{
    const int64_t n = d->problem->n_keys, count = 1 + ats_rng_below(&d->rng, 20);
    add_base(d, ATS_SEG_KEEP, ats_rng_below(&d->rng, n + 1), 0);
    if (rows) add_rows(d, count, shift ? 1 : 0);
    add_base(d, ATS_SEG_KEEP, n, shift ? count : 0);
    out->query_delta = shift ? count : 0;
}

static void add_swapped_span(draft *d, bool key, bool value)
{
    const int64_t n = d->problem->n_keys, start = ats_rng_below(&d->rng, n);
    const int64_t length = 1 + ats_rng_below(&d->rng, n - start < 20 ? n - start : 20);
    add_base(d, ATS_SEG_KEEP, start, 0);
    add_swap(d, start + length, key, value);
    add_base(d, ATS_SEG_KEEP, n, 0);
}

static void add_kind(ats_arena *arena, draft *d, enum edit_kind kind, ats_edit *out)
{
    const int64_t n = d->problem->n_keys;
    switch (kind) {
    case EDIT_OVERLAY:
    case EDIT_SHIFT:
    case EDIT_MOVE:
        add_insertion(d, out, kind != EDIT_MOVE, kind != EDIT_OVERLAY);
        break;
    case EDIT_HIDE:
        add_base(d, ATS_SEG_KEEP, ats_rng_below(&d->rng, n), 0);
        add_base(d, ATS_SEG_HIDE, d->next + 1 + ats_rng_below(&d->rng, n - d->next), 0);
        break;
    case EDIT_SWAP_VALUE:
    case EDIT_SWAP_KEY:
    case EDIT_SWAP_BOTH:
        add_swapped_span(d, kind != EDIT_SWAP_VALUE, kind != EDIT_SWAP_KEY);
        break;
    case EDIT_TEMPERATURE:
        out->temperature = 0.3 + 3 * ats_rng_unit(&d->rng);
        break;
    case EDIT_QUERY:
        out->q = other_queries(arena, d);
        out->scale = 1.25 * d->problem->contract.scale;
        break;
    case EDIT_HIDE_ALL:
        add_base(d, ATS_SEG_HIDE, n, 0);
        break;
    case EDIT_MOVE_ALL:
        out->query_delta = 1 + ats_rng_below(&d->rng, 500);
        add_base(d, ATS_SEG_KEEP, n, out->query_delta);
        break;
    case EDIT_MIXTURE:
        add_mixture(arena, d, out);
        break;
    case EDIT_IDENTITY:
    case EDIT_KINDS:
        break;
    }
    add_base(d, ATS_SEG_KEEP, n, 0);
}

void edit_make(ats_arena *arena, const ats_problem *problem, uint64_t seed, enum edit_kind kind,
               ats_edit *out)
{
    draft d = {.problem = problem,
               .rng = ats_rng_stream(seed, "", "", 0, (int64_t)kind, "edit script")};
    ats_edit edit = {.temperature = 1};
    add_kind(arena, &d, kind, &edit);
    ats_segment *segments = NULL;
    NEW(arena, d.n_segments, &segments);
    memcpy(segments, d.segments, (size_t)d.n_segments * sizeof *segments);
    edit.segments = segments;
    edit.n_segments = d.n_segments;
    side_rows_make(arena, problem, &d.rng, d.n_side, &edit.side);
    int64_t *positions = NULL;
    NEW(arena, d.n_side, &positions);
    memcpy(positions, d.positions, (size_t)d.n_side * sizeof *positions);
    edit.side.position = positions;
    *out = edit;
}

void edits_make(ats_arena *arena, const ats_problem *problem, uint64_t seed, int64_t count,
                ats_edit *out)
{
    for (int64_t i = 0; i < count; i++)
        edit_make(arena, problem, seed + (uint64_t)i,
                  i < EDIT_KINDS ? (enum edit_kind)i : EDIT_MIXTURE, &out[i]);
}

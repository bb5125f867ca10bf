#include "kernels/device_pass.h"

#include <string.h>

#include "base/parallel.h"
#include "base/rope.h"
#include "kernels/share.h"

ats_code ats_device_code(ats_device_status status, const ats_device_error *error, ats_err *err)
{
    if (status == ATS_DEVICE_OK) return ATS_OK;
    return ats_fail(err, status == ATS_DEVICE_MEMORY ? ATS_E_MEMORY : ATS_E_DEVICE, "%s",
                    error->text);
}

ats_device_state ats_device_state_of(const ats_cpu_state *s)
{
    return (ats_device_state){s->m, s->mc, s->l, s->e, s->s2, s->a, s->n, s->o};
}

int64_t ats_device_lanes(const ats_cpu_tiles *tiles)
{
    const ats_cpu_base *last = &tiles->at[tiles->n - 1];
    return last->first_row + last->lanes;
}

/* Room for what the device says about `keys` keys: logits of every tile, states where wanted. */
static ats_code new_answers(ats_arena *arena, const ats_cpu_tiles *tiles, int64_t keys, bool state,
                            float **z, ats_cpu_state *states, ats_err *err)
{
    ats_code rc = ATS_OK;
    for (int64_t t = 0; t < tiles->n; t++) {
        ATS_TRY(ATS_NEW(arena, keys * tiles->at[t].lanes, &z[t], err));
        if (state) ATS_TRY(ats_cpu_state_new(arena, &tiles->at[t], &states[t], err));
    }
out:
    return rc;
}

ats_code ats_device_view_make(ats_arena *arena, const ats_cpu_tiles *tiles, const ats_edit *edit,
                              int64_t delta, ats_device_view *out, ats_err *err)
{
    const ats_problem *p = tiles->at[0].whole;
    const int64_t lanes = ats_device_lanes(tiles),
                  turn = (edit != NULL ? edit->query_delta : 0) - delta;
    const float *source = edit != NULL && edit->q != NULL ? edit->q : p->q;
    float *q = NULL, *q_at = NULL;
    int64_t *low = NULL, *high = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, p->n_rows * p->d_qk, &q, err));
    ATS_TRY(ATS_NEW0(arena, lanes, &q_at, err));
    ATS_TRY(ATS_NEW(arena, lanes, &low, err));
    ATS_TRY(ATS_NEW(arena, lanes, &high, err));
    ats_rope_move(&p->contract.rope, turn, p->n_rows, p->d_qk, source, q);
    for (int64_t row = 0; row < p->n_rows; row++)
        q_at[row] = (float)(p->q_pos[row] + turn - tiles->at[0].origin);
    for (int64_t t = 0; t < tiles->n; t++) {
        const int64_t first = tiles->at[t].first_row;
        ats_cpu_bounds(&tiles->at[t], edit != NULL ? edit->query_delta : 0, delta, low + first,
                       high + first);
    }
    const double scale = edit != NULL && edit->scale != 0 ? edit->scale : p->contract.scale;
    const double factor = edit != NULL ? edit->temperature : 1.0;
    *out =
        (ats_device_view){.q = q,
                          .q_at = q_at,
                          .low = low,
                          .high = high,
                          .scale = (float)scale,
                          .inverse_temperature = (float)(1.0 / (p->contract.temperature * factor))};
out:
    return rc;
}

/* A variant's questions while they are collected: keys of the base first, then side rows. */
typedef struct question {
    ats_device_room *room;
    const ats_cpu_tiles *tiles;
    const ats_edit *edit;
    int64_t n_views, n_pieces, capacity;
    int64_t *deltas;        /* [views] */
    ats_device_view *views; /* [segments + 1] */
    ats_device_piece *pieces;
} question;

static ats_code view_of(question *q, int64_t delta, int64_t *out, ats_err *err)
{
    ats_code rc = ATS_OK;
    for (*out = 0; *out < q->n_views; ++*out)
        if (q->deltas[*out] == delta) return ATS_OK;
    ATS_TRY(ats_device_view_make(&q->room->arena, q->tiles, q->edit, delta, &q->views[q->n_views],
                                 err));
    q->deltas[q->n_views++] = delta;
out:
    return rc;
}

static ats_code add_piece(question *q, const ats_cpu_keys *keys, bool state, ats_err *err)
{
    const int64_t n = q->tiles->n, index = q->n_pieces;
    ats_arena *arena = &q->room->arena;
    float **z = NULL;
    ats_cpu_state *states = NULL;
    ats_device_state *asked = NULL;
    int64_t view;
    ats_code rc;
    ATS_TRY(view_of(q, keys->delta, &view, err));
    ATS_TRY(ATS_NEW(arena, n, &z, err));
    ATS_TRY(ATS_NEW0(arena, n, &states, err));
    ATS_TRY(ATS_NEW(arena, n, &asked, err));
    ATS_TRY(new_answers(arena, q->tiles, keys->keys, state, z, states, err));
    ATS_ASSERT(index < q->capacity);
    for (int64_t t = 0; t < n; t++) {
        asked[t] = ats_device_state_of(&states[t]);
        q->room->pieces[t].at[index] =
            (ats_cpu_piece){.keys = *keys, .z = z[t], .state = states[t]};
    }
    q->pieces[q->n_pieces++] = (ats_device_piece){.first = keys->first,
                                                  .keys = keys->keys,
                                                  .at = keys->side ? keys->at : -1,
                                                  .view = view,
                                                  .side = keys->side,
                                                  .z = z,
                                                  .state = state ? asked : NULL};
out:
    return rc;
}

static bool new_logits(const question *q, const ats_segment *s)
{
    if (s->kind == ATS_SEG_HIDE || s->kind == ATS_SEG_ROWS) return false;
    const ats_fate fate = ats_share_fate(q->tiles->at[0].whole, q->edit, s);
    return q->edit->apart || fate == ATS_FATE_TURNED || fate == ATS_FATE_NEW;
}

static bool takes_side(const ats_segment *s) { return s->kind == ATS_SEG_SWAP && s->swap_key; }

/* Leaf by leaf, what segments of the base change; side: those that take their keys elsewhere. */
static ats_code ask_base(question *q, bool side, ats_err *err)
{
    const ats_key_tree *tree = &q->tiles->at[0].tree;
    const ats_edit *edit = q->edit;
    ats_code rc = ATS_OK;
    for (int64_t i = 0, leaf = 0; i < edit->n_segments; i++) {
        const ats_segment *s = &edit->segments[i];
        if (!new_logits(q, s) || takes_side(s) != side) continue;
        while (leaf < tree->n_leaves && tree->leaves[leaf].stop <= s->start) leaf++;
        for (int64_t at = leaf; at < tree->n_leaves && tree->leaves[at].start < s->stop; at++) {
            const ats_range keys = tree->leaves[at];
            const int64_t start = s->start > keys.start ? s->start : keys.start;
            const int64_t stop = s->stop < keys.stop ? s->stop : keys.stop;
            const bool whole = start == keys.start && stop == keys.stop;
            const ats_cpu_keys asked = {.side = side,
                                        .first = side ? s->row + start - s->start : start,
                                        .keys = stop - start,
                                        .at = start,
                                        .delta = s->kind == ATS_SEG_KEEP ? s->delta : 0};
            if (start >= stop) continue;
            ATS_TRY(add_piece(q, &asked, whole && s->kind == ATS_SEG_KEEP, err));
        }
    }
out:
    return rc;
}

static ats_code ask_inserted(question *q, ats_err *err)
{
    const int64_t leaf = q->tiles->at[0].tree.leaf;
    ats_code rc = ATS_OK;
    for (int64_t i = 0; i < q->edit->n_segments; i++) {
        const ats_segment *s = &q->edit->segments[i];
        if (s->kind != ATS_SEG_ROWS) continue;
        for (int64_t at = s->row; at < s->row + s->stop; at += leaf) {
            const int64_t left = s->row + s->stop - at;
            const ats_cpu_keys asked = {
                .side = true, .first = at, .keys = left < leaf ? left : leaf, .at = -1};
            ATS_TRY(add_piece(q, &asked, true, err));
        }
    }
out:
    return rc;
}

/* Most pieces that the edit can ask for. */
static int64_t most_pieces(const question *q)
{
    const ats_key_tree *tree = &q->tiles->at[0].tree;
    int64_t count = tree->n_leaves + q->edit->n_segments;
    for (int64_t i = 0; i < q->edit->n_segments; i++)
        if (q->edit->segments[i].kind == ATS_SEG_ROWS)
            count += q->edit->segments[i].stop / tree->leaf + 1;
    return count;
}

/* Side values padded, bad rows 0, and their norms. */
static ats_code make_side(question *q, ats_device_side *out, ats_err *err)
{
    const ats_cpu_base *base = &q->tiles->at[0];
    const ats_side *side = &q->edit->side;
    const int64_t dv = base->problem->d_v, width = base->width;
    ats_arena *arena = &q->room->arena;
    float *v = NULL, *norm = NULL, *log_norm = NULL;
    uint8_t *bad = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW0(arena, side->count * width, &v, err));
    ATS_TRY(ATS_NEW(arena, side->count, &norm, err));
    ATS_TRY(ATS_NEW(arena, side->count, &log_norm, err));
    ATS_TRY(ATS_NEW(arena, side->count, &bad, err));
    for (int64_t i = 0; i < side->count; i++)
        memcpy(v + i * width, side->v + i * dv, (size_t)dv * sizeof *v);
    ats_cpu_value_norms(base, side->count, v, norm, log_norm, bad);
    *out = (ats_device_side){.count = side->count,
                             .k = side->k,
                             .v = v,
                             .position = side->position,
                             .norm = norm,
                             .log_norm = log_norm};
out:
    return rc;
}

static ats_code ask_all(question *q, ats_err *err)
{
    ats_arena *arena = &q->room->arena;
    ats_code rc;
    q->capacity = most_pieces(q);
    ATS_TRY(ATS_NEW(arena, q->edit->n_segments + 1, &q->deltas, err));
    ATS_TRY(ATS_NEW(arena, q->edit->n_segments + 1, &q->views, err));
    ATS_TRY(ATS_NEW(arena, q->capacity, &q->pieces, err));
    for (int64_t t = 0; t < q->tiles->n; t++)
        ATS_TRY(ATS_NEW(arena, q->capacity, &q->room->pieces[t].at, err));
    ATS_TRY(ask_base(q, false, err));
    ATS_TRY(ask_base(q, true, err));
    ATS_TRY(ask_inserted(q, err));
out:
    return rc;
}

static ats_code variant_pass(void *ctx, int worker, const ats_cpu_tiles *tiles,
                             const ats_edit *edit, ats_err *err)
{
    ats_device_run *run = ctx;
    ats_device_room *room = &run->rooms[worker];
    question q = {.room = room, .tiles = tiles, .edit = edit};
    ats_device_error error = {""};
    ats_device_side side;
    ats_code rc;
    ats_arena_reset(&room->arena);
    for (int64_t t = 0; t < tiles->n; t++) room->pieces[t] = (ats_cpu_pieces){.count = 0};
    ATS_TRY(ask_all(&q, err));
    if (q.n_pieces == 0) goto out;
    ATS_TRY(make_side(&q, &side, err));
    const ats_device_pass pass = {.n_views = q.n_views,
                                  .views = q.views,
                                  .n_pieces = q.n_pieces,
                                  .pieces = q.pieces,
                                  .side = side};
    ATS_TRY(ats_device_code(run->api->pass(run->device, worker, &pass, &error), &error, err));
    for (int64_t t = 0; t < tiles->n; t++) room->pieces[t].count = q.n_pieces;
out:
    return rc;
}

static ats_cpu_pieces *tile_pieces(void *ctx, int worker, int64_t tile)
{
    const ats_device_run *run = ctx;
    return &run->rooms[worker].pieces[tile];
}

ats_code ats_device_run_begin(ats_device_run *run, const ats_device_api *api, ats_device_kind kind,
                              ats_err *err)
{
    *run = (ats_device_run){.api = api, .kind = kind, .n_rooms = ats_threads()};
    run->hooks = (ats_cpu_device){.ctx = run,
                                  .base = ats_device_base,
                                  .regions = ats_device_regions,
                                  .logits = ats_device_logits,
                                  .variant = variant_pass,
                                  .pieces = tile_pieces};
    ats_arena_init(&run->arena, false);
    pthread_mutex_init(&run->fetching, NULL);
    return ATS_NEW0(&run->arena, run->n_rooms, &run->rooms, err);
}

void ats_device_run_end(ats_device_run *run)
{
    if (run->device != NULL) run->api->close(run->device);
    for (int64_t i = 0; run->rooms != NULL && i < run->n_rooms; i++)
        ats_arena_fini(&run->rooms[i].arena);
    ats_arena_fini(&run->arena);
    pthread_mutex_destroy(&run->fetching);
    *run = (ats_device_run){.api = NULL};
}

/* Keys as several variants see them: a turn (query_delta - delta) that two variants share for a
 * leaf gives that leaf's logits and state once, by the functions that a variant would call itself,
 * so that sharing changes no bit. */
#include "kernels/cpu.h"

#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"

enum { BLOCK = 16 /* leaves of one item of work */ };

typedef struct wish {
    int64_t turn, saved;  /* leaves that need not be computed again */
    int32_t *uses, *last; /* [n_leaves] variants, and the last one, counted from 1 */
} wish;

typedef struct wishes {
    ats_arena *arena;
    int64_t n, room;
    wish *at; /* ascending turn */
} wishes;

bool ats_cpu_turns_apply(const ats_problem *problem, const ats_edit *edit)
{
    const ats_contract *c = &problem->contract;
    return edit != NULL && !edit->apart && c->chunk == 0 && edit->q == NULL &&
           edit->temperature == 1 && (edit->scale == 0 || edit->scale == c->scale);
}

static ats_code find_wish(wishes *w, const ats_key_tree *tree, int64_t turn, wish **out,
                          ats_err *err)
{
    int64_t low = 0, high = w->n;
    ats_code rc = ATS_OK;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (w->at[middle].turn < turn)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == w->n || w->at[low].turn != turn) {
        wish made = {.turn = turn};
        if (w->n == w->room) {
            wish *more = NULL;
            ATS_TRY(ATS_NEW(w->arena, 2 * w->room + 16, &more, err));
            if (w->n > 0) memcpy(more, w->at, (size_t)w->n * sizeof *more);
            w->at = more;
            w->room = 2 * w->room + 16;
        }
        ATS_TRY(ATS_NEW0(w->arena, tree->n_leaves, &made.uses, err));
        ATS_TRY(ATS_NEW0(w->arena, tree->n_leaves, &made.last, err));
        memmove(&w->at[low + 1], &w->at[low], (size_t)(w->n - low) * sizeof *w->at);
        w->at[low] = made;
        w->n++;
    }
    *out = &w->at[low];
out:
    return rc;
}

/* The leaf that holds a key. */
static int64_t leaf_of(const ats_key_tree *tree, int64_t key)
{
    int64_t low = 0, high = tree->n_runs - 1;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (tree->runs[middle].stop <= key)
            low = middle + 1;
        else
            high = middle;
    }
    return tree->runs[low].first_leaf + (key - tree->runs[low].start) / tree->leaf;
}

static ats_code count_edit(wishes *w, const ats_cpu_base *base, const ats_edit *edit, int32_t index,
                           ats_err *err)
{
    const ats_key_tree *tree = &base->tree;
    ats_code rc = ATS_OK;
    for (int64_t i = 0; i < edit->n_segments; i++) {
        const ats_segment *s = &edit->segments[i];
        wish *found = NULL;
        if (s->kind != ATS_SEG_KEEP || s->stop <= s->start || s->delta == edit->query_delta)
            continue;
        ATS_TRY(find_wish(w, tree, edit->query_delta - s->delta, &found, err));
        for (int64_t leaf = leaf_of(tree, s->start); leaf <= leaf_of(tree, s->stop - 1); leaf++) {
            if (found->last[leaf] == index) continue;
            found->last[leaf] = index;
            found->saved += found->uses[leaf]++ > 0;
        }
    }
out:
    return rc;
}

static int most_saved_first(const void *a, const void *b)
{
    const wish *x = a, *y = b;
    if (x->saved != y->saved) return x->saved < y->saved ? 1 : -1;
    return (x->turn > y->turn) - (x->turn < y->turn);
}

/* Room for the shared leaves of a turn, in one tile. */
static ats_code turn_room(ats_arena *arena, const ats_cpu_base *base, const wish *w,
                          ats_cpu_turn *out, ats_err *err)
{
    ats_cpu_turn turn = {.turn = w->turn};
    ats_code rc;
    ATS_TRY(ATS_NEW0(arena, base->tree.n_leaves, &turn.leaves, err));
    for (int64_t leaf = 0; leaf < base->tree.n_leaves; leaf++) {
        const ats_range keys = base->tree.leaves[leaf];
        ats_cpu_turned made = {.z = NULL};
        if (w->uses[leaf] < 2) continue;
        ATS_TRY(ATS_NEW(arena, (keys.stop - keys.start) * base->lanes, &made.z, err));
        ATS_TRY(ats_cpu_state_new(arena, base, &made.state, err));
        if (!arena->count_only) turn.leaves[leaf] = made;
    }
    *out = turn;
out:
    return rc;
}

static ats_code measure_turn(const ats_cpu_tiles *tiles, const wish *w, size_t *bytes, ats_err *err)
{
    ats_arena counter;
    ats_cpu_turn unused;
    ats_code rc = ATS_OK;
    ats_arena_init(&counter, true);
    for (int64_t t = 0; t < tiles->n && rc == ATS_OK; t++)
        rc = turn_room(&counter, &tiles->at[t], w, &unused, err);
    *bytes = counter.used;
    return rc;
}

typedef struct turning {
    const ats_cpu_tiles *tiles;
    ats_cpu_worker *workers;
    int64_t blocks; /* of one tile */
} turning;

static ats_code turn_block(void *ctx, int64_t item, int worker_index, ats_err *err)
{
    const turning *x = ctx;
    const int64_t n = x->tiles->n, index = item / x->blocks / n;
    const ats_cpu_base *base = &x->tiles->at[item / x->blocks % n];
    const ats_cpu_turn *turn = &base->turns[index];
    ats_cpu_worker *w = &x->workers[worker_index];
    const ats_edit moved = {.query_delta = turn->turn, .temperature = 1, .apart = true};
    ats_cpu_variant view = {.base = base,
                            .edit = &moved,
                            .scale = base->problem->contract.scale,
                            .temperature = base->problem->contract.temperature};
    const int64_t first = item % x->blocks * BLOCK;
    ats_code rc = ATS_OK;
    ats_arena_reset(&w->arena);
    for (int64_t leaf = first; leaf < first + BLOCK && leaf < base->tree.n_leaves; leaf++) {
        const ats_range range = base->tree.leaves[leaf];
        const int64_t start = range.start, count = range.stop - start;
        const ats_cpu_keys keys = {.first = start, .keys = count, .at = -1};
        const ats_cpu_turned *out = &turn->leaves[leaf];
        if (out->z == NULL) continue;
        ATS_TRY(ats_cpu_key_logits(w, &view, &keys, out->z, err));
        ats_cpu_base_values(base, start, count, w->v_panel);
        ats_cpu_clear_bad(base, leaf, start, count, w->v_panel);
        ats_cpu_state_fill(base, w, leaf, count, out->z, w->v_panel, base->v_norm + start,
                           base->log_norm + start, &out->state);
    }
out:
    return rc;
}

/* Turns that save work, the best first, as long as there is room. */
static ats_code choose(ats_arena *arena, const ats_cpu_tiles *tiles, wishes *w, size_t room,
                       ats_err *err)
{
    int64_t used = 0;
    ats_code rc = ATS_OK;
    if (w->n > 0) qsort(w->at, (size_t)w->n, sizeof *w->at, most_saved_first);
    for (int64_t t = 0; t < tiles->n; t++) ATS_TRY(ATS_NEW0(arena, w->n, &tiles->at[t].turns, err));
    for (int64_t i = 0; i < w->n && w->at[i].saved > 0; i++) {
        size_t bytes;
        ATS_TRY(measure_turn(tiles, &w->at[i], &bytes, err));
        if (bytes > room) continue;
        room -= bytes;
        for (int64_t t = 0; t < tiles->n; t++)
            ATS_TRY(turn_room(arena, &tiles->at[t], &w->at[i], &tiles->at[t].turns[used], err));
        used++;
    }
    for (int64_t t = 0; t < tiles->n; t++) tiles->at[t].n_turns = used;
out:
    return rc;
}

ats_code ats_cpu_turns_make(ats_arena *arena, const ats_cpu_tiles *tiles, ats_cpu_worker *workers,
                            const ats_edit *edits, int64_t n_edits, size_t room, ats_err *err)
{
    ats_arena small;
    wishes w = {.arena = &small};
    ats_code rc = ATS_OK;
    ats_arena_init(&small, false);
    if (tiles->n == 0) goto out;
    for (int64_t i = 0; i < n_edits; i++)
        if (ats_cpu_turns_apply(tiles->at[0].problem, &edits[i]) &&
            ats_edit_check(tiles->at[0].whole, &edits[i], NULL) == ATS_OK)
            ATS_TRY(count_edit(&w, &tiles->at[0], &edits[i], (int32_t)i + 1, err));
    ATS_TRY(choose(arena, tiles, &w, room, err));
    turning x = {tiles, workers, (tiles->at[0].tree.n_leaves + BLOCK - 1) / BLOCK};
    ATS_TRY(ats_parallel_for(tiles->at[0].n_turns * tiles->n * x.blocks, turn_block, &x, err));
out:
    ats_arena_fini(&small);
    return rc;
}

const ats_cpu_turned *ats_cpu_turns_at(const ats_cpu_variant *v, const ats_cpu_keys *keys,
                                       ats_range *leaf)
{
    const ats_cpu_base *base = v->base;
    if (base->n_turns == 0 || keys->side || !ats_cpu_turns_apply(base->problem, v->edit))
        return NULL;
    for (int64_t i = 0; i < base->n_turns; i++) {
        if (base->turns[i].turn != v->edit->query_delta - keys->delta) continue;
        const int64_t at = leaf_of(&base->tree, keys->first);
        const ats_cpu_turned *found = &base->turns[i].leaves[at];
        *leaf = base->tree.leaves[at];
        return found->z != NULL && keys->first + keys->keys <= leaf->stop ? found : NULL;
    }
    return NULL;
}

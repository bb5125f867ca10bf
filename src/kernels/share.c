#include "kernels/share.h"

#include <string.h>

#include "kernels/range.h"

bool ats_share_rescaled(const ats_problem *p, const ats_edit *edit)
{
    return (edit->scale != 0 && edit->scale != p->contract.scale) || edit->temperature != 1 ||
           edit->q != NULL;
}

ats_fate ats_share_fate(const ats_problem *p, const ats_edit *edit, const ats_segment *s)
{
    if (s->kind == ATS_SEG_HIDE) return ATS_FATE_HIDDEN;
    if (edit->apart || ats_share_rescaled(p, edit) || (s->kind == ATS_SEG_SWAP && s->swap_key))
        return ATS_FATE_NEW;
    const int64_t delta = s->kind == ATS_SEG_KEEP ? s->delta : 0, chunk = p->contract.chunk;
    if (chunk != 0 && delta % chunk != 0) return ATS_FATE_NEW;
    if (edit->query_delta != delta) return chunk != 0 ? ATS_FATE_NEW : ATS_FATE_TURNED;
    return s->kind == ATS_SEG_SWAP && s->swap_value ? ATS_FATE_VALUE : ATS_FATE_SAME;
}

static int64_t turn_of(const ats_edit *edit, const ats_segment *s)
{
    return edit->query_delta - (s->kind == ATS_SEG_KEEP ? s->delta : 0);
}

void ats_share_look(const ats_problem *p, const ats_edit *edit, ats_share_edit *out)
{
    ats_share_edit e = {.rescaled = ats_share_rescaled(p, edit)};
    bool first = true, turned = false;
    int64_t last_turn = 0;
    for (int64_t i = 0; i < edit->n_segments; i++) {
        const ats_segment *s = &edit->segments[i];
        const int64_t keys = s->stop - s->start;
        if (s->kind == ATS_SEG_ROWS) {
            e.inserted += keys;
            continue;
        }
        if (keys == 0) continue;
        e.cuts += !first;
        first = false;
        switch (ats_share_fate(p, edit, s)) {
        case ATS_FATE_SAME:
            break;
        case ATS_FATE_HIDDEN:
            e.hidden += keys;
            break;
        case ATS_FATE_VALUE:
            e.values += keys;
            break;
        case ATS_FATE_TURNED:
            e.turned += keys;
            e.turns += !turned || turn_of(edit, s) != last_turn;
            turned = true;
            last_turn = turn_of(edit, s);
            break;
        case ATS_FATE_NEW:
            e.renewed += keys;
            break;
        }
    }
    const int64_t touched = e.hidden + e.values + e.turned + e.renewed;
    e.apart = edit->apart || e.cuts * ATS_SHARE_DENSE > p->n_keys || 2 * touched > p->n_keys;
    *out = e;
}

static void mark(ats_share *share, int64_t key)
{
    if (key <= 0 || key >= share->problem->n_keys) return;
    share->cut[key / 64] |= (uint64_t)1 << (key % 64);
}

ats_code ats_share_begin(ats_arena *arena, const ats_problem *problem, ats_share *out, ats_err *err)
{
    ats_share share = {
        .arena = arena, .problem = problem, .leaf = ats_key_tree_leaf(problem->n_keys)};
    const ats_code rc = ATS_NEW0(arena, problem->n_keys / 64 + 1, &share.cut, err);
    if (rc != ATS_OK) return rc;
    for (int64_t r = 0; r < problem->n_regions; r++)
        for (int64_t i = 0; i < problem->regions[r].n_ranges; i++) {
            mark(&share, problem->regions[r].ranges[i].start);
            mark(&share, problem->regions[r].ranges[i].stop);
        }
    *out = share;
    return ATS_OK;
}

/* The entry of a turn, made when it is new. */
static ats_code turn_entry(ats_share *share, int64_t turn, ats_share_turn **out, ats_err *err)
{
    int64_t low = 0, high = share->n_turns;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (share->turns[middle].turn < turn)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == share->n_turns || share->turns[low].turn != turn) {
        if (share->n_turns == share->turn_room) {
            const int64_t room = share->turn_room > 0 ? 2 * share->turn_room : 16;
            ats_share_turn *more = NULL;
            const ats_code rc = ATS_NEW(share->arena, room, &more, err);
            if (rc != ATS_OK) return rc;
            if (share->n_turns > 0)
                memcpy(more, share->turns, (size_t)share->n_turns * sizeof *more);
            share->turns = more;
            share->turn_room = room;
        }
        ats_share_turn made = {.turn = turn, .start = share->problem->n_keys, .stop = 0};
        const int64_t leaves = share->problem->n_keys / share->leaf + 1;
        ats_code rc = ATS_NEW0(share->arena, leaves, &made.leaf_edits, err);
        if (rc == ATS_OK) rc = ATS_NEW0(share->arena, leaves, &made.leaf_keys, err);
        if (rc == ATS_OK) rc = ATS_NEW0(share->arena, leaves, &made.leaf_last, err);
        if (rc != ATS_OK) return rc;
        memmove(&share->turns[low + 1], &share->turns[low],
                (size_t)(share->n_turns - low) * sizeof *share->turns);
        share->n_turns++;
        share->turns[low] = made;
    }
    *out = &share->turns[low];
    return ATS_OK;
}

static ats_code add_turned(ats_share *share, const ats_edit *edit, const ats_segment *s,
                           ats_err *err)
{
    ats_share_turn *turn = NULL;
    const ats_code rc = turn_entry(share, turn_of(edit, s), &turn, err);
    if (rc != ATS_OK) return rc;
    turn->keys += s->stop - s->start;
    if (s->start < turn->start) turn->start = s->start;
    if (s->stop > turn->stop) turn->stop = s->stop;
    for (int64_t at = s->start; at < s->stop;) {
        const int64_t leaf = at / share->leaf, end = (leaf + 1) * share->leaf;
        const int64_t stop = end < s->stop ? end : s->stop;
        turn->leaf_keys[leaf] += (int32_t)(stop - at);
        turn->leaf_edits[leaf] += turn->leaf_last[leaf] != share->edits + 1;
        turn->leaf_last[leaf] = share->edits + 1;
        at = stop;
    }
    return ATS_OK;
}

/* Does an earlier segment of the edit have the turn of segment `index`? */
static bool seen_before(const ats_problem *p, const ats_edit *edit, int64_t index)
{
    const int64_t turn = turn_of(edit, &edit->segments[index]);
    for (int64_t i = 0; i < index; i++) {
        const ats_segment *s = &edit->segments[i];
        if (s->kind == ATS_SEG_ROWS || s->stop == s->start) continue;
        if (turn_of(edit, s) == turn && ats_share_fate(p, edit, s) == ATS_FATE_TURNED) return true;
    }
    return false;
}

/* Keys of leaves that the edit splits: their sums are taken anew, piece by piece. */
static int64_t split_keys(const ats_share *share, const ats_edit *edit)
{
    int64_t leaves = 0, last = -1;
    for (int64_t i = 0; i < edit->n_segments; i++) {
        const ats_segment *s = &edit->segments[i];
        if (s->kind == ATS_SEG_ROWS || s->start == 0 || s->stop == s->start) continue;
        const int64_t leaf = s->start / share->leaf;
        leaves += s->start % share->leaf != 0 && leaf != last;
        last = leaf;
    }
    const int64_t keys = leaves * share->leaf;
    return keys < share->problem->n_keys ? keys : share->problem->n_keys;
}

ats_code ats_share_add(ats_share *share, const ats_edit *edit, ats_err *err)
{
    const ats_problem *p = share->problem;
    ats_share_edit e;
    ats_code rc = ATS_OK;
    ats_share_look(p, edit, &e);
    for (int64_t i = 0; i < edit->n_segments; i++) {
        const ats_segment *s = &edit->segments[i];
        if (s->kind == ATS_SEG_ROWS || s->stop == s->start) continue;
        mark(share, s->start);
        if (e.turned == 0 || ats_share_fate(p, edit, s) != ATS_FATE_TURNED) continue;
        const bool again = seen_before(p, edit, i);
        ATS_TRY(add_turned(share, edit, s, err));
        if (again) continue;
        ats_share_turn *turn = NULL;
        ATS_TRY(turn_entry(share, turn_of(edit, s), &turn, err));
        turn->edits++;
    }
    share->edits++;
    share->apart += e.apart;
    share->inserted += e.inserted;
    share->touched += e.hidden + e.values + e.turned + e.renewed;
    if (edit->side.count > share->side_rows_most) share->side_rows_most = edit->side.count;
    share->own_logits += e.renewed + e.inserted;
    share->own_values += e.renewed + e.inserted + split_keys(share, edit);
out:
    return rc;
}

static int64_t count_cuts(const ats_share *share)
{
    int64_t cuts = 0;
    for (int64_t i = 0; i <= share->problem->n_keys / 64; i++)
        cuts += __builtin_popcountll(share->cut[i]);
    return cuts;
}

/* Keys that are computed for a turn: leaves that several variants need once and whole. */
static int64_t turned_keys(const ats_share *share, const ats_share_turn *turn)
{
    int64_t keys = 0;
    for (int64_t start = 0; start < share->problem->n_keys; start += share->leaf) {
        const int64_t leaf = start / share->leaf, left = share->problem->n_keys - start;
        const int64_t whole = left < share->leaf ? left : share->leaf;
        keys += turn->leaf_edits[leaf] > 1 ? whole : turn->leaf_keys[leaf];
    }
    return keys;
}

void ats_share_finish(const ats_share *share, ats_share_sum *out)
{
    const ats_problem *p = share->problem;
    const double n = p->n_keys > 0 ? (double)p->n_keys : 1;
    const double logit = 2.0 * (double)p->n_rows * (double)p->d_qk;
    const double value = 2.0 * (double)p->n_rows * (double)p->d_v;
    const double row_bytes = (double)p->d_qk * (double)ats_dtype_size(p->k_dtype) +
                             (double)p->d_v * (double)ats_dtype_size(p->v_dtype);
    double turned = 0;
    ats_share_sum sum = {.edits = share->edits,
                         .apart = share->apart,
                         .cuts = count_cuts(share),
                         .touched = share->touched,
                         .inserted = share->inserted,
                         .turns = share->n_turns};
    for (int64_t i = 0; i < share->n_turns; i++) {
        const ats_share_turn *turn = &share->turns[i];
        sum.common_turns += turn->edits > 1;
        turned += (double)turned_keys(share, turn);
    }
    const int64_t leaves = (p->n_keys + share->leaf - 1) / share->leaf;
    sum.states = 2 * leaves;
    const double logits = n + turned + (double)share->own_logits;
    const double values = n + turned + (double)share->own_values;
    sum.flops = logits * logit + values * value;
    sum.passes = sum.flops / (n * (logit + value));
    sum.passes_alone = 1 + (double)share->edits + (double)share->inserted / n;
    sum.bytes = (n + turned + (double)share->own_values) * row_bytes;
    *out = sum;
}

void ats_share_sum_add(const ats_share_sum *one, int64_t times, ats_share_sum *sum)
{
    const double n = (double)times;
    sum->edits += times * one->edits;
    sum->apart += times * one->apart;
    sum->cuts += times * one->cuts;
    sum->touched += times * one->touched;
    sum->inserted += times * one->inserted;
    sum->turns += times * one->turns;
    sum->common_turns += times * one->common_turns;
    sum->states += times * one->states;
    sum->passes += n * one->passes;
    sum->passes_alone += n * one->passes_alone;
    sum->flops += n * one->flops;
    sum->bytes += n * one->bytes;
}

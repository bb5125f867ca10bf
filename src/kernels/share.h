/* The account of a batch of edit scripts on one problem: where they cut the keys, which keys each
 * leaves alone, what they can share, and what the shared work costs against a pass per variant.
 *
 * Only the geometry counts, so a plan can ask before there are tensors: of the problem, shapes,
 * contract and regions are read; of an edit, segments, query_delta, scale, temperature and whether
 * it has queries of its own. Backends and `plan` use one account.
 * Ownership: lists live in the arena given to begin. Pure of the machine: the same edits in any
 * order give the same numbers. */
#ifndef ATS_KERNELS_SHARE_H
#define ATS_KERNELS_SHARE_H

#include "base/arena.h"
#include "kernels/backend.h"

/* What an edit does to the keys of a segment. */
typedef enum ats_fate {
    ATS_FATE_SAME,
    ATS_FATE_HIDDEN,
    ATS_FATE_VALUE,  /* another value, the base's logit */
    ATS_FATE_TURNED, /* the base's key seen from another distance */
    ATS_FATE_NEW     /* another key, or another scale, temperature or query */
} ats_fate;

/* Cuts denser than one in so many keys leave no state of the base in one piece. */
enum { ATS_SHARE_DENSE = 32 };

typedef struct ats_share_edit {
    int64_t cuts;     /* places inside the key axis where a segment begins */
    int64_t hidden;   /* keys */
    int64_t values;   /* keys with another value alone */
    int64_t turned;   /* keys that one of `turns` turns */
    int64_t renewed;  /* keys with new logits of their own */
    int64_t turns;    /* distinct turns (query_delta - delta) of those keys, 0 and repeats apart */
    int64_t inserted; /* rows */
    bool rescaled;    /* another scale, temperature or query: every logit is new */
    bool apart;       /* dense cuts, or most keys touched: nothing but base logits to share */
} ats_share_edit;

/* Keys seen from one distance. */
typedef struct ats_share_turn {
    int64_t turn;
    int64_t edits;       /* variants that need it */
    int64_t keys;        /* summed over them */
    int64_t start, stop; /* range of keys that holds all of them */
    int32_t *leaf_edits; /* [n_keys / leaf + 1] variants that need keys of the leaf */
    int32_t *leaf_keys;  /* the same: keys, summed over them */
    int64_t *leaf_last;  /* the last variant, counted from 1 */
} ats_share_turn;

typedef struct ats_share {
    ats_arena *arena;
    const ats_problem *problem;
    int64_t leaf;
    uint64_t *cut; /* [n_keys / 64 + 1] bit i: some edit or region begins at key i */
    int64_t n_turns, turn_room;
    ats_share_turn *turns; /* ascending turn */
    int64_t edits, apart, inserted, touched, side_rows_most;
    int64_t own_logits,
        own_values; /* keys that variants compute for themselves, turned ones apart */
} ats_share;

/* The account in numbers. A pass: logits and value sums of all n_keys keys for all rows. */
typedef struct ats_share_sum {
    int64_t edits, apart; /* variants; those that share next to nothing */
    int64_t cuts;         /* distinct, of edits and regions, inside the key axis */
    int64_t touched;      /* keys hidden, replaced or turned, over all edits */
    int64_t inserted;     /* rows, over all edits */
    int64_t turns;        /* distinct turns */
    int64_t common_turns; /* those that several variants need */
    int64_t states;       /* segment states kept of the base */
    double passes;        /* work done, in passes: the base, and what edits change */
    double passes_alone;  /* the same without sharing: 1 + edits, inserted rows on top */
    double flops;         /* of `passes` */
    double bytes;         /* of keys and values read */
} ats_share_sum;

ats_fate ats_share_fate(const ats_problem *problem, const ats_edit *edit,
                        const ats_segment *segment);
bool ats_share_rescaled(const ats_problem *problem, const ats_edit *edit);
/* One edit by itself. */
void ats_share_look(const ats_problem *problem, const ats_edit *edit, ats_share_edit *out);

ATS_MUST_CHECK ats_code ats_share_begin(ats_arena *arena, const ats_problem *problem,
                                        ats_share *out, ats_err *err);
ATS_MUST_CHECK ats_code ats_share_add(ats_share *share, const ats_edit *edit, ats_err *err);
void ats_share_finish(const ats_share *share, ats_share_sum *out);
/* sum += times one: cuts and turns of different problems are different ones. */
void ats_share_sum_add(const ats_share_sum *one, int64_t times, ats_share_sum *sum);

#endif

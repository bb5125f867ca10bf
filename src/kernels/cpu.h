/* Inside the cpu backend: the base pass, and one variant as parts that share its states.
 *
 * Base pass: logits z [keys, lanes] and the state of every leaf and tree node (range.h). A variant
 * is a list of parts, each a set of keys with its base state, its variant state or both; parts that
 * an edit leaves alone point at nodes, others are computed in the worker's arena. Results depend on
 * the problem and the variant alone.
 * Ownership: the base belongs to one evaluate() and is read-only for workers; a variant lives in
 * its worker's arena until the next variant. */
#ifndef ATS_KERNELS_CPU_H
#define ATS_KERNELS_CPU_H

#include <math.h>

#include "base/arena.h"
#include "kernels/backend.h"
#include "kernels/cpu_matrix.h"
#include "kernels/cpu_ops.h"
#include "kernels/range.h"
#include "kernels/state.h"

/* lse = peak + log_sum, kept apart: beside a peak of 1e38 the sum alone tells weights. peak -inf:
 * the row has no legal key and no sink. */
typedef struct ats_cpu_norm {
    double peak, log_sum;
} ats_cpu_norm;

/* The `limit` best keys of every row, best first. */
typedef struct ats_cpu_top {
    int64_t limit;
    bool unordered;          /* offers do not come in sequence order */
    float *threshold;        /* [lanes] score to beat; +inf: the row is not wanted */
    int64_t *count;          /* [rows] */
    int64_t *key, *place;    /* [rows, limit] base index or -2 - side row; see ats_cpu_chunk */
    float *score, *z, *norm; /* [rows, limit] */
} ats_cpu_top;

/* A leaf seen from a distance that several variants share; z NULL: not computed. */
typedef struct ats_cpu_turned {
    float *z; /* [keys of the leaf, lanes] */
    ats_cpu_state state;
} ats_cpu_turned;

typedef struct ats_cpu_turn {
    int64_t turn;
    ats_cpu_turned *leaves; /* [n_leaves] */
} ats_cpu_turn;

/* Queries as they look at keys moved by some delta. */
typedef struct ats_cpu_view {
    int64_t turn;           /* query_delta - delta */
    const float *q;         /* [d_qk, lanes] rotated by turn, transposed */
    const float *rows;      /* [rows, d_qk] the same by rows, ATS_CPU_FEW of them at least */
    const float *q_at;      /* [lanes] relative positions, moved by turn */
    const uint16_t *packed; /* for key_matrix, without the scale that q and rows may hold */
    int terms;
    const uint32_t *pairs; /* for few rows of bfloat16 numbers, likewise; NULL: none */
} ats_cpu_view;

/* A tile: some rows of the problem, evaluated together. What belongs to keys alone (tree, norms) is
 * shared by all tiles. */
typedef struct ats_cpu_base {
    const ats_problem *problem; /* the tile's rows */
    const ats_problem *whole;
    int64_t first_row;       /* of the tile in the whole */
    const ats_cpu_ops *ops;  /* for rows in lanes */
    const ats_cpu_ops *wide; /* for values in columns: the same, or one of wider vectors */
    /* For bfloat16 keys, and for values; NULL: vectors do it. */
    const ats_cpu_matrix *key_matrix, *value_matrix;
    bool few;             /* ATS_CPU_FEW lanes */
    int64_t lanes, width; /* n_rows and d_v rounded up to 16 */
    ats_key_tree tree;
    int64_t origin;     /* position that relative positions count from */
    ats_cpu_view plain; /* the stored queries at no distance */
    float *slope;       /* [lanes] ALiBi slopes, 0 in the padding; NULL: none */
    float *plane;       /* [n_keys, lanes] bias, -inf: never legal; NULL: nothing static */
    float *v_norm;      /* [n_keys] |v|, 0 where v is not finite */
    float *log_norm;    /* [n_keys] log|v| */
    uint8_t *v_bad;     /* [n_keys] 1: v is not finite, or its norm no float */
    uint8_t *leaf_bad;  /* [n_leaves] */
    float *z;           /* [n_keys, lanes]; NULL: nobody needs them again */
    /* Best logit of small regions, known before the pass; and how many keys are heavier, counted on
     * the way. [n_regions, lanes]; aim +inf: not counted. */
    float *aim, *heavier;
    uint8_t *aimed;       /* [n_regions] */
    ats_cpu_state *nodes; /* [n_nodes]; those that are not needed are empty, leaves keep maxima */
    const ats_cpu_state *given; /* [n_leaves] when z, norms and these come from a device; or NULL */
    /* [n_leaves] 1: the leaf's logits are in z, of every tile; 0: the device will bring them.
     * NULL: all are there. */
    uint8_t *z_there;
    const struct ats_cpu_device *device; /* or NULL */
    int64_t n_turns;
    ats_cpu_turn *turns; /* cpu_turns.c, after the pass */
    /* Known once the base is measured: */
    ats_cpu_norm *norm;         /* [rows] */
    double *peak, *log_sum;     /* [lanes] the same, apart */
    double **weight;            /* [n_nodes] [lanes] exp(m - lse); NULL: not needed */
    ats_cpu_top heavy, payload; /* lists longer than top_k, by weight and by |w v| */
    ats_stats stats;
} ats_cpu_base;

typedef struct ats_cpu_tiles {
    int64_t n;
    int block_level;  /* workers take subtrees of this level */
    ats_cpu_base *at; /* [n] */
    ats_stats stats;  /* of the whole base; every tile has its rows of it */
    uint8_t *wanted;  /* [n_leaves] 1: some edit takes single logits of the leaf */
} ats_cpu_tiles;

enum { ATS_CPU_VIEWS = 4 };

/* The best keys of every row among those offered, best first; a worker's part of a list. */
typedef struct ats_cpu_pick {
    float score, z;
    int64_t key;
} ats_cpu_pick;

typedef struct ats_cpu_pool {
    int64_t limit;
    float *threshold;   /* [lanes] scores above belong; +inf in the padding */
    int64_t *count;     /* [rows] */
    ats_cpu_pick *pick; /* [rows, limit] */
} ats_cpu_pool;

enum {
    ATS_CPU_LEVELS = 5, /* of nodes below which a worker merges alone, and one */
    ATS_CPU_GROUP = 2   /* level of nodes whose keys and values stay in cache for all tiles */
};

/* Nodes of one tile on their way, by level; those below ATS_CPU_GROUP are the first tile's. */
typedef struct ats_cpu_rooms {
    ats_cpu_state left[ATS_CPU_LEVELS], right[ATS_CPU_LEVELS];
    const ats_cpu_state *merged[ATS_CPU_LEVELS]; /* left siblings that wait */
} ats_cpu_rooms;

/* Keys [first, first + keys) of the base (side false) or of the side buffer; positions of base keys
 * move by delta; at: base row that a swapped key stands at, else -1. */
typedef struct ats_cpu_keys {
    bool side;
    int64_t first, keys, at, delta;
} ats_cpu_keys;

/* Logits of a variant's keys that a device made before the variant is built, and their state over
 * their own values: taken where the variant asks for the same keys, for one tile. */
typedef struct ats_cpu_piece {
    ats_cpu_keys keys;
    float *z;            /* [keys, lanes] */
    ats_cpu_state state; /* m NULL: logits alone */
} ats_cpu_piece;

typedef struct ats_cpu_pieces {
    int64_t count, next; /* next: where the one asked for is expected */
    ats_cpu_piece *at;
    const ats_cpu_piece *found; /* the one taken last */
    const float *found_z;       /* where its logits went */
} ats_cpu_pieces;

typedef struct ats_cpu_worker {
    ats_cpu_ahead keys_ahead, values_ahead; /* to ask for while values or keys are at work */
    ats_arena arena;                        /* reset between variants */
    const ats_cpu_turned *turned; /* the leaf whose logits went to turned_z last, or NULL */
    const float *turned_z;
    ats_cpu_pieces *pieces;             /* of the variant and tile at hand; NULL: no device */
    ats_cpu_rooms *rooms;               /* [n_tiles] */
    ats_cpu_pool *heavy, *payload;      /* [n_tiles] */
    float **heavier;                    /* [n_tiles] [regions, lanes] */
    float *z;                           /* [leaf, lanes] */
    uint16_t *hits;                     /* [2, leaf, lanes] */
    float *k_panel;                     /* [leaf, d_qk] */
    float *v_panel, *w_panel, *d_panel; /* [leaf, width] base, variant, difference */
    float *p;                           /* [leaf, lanes] */
    /* For matrix units, NULL without: keys that do not fill tiles, packed weights, and the packed
     * values of the leaves of a group, by the last bits of their number. */
    uint16_t *key_words, *weight_words, *value_words[1 << ATS_CPU_GROUP];
    int64_t packed_leaf[1 << ATS_CPU_GROUP]; /* 1 + the leaf there, or 0 */
    float *sums;                             /* [max(5 lanes, leaf)] */
    int64_t *low, *high;                     /* [lanes] bounds, of: */
    const ats_cpu_base *bounds_of;
    int64_t bounds_query, bounds_delta;
    ats_stats stats;
} ats_cpu_worker;

/* A set of keys of a variant. Survivors have both states, removed keys only b, inserted or newly
 * legal ones only v. */
typedef struct ats_cpu_part {
    int64_t run; /* -1: inserted rows */
    bool survives;
    bool same; /* survivors with unchanged logits */
    const ats_cpu_state *b, *v;
    const float *db, *dv; /* [rows, width] sum exp(z - m) (v' - v), or NULL: values unchanged */
    int64_t node;         /* tree node of b, or -1 */
    double *gb, *gv;      /* [lanes] exp(m - lse) of b and v; NULL without that state */
} ats_cpu_part;

/* A piece of the variant's sequence, in order, for scans over keys. */
typedef struct ats_cpu_chunk {
    int64_t keys;
    int64_t first; /* base index, or side row when inserted */
    bool inserted;
    bool same;                /* base keys with unchanged logits and values */
    int64_t place;            /* order in the sequence: 2 key + 1, inserted before key: 2 key */
    const float *zb, *zv;     /* [keys, lanes]; zb NULL: inserted, zv NULL: hidden */
    const float *mb, *m, *mc; /* [lanes] upper bounds of zb, zv, zv + log|v| */
    const float *v_norm, *log_norm; /* [keys] */
    int64_t leaf;                   /* that the keys lie in */
    int64_t n_leaves; /* > 0: unchanged leaves from `leaf` on; bounds and logits are theirs */
} ats_cpu_chunk;

/* Survivors with changed logits, for divergences: base logits are -inf at keys of other groups. */
typedef struct ats_cpu_touched {
    int64_t keys;
    const float *zb, *zv; /* [keys, lanes] */
    int64_t part;         /* the surviving part */
} ats_cpu_touched;

typedef struct ats_cpu_variant {
    const ats_cpu_base *base;
    const ats_edit *edit; /* NULL: the base itself */
    double scale, temperature;
    bool rescaled;  /* another scale, temperature or query: no logit is unchanged */
    bool identical; /* the same keys and logits as the base */
    bool touched_survivors;
    int64_t n_parts, n_chunks, n_touched;
    ats_cpu_part *parts;
    ats_cpu_chunk *chunks;
    ats_cpu_touched *touched;
    float *side_norm, *side_log; /* [side.count] */
    uint8_t *side_bad;           /* [side.count] */
    int n_views;
    ats_cpu_view views[ATS_CPU_VIEWS];
    double *sink;           /* [rows] logit of the null route over the temperature; -inf: none */
    ats_cpu_norm *norm;     /* [rows] */
    double *peak, *log_sum; /* [lanes] room for the same, apart */
    double *keys, *key_sum; /* [lanes] largest logit m of a key, sum exp(z - m) over keys */
    double *scratch;        /* [rows] */
    double *log_a, *log_b, *log_c; /* [rows] log of survivors, and of w'/w of unchanged keys */
    int64_t *run_parts; /* [n_runs + 1] first part of each run; inserted rows lie among them */
} ats_cpu_variant;

/* cpu_logits.c */
void ats_cpu_bounds(const ats_cpu_base *base, int64_t query_delta, int64_t delta, int64_t *low,
                    int64_t *high);
ATS_MUST_CHECK ats_code ats_cpu_plain_view(ats_arena *arena, const ats_cpu_base *base,
                                           ats_cpu_view *out, ats_err *err);
ATS_MUST_CHECK ats_code ats_cpu_view_get(ats_cpu_worker *worker, ats_cpu_variant *variant,
                                         int64_t turn, ats_cpu_view *out, ats_err *err);
ATS_MUST_CHECK ats_code ats_cpu_key_logits(ats_cpu_worker *worker, ats_cpu_variant *variant,
                                           const ats_cpu_keys *keys, float *z, ats_err *err);
/* Makes sure that the logits of a leaf are in z of every tile. */
ATS_MUST_CHECK ats_code ats_cpu_leaf_fetch(const ats_cpu_base *base, int64_t leaf, ats_err *err);
/* Logits of a leaf of the base: those that were kept, or made again in the worker's room. */
ATS_MUST_CHECK ats_code ats_cpu_leaf_logits(ats_cpu_worker *worker, ats_cpu_variant *plain,
                                            int64_t leaf, const float **out, ats_err *err);
/* Values of base rows [first, first + keys), widened, padded with 0, 0 where not finite. */
void ats_cpu_base_values(const ats_cpu_base *base, int64_t first, int64_t keys, float *panel);
/* Norms of rows of padded values; bad rows are set to 0. Returns how many are bad. */
int64_t ats_cpu_value_norms(const ats_cpu_base *base, int64_t keys, float *panel, float *norm,
                            float *log_norm, uint8_t *bad);
/* The same without setting bad rows to 0. */
int64_t ats_cpu_find_norms(const ats_cpu_base *base, int64_t keys, ats_dtype dtype,
                           const void *rows, int64_t first, float *norm, float *log_norm,
                           uint8_t *bad);
/* Sets the bad values of base rows [first, first + keys) of a leaf to 0. */
void ats_cpu_clear_bad(const ats_cpu_base *base, int64_t leaf, int64_t first, int64_t keys,
                       float *panel);
/* Fails where a legal key has a non-finite logit or a bad value, with the place. */
ATS_MUST_CHECK ats_code ats_cpu_check(const ats_cpu_variant *variant, const float *z, int64_t keys,
                                      const uint8_t *bad, ats_err *err);

/* cpu_base.c */
ATS_MUST_CHECK ats_code ats_cpu_state_new(ats_arena *arena, const ats_cpu_base *base,
                                          ats_cpu_state *out, ats_err *err);
/* State of a leaf of the base; values NULL: the stored ones, which are all finite. False where some
 * z is not finite. */
bool ats_cpu_leaf_fill(const ats_cpu_base *base, ats_cpu_worker *worker, int64_t leaf,
                       const float *z, const float *values, const ats_cpu_state *out);
/* State of any keys; leaf: the one that they are, all of it with its stored values, else -1. */
bool ats_cpu_state_fill(const ats_cpu_base *base, ats_cpu_worker *worker, int64_t leaf,
                        int64_t keys, const float *z, const float *values, const float *v_norm,
                        const float *log_norm, const ats_cpu_state *out);
/* What an evaluation will ask of its tiles. */
typedef struct ats_cpu_needs {
    const ats_cpu_ops *ops;
    const ats_edit *edits; /* [n_edits] */
    int64_t n_edits;
    bool logits; /* of every key, after the pass */
    bool wide;   /* rows padded to ATS_CPU_LANES even when they are few */
} ats_cpu_needs;
/* The tiles of a problem, with the nodes that the edits need; an arena that counts only is told of
 * every node. small: for what is made even then, often the same arena. */
ATS_MUST_CHECK ats_code ats_cpu_tiles_layout(ats_arena *arena, ats_arena *small,
                                             const ats_problem *problem, const ats_cpu_needs *needs,
                                             ats_cpu_tiles *out, ats_err *err);
ATS_MUST_CHECK ats_code ats_cpu_worker_layout(ats_arena *arena, const ats_cpu_tiles *tiles,
                                              ats_cpu_worker *out, ats_err *err);
/* Keeps the base's norm and the weights of its nodes. */
void ats_cpu_base_weights(ats_cpu_base *base, const ats_cpu_norm *norm);
/* Copies the sums of a state; both of the same base. */
void ats_cpu_state_copy(const ats_cpu_base *base, const ats_cpu_state *from,
                        const ats_cpu_state *to);
/* cpu_pass.c: logits, states and lists of the best keys. */
ATS_MUST_CHECK ats_code ats_cpu_base_pass(const ats_cpu_tiles *tiles, ats_cpu_worker *workers,
                                          ats_err *err);

/* The base rows of one leaf that one segment holds, or the rows that it inserts there. */
typedef struct ats_cpu_fragment {
    const ats_segment *segment; /* NULL: the base itself */
    int64_t start, stop;        /* base rows; inserted: side rows */
    bool inserted;
    /* Set for fragments with new logits or values: [stop - start, lanes] and [stop - start]. */
    const float *zv, *v_norm, *log_norm;
} ats_cpu_fragment;

/* What an edit needs of a node: its state, and (leaves) the base's logits. */
enum ats_cpu_marks { ATS_CPU_MARK_STATE = 1, ATS_CPU_MARK_LOGITS = 2 };

/* A variant under construction. */
typedef struct ats_cpu_builder {
    ats_cpu_worker *worker;
    ats_cpu_variant *variant;
    const ats_cpu_base *base;
    int64_t part_capacity, chunk_capacity;
    int64_t run;
    /* Keys [start, stop) of the run with one fate, not yet covered by nodes. */
    int64_t pending_start, pending_stop;
    bool pending_hidden;
    uint8_t *mark; /* [n_nodes] ats_cpu_marks of what the variant needs; NULL: build it */
    ats_cpu_fragment *fragments; /* of the current leaf */
    int64_t n_fragments;
} ats_cpu_builder;

/* How an edit treats the keys of a segment. */
bool ats_cpu_same_logits(const ats_cpu_variant *variant, const ats_segment *segment);
bool ats_cpu_swaps_value(const ats_segment *segment);
void ats_cpu_add_part(ats_cpu_builder *builder, ats_cpu_part part);
void ats_cpu_add_chunk(ats_cpu_builder *builder, ats_cpu_chunk chunk);
/* cpu_mixed.c: parts and chunks of a leaf whose keys have different fates. */
ATS_MUST_CHECK ats_code ats_cpu_mixed_leaf(ats_cpu_builder *builder, int64_t leaf, ats_err *err);
/* cpu_build.c: chunks of the current leaf, bounds [lanes] of its variant states; and parts and
 * chunks of inserted rows. */
ATS_MUST_CHECK ats_code ats_cpu_leaf_chunks(ats_cpu_builder *builder, int64_t leaf, const float *m,
                                            const float *mc, ats_err *err);
ATS_MUST_CHECK ats_code ats_cpu_insert(ats_cpu_builder *builder, const ats_cpu_fragment *fragment,
                                       int64_t place, ats_err *err);

/* cpu_build.c: adds ats_cpu_marks of what an edit needs, without building anything. */
ATS_MUST_CHECK ats_code ats_cpu_variant_mark(ats_arena *arena, const ats_cpu_base *base,
                                             const ats_edit *edit, uint8_t *mark, ats_err *err);
ATS_MUST_CHECK ats_code ats_cpu_variant_build(ats_cpu_worker *worker, const ats_cpu_base *base,
                                              const ats_edit *edit, ats_cpu_variant *out,
                                              ats_err *err);
static inline bool ats_cpu_defined(const ats_cpu_norm *norm)
{
    return norm->peak > -(double)INFINITY;
}

/* exp(z - lse), 0 for an illegal key. */
static inline double ats_cpu_weight(double z, const ats_cpu_norm *norm)
{
    return z > -(double)INFINITY ? exp((z - norm->peak) - norm->log_sum) : 0.0;
}

/* Another source of logits and states than this machine's vectors; what it does not give is
 * computed here. */
typedef struct ats_cpu_device {
    void *ctx;
    /* Fills z (or z_there), v_norm, log_norm, v_bad and `given` of every tile, before the base
     * pass; where z_there is set, the lists heavy and payload [n_tiles] too. */
    ats_code (*base)(void *ctx, const ats_cpu_tiles *tiles, ats_cpu_pool *heavy,
                     ats_cpu_pool *payload, ats_err *err);
    /* After the base pass: regions whose heavier keys the lists do not tell. */
    ats_code (*regions)(void *ctx, ats_err *err);
    /* Logits of a leaf that are not there; called concurrently. */
    ats_code (*logits)(void *ctx, int64_t leaf, ats_err *err);
    /* The pieces of one variant; then, per tile, what the worker looks them up in. */
    ats_code (*variant)(void *ctx, int worker, const ats_cpu_tiles *tiles, const ats_edit *edit,
                        ats_err *err);
    ats_cpu_pieces *(*pieces)(void *ctx, int worker, int64_t tile);
} ats_cpu_device;

/* cpu_turns.c: leaves that several edits see from one distance, within `room` bytes. */
ATS_MUST_CHECK ats_code ats_cpu_turns_make(ats_arena *arena, const ats_cpu_tiles *tiles,
                                           ats_cpu_worker *workers, const ats_edit *edits,
                                           int64_t n_edits, size_t room, ats_err *err);
/* The leaf that holds these keys as the variant sees them, or NULL. */
const ats_cpu_turned *ats_cpu_turns_at(const ats_cpu_variant *variant, const ats_cpu_keys *keys,
                                       ats_range *leaf);
/* Whether turned keys of the edit are the same as in other edits. */
bool ats_cpu_turns_apply(const ats_problem *problem, const ats_edit *edit);

/* attention_cpu.c: the cpu backend's evaluate, with so many variants at work; device NULL: all by
 * itself. */
ATS_MUST_CHECK ats_code ats_cpu_evaluate(const ats_problem *problem, const ats_edit *variants,
                                         int64_t n_variants, int at_work,
                                         const ats_cpu_device *device, ats_emit_fn emit, void *ctx,
                                         ats_err *err);

/* The rest fills statistics of defined rows, in this order. */
/* cpu_fold.c: norm of every row, gb and gv of every part. */
ATS_MUST_CHECK ats_code ats_cpu_fold(ats_cpu_worker *worker, ats_cpu_variant *variant,
                                     ats_err *err);
/* cpu_pair.c: masses; refines the norm where no survivor changed. */
void ats_cpu_pair_masses(const ats_cpu_variant *variant, ats_pair_stats *out);
/* cpu_route.c: scalars of the route and its regions. */
void ats_cpu_route(const ats_cpu_variant *variant, ats_route_stats *out);
/* cpu_vector.c: value sums. */
ATS_MUST_CHECK ats_code ats_cpu_vectors(ats_cpu_worker *worker, const ats_cpu_variant *variant,
                                        ats_stats *out, ats_err *err);
/* cpu_scan.c: top lists, overlaps, counts of heavier keys. */
ATS_MUST_CHECK ats_code ats_cpu_scan(ats_cpu_worker *worker, const ats_cpu_variant *variant,
                                     ats_stats *out, ats_err *err);
/* cpu_pair.c */
ATS_MUST_CHECK ats_code ats_cpu_divergences(ats_cpu_worker *worker, const ats_cpu_variant *variant,
                                            ats_pair_stats *out, ats_err *err);

#endif

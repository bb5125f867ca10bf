/* Random backend problems and edit scripts, the same on every machine: a specification is drawn
 * from a seed (or written by hand), a problem made from it, edit scripts made for the problem.
 * Ownership: everything made lives in the caller's arena. Failures are cmocka assertions. */
#ifndef ATS_TESTS_SUPPORT_PROBLEMS_H
#define ATS_TESTS_SUPPORT_PROBLEMS_H

#include "base/arena.h"
#include "base/rng.h"
#include "kernels/backend.h"

typedef struct problem_spec {
    uint64_t seed;
    int64_t n_keys, d_qk, d_v;
    int64_t group, n_probes;     /* query heads that share the keys, probes of each */
    ats_dtype dtype;             /* of k and v */
    ats_rope_layout rope;        /* rotates 3/4 of the head, rounded down to pairs */
    double spread;               /* standard deviation of q.k * scale; 0: 1.5 */
    double softcap, temperature; /* temperature 0: 1 */
    int64_t window, chunk;
    bool bidirectional;
    bool sink, alibi, bias, segments;
    bool keep;       /* keep mask; masked-for-all keys hold NaN and inf in k and v */
    bool gaps;       /* positions with gaps */
    bool empty_rows; /* the first probe stands before every key */
    int64_t top_k;   /* 0: 8 */
} problem_spec;

/* Any combination that every backend must support; n_keys is one of 1, 31, 33, 65, 257, 1000. */
void problem_spec_draw(uint64_t seed, problem_spec *out);
/* One line that names the specification. */
const char *problem_spec_text(const problem_spec *spec, char *text, size_t size);

/* Regions of the problem: the first rows, one in the middle, one of two pieces, an empty one, and
 * last the one that holds every key. */
void problem_make(ats_arena *arena, const problem_spec *spec, ats_problem *out);

/* Edit scripts. The first EDIT_KINDS of a list are one of each kind, later ones random mixtures. */
enum edit_kind {
    EDIT_IDENTITY,
    EDIT_OVERLAY, /* rows inserted, nobody moves */
    EDIT_SHIFT,   /* rows inserted, later rows and the probes move */
    EDIT_MOVE,    /* later rows and the probes move */
    EDIT_HIDE,    /* one window masked */
    EDIT_SWAP_VALUE,
    EDIT_SWAP_KEY,
    EDIT_SWAP_BOTH,
    EDIT_TEMPERATURE,
    EDIT_QUERY, /* other queries, another scale */
    EDIT_HIDE_ALL,
    EDIT_MOVE_ALL, /* every key and the probes by the same delta */
    EDIT_MIXTURE,  /* every segment kind, deltas, query_delta, temperature, scale, queries */
    EDIT_KINDS
};
void edit_make(ats_arena *arena, const ats_problem *problem, uint64_t seed, enum edit_kind kind,
               ats_edit *out);
void edits_make(ats_arena *arena, const ats_problem *problem, uint64_t seed, int64_t count,
                ats_edit *out);

/* Side rows with ordinary keys and values at the given position. */
void side_rows_make(ats_arena *arena, const ats_problem *problem, ats_rng *rng, int64_t count,
                    ats_side *out);

#endif

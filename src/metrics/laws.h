/* Laws: identities that hold exactly between a base and a variant, whatever the numbers are
 * (docs/metrics.md, "Laws"). `verify` runs them on a user's own capture.
 *
 * Plain functions on statistics: no state, no allocation, any thread. A residual is the absolute
 * difference of the two sides; its bound is what two evaluations within the bars of
 * kernels/bars.h can differ by. The row with the largest residual / bound is reported. */
#ifndef ATS_METRICS_LAWS_H
#define ATS_METRICS_LAWS_H

#include "base/arena.h"
#include "kernels/backend.h"

/* What the variant did to the base; each kind has its own laws on top of ATS_LAWS_ANY. */
typedef enum ats_law_kind {
    ATS_LAWS_ANY,     /* any variant, and with stats == base the base itself: sums and ranges */
    ATS_LAWS_OVERLAY, /* rows inserted, nothing old moved or masked */
    ATS_LAWS_MASK,    /* base rows hidden, nothing else */
    ATS_LAWS_PAYLOAD_SWAP, /* values swapped, keys kept */
    ATS_LAWS_TEMPERATURE,  /* only tau changed */
    ATS_LAWS_SAME          /* nothing may change: all keys and the probe moved by one delta, keys
                              permuted with their values, an empty edit */
} ats_law_kind;

typedef struct ats_law {
    const char *name;      /* "overlay.tv" */
    const char *statement; /* "tv = 1 - exp(-lse_shift)" */
    double residual;       /* of the worst row, in the unit of the statement; 0 when rows is 0 */
    double bound;          /* of that row; the law holds when !(residual > bound) is true of all */
    int64_t worst_row;     /* -1: none */
    int64_t rows;          /* comparisons made; rows with an undefined route are left out */
    int64_t broken;        /* comparisons over their bound, NaN included */
} ats_law;

/* Bars per row of the problem, all [n_rows]: from kernels/bars.h, or any the caller wants. */
typedef struct ats_law_bars {
    const double *lse;     /* nats, absolute */
    const double *mass;    /* relative for masses, absolute for divergences */
    const double *entropy; /* nats, absolute */
    const double *output;  /* relative L2 */
} ats_law_bars;

enum { ATS_LAWS_MAX = 32 };

/* Writes the laws of `kind` (those of ATS_LAWS_ANY first) to out[ATS_LAWS_MAX], returns how many.
 * edit: the variant's script (ATS_LAWS_MASK reads which regions it hides from); may be NULL else.
 * stats == base or a pair of NULLs: laws that need a pair have rows 0. */
int64_t ats_laws_check(ats_law_kind kind, const ats_problem *problem, const ats_law_bars *bars,
                       const ats_stats *base, const ats_stats *stats, const ats_edit *edit,
                       ats_law *out);

/* Exact duplicates: with `copies` overlay copies of region `region` (mass G in the base), original
 * and copies together have (copies + 1) G / (1 + copies G). */
ats_law ats_law_duplicates(const ats_problem *problem, const ats_law_bars *bars,
                           const ats_stats *base, const ats_stats *stats, int64_t region,
                           int64_t copies);

/* Worst of both, counts added: laws over many variants, samples, layers. into and from are the
 * same law; a zeroed `into` takes `from` as it is. */
void ats_law_merge(ats_law *into, const ats_law *from);
bool ats_law_holds(const ats_law *law); /* nothing broken; true also when rows is 0 */

/* Bars of every row from kernels/bars.h, in the arena: those of fp32 arithmetic when keys and
 * values are float32, else those of split 16-bit weights. The output bar, which is relative to sum
 * w |v|, is made relative to |o| with the base's own cancellation over all regions. */
ATS_MUST_CHECK ats_code ats_law_bars_make(ats_arena *arena, const ats_problem *problem,
                                          const ats_stats *base, ats_law_bars *out, ats_err *err);

#endif

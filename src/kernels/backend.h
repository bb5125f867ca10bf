/* The backend contract: one base problem, many edit scripts, statistics out.
 *
 * A problem is one sample x layer x key head: all query heads of the group and all probes are
 * rows. A backend computes the statistics below for the base and for every variant; weights are
 * never written out. metrics/ turns statistics into the numbers of a result file.
 * Ownership: the caller owns the problem; statistics passed to `emit` belong to the backend and
 * are valid only during the call. evaluate() uses all threads; emit is called concurrently for
 * different variants, never twice for one. Same input, same bits, at any thread count and
 * whatever other variants are in the batch. */
#ifndef ATS_KERNELS_BACKEND_H
#define ATS_KERNELS_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/contract.h"
#include "base/edit.h"
#include "base/half.h"
#include "base/scratch.h"
#include "base/status.h"

/* Half-open range of base key indices. */
typedef struct ats_range {
    int64_t start, stop;
} ats_range;

/* A region: a set of base keys given as ascending disjoint ranges (a span, the sink rows, ...).
 * Regions may overlap each other. */
typedef struct ats_region {
    int64_t n_ranges;
    const ats_range *ranges;
} ats_region;

/* What evaluations did, for reports; a backend adds to it. */
typedef struct ats_account {
    int64_t problems, variants;
    int64_t blocks; /* of rows that were evaluated by themselves; as many as problems: nothing split */
} ats_account;

typedef struct ats_problem {
    ats_contract contract;
    int64_t n_keys, d_qk, d_v;
    ats_dtype k_dtype, v_dtype;
    const void *k;             /* [n_keys, d_qk] */
    const void *v;             /* [n_keys, d_v] */
    ats_scratch *scratch;      /* k and v lie there, and are announced to it; NULL: in memory */
    const int64_t *key_pos;    /* [n_keys] */
    const int32_t *key_segment; /* [n_keys] or NULL: legal only where equal to q_segment */

    int64_t n_rows;   /* query heads of the group x probes; row = head_in_group * n_probes + probe */
    int64_t n_probes;
    const float *q;           /* [n_rows, d_qk], exactly the stored bits, widened */
    const int64_t *q_pos;     /* [n_rows] */
    const int32_t *q_segment; /* [n_rows] or NULL */
    const float *sink;        /* [n_rows] logit of the null route or -inf; NULL: none */
    const float *alibi_slope; /* [n_rows] or NULL */
    const uint8_t *keep;      /* [n_probes, n_keys] or NULL; inserted rows are always kept */
    const float *const *bias; /* [n_rows] pointers to [n_keys], or NULL; inserted rows have bias 0;
                               * <= ATS_BIAS_HIDES: the key is illegal, else finite */

    int64_t n_regions;
    const ats_region *regions;
    int64_t top_k; /* length of the top lists, >= 1 */

    int64_t memory;       /* bytes a backend may use beside the tensors; 0: no limit. No bit depends
                           * on it; less than it can do with is ATS_E_MEMORY */
    ats_account *account; /* NULL: not asked for */
} ats_problem;

/* Says that these rows of k, or of v, are read next. */
static inline void ats_problem_use_k(const ats_problem *p, int64_t first, int64_t rows)
{
    const int64_t row = p->d_qk * (int64_t)ats_dtype_size(p->k_dtype);
    ats_scratch_use_rows(p->scratch, p->k, row, first, rows);
}

static inline void ats_problem_use_v(const ats_problem *p, int64_t first, int64_t rows)
{
    const int64_t row = p->d_v * (int64_t)ats_dtype_size(p->v_dtype);
    ats_scratch_use_rows(p->scratch, p->v, row, first, rows);
}

/* Statistics of one route set (base or one variant). Arrays are row-major, first index row.
 * Logits and LSE in nats, after cap, bias and temperature. Key indices are base indices; inserted
 * side row j is coded as -2 - j; -1 pads. Ties go to the earlier row of the perturbed sequence.
 * A base row keeps its keep bit, segment and bias under every edit (a swap too); an inserted row is
 * always kept, of the query's segment, without bias. "Heavier" compares logits, not rounded weights.
 * A row without a legal key and without a sink is undefined: lse and lse_keys -inf, every other
 * number NaN, counts 0, keys -1. With a sink alone: null_weight and sum_w2 1, entropy, max_weight,
 * outputs and region sums 0, region logits -inf. */
typedef struct ats_route_stats {
    double *lse;         /* [rows] log sum exp over legal keys and the sink */
    double *lse_keys;    /* [rows] without the sink; -inf when no key is legal */
    double *null_weight; /* [rows] */
    double *entropy;     /* [rows] nats, null route included */
    double *sum_w2;      /* [rows] sum of squared weights, null route included */
    double *max_weight;  /* [rows] heaviest key (not the null route) */
    int64_t *legal_keys; /* [rows] */
    float *output;       /* [rows, d_v] */
    int64_t *top_index;  /* [rows, top_k] heaviest keys first; only keys of weight > 0 */
    double *top_weight;  /* [rows, top_k] NaN where padded */
    int64_t *topc_index; /* [rows, top_k] keys of largest |w v| first; only keys where it is > 0 */
    double *topc_weight; /* [rows, top_k] NaN where padded */
    double *topc_norm;   /* [rows, top_k] |w v|, NaN where padded */
    /* regions */
    double *region_lse;     /* [rows, regions] log sum exp over the region's legal keys; -inf: none */
    double *region_max;     /* [rows, regions] best logit inside; -inf: none */
    double *region_max_out; /* [rows, regions] best logit of any key outside (inserted count); -inf */
    int64_t *region_heavier; /* [rows, regions] legal keys outside (inserted too) heavier than the
                              * heaviest inside; all of them when no key inside is legal */
    float *region_output;   /* [rows, regions, d_v] sum of w v over the region */
    double *region_abs;     /* [rows, regions] sum of w |v| */
} ats_route_stats;

enum ats_part {
    ATS_PART_REMOVAL,
    ATS_PART_INTRUSION,
    ATS_PART_DILUTION,
    ATS_PART_REROUTE,
    ATS_PART_PAYLOAD,
    ATS_N_PARTS
};

/* What changed between base and variant: [rows] unless said. S, R, I as in metrics.md: keys legal
 * in both (null route among them), in the base only, in the variant only (inserted or newly legal).
 * Where either route is undefined every number is NaN and every count 0. A swapped row survives:
 * its weight and value in the variant are those of the swapped row. */
typedef struct ats_pair_stats {
    double *intrusion;  /* variant mass on I */
    double *removal;    /* base mass on R */
    double *survivors_base, *survivors; /* A = sum_S w, B = sum_S w', null included */
    double *tv, *js, *hellinger;        /* js in bits */
    double *reroute_tv, *reroute_js;    /* conditioned on S; NaN when A or B is 0 */
    int64_t *overlap_all;  /* shared members of both top_k lists */
    int64_t *overlap_survivors; /* of the top_k lists made among the keys of S alone */
    int64_t *overlap_k_all, *overlap_k_survivors; /* min(top_k, larger list): the denominators */
    double *inserted_lse;  /* log sum exp over side rows inserted; -inf: none */
    double *inserted_abs;  /* sum w' |v'| over them */
    float *inserted_output; /* [rows, d_v] sum w' v' over them */
    float *delta; /* [rows, ATS_N_PARTS, d_v]: the exact five-part sum of o' - o; intrusion sums over
                   * I. Where A is 0: dilution 0, reroute sum_S w' vbar */
} ats_pair_stats;

typedef struct ats_stats {
    ats_route_stats route;
    ats_pair_stats pair; /* all NULL for the base */
} ats_stats;

/* variant -1 is the base (stats == base); it comes first, before any variant. worker is in
 * [0, ats_threads()). */
typedef ats_code (*ats_emit_fn)(void *ctx, int64_t variant, int worker, const ats_stats *base,
                                const ats_stats *stats, ats_err *err);

typedef struct ats_backend {
    const char *name;
    const char *summary; /* one sentence for `doctor` */
    bool streams;        /* announces what it reads of k and v to problem->scratch */
    /* ATS_OK when it can run here, else the sentence why not. */
    ats_code (*probe)(ats_err *err);
    /* ATS_OK when it can do this problem, else the sentence why not. */
    ats_code (*supports)(const ats_problem *problem, ats_err *err);
    /* Bytes used beside the tensors, at most, within problem->memory; more than that: it does not
     * fit, and this is the least that would. */
    size_t (*workspace_bytes)(const ats_problem *problem, int64_t n_variants);
    ats_code (*evaluate)(const ats_problem *problem, const ats_edit *variants, int64_t n_variants,
                         ats_emit_fn emit, void *ctx, ats_err *err);
    const char *(*detail)(void); /* instruction set, device, driver: for the result file */
} ats_backend;

/* What every backend asks of a problem (shapes, contract, regions); the sentence names the field. */
ATS_MUST_CHECK ats_code ats_problem_check(const ats_problem *problem, ats_err *err);
/* Segments in order, every base row named exactly once, side rows in range, temperature > 0. */
ATS_MUST_CHECK ats_code ats_edit_check(const ats_problem *problem, const ats_edit *edit,
                                       ats_err *err);

/* The table: reference, cpu, cuda, cublas; what a build lacks keeps its name and says why. */
const ats_backend *const *ats_backends(int64_t *count);
/* By name, or "auto". Fails with the list of names, or why that one is absent. */
ATS_MUST_CHECK ats_code ats_backend_find(const char *name, const ats_backend **out, ats_err *err);
/* The same, where "auto" passes over what does not take heads of these widths. */
ATS_MUST_CHECK ats_code ats_backend_find_for(const char *name, int64_t d_qk, int64_t d_v,
                                             const ats_backend **out, ats_err *err);

#endif

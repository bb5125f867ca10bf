/* What the builds of one sample, layer and key head have in common, made when first asked for:
 * cosines and sines of moves, norms of the rows, the mean key. Nothing of it depends on a variant,
 * so a build gives the same bits with and without one.
 * Ownership: a cache owns what it hands out, until a build of another head; one thread at a time.
 * A zeroed one is valid and empty. */
#ifndef ATS_PERTURB_CACHE_H
#define ATS_PERTURB_CACHE_H

#include "base/rope.h"
#include "perturb/family.h"

typedef struct ats_build_cache {
    ats_turns turns;
    ats_arena arena; /* of this sample, layer and key head: */
    const ats_sample *sample;
    const ats_layer *layer;
    int64_t kv_head;
    double *norms[2]; /* [n_norms] ascending finite norms of keys and of values; NULL: not made */
    int64_t n_norms[2];
    double *mean; /* [d_qk] sum of content-space keys; NULL: not made */
} ats_build_cache;

/* R(delta) of rows [rows, d] in the layer's frequencies; in place is fine. */
void ats_build_move(const ats_build *ctx, int64_t delta, int64_t rows, const float *src,
                    float *dst);
/* The cache, cleared when it belongs to another head; scratch, cleared, where ctx has none (it then
 * lives in ctx->arena). */
ats_build_cache *ats_build_cache_of(const ats_build *ctx, ats_build_cache *scratch);
/* Ascending finite norms of this key head's keys or values; at least one, else an error. */
ATS_MUST_CHECK ats_code ats_build_norms(const ats_build *ctx, bool values, const double **out,
                                        int64_t *count, ats_err *err);
void ats_build_cache_fini(ats_build_cache *cache);

#endif

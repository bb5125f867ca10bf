/* Lists of the best keys of every row, and scans that fill them.
 *
 * The base keeps lists longer than top_k. A variant that leaves most keys alone starts from them:
 * unchanged keys keep their order, so the first top_k unchanged entries, merged with the changed
 * and inserted keys, are the variant's list. Ties go to the earlier place in the sequence. */
#ifndef ATS_KERNELS_CPU_TOP_H
#define ATS_KERNELS_CPU_TOP_H

#include "kernels/cpu.h"

typedef enum ats_cpu_which {
    ATS_CPU_ALL,               /* keys of the variant */
    ATS_CPU_SURVIVORS,         /* those legal in the base too */
    ATS_CPU_SURVIVORS_IN_BASE, /* the same keys by their base logits */
} ats_cpu_which;

/* The keys that a variant changes, as chunks in key order, and whether they are few. */
typedef struct ats_cpu_changes {
    int64_t n_chunks; /* hidden, changed or with another value; inserted ones are not among them */
    const ats_cpu_chunk **chunks;
    bool few; /* lists of the base are worth starting from */
} ats_cpu_changes;

ATS_MUST_CHECK ats_code ats_cpu_top_new(ats_arena *arena, const ats_cpu_base *base, int64_t limit,
                                        ats_cpu_top *out, ats_err *err);
ATS_MUST_CHECK ats_code ats_cpu_changes_find(ats_cpu_worker *worker, const ats_cpu_variant *variant,
                                             ats_cpu_changes *out, ats_err *err);
/* The changed chunk that holds a base key, or NULL. */
static inline const ats_cpu_chunk *ats_cpu_changes_at(const ats_cpu_changes *c, int64_t key)
{
    int64_t low = 0, high = c->n_chunks;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (c->chunks[middle]->first + c->chunks[middle]->keys <= key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->n_chunks && c->chunks[low]->first <= key ? c->chunks[low] : NULL;
}
/* Fills empty lists of the rows with wanted[row] != 0, from the base's list where `changes` allow
 * it. payload: by |w v| instead of w (all keys only). */
ATS_MUST_CHECK ats_code ats_cpu_top_fill(ats_cpu_worker *worker, const ats_cpu_variant *variant,
                                         const ats_cpu_changes *changes, ats_cpu_which which,
                                         bool payload, const uint8_t *wanted, ats_cpu_top *list,
                                         ats_err *err);
/* An unchanged leaf as a chunk. */
ats_cpu_chunk ats_cpu_chunk_leaf(const ats_cpu_base *base, int64_t leaf);
/* Sequential scan of all chunks; threshold[lane] = +inf keeps a row out. */
void ats_cpu_top_scan(const ats_cpu_variant *variant, ats_cpu_which which, bool payload,
                      ats_cpu_top *list);

ATS_MUST_CHECK ats_code ats_cpu_pool_new(ats_arena *arena, const ats_cpu_base *base, int64_t limit,
                                         ats_cpu_pool *out, ats_err *err);
/* Offers n keys, hits[i] = (key - first) << 8 | row, with score z + add[key - first]; z [keys,
 * lanes]. */
void ats_cpu_pool_offer(ats_cpu_pool *pool, int64_t first, int64_t n, const uint16_t *hits,
                        const float *z, int64_t lanes, const float *add);
/* Takes over the other's keys. */
void ats_cpu_pool_join(ats_cpu_pool *pool, const ats_cpu_pool *other, const ats_cpu_base *base);
/* The pool as a list of the base. */
void ats_cpu_pool_list(const ats_cpu_pool *pool, const ats_cpu_base *base, ats_cpu_top *out);

#endif

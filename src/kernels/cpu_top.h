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
/* How many keys are heavier than `best`, a key's logit, or -inf. False: the list is too short to
 * tell. */
static inline bool ats_cpu_top_heavier(const ats_cpu_top *list, int64_t row, double best,
                                       int64_t *out)
{
    const float *z = list->z + row * list->limit;
    const int64_t n = list->count[row];
    if (n == list->limit && !(best >= (double)z[n - 1])) return false;
    *out = 0;
    while (*out < n && (double)z[*out] > best) ++*out;
    return true;
}
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
/* The logits of a chunk that are the base's are where it points. */
static inline ats_code ats_cpu_chunk_fetch(const ats_cpu_base *base, const ats_cpu_chunk *chunk,
                                           ats_err *err)
{
    return chunk->inserted ? ATS_OK : ats_cpu_leaf_fetch(base, chunk->leaf, err);
}

ATS_MUST_CHECK ats_code ats_cpu_pool_new(ats_arena *arena, const ats_cpu_base *base, int64_t limit,
                                         ats_cpu_pool *out, ats_err *err);
/* Offers n keys, hits[i] = (key - first) << 8 | row, with score z + add[key - first]; z [keys,
 * lanes]. */
void ats_cpu_pool_offer(ats_cpu_pool *pool, int64_t first, int64_t n, const uint16_t *hits,
                        const float *z, int64_t lanes, const float *add);
/* Offers a list, best first, of keys first + place[i stride] with score z[i stride] + add[key];
 * place < 0 ends it. */
void ats_cpu_pool_take(ats_cpu_pool *pool, int64_t row, int64_t n, int64_t stride, const float *z,
                       const int32_t *place, int64_t first, const float *add);
/* Takes over the other's keys. */
void ats_cpu_pool_join(ats_cpu_pool *pool, const ats_cpu_pool *other, const ats_cpu_base *base);
/* The pool as a list of the base. */
void ats_cpu_pool_list(const ats_cpu_pool *pool, const ats_cpu_base *base, ats_cpu_top *out);

#endif

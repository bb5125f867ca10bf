/* The attention contract of one layer as plain numbers: what turns q.k into a logit
 * and which keys a query may see. attention.md of the design fixes order and meaning;
 * docs/attention.md repeats it. Legality uses positions, never indices. */
#ifndef ATS_BASE_CONTRACT_H
#define ATS_BASE_CONTRACT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum ats_rope_layout { ATS_ROPE_NONE, ATS_ROPE_HALF, ATS_ROPE_INTERLEAVED } ats_rope_layout;

typedef struct ats_rope {
    ats_rope_layout layout;
    int64_t pairs;          /* rotary_dim / 2 */
    const double *inv_freq; /* [pairs], radians per position */
} ats_rope;

typedef struct ats_contract {
    double scale;       /* multiplies q.k */
    double softcap;     /* logit units; 0: none */
    double temperature; /* divides capped logit plus bias, and the sink logit; > 0 */
    int64_t window;     /* keys, the query's own counted; 0: none */
    int64_t chunk;      /* keys; 0: none */
    bool causal;
    ats_rope rope;
} ats_contract;

/* A stored bias of this or less hides its key: beside a number of that size no score and no count of
 * keys is left in a sum, so planes filled with the lowest float of bfloat16 or float32 are masks. */
#define ATS_BIAS_HIDES (-1e30F)

/* Legal by causality, window and chunk (masks, segments and edits are the caller's). */
bool ats_legal_position(const ats_contract *contract, int64_t pos_q, int64_t pos_k);

#endif

/* What a family asks of a sample and layer before it places anything: spans, the rows that may be
 * touched, and whether rows may move. Private to perturb/. No tensors, except where said. */
#ifndef ATS_PERTURB_TARGET_H
#define ATS_PERTURB_TARGET_H

#include "base/rng.h"
#include "perturb/family.h"

/* First span of that name, else of that role; NULL: none. */
const ats_span *ats_span_find(const ats_sample *sample, const char *text);
/* The span of parameter `span`, else of the suite's target. NULL: out is marked skipped. */
const ats_span *ats_target_find(const ats_build *ctx, ats_built *out);
/* The same, and it must end before the first probe. */
const ats_span *ats_target_before_probes(const ats_build *ctx, ats_built *out);
void ats_skip(ats_built *out, const char *fmt, ...) ATS_PRINTF(2, 3);

int64_t ats_probe_count(const ats_build *ctx);
int64_t ats_probe_at(const ats_build *ctx, int64_t i); /* index of the sample's probes */
int64_t ats_head_count(const ats_build *ctx);
int64_t ats_head_at(const ats_build *ctx, int64_t i); /* query head */

/* Rows [0, cap) stand before every evaluated probe's own row: only these are hidden, overwritten or
 * have something inserted before them. cap itself is an insertion point. */
int64_t ats_row_cap(const ats_build *ctx);

/* Refused with the layer's number: dynamic RoPE, absolute positions, RoPE without parameters. */
ATS_MUST_CHECK ats_code ats_need_moves(const ats_build *ctx, const char *why, ats_err *err);

enum { ATS_START_ROWS = 4 }; /* never overwritten: start tokens take attention of their own */

/* Ascending filler rows: in [4, cap), outside every span whose role is not `filler`, outside
 * [start, stop). out: [*count] in the arena. */
ATS_MUST_CHECK ats_code ats_filler_rows(const ats_build *ctx, int64_t start, int64_t stop,
                                        int64_t **out, int64_t *count, ats_err *err);
/* First row of a random run of `rows` consecutive filler rows outside [start, stop), the same for
 * all layers and heads; -1 when there is none. */
ATS_MUST_CHECK ats_code ats_filler_block(const ats_build *ctx, int64_t start, int64_t stop,
                                         int64_t rows, const char *purpose, int64_t *out,
                                         ats_err *err);

/* Random streams: geometry is shared by arms, layers and heads; content belongs to one key head. */
ats_rng ats_place_stream(const ats_build *ctx, const char *purpose);
ats_rng ats_row_stream(const ats_build *ctx, const char *purpose);

#endif

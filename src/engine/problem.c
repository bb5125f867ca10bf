#include "engine/problem.h"

#include <math.h>
#include <string.h>

enum { SINK_ROWS = 4, RECENT_ROWS = 64 };

/* Ranges of the marked rows: ascending, disjoint, maximal. */
static ats_code ranges_of_marks(ats_arena *arena, const uint8_t *mark, int64_t n, uint8_t wanted,
                                ats_region *out, ats_err *err)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) count += mark[i] == wanted && (i == 0 || mark[i - 1] != wanted);
    ats_range *ranges = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, count > 0 ? count : 1, &ranges, err));
    int64_t at = -1;
    for (int64_t i = 0; i < n; i++) {
        if (mark[i] != wanted) continue;
        if (i == 0 || mark[i - 1] != wanted) ranges[++at].start = i;
        ranges[at].stop = i + 1;
    }
    *out = (ats_region){.n_ranges = count, .ranges = ranges};
out:
    return rc;
}

/* Marks the rows of every span of an axis entry. */
static void mark_entry(const ats_span_axis *axis, const ats_sample *sample, const char *entry,
                       uint8_t *mark)
{
    for (int64_t i = 0; i < sample->n_spans; i++) {
        const ats_span *span = &sample->spans[i];
        if (strcmp(axis->by_role ? span->role : span->name, entry) == 0)
            memset(mark + span->start, 1, (size_t)(span->stop - span->start));
    }
}

static void mark_sink(const ats_sample *sample, uint8_t *mark)
{
    memset(mark, 1, (size_t)(sample->n_keys < SINK_ROWS ? sample->n_keys : SINK_ROWS));
    for (int64_t i = 0; i < sample->n_spans; i++) {
        const ats_span *span = &sample->spans[i];
        if (strcmp(span->role, "sink") == 0 || strcmp(span->name, "sink") == 0)
            memset(mark + span->start, 1, (size_t)(span->stop - span->start));
    }
}

static void mark_recent(const ats_sample *sample, uint8_t *mark)
{
    const int64_t n = sample->n_keys;
    const int64_t start = n > RECENT_ROWS ? n - RECENT_ROWS : 0;
    memset(mark + start, 1, (size_t)(n - start));
}

static void mark_union(const uint8_t *mark, int64_t n, uint8_t *all)
{
    for (int64_t i = 0; i < n; i++) all[i] |= mark[i];
}

static ats_code make_regions(ats_arena *arena, const ats_sample *sample, const ats_span_axis *axis,
                             const ats_region **out, ats_err *err)
{
    const int64_t n = sample->n_keys;
    ats_region *regions = NULL;
    uint8_t *mark = NULL, *all = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW0(arena, axis->count, &regions, err));
    ATS_TRY(ATS_NEW(arena, n, &mark, err));
    ATS_TRY(ATS_NEW0(arena, n, &all, err));
    for (int64_t r = 0; r < axis->count - 1; r++) {
        memset(mark, 0, (size_t)n);
        if (r < axis->n_named)
            mark_entry(axis, sample, axis->names[r], mark);
        else if (r == axis->n_named)
            mark_sink(sample, mark);
        else
            mark_recent(sample, mark);
        mark_union(mark, n, all);
        ATS_TRY(ranges_of_marks(arena, mark, n, 1, &regions[r], err));
    }
    ATS_TRY(ranges_of_marks(arena, all, n, 0, &regions[axis->count - 1], err));
    *out = regions;
out:
    return rc;
}

/* A probe whose token is not among the keys belongs to the segment of the last key at or before
 * its position. */
static int32_t probe_segment(const ats_sample *sample, const ats_probe *probe)
{
    if (probe->index >= 0) return sample->segment[probe->index];
    int64_t best = 0;
    for (int64_t i = 1; i < sample->n_keys; i++)
        if (sample->position[i] <= probe->position &&
            (sample->position[best] > probe->position ||
             sample->position[i] >= sample->position[best]))
            best = i;
    return sample->segment[best];
}

static ats_code make_rows(ats_arena *arena, const ats_layer *layer, const ats_sample *sample,
                          const ats_attention *attention, const ats_pick *pick, ats_problem *p,
                          ats_err *err)
{
    const int64_t rows = p->n_rows, d = layer->d_qk;
    float *q = NULL, *sink = NULL, *slope = NULL;
    int64_t *q_pos = NULL;
    int32_t *segment = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, rows * d, &q, err));
    ATS_TRY(ATS_NEW(arena, rows, &q_pos, err));
    if (layer->sink != NULL) ATS_TRY(ATS_NEW(arena, rows, &sink, err));
    if (layer->alibi_slope != NULL) ATS_TRY(ATS_NEW(arena, rows, &slope, err));
    if (sample->segment != NULL) ATS_TRY(ATS_NEW(arena, rows, &segment, err));
    for (int64_t row = 0; row < rows; row++) {
        const int64_t head = pick->heads[row / pick->n_probes];
        const int64_t probe = pick->probes[row % pick->n_probes];
        ats_widen(attention->q_dtype, attention->q, (head * sample->n_probes + probe) * d, d,
                  q + row * d);
        q_pos[row] = sample->probes[probe].position;
        if (sink != NULL) sink[row] = layer->sink[head];
        if (slope != NULL) slope[row] = layer->alibi_slope[head];
        if (segment != NULL) segment[row] = probe_segment(sample, &sample->probes[probe]);
    }
    p->q = q;
    p->q_pos = q_pos;
    p->sink = sink;
    p->alibi_slope = slope;
    p->q_segment = segment;
    p->key_segment = sample->segment;
out:
    return rc;
}

static ats_code make_masks(ats_arena *arena, const ats_sample *sample,
                           const ats_attention *attention, const ats_pick *pick, ats_problem *p,
                           ats_err *err)
{
    const int64_t n = sample->n_keys;
    ats_code rc = ATS_OK;
    if (attention->keep != NULL) {
        uint8_t *keep = NULL;
        ATS_TRY(ATS_NEW(arena, pick->n_probes * n, &keep, err));
        for (int64_t i = 0; i < pick->n_probes; i++)
            memcpy(keep + i * n, attention->keep + pick->probes[i] * n, (size_t)n);
        p->keep = keep;
    }
    if (attention->bias != NULL) {
        const float **bias = NULL;
        ATS_TRY(ATS_NEW(arena, p->n_rows, &bias, err));
        for (int64_t row = 0; row < p->n_rows; row++) {
            const int64_t head = pick->heads[row / pick->n_probes];
            const int64_t plane = attention->bias_heads == 1 ? 0 : head;
            const int64_t probe = pick->probes[row % pick->n_probes];
            bias[row] = attention->bias + (plane * sample->n_probes + probe) * n;
        }
        p->bias = bias;
    }
out:
    return rc;
}

/* Address of a key head's first row in a stored tensor [heads, n, d]. */
static const void *head_rows(const void *tensor, ats_dtype dtype, int64_t head, int64_t n,
                             int64_t d)
{
    return (const char *)tensor + (size_t)(head * n * d) * ats_dtype_size(dtype);
}

ats_code ats_problem_shape(ats_arena *arena, const ats_layer *layer, const ats_sample *sample,
                           const ats_pick *pick, const ats_span_axis *axis, double temperature,
                           int64_t top_k, bool masked, ats_problem *out, ats_err *err)
{
    static const uint8_t nothing;
    static const float *const no_bias;
    static const float no_row;
    ats_problem p = {
        .contract = layer->contract,
        .n_keys = sample->n_keys,
        .d_qk = layer->d_qk,
        .d_v = layer->d_v,
        .key_pos = sample->position,
        .n_rows = pick->n_heads * pick->n_probes,
        .n_probes = pick->n_probes,
        .q = &no_row,
        .q_pos = sample->position,
        .keep = masked ? &nothing : NULL,
        .bias = masked ? &no_bias : NULL,
        .sink = layer->sink != NULL ? &no_row : NULL,
        .alibi_slope = layer->alibi_slope != NULL ? &no_row : NULL,
        .key_segment = sample->segment,
        .q_segment = sample->segment,
        .n_regions = axis->count,
        .top_k = top_k,
    };
    p.contract.temperature *= temperature;
    const ats_code rc = make_regions(arena, sample, axis, &p.regions, err);
    if (rc == ATS_OK) *out = p;
    return rc;
}

ats_code ats_problem_make(ats_arena *arena, const ats_layer *layer, const ats_sample *sample,
                          const ats_attention *attention, int64_t kv_head, const ats_pick *pick,
                          const ats_span_axis *axis, double temperature, int64_t top_k,
                          ats_problem *out, ats_err *err)
{
    const int64_t held = kv_head - attention->first_kv_head;
    ats_problem p = {
        .contract = layer->contract,
        .n_keys = sample->n_keys,
        .d_qk = layer->d_qk,
        .d_v = layer->d_v,
        .k_dtype = attention->k_dtype,
        .v_dtype = attention->v_dtype,
        .k = head_rows(attention->k, attention->k_dtype, held, sample->n_keys, layer->d_qk),
        .v = head_rows(attention->v, attention->v_dtype, held, sample->n_keys, layer->d_v),
        .scratch = attention->scratch,
        .key_pos = sample->position,
        .n_rows = pick->n_heads * pick->n_probes,
        .n_probes = pick->n_probes,
        .n_regions = axis->count,
        .top_k = top_k,
    };
    p.contract.temperature *= temperature;
    ats_code rc;
    ATS_TRY(make_rows(arena, layer, sample, attention, pick, &p, err));
    ATS_TRY(make_masks(arena, sample, attention, pick, &p, err));
    ATS_TRY(make_regions(arena, sample, axis, &p.regions, err));
    *out = p;
out:
    return rc;
}

ats_code ats_pick_group(ats_arena *arena, const ats_layer *layer, const ats_sample *sample,
                        int64_t kv_head, ats_pick *out, ats_err *err)
{
    const int64_t group = layer->n_q_heads / layer->n_kv_heads;
    int64_t *heads = NULL, *probes = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, group, &heads, err));
    ATS_TRY(ATS_NEW(arena, sample->n_probes, &probes, err));
    for (int64_t i = 0; i < group; i++) heads[i] = kv_head * group + i;
    for (int64_t i = 0; i < sample->n_probes; i++) probes[i] = i;
    *out = (ats_pick){
        .n_heads = group, .heads = heads, .n_probes = sample->n_probes, .probes = probes};
out:
    return rc;
}

/* What some probe may see must be finite; what nobody sees may hold anything. */
#include <math.h>
#include <stdlib.h>

#include "base/parallel.h"
#include "capture/reader.h"

int32_t ats_capture_probe_segment(const ats_sample *sample, int64_t probe)
{
    const ats_probe *p = &sample->probes[probe];
    if (p->index >= 0) return sample->segment[p->index];
    int64_t best = 0;
    for (int64_t i = 1; i < sample->n_keys; i++)
        if (sample->position[i] <= p->position &&
            (sample->position[best] > p->position || sample->position[i] >= sample->position[best]))
            best = i;
    return sample->segment[best];
}

static bool visible(const ats_layer *layer, const ats_sample *sample,
                    const ats_attention *attention, int64_t probe, int32_t segment, int64_t key)
{
    if (!ats_legal_position(&layer->contract, sample->probes[probe].position,
                            sample->position[key]))
        return false;
    if (sample->segment != NULL && sample->segment[key] != segment) return false;
    return attention->keep == NULL || attention->keep[probe * sample->n_keys + key] != 0;
}

bool ats_capture_visible(const ats_layer *layer, const ats_sample *sample,
                         const ats_attention *attention, int64_t probe, int64_t key)
{
    const int32_t segment = sample->segment != NULL ? ats_capture_probe_segment(sample, probe) : 0;
    return visible(layer, sample, attention, probe, segment, key);
}

typedef struct scan {
    const ats_capture *capture;
    const ats_layer *layer;
    const ats_sample *sample;
    const ats_attention *attention;
    const uint8_t *seen; /* [n_keys]: some probe may see the key */
    bool suspect_k, suspect_v;
} scan;

/* First column of a row that is not finite; -1: none. */
static int64_t bad_column(ats_scratch *scratch, ats_dtype dtype, const void *data, int64_t row,
                          int64_t width)
{
    ats_scratch_use_rows(scratch, data, width * (int64_t)ats_dtype_size(dtype), row, 1);
    if (dtype == ATS_F32) {
        const float *x = (const float *)data + row * width;
        int bad = 0;
        for (int64_t i = 0; i < width; i++) bad |= !(fabsf(x[i]) <= 3.402823466e38f);
        if (!bad) return -1;
        for (int64_t i = 0; i < width; i++)
            if (!isfinite(x[i])) return i;
        return -1;
    }
    const uint16_t exponent = dtype == ATS_F16 ? 0x7c00 : 0x7f80;
    const uint16_t *x = (const uint16_t *)data + row * width;
    uint16_t bad = 0; /* as narrow as the words, so that it runs in vectors */
    for (int64_t i = 0; i < width; i++) bad |= (uint16_t)((x[i] & exponent) == exponent);
    if (!bad) return -1;
    for (int64_t i = 0; i < width; i++)
        if ((x[i] & exponent) == exponent) return i;
    return -1;
}

static ats_code row_fail(const scan *s, const char *tensor, int64_t head, int64_t row,
                         int64_t column, ats_err *err)
{
    return ats_fail(err, ATS_E_INPUT,
                    "%s: sample \"%s\", layer %lld: %s is not finite at head %lld, row %lld, "
                    "column %lld%s",
                    s->capture->path, s->sample->id, (long long)s->layer->index, tensor,
                    (long long)head, (long long)row, (long long)column,
                    tensor[0] == 'q' ? "; capture it again, or leave the probe out"
                                     : ", where a probe can see it; capture it again, or mask the "
                                       "row (keep = 0)");
}

enum { ROWS_PER_ITEM = 1024 };

/* Item: ROWS_PER_ITEM keys of one key head, in k and v. */
static ats_code scan_keys(void *ctx, int64_t index, int worker, ats_err *err)
{
    const scan *s = ctx;
    const int64_t n = s->sample->n_keys, blocks = (n + ROWS_PER_ITEM - 1) / ROWS_PER_ITEM;
    const int64_t head = index / blocks, first = index % blocks * ROWS_PER_ITEM;
    const int64_t stop = first + ROWS_PER_ITEM < n ? first + ROWS_PER_ITEM : n;
    const ats_attention *a = s->attention;
    (void)worker;
    for (int64_t i = first; i < stop; i++) {
        if (!s->seen[i]) continue;
        const int64_t row = head * n + i;
        int64_t column = -1;
        if (s->suspect_k) column = bad_column(a->scratch, a->k_dtype, a->k, row, s->layer->d_qk);
        if (column >= 0) return row_fail(s, "k", a->first_kv_head + head, i, column, err);
        if (s->suspect_v) column = bad_column(a->scratch, a->v_dtype, a->v, row, s->layer->d_v);
        if (column >= 0) return row_fail(s, "v", a->first_kv_head + head, i, column, err);
    }
    return ATS_OK;
}

static ats_code scan_queries(const scan *s, ats_err *err)
{
    const int64_t probes = s->sample->n_probes;
    for (int64_t row = 0; row < s->layer->n_q_heads * probes; row++) {
        const int64_t column =
            bad_column(NULL, s->attention->q_dtype, s->attention->q, row, s->layer->d_qk);
        if (column >= 0) return row_fail(s, "q", row / probes, row % probes, column, err);
    }
    return ATS_OK;
}

static ats_code scan_bias(const scan *s, int64_t probe, int64_t key, ats_err *err)
{
    const int64_t n = s->sample->n_keys, plane = s->sample->n_probes * n;
    for (int64_t head = 0; head < s->attention->bias_heads; head++) {
        const float x = s->attention->bias[head * plane + probe * n + key];
        if (isfinite(x) || x == -INFINITY) continue; /* ATS_BIAS_HIDES: -inf hides its key */
        return ats_fail(err, ATS_E_INPUT,
                        "%s: sample \"%s\", layer %lld: bias is %g at plane %lld, probe %lld, key "
                        "%lld, which the probe can see; a bias is finite, or -inf where it "
                        "hides the key",
                        s->capture->path, s->sample->id, (long long)s->layer->index, (double)x,
                        (long long)head, (long long)probe, (long long)key);
    }
    return ATS_OK;
}

/* Marks the keys that the probe sees. */
static ats_code scan_probe(const scan *s, int64_t probe, uint8_t *seen, ats_err *err)
{
    const int32_t segment =
        s->sample->segment != NULL ? ats_capture_probe_segment(s->sample, probe) : 0;
    int64_t count = 0;
    for (int64_t key = 0; key < s->sample->n_keys; key++) {
        if (!visible(s->layer, s->sample, s->attention, probe, segment, key)) continue;
        seen[key] = 1;
        count++;
        if (s->attention->bias == NULL) {
            if (!s->suspect_k && !s->suspect_v) break; /* nobody asks for the other keys */
            continue;
        }
        const ats_code rc = scan_bias(s, probe, key, err);
        if (rc != ATS_OK) return rc;
    }
    if (count > 0 || s->layer->sink != NULL) return ATS_OK;
    return ats_fail(err, ATS_E_INPUT,
                    "%s: sample \"%s\", layer %lld: probe %lld (position %lld) sees no key and the "
                    "layer has no sink; each query needs at least one legal key (causality, "
                    "window, chunk, segment and keep together)",
                    s->capture->path, s->sample->id, (long long)s->layer->index, (long long)probe,
                    (long long)s->sample->probes[probe].position);
}

ats_code ats_capture_check_visible(const ats_capture *capture, const ats_layer *layer,
                                   const ats_sample *sample, const ats_attention *attention,
                                   int64_t kv_heads, bool suspect_k, bool suspect_v, ats_err *err)
{
    uint8_t *seen = calloc((size_t)sample->n_keys, 1);
    scan s = {capture, layer, sample, attention, seen, suspect_k, suspect_v};
    ats_code rc = ATS_OK;
    if (seen == NULL)
        return ats_fail(err, ATS_E_MEMORY, "%s: out of memory for %lld keys", capture->path,
                        (long long)sample->n_keys);
    for (int64_t probe = 0; probe < sample->n_probes; probe++)
        ATS_TRY(scan_probe(&s, probe, seen, err));
    ATS_TRY(scan_queries(&s, err));
    const int64_t blocks = (sample->n_keys + ROWS_PER_ITEM - 1) / ROWS_PER_ITEM;
    if (suspect_k || suspect_v) rc = ats_parallel_for(kv_heads * blocks, scan_keys, &s, err);
out:
    free(seen);
    return rc;
}

#include "kernels/backend.h"

#include <math.h>

static ats_code check_contract(const ats_contract *c, int64_t d_qk, ats_err *err)
{
    if (!isfinite(c->scale))
        return ats_fail(err, ATS_E_INPUT, "scale is %g; it must be a finite number", c->scale);
    if (!(c->softcap >= 0) || isinf(c->softcap))
        return ats_fail(err, ATS_E_INPUT,
                        "softcap is %g; it must be a positive number of logit units, or 0 for none",
                        c->softcap);
    if (!(c->temperature > 0) || isinf(c->temperature))
        return ats_fail(err, ATS_E_INPUT, "temperature is %g; it must be positive and finite",
                        c->temperature);
    if (c->window < 0 || c->chunk < 0)
        return ats_fail(err, ATS_E_INPUT,
                        "window is %lld and chunk is %lld; each counts keys (the query's own "
                        "among them), 0 means none",
                        (long long)c->window, (long long)c->chunk);
    const ats_rope *rope = &c->rope;
    if (rope->layout == ATS_ROPE_NONE) return ATS_OK;
    if (rope->pairs < 0 || 2 * rope->pairs > d_qk || (rope->pairs > 0 && rope->inv_freq == NULL))
        return ats_fail(err, ATS_E_INPUT,
                        "RoPE turns %lld pairs, but a key has %lld elements; at most half as many "
                        "pairs fit",
                        (long long)rope->pairs, (long long)d_qk);
    return ATS_OK;
}

static ats_code check_region(const ats_region *region, int64_t index, int64_t n_keys, ats_err *err)
{
    int64_t previous = 0;
    for (int64_t i = 0; i < region->n_ranges; i++) {
        const ats_range range = region->ranges[i];
        if (range.start < previous || range.stop < range.start || range.stop > n_keys)
            return ats_fail(err, ATS_E_INPUT,
                            "range %lld of region %lld is [%lld, %lld); ranges must ascend, be "
                            "disjoint and stay within %lld keys",
                            (long long)i, (long long)index, (long long)range.start,
                            (long long)range.stop, (long long)n_keys);
        previous = range.stop;
    }
    return ATS_OK;
}

ats_code ats_problem_check(const ats_problem *p, ats_err *err)
{
    if (p->n_keys < 0 || p->d_qk < 1 || p->d_v < 1 || p->n_rows < 1 || p->top_k < 1)
        return ats_fail(err, ATS_E_INPUT,
                        "the problem has %lld keys of width %lld, values of width %lld, %lld rows "
                        "and top lists of length %lld; widths, rows and top_k must be at least 1",
                        (long long)p->n_keys, (long long)p->d_qk, (long long)p->d_v,
                        (long long)p->n_rows, (long long)p->top_k);
    if (p->n_probes < 1 || p->n_rows % p->n_probes != 0)
        return ats_fail(err, ATS_E_INPUT,
                        "%lld rows are not a whole number of query heads with %lld probes each",
                        (long long)p->n_rows, (long long)p->n_probes);
    if ((p->key_segment == NULL) != (p->q_segment == NULL))
        return ats_fail(err, ATS_E_INPUT, "segment ids of %s are given without those of %s",
                        p->key_segment ? "keys" : "queries", p->key_segment ? "queries" : "keys");
    for (int64_t row = 0; p->sink != NULL && row < p->n_rows; row++)
        if (isnan(p->sink[row]) || p->sink[row] == INFINITY)
            return ats_fail(err, ATS_E_INPUT, "the sink logit of row %lld is %g; it must be finite",
                            (long long)row, (double)p->sink[row]);
    for (int64_t r = 0; r < p->n_regions; r++) {
        const ats_code rc = check_region(&p->regions[r], r, p->n_keys, err);
        if (rc != ATS_OK) return rc;
    }
    return check_contract(&p->contract, p->d_qk, err);
}

static ats_code check_segment(const ats_segment *s, int64_t index, int64_t next,
                              const ats_edit *edit, int64_t n_keys, ats_err *err)
{
    const int64_t count = s->stop - s->start;
    if (s->kind == ATS_SEG_ROWS ? s->start != 0 : s->start != next)
        return ats_fail(err, ATS_E_INTERNAL,
                        "segment %lld of the edit script starts at row %lld, but row %lld is next",
                        (long long)index, (long long)s->start,
                        (long long)(s->kind == ATS_SEG_ROWS ? 0 : next));
    if (count < 0 || (s->kind != ATS_SEG_ROWS && s->stop > n_keys))
        return ats_fail(err, ATS_E_INTERNAL,
                        "segment %lld of the edit script stops at row %lld of %lld",
                        (long long)index, (long long)s->stop, (long long)n_keys);
    if ((s->kind == ATS_SEG_ROWS || s->kind == ATS_SEG_SWAP) &&
        (s->row < 0 || s->row > edit->side.count - count))
        return ats_fail(err, ATS_E_INTERNAL,
                        "segment %lld of the edit script takes side rows [%lld, %lld) of %lld",
                        (long long)index, (long long)s->row, (long long)(s->row + count),
                        (long long)edit->side.count);
    return ATS_OK;
}

ats_code ats_edit_check(const ats_problem *p, const ats_edit *edit, ats_err *err)
{
    int64_t next = 0;
    for (int64_t i = 0; i < edit->n_segments; i++) {
        const ats_segment *segment = &edit->segments[i];
        const ats_code rc = check_segment(segment, i, next, edit, p->n_keys, err);
        if (rc != ATS_OK) return rc;
        if (segment->kind != ATS_SEG_ROWS) next = segment->stop;
    }
    if (next != p->n_keys)
        return ats_fail(err, ATS_E_INTERNAL,
                        "the edit script names %lld of %lld base rows; every row must appear once",
                        (long long)next, (long long)p->n_keys);
    if (!(edit->temperature > 0) || isinf(edit->temperature) || !isfinite(edit->scale))
        return ats_fail(err, ATS_E_INPUT,
                        "the variant's temperature factor is %g and its scale %g; the factor must "
                        "be positive (1: none), the scale finite (0: keep)",
                        edit->temperature, edit->scale);
    return ATS_OK;
}
